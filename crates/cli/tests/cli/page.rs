use crate::binary::{Desk, repeats};

#[test]
fn agent_text_is_shown_and_never_obeyed() {
    let hostile = "</code><script>alert(1)</script><img src=x onerror=alert(2)>\\\" onload=alert(3)";
    let step = format!(r#"{{"tool":"{hostile}","args":{{"q":"{hostile}"}},"result":"{hostile}"}}"#);
    let run = format!("{{\"id\":\"{hostile}\",\"steps\":[{}]}}\n", vec![step; 5].join(","));
    let desk = Desk::with("runs.jsonl", run);
    assert_eq!(desk.run(&["replay", "runs.jsonl", "--html", "page.html"]).code, 0);
    let page = desk.read("page.html");
    assert_eq!(page.matches("<script").count(), 1, "only our own script");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains("<img") && !page.contains("\" onload"));
    assert_balanced(&page);
}

#[test]
fn the_page_asks_for_nothing_from_the_network() {
    let desk = Desk::with("runs.jsonl", repeats("a", 7) + &repeats("b", 2) + &repeats("c", 1));
    desk.run(&["replay", "runs.jsonl", "--html", "page.html"]);
    let page = desk.read("page.html");
    for forbidden in ["http:", "https:", "url(", "@import", "<link", "src=", "<iframe", "fetch("] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("default-src 'none'"));
    assert_balanced(&page);
}

#[test]
fn it_shows_every_run_its_marks_and_what_would_have_been_saved() {
    let desk = Desk::with("runs.jsonl", repeats("calm", 1) + &repeats("looping", 7) + &repeats("twice", 2));
    desk.run(&["replay", "runs.jsonl", "--html", "page.html"]);
    let page = desk.read("page.html");
    let order = ["looping</h2>", "twice</h2>", "calm</h2>"].map(|id| page.find(id).unwrap());
    assert!(order.is_sorted(), "loops first");
    for part in [
        "1 of 3 runs looped",
        r#"<i class="onset" data-n="0">O</i><i class="repeat">R</i><i class="hint certain">H</i>"#,
        r#"<i class="reject">X</i><i class="repeat spared">R</i>"#,
        "would have saved <b>4 redundant steps</b>",
        "would not have fired with",
        "<dt>wasted tokens</dt><dd>60",
        "<dt>wasted money</dt><dd>$0.60",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_page_of_many_runs_keeps_the_most_interesting_and_says_so() {
    let runs: String = (0..510).map(|index| repeats(&format!("calm-{index}"), 1)).collect();
    let desk = Desk::with("runs.jsonl", runs + &repeats("looping", 4));
    desk.run(&["replay", "runs.jsonl", "-q", "--html", "page.html"]);
    let page = desk.read("page.html");
    assert_eq!(page.matches("<article").count(), 500);
    assert!(
        page.contains("looping</h2>") && page.contains("Of 511 runs, the 500 most interesting are shown")
    );
}

#[test]
fn a_long_run_shows_its_first_steps() {
    let desk = Desk::with("runs.jsonl", repeats("long", 2_500));
    desk.run(&["replay", "runs.jsonl", "-q", "--html", "page.html"]);
    let page = desk.read("page.html");
    assert_eq!(page.matches("<li id=").count(), 2_000);
    assert!(page.contains("The 500 steps behind these were judged too"));
}

#[test]
fn the_page_is_replaced_as_a_whole_and_leaves_nothing_behind() {
    let desk = Desk::with("runs.jsonl", repeats("a", 1));
    desk.put("page.html", "old");
    desk.run(&["replay", "runs.jsonl", "--html", "page.html"]);
    assert!(desk.read("page.html").ends_with("</html>\n"));
    assert_eq!(desk.files(), ["page.html", "runs.jsonl"]);
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_anything_is_read() {
    let desk = Desk::with("runs.jsonl", repeats("a", 1));
    for (out, why) in [
        ("missing/page.html", "could not be written"),
        (".", "could not be"),
        ("runs.jsonl", "overwrite"),
        ("-", "needs a file"),
    ] {
        let outcome = desk.run(&["replay", "runs.jsonl", "--html", out]);
        assert_eq!((outcome.code, &*outcome.stdout), (1, ""), "{out}");
        assert!(outcome.stderr.contains(why) && outcome.stderr.contains("\nhint: "), "{}", outcome.stderr);
    }
    assert_eq!(desk.files(), ["runs.jsonl"]);
}

/// Every tag that is opened is closed, in the right order.
fn assert_balanced(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').unwrap();
        let tag = &rest[..end];
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        rest = &rest[end + 1..];
        match tag {
            "!DOCTYPE html" => {}
            closing if closing.starts_with('/') => assert_eq!(open.pop(), Some(name)),
            _ if matches!(name, "meta" | "input") => {}
            // What stands in a script or a style is not made of tags.
            _ if matches!(name, "script" | "style") => {
                rest = &rest[rest.find(&format!("</{name}>")).unwrap()..];
                open.push(name);
            }
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

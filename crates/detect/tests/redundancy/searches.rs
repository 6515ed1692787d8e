//! Searches that find nothing, whatever they look for.

use loopbreaker::{Kind, Severity, Status};

use crate::script::{Line, call, loops, read, sh, verdict};

#[test]
fn searches_for_different_things_that_find_nothing_are_worth_a_word_however_many_there_are() {
    let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "mu"];
    for nothing in ["no match", "Nothing found for this query."] {
        let search = |word| call("grep", &format!("{{\"path\":\"src\",\"pattern\":\"{word}\"}}"), nothing);
        let run: Vec<_> = words.iter().map(search).collect();
        assert_eq!(verdict(&run), Some(Severity::Warning));
        assert_eq!(verdict(&run[..5]), None);
    }
}

#[test]
fn searches_for_one_thing_in_many_ways_that_find_nothing_are_a_loop_at_the_sixth() {
    let select =
        |selector: &str| call("query_selector_all", &format!("{{\"selector\":\"{selector}\"}}"), "[]");
    let ways = [".price", "span.price", ".product-price", "div.price", "p.price", "#price"].map(select);
    assert_ne!(verdict(&ways[..5]), Some(Severity::Loop));
    assert_eq!(loops(&ways), [Kind::Churn]);
    let options = ["", "-n", "-i", "--hidden", "-l", "--no-ignore"];
    let commands = options.into_iter().map(|option| format!("rg {option} slow build"));
    let run: Vec<_> = commands.map(|command| sh(&command, "Exit code: 1")).collect();
    assert_eq!(loops(&run), [Kind::Churn], "the exit code of a search says that it has no match");
}

#[test]
fn one_search_over_other_ranges_that_finds_nothing_is_a_loop_and_one_by_other_numbers_is_none() {
    let ask =
        |tool: &str, from: usize| call(tool, &format!("{{\"from\":{from},\"query\":\"level=error\"}}"), "[]");
    let search: Vec<_> = [95, 94, 93, 90, 80, 60].iter().map(|from| ask("search_logs", *from)).collect();
    assert_eq!(loops(&search), [Kind::Churn]);
    let get: Vec<_> = [95, 94, 93, 90, 80, 60].iter().map(|from| ask("get_orders", *from)).collect();
    assert_ne!(verdict(&get), Some(Severity::Loop));
}

fn searches(words: &[&str]) -> Vec<Line> {
    words.iter().map(|word| call("grep", &format!("{{\"pattern\":\"{word}\"}}"), "no match")).collect()
}

#[test]
fn searches_that_find_nothing_are_worth_a_word_at_the_sixth_in_a_row() {
    let run = searches(&["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]);
    assert_eq!(verdict(&run[..5]), None);
    assert_eq!(verdict(&run), Some(Severity::Warning));
}

#[test]
fn a_search_that_found_something_ends_a_row_of_searches_that_did_not() {
    let mut run = searches(&["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"]);
    run[4] = call("grep", r#"{"pattern":"epsilon"}"#, "a.rs: let epsilon = 5;");
    assert_eq!(verdict(&run), None);
}

#[test]
fn what_another_tool_found_does_not_end_a_row_of_searches_that_find_nothing() {
    let run: Vec<_> = searches(&["alpha", "beta", "gamma", "delta", "epsilon", "zeta"])
        .into_iter()
        .enumerate()
        .flat_map(|(n, search)| [read(&format!("{n}.md"), &format!("text {n}")), search])
        .collect();
    assert_eq!(verdict(&run), Some(Severity::Warning));
}

#[test]
fn a_search_that_failed_has_not_looked() {
    let run = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"].map(|word| {
        let args = format!("{{\"pattern\":\"{word}\"}}");
        call("grep", &args, &format!("no results for {word}")).status(Status::Failure)
    });
    assert_eq!(verdict(&run), None);
}

#[test]
fn to_wait_without_a_word_is_no_search() {
    let run: Vec<_> = (1..=6).map(|n| sh(&format!("sleep {n}"), "")).collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn the_same_hits_for_five_questions_in_other_words_are_a_loop_however_brief_they_are() {
    let search = |query: &str, hits: &str| {
        call("codebase_search", &format!("{{\"query\":\"{query}\",\"top\":5}}"), hits)
    };
    let queries = [
        "fast_checkout feature flag",
        "where is fast_checkout read",
        "feature flag lookup for fast checkout",
        "code that checks the fast_checkout flag",
        "fast checkout flag evaluation",
    ];
    let hits = "config/flags.yaml:14: fast_checkout: true";
    let run = queries.map(|query| search(query, hits));
    assert_ne!(verdict(&run[..4]), Some(Severity::Loop));
    assert_eq!(loops(&run), [Kind::Churn]);
    let names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];
    let list = names.map(|name| search(name, "2 hits in flags.yaml"));
    assert_ne!(verdict(&list), Some(Severity::Loop), "one name after the other");
}

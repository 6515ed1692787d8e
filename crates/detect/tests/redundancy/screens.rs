//! Screens and pages that stand still, and thoughts that do.

use loopbreaker::{Kind, Severity};

use crate::script::{Line, call, loops, sh, times, verdict};

fn page(number: usize) -> String {
    format!(
        "### Page\n- heading: Lamps\n- link: Lamp {number}0\n- link: Lamp {number}1\n- button: Next, with a picture of an arrow that points right\n- text: of all the lamps that we have"
    )
}

fn click(element: &str, shows: &str) -> Line {
    call("browser_click", &format!("{{\"element\":\"{element}\",\"ref\":\"e25\"}}"), shows)
}

#[test]
fn a_page_that_stays_as_it_was_was_not_changed_by_the_click() {
    let elements = ["Next", "Next", "Next page button", "Next", "Next button"];
    assert_eq!(loops(&elements.map(|element| click(element, &page(2)))), [Kind::Repeat]);
    let moves: Vec<_> = elements.iter().zip(2..).map(|(element, at)| click(element, &page(at))).collect();
    assert_eq!(verdict(&moves), None);
}

#[test]
fn an_action_is_judged_by_the_look_that_follows() {
    let act = |action: &str, shows: &str| call("act", &format!("{action:?}"), shows);
    let wait = || act("wait1", "You decide to wait for 1 iterations.");
    let measure = |degrees: usize| {
        act(
            "use thermometer on water",
            &format!("the thermometer measures a temperature of {degrees} degrees"),
        )
    };
    let warms: Vec<_> = [12, 21, 34, 49, 63, 78, 91].map(|degrees| [wait(), measure(degrees)]).concat();
    assert_ne!(verdict(&warms), Some(Severity::Loop));
    assert!(!loops(&times(7, &[wait(), measure(12)])).is_empty(), "it stays cold");
}

fn look(seconds: usize, screen: &str) -> Line {
    call("keystrokes", &format!("{{\"duration\":{seconds},\"keystrokes\":\"\"}}"), screen)
}

#[test]
fn whoever_waits_at_a_prompt_waits_for_itself_however_long_each_time() {
    let seconds = [10, 30, 30, 60, 120];
    for prompt in ["Username for 'https://git.example.org':", "[sudo] password for me:", "Continue? [Y/n]"] {
        let screen = format!("$ ./setup.sh\nSetting up\n{prompt} ");
        assert_eq!(loops(&seconds.map(|seconds| look(seconds, &screen))), [Kind::StalePoll], "{prompt}");
    }
    for line in
        ["Compiling syn v2.0.39", "Downloading (this may take a while):", "Listening on 127.0.0.1:9000"]
    {
        let screen = format!("$ ./setup.sh\nSetting up\n{line}");
        assert_ne!(verdict(&seconds.map(|seconds| look(seconds, &screen))), Some(Severity::Loop), "{line}");
    }
}

#[test]
fn terminals_with_names_are_looked_at_each_for_itself() {
    let look = |id: usize| {
        let args = format!("{{\"chars\":\"\",\"session_id\":{id}}}");
        call("write_stdin", &args, "$ ssh host\npassword:")
    };
    assert_ne!(verdict(&[1, 2, 3, 4, 5, 6].map(look)), Some(Severity::Loop));
}

#[test]
fn a_thought_that_is_written_down_again_is_talk() {
    let think = |thought: &str| {
        call("think", &format!("{{\"thought\":{thought:?}}}"), "Your thought has been logged.")
    };
    let same = [
        "I should search for the sales in Sweden next and then compare.",
        "Next I should search for the sales in Sweden, and then compare.",
        "I should now search for sales in Sweden and then compare.",
        "I should search for sales in Sweden next, then compare.",
    ]
    .map(think);
    assert_eq!(loops(&same), [Kind::Churn]);
    let works: Vec<_> = same.iter().flat_map(|thought| [thought.clone(), sh("date +%N", "")]).collect();
    assert_ne!(verdict(&works[..4]), Some(Severity::Loop), "something is done in between");
    let others = [
        "Norway is clear: the sales fell by a tenth.",
        "In Sweden the subsidies matter more than prices do.",
        "Finland peaks early, which the price explains.",
        "So the next thing to look at are heating costs.",
    ];
    assert_eq!(verdict(&others.map(think)), None, "one thought after the other is thinking");
}

//! From which occurrence on each rule warns and fires: one step earlier it must not.

use loopbreaker::{Action, Kind, Ladder, Redundancy, RedundancyConfig, Severity, Status, Strikes};

use crate::script::{
    Line, call, edit, findings, findings_with, loops, read, says, sh, times, verdict, write,
};

fn failed(line: Line) -> Line {
    line.status(Status::Failure)
}

/// Edits (or whatever `between` does) with the same failing test run after each.
fn test_runs(count: usize, between: impl Fn(usize) -> Line) -> Vec<Line> {
    (0..count).flat_map(|n| [between(n), failed(sh("cargo test", "FAILED parser::empty_input"))]).collect()
}

#[test]
fn moving_on_the_spot_is_a_repeat_at_the_sixth() {
    let scroll = [call("browser", r#"{"action":"scroll_down"}"#, "scrolled down by 1000 pixels")];
    assert_eq!(verdict(&times(3, &scroll)), None);
    assert_eq!(verdict(&times(5, &scroll)), Some(Severity::Warning));
    assert_eq!(loops(&times(6, &scroll)), [Kind::Repeat]);
}

#[test]
fn a_move_that_shows_the_same_long_page_again_is_a_repeat_at_the_third() {
    let page = "A paragraph of the page that is long enough to be read. ".repeat(4);
    let run = times(3, &[call("browser", r#"{"action":"scroll_down"}"#, &page)]);
    assert_eq!(loops(&run), [Kind::Repeat]);
}

#[test]
fn changes_excuse_a_failure_to_the_letter_four_times() {
    let edits = |n: usize| edit("a.rs", &format!("x{n}"), &format!("y{n}"));
    let programs = |n: usize| sh(&format!("python fix{n}.py"), &format!("patched {n} places"));
    for change in [edits, programs] {
        assert_eq!(verdict(&test_runs(3, change)), None);
        assert_eq!(verdict(&test_runs(4, change)), Some(Severity::Warning));
        assert_eq!(loops(&test_runs(5, change)), [Kind::FailingRepeat]);
    }
}

#[test]
fn a_poll_that_fails_for_good_waits_for_nothing() {
    let poll = [failed(call("get_job_status", r#"{"id":7}"#, "error: job 7 has no owner"))];
    assert_eq!(loops(&times(3, &poll)), [Kind::FailingRepeat]);
}

#[test]
fn a_final_answer_may_be_asked_for_four_times() {
    let poll = [call("get_job_status", r#"{"id":7}"#, "state: completed")];
    assert_eq!(verdict(&times(2, &poll)), None);
    assert_eq!(verdict(&times(4, &poll)), Some(Severity::Warning));
    assert_eq!(loops(&times(5, &poll)), [Kind::StalePoll]);
}

#[test]
fn a_missing_tool_is_worth_a_warning_at_the_second_call() {
    let run = ["a", "b"].map(|n| call("frob", &format!("{{\"n\":{n:?}}}"), "Error: unknown tool 'frob'"));
    let found = findings(&run);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind, found[0].severity), (Kind::UnknownTool, Severity::Warning));
}

#[test]
fn a_retry_is_reported_at_the_third_passing_failure() {
    let get = [failed(call("http_get", r#"{"url":"http://x"}"#, "503 Service Unavailable"))];
    assert_eq!(verdict(&times(2, &get)), None);
    let found = findings(&times(3, &get));
    assert_eq!((found.len(), found[0].kind, found[0].step, found[0].count), (1, Kind::Retry, 2, 3));
}

#[test]
fn a_long_cycle_is_found_with_each_step_of_its_third_copy() {
    let run = times(4, &[read("a", "A"), read("b", "B"), read("c", "C")]);
    let found = findings(&run);
    let cycles: Vec<_> = found.iter().filter(|finding| finding.kind == Kind::Cycle).collect();
    let seen: Vec<_> = cycles.iter().map(|cycle| (cycle.step, cycle.count, cycle.severity)).collect();
    let (warning, certain) = (Severity::Warning, Severity::Loop);
    let third = [(6, 3, certain), (7, 3, certain), (8, 3, certain)];
    let fourth = [(9, 4, certain), (10, 4, certain), (11, 4, certain)];
    assert_eq!(seen, [&[(5, 2, warning)][..], &third, &fourth].concat());
}

#[test]
fn a_short_cycle_is_one_strike_per_copy_and_stays_stopped_between_two() {
    use Action::{Hint, Reject, Throttle, Warn};
    let (mut strikes, ladder) = (Strikes::default(), Ladder::default());
    let found = findings(&times(7, &[read("a", "A"), read("b", "B")]));
    let rulings: Vec<_> =
        found.iter().skip(2).map(|finding| (finding.step, strikes.rule(finding, &ladder).action)).collect();
    let (steps, actions): (Vec<_>, Vec<_>) = rulings.into_iter().unzip();
    assert_eq!(steps, [4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    assert_eq!(actions, [Hint, Hint, Warn, Throttle, Warn, Reject, Reject, Reject, Reject, Reject]);
}

#[test]
fn a_short_cycle_counts_copies_that_are_complete() {
    let found = findings(&times(4, &[read("a", "A"), read("b", "B")]));
    let cycles = found.iter().filter(|finding| finding.kind == Kind::Cycle);
    let seen: Vec<_> = cycles.map(|cycle| (cycle.step, cycle.count)).collect();
    assert_eq!(seen, [(3, 2), (5, 3), (6, 3), (7, 4)]);
}

#[test]
fn nothing_else_is_reported_beside_a_cycle() {
    let run = times(4, &[read("a", "A"), read("b", "B"), read("c", "C")]);
    assert_eq!(loops(&run), [Kind::Cycle]);
    let mut steps: Vec<usize> = findings(&run).iter().map(|finding| finding.step).collect();
    let all = steps.len();
    steps.dedup();
    assert_eq!(steps.len(), all, "one finding per step");
}

#[test]
fn variations_that_fail_are_churn_at_the_third() {
    let ssh = |option| failed(sh(&format!("ssh {option} host true"), "Permission denied (publickey)."));
    assert_eq!(verdict(&["-v", "-4"].map(ssh)), Some(Severity::Warning));
    assert_eq!(loops(&["-v", "-4", "-6"].map(ssh)), [Kind::Churn]);
}

#[test]
fn quite_different_calls_of_one_tool_that_fail_alike_are_churn_at_the_fourth() {
    let search =
        |words: &str| failed(call("search", &format!("{{\"q\":{words:?}}}"), "error: index is corrupt"));
    let words = ["alpha beta", "gamma delta", "epsilon zeta", "eta theta"];
    assert_eq!(
        verdict(&words[..3].iter().map(|words| search(words)).collect::<Vec<_>>()),
        Some(Severity::Warning)
    );
    assert_eq!(loops(&words.map(search)), [Kind::Churn]);
}

#[test]
fn one_failure_from_every_tool_is_churn_at_the_fifth() {
    let tools = ["alpha", "beta", "gamma", "delta", "epsilon"]
        .map(|tool| failed(call(tool, &format!("{{\"of\":\"{tool}\"}}"), "error: the disk is full")));
    assert_eq!(verdict(&tools[..3]), None);
    assert_eq!(verdict(&tools[..4]), Some(Severity::Warning));
    assert_eq!(loops(&tools), [Kind::Churn]);
}

#[test]
fn one_answer_to_many_spellings_is_churn_at_the_fourth() {
    let run = ["foo bar", "bar foo", "foo|bar", "bar|foo"]
        .map(|pattern| call("grep", &format!("{{\"pattern\":{pattern:?}}}"), "three lines in two files"));
    assert_eq!(verdict(&run[..2]), None);
    assert_eq!(verdict(&run[..3]), Some(Severity::Warning));
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn an_order_given_again_in_other_words_is_churn_at_the_fourth() {
    let run = ["today", "once more", "with care", "in full"].map(|how| {
        let order = format!("please scan the video and list the moments with several birds {how}");
        call("web_surfer", &format!("{{\"order\":{order:?}}}"), &format!("I scrolled down, {how}"))
    });
    assert_eq!(verdict(&run[..2]), None);
    assert_eq!(verdict(&run[..3]), Some(Severity::Warning));
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn an_order_that_failed_before_it_worked_was_another_one() {
    let run = ["today", "once more", "with care", "in full"].map(|how| {
        let order = format!("please scan the video and list the moments with several birds {how}");
        call("web_surfer", &format!("{{\"order\":{order:?}}}"), &format!("I scrolled down, {how}"))
    });
    let [first, rest @ ..] = run;
    let failed = Line { result: Some("error: the page is gone".into()), ..failed(first) };
    let run: Vec<_> = std::iter::once(failed).chain(rest).collect();
    assert_eq!(verdict(&run), Some(Severity::Warning));
}

#[test]
fn nearly_the_same_change_is_churn_at_the_fourth() {
    let text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen \
                sixteen seventeen eighteen nineteen twenty plus some more";
    let run = ["alpha", "beta", "gamma", "delta"].map(|last| write("a.txt", &format!("{text} {last}")));
    assert_eq!(verdict(&run[..2]), None);
    assert_eq!(verdict(&run[..3]), Some(Severity::Warning));
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn commands_of_any_kind_that_are_put_aside_are_churn_at_the_fifth() {
    let run = ["curl -s localhost", "node test.js", "npm run check", "wget -q host", "psql -l"]
        .map(|command| sh(command, "Command running in background with ID: b1x."));
    assert_eq!(verdict(&run[..3]), None);
    assert_eq!(verdict(&run[..4]), Some(Severity::Warning));
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn a_command_that_is_put_aside_is_churn_at_the_fourth() {
    let run = ["1", "2", "3", "4"].map(|port| {
        let aside = format!("Command running in background with ID: b{port}x.");
        sh(&format!("node connect.js --port 543{port} --host db"), &aside)
    });
    assert_eq!(verdict(&run[..3]), Some(Severity::Warning));
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn the_second_return_is_back_and_forth() {
    let (there, back) = (edit("a.rs", "x", "y"), edit("a.rs", "y", "x"));
    let found = findings(&[there.clone(), back, there]);
    let returns: Vec<_> = found.iter().filter(|finding| finding.kind == Kind::Oscillation).collect();
    let seen: Vec<_> = returns.iter().map(|finding| (finding.step, finding.severity)).collect();
    assert_eq!(seen, [(1, Severity::Warning), (2, Severity::Loop)]);
    assert_eq!(returns[0].identity, returns[1].identity, "there and back are one loop");
}

#[test]
fn whole_contents_there_and_back_are_one_loop_though_one_is_written_twice() {
    let (one, two) = (write("a.rs", "one"), write("a.rs", "two"));
    let found = findings(&[one.clone(), two.clone(), one.clone(), one, two]);
    let returns: Vec<_> = found.iter().filter(|finding| finding.kind == Kind::Oscillation).collect();
    assert_eq!(returns.iter().map(|finding| finding.step).collect::<Vec<_>>(), [2, 3, 4]);
    assert!(returns.iter().all(|finding| finding.identity == returns[0].identity));
}

#[test]
fn like_words_are_a_monologue_at_the_fourth() {
    let run = ["today", "tomorrow", "again", "soon"]
        .map(|when| says(&format!("I will look into the parser for errors {when}")));
    assert_eq!(verdict(&run[..2]), None);
    assert_eq!(verdict(&run[..3]), Some(Severity::Warning));
    assert_eq!(loops(&run), [Kind::Monologue]);
}

#[test]
fn one_canned_reply_is_enough_at_the_fourth() {
    let texts = [
        "Is there anything else that I should do?",
        "Thank you for working with me on this.",
        "It was a pleasure to explore the problem.",
        "Should more come up, tell me.",
        "Farewell and good luck!",
    ];
    let run = texts.map(|text| Line { result: Some("Please go on.".into()), ..says(text) });
    // The first reply was news.
    assert_eq!(verdict(&run[..4]), Some(Severity::Warning));
    assert_eq!(loops(&run), [Kind::Monologue]);
}

#[test]
fn a_step_is_remembered_as_long_as_the_window_is() {
    let config = RedundancyConfig::new(6).unwrap();
    let apart = |by: usize| {
        let others = (1..by).map(|n| read(&format!("{n}.rs"), &format!("text {n}")));
        let mut run = vec![sh("git status", "clean")];
        run.extend(others);
        run.push(sh("git status", "clean"));
        findings_with(&config, &run).len()
    };
    assert_eq!((apart(6), apart(7)), (1, 0));
}

#[test]
fn the_score_is_full_at_twice_the_threshold() {
    let found = findings(&times(8, &[sh("ls", "a b")]));
    let scores: Vec<f64> = found.iter().map(|finding| (finding.score * 6.0).round()).collect();
    assert_eq!(scores, [2.0, 3.0, 4.0, 5.0, 6.0, 6.0, 6.0]);
}

#[test]
fn every_occurrence_is_evidence_however_many_there_are() {
    let found = findings(&times(20, &[sh("ls", "a b")]));
    assert_eq!(found[18].evidence, (0..20).collect::<Vec<_>>());
}

#[test]
fn steps_that_never_ran_keep_their_place_in_the_count_of_steps() {
    let skipped = sh("rm -rf build", "").status(Status::Skipped);
    let found = findings(&[sh("ls", "a b"), skipped, sh("ls", "a b")]);
    assert_eq!((found[0].step, &*found[0].evidence), (2, &[0, 2][..]));
}

#[test]
fn a_detector_that_was_reset_has_seen_nothing() {
    let mut detector = Redundancy::new(&RedundancyConfig::default());
    let line = sh("ls", "a b");
    for _ in 0..3 {
        detector.observe(&line.step());
    }
    detector.reset();
    assert!(detector.foresee("bash", line.args.as_deref()).is_none());
    assert_eq!(detector.observe(&line.step()), []);
    assert_eq!(detector.finish(), []);
}

#[test]
fn the_same_content_again_is_a_repeat_and_no_return() {
    let run: Vec<_> = (0..3)
        .flat_map(|n| [write("a.rs", "one"), write(&format!("b{n}.rs"), &format!("text {n}"))])
        .collect();
    assert!(findings(&run).iter().all(|finding| finding.kind != Kind::Oscillation));
}

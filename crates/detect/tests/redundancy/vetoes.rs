//! What keeps the detector quiet, each veto beside the loop that it does not excuse.

use loopbreaker::{
    Effect, Kind, Redundancy, RedundancyConfig, Severity, Status, Step, ToolPattern, ToolProfile,
};

use crate::script::{
    Line, call, compaction, edit, findings, findings_with, loops, read, sh, times, user, verdict,
};

#[test]
fn another_answer_restarts_the_count() {
    let run: Vec<_> = ["10%", "10%", "20%", "20%", "30%", "30%"].map(|done| sh("cat progress", done)).into();
    assert_eq!(verdict(&run), Some(Severity::Warning));
}

#[test]
fn another_answer_does_not_silence_later_repeats() {
    let run: Vec<_> = ["10%", "20%", "30%", "30%", "30%"].map(|done| sh("cat progress", done)).into();
    assert_eq!(loops(&run), [Kind::Repeat]);
}

#[test]
fn a_success_in_between_restarts_the_count_of_a_failure() {
    let make = |result: &str, status| sh("make", result).status(status);
    let failed = || make("error: no rule to make target", Status::Failure);
    let run = [failed(), failed(), make("all built", Status::Success), failed()];
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn a_tools_own_success_ends_its_row_of_failures() {
    let search = |words: &str, result: &str, status| {
        call("search", &format!("{{\"q\":{words:?}}}"), result).status(status)
    };
    let failed = |words| search(words, "error: index is corrupt", Status::Failure);
    let found = search("eta theta", "two pages", Status::Success);
    let run =
        [failed("alpha beta"), failed("gamma delta"), failed("epsilon zeta"), found, failed("iota kappa")];
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn a_write_that_fails_in_another_way_each_time_is_no_repeat() {
    let errors = ["KeyError: 'a'", "IndexError: out of range", "TypeError: bad operand"];
    let run = errors.map(|error| {
        let edit = edit("a.rs", "x", "y").status(Status::Failure);
        Line { result: Some(error.into()), ..edit }
    });
    assert_eq!(verdict(&run), None);
}

#[test]
fn a_test_run_after_each_edit_is_work() {
    let run: Vec<_> = (0..4)
        .flat_map(|n| {
            let test = sh("cargo test", "FAILED parser::empty_input").status(Status::Failure);
            [edit("a.rs", &format!("x{n}"), &format!("y{n}")), test]
        })
        .collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn an_edit_that_failed_excuses_nothing() {
    let run: Vec<_> = (0..4)
        .flat_map(|n| {
            let mut edit = edit("a.rs", &format!("x{n}"), &format!("y{n}")).status(Status::Failure);
            edit.result = Some(format!("error {n}{n}: other text was expected at {n}"));
            [edit, sh("cargo test", "FAILED parser::empty_input").status(Status::Failure)]
        })
        .collect();
    assert!(loops(&run).contains(&Kind::FailingRepeat));
}

#[test]
fn the_same_edit_again_excuses_nothing() {
    let test = || sh("cargo test", "FAILED parser::empty_input").status(Status::Failure);
    let run = times(4, &[edit("a.rs", "x", "y"), test()]);
    assert!(!loops(&run).is_empty());
}

#[test]
fn the_same_edit_between_other_work_excuses_nothing() {
    let run: Vec<_> = (0..4)
        .flat_map(|n| {
            let test = sh("cargo test", "FAILED parser::empty_input").status(Status::Failure);
            [test, edit("a.rs", "x", "y"), read(&format!("{n}.md"), &format!("text {n}"))]
        })
        .collect();
    assert!(loops(&run).contains(&Kind::FailingRepeat));
}

#[test]
fn a_write_in_the_round_of_a_read_excuses_the_next_one_in_either_order() {
    let round = |n: u64, read_first: bool| {
        let mut lines = [read("a.rs", "A"), edit("a.rs", &format!("x{n}"), &format!("y{n}"))];
        lines.rotate_left(usize::from(!read_first));
        lines.map(|line| line.round(n))
    };
    for read_first in [true, false] {
        let run: Vec<_> = (0..4).flat_map(|n| round(n, read_first)).collect();
        assert_eq!(verdict(&run), None, "read first: {read_first}");
    }
}

#[test]
fn a_write_elsewhere_does_not_excuse_reading_the_same_file() {
    let run: Vec<_> = (0..3)
        .flat_map(|n| [read("src/a.rs", "A"), edit("docs/b.md", &format!("x{n}"), &format!("y{n}"))])
        .collect();
    assert_eq!(loops(&run), [Kind::Repeat]);
}

#[test]
fn a_write_in_the_folder_excuses_listing_it() {
    let run: Vec<_> = (0..3)
        .flat_map(|n| [sh("ls src/", "a.rs b.rs"), edit("src/a.rs", &format!("x{n}"), &format!("y{n}"))])
        .collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn a_write_anywhere_excuses_tests_of_one_file() {
    let run: Vec<_> = (0..3)
        .flat_map(|n| {
            let test = sh("pytest tests/test_a.py", "1 failed, 2 passed");
            [test, edit("src/b.py", &format!("x{n}"), &format!("y{n}"))]
        })
        .collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn a_write_that_has_not_answered_excuses_nothing() {
    let run: Vec<_> = (0..3)
        .flat_map(|n| {
            let edit = edit("a.rs", &format!("x{n}"), &format!("y{n}"));
            [read("a.rs", "A"), edit.status(Status::Pending)]
        })
        .collect();
    assert!(loops(&run).contains(&Kind::Repeat));
}

#[test]
fn a_write_whose_long_answer_complains_excuses_nothing() {
    let run: Vec<_> = (0..3)
        .flat_map(|n| {
            let lines: Vec<String> = (0..60).map(|line| format!("step {line} of run {n} went by")).collect();
            let log = format!("{}\nstep 60 failed to start", lines.join("\n"));
            [call("get_version", "{}", "1.2"), call("deploy", &format!("{{\"n\":{n}}}"), &log)]
        })
        .collect();
    assert!(loops(&run).contains(&Kind::Repeat));
}

#[test]
fn writes_are_known_from_shell_verbs() {
    for command in
        ["sed -i s/a/NNN/ f.py", "cat <<'EOF' > f.py\nNNN\nEOF", "echo NNN >> f.py", "git checkout NNN"]
    {
        let run: Vec<_> = (0..3)
            .flat_map(|n| [sh("pytest -q", "1 failed"), sh(&command.replace("NNN", &format!("v{n}")), "")])
            .collect();
        assert_ne!(verdict(&run), Some(Severity::Loop), "{command}");
    }
}

#[test]
fn looking_around_excuses_nothing() {
    for command in ["cat f.py # NNN", "grep NNN f.py", "git log -NNN"] {
        let run: Vec<_> = (0..3)
            .flat_map(|n| {
                [
                    sh("pytest -q", "1 failed"),
                    sh(&command.replace("NNN", &format!("{n}")), &format!("seen {n}")),
                ]
            })
            .collect();
        assert_eq!(verdict(&run), Some(Severity::Loop), "{command}");
    }
}

#[test]
fn an_unknown_effect_is_a_write_only_when_it_is_new_and_went_well() {
    let between = |result: &str, status| {
        let run: Vec<_> = (0..3)
            .flat_map(|n| {
                let deploy = call("deploy", &format!("{{\"n\":{n}}}"), result).status(status);
                [call("get_version", "{}", "1.2"), deploy]
            })
            .collect();
        loops(&run)
    };
    assert_eq!(between("deployed", Status::Success), []);
    assert!(between("error: quota is used up", Status::Failure).contains(&Kind::Repeat));
}

#[test]
fn a_declared_effect_wins() {
    let profile = ToolProfile { effect: Some(Effect::Read), ..ToolProfile::default() };
    let config = RedundancyConfig::default().with_tool(ToolPattern::new("deploy"), profile).unwrap();
    let run: Vec<_> = (0..3)
        .flat_map(|n| {
            [
                call("get_version", "{}", "1.2"),
                call("deploy", &format!("{{\"n\":{n}}}"), &format!("done {n}")),
            ]
        })
        .collect();
    assert!(findings_with(&config, &run).iter().any(|finding| finding.severity == Severity::Loop));
}

#[test]
fn a_loop_key_leaves_out_the_fields_that_do_not_count() {
    let profile = ToolProfile { loop_key: vec!["q".into()], ..ToolProfile::default() };
    let config = RedundancyConfig::default().with_tool(ToolPattern::new("search"), profile).unwrap();
    let run: Vec<_> = (0..3)
        .map(|n| call("search", &format!("{{\"q\":\"rust\",\"request_id\":{n}}}"), "ten pages"))
        .collect();
    assert!(findings_with(&config, &run).iter().any(|finding| finding.kind == Kind::Repeat));
    assert!(findings(&run).iter().all(|finding| finding.kind != Kind::Repeat));
}

#[test]
fn what_a_tools_results_may_ignore_can_be_declared() {
    let profile = ToolProfile { ignore_result: vec!["ticket-[a-z]+".into()], ..ToolProfile::default() };
    let config = RedundancyConfig::default().with_tool(ToolPattern::new("ask_*"), profile).unwrap();
    let run: Vec<_> = ["a", "b", "c"].map(|id| call("ask_help", "{}", &format!("see ticket-{id}"))).into();
    assert!(findings_with(&config, &run).iter().any(|finding| finding.severity == Severity::Loop));
    assert_eq!(findings(&run), []);
}

#[test]
fn passing_failures_are_back_off_and_never_a_loop() {
    for error in
        ["429 Too Many Requests", "503 Service Unavailable", "connection reset by peer", "request timed out"]
    {
        let run = times(8, &[call("http_get", r#"{"url":"http://x"}"#, error).status(Status::Failure)]);
        let found = findings(&run);
        assert!(found.iter().all(|finding| finding.kind == Kind::Retry), "{error}: {found:?}");
        assert_eq!(verdict(&run), Some(Severity::Warning));
    }
}

#[test]
fn passing_failures_of_other_calls_are_no_retry() {
    let run = ["a", "b", "c", "d"].map(|host| {
        call("http_get", &format!("{{\"url\":\"http://{host}\"}}"), "503 Service Unavailable")
            .status(Status::Failure)
    });
    assert_eq!(verdict(&run), None);
}

#[test]
fn an_answer_in_between_ends_a_retry() {
    let get = |result: &str, status| call("http_get", r#"{"url":"http://x"}"#, result).status(status);
    let down = || get("503 Service Unavailable", Status::Failure);
    assert_eq!(verdict(&[down(), down(), get("a page", Status::Success), down(), down()]), None);
}

#[test]
fn two_calls_in_turns_that_fail_for_a_passing_reason_are_no_cycle() {
    let down = |host: &str| {
        call("http_get", &format!("{{\"url\":\"http://{host}\"}}"), "503 Service Unavailable")
            .status(Status::Failure)
    };
    let found = findings(&times(4, &[down("a"), down("b")]));
    assert!(!found.is_empty() && found.iter().all(|finding| finding.kind == Kind::Retry));
}

#[test]
fn a_passing_failure_in_between_does_not_restart_the_count() {
    let down = |command: &str| sh(command, "connection reset by peer").status(Status::Failure);
    let same = || sh("cat remote.log", "the log");
    let run = [same(), down("cat remote.log"), same(), down("cat remote.log"), same()];
    assert_eq!(loops(&run), [Kind::Repeat]);
    let failed = || sh("make push", "error: no rule to make target").status(Status::Failure);
    let run = [failed(), down("make push"), failed(), down("make push"), failed()];
    assert_eq!(loops(&run), [Kind::FailingRepeat]);
}

#[test]
fn a_call_that_a_person_refused_does_not_count() {
    let run = times(6, &[sh("rm -rf build", "The user doesn't want to proceed with this tool use.")]);
    assert_eq!(verdict(&run), None);
}

#[test]
fn our_own_block_does_not_feed_the_alarm() {
    let blocked =
        "Loopbreaker: this exact call of `bash` gave the same result 3 times, so it was not run again.";
    let run = times(6, &[sh("ls", blocked)]);
    assert_eq!(verdict(&run), None);
    let skipped = times(6, &[sh("ls", "").status(Status::Skipped)]);
    assert_eq!(verdict(&skipped), None);
}

#[test]
fn trouble_that_passes_is_back_off_without_a_status_too() {
    for said in [
        "HTTP 503 Service Unavailable",
        "HTTP 429 Too Many Requests",
        "Rate limit exceeded",
        "Request timed out",
        "Connection refused",
        "Temporary failure in name resolution",
        "requests.exceptions.ConnectionError: no answer",
    ] {
        let found = findings(&times(9, &[call("fetch", r#"{"url":"http://x"}"#, said)]));
        assert!(found.iter().all(|finding| finding.kind == Kind::Retry), "{said}: {found:?}");
        assert_eq!(found.len(), 7, "{said}");
    }
}

#[test]
fn a_fan_out_that_comes_again_is_one_occurrence_per_round_from_its_first_call_on() {
    let run: Vec<_> = (0..3)
        .flat_map(|round| times(6, &[sh("ls", "a b c")]).into_iter().map(move |line| line.round(round)))
        .collect();
    let found = findings(&run);
    let told: Vec<_> =
        found.iter().map(|finding| (finding.count, finding.onset, finding.evidence.clone())).collect();
    assert_eq!(told, [(2, 0, vec![0, 6]), (3, 0, vec![0, 6, 12])]);
}

#[test]
fn a_fan_out_inside_one_round_counts_once() {
    let run: Vec<_> = (0..6).map(|_| sh("ls", "a").round(0)).collect();
    assert_eq!(verdict(&run), None);
    let rounds: Vec<_> = (0..3).flat_map(|round| (0..4).map(move |_| sh("ls", "a").round(round))).collect();
    let found = findings(&rounds);
    assert_eq!(found.iter().map(|finding| finding.count).max(), Some(3));
}

#[test]
fn a_round_that_the_provider_plays_again_rolls_back() {
    let round = |number| sh("ls", "a").round(number);
    let run = [round(0), round(1), round(1), round(0), round(1)];
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn what_was_done_in_a_round_that_is_played_again_does_not_count() {
    let ls = |round| sh("ls", "a").round(round);
    let run = [ls(0), ls(1), sh("whoami", "me").round(2), sh("pwd", "/work").round(1), ls(2)];
    assert_eq!(verdict(&run), Some(Severity::Warning), "of the three, one was taken back");
}

#[test]
fn new_words_from_outside_restart_the_counts() {
    let run: Vec<_> = (0..5).flat_map(|n| [user(&format!("list it again, {n}")), sh("ls", "a")]).collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn what_a_harness_counts_in_a_tag_of_its_own_is_no_new_word() {
    let told = |words: &dyn Fn(usize) -> String| {
        let run: Vec<_> = (0..5).flat_map(|n| [sh("ls", "a"), user(&words(n))]).collect();
        verdict(&run)
    };
    for tag in ["environment_details", "system-reminder", "env"] {
        let spoken = |n| {
            format!("<{tag}>\nCurrent time: 10:0{n}:11\nStep {n} of 50, {n}0,312 / 200K tokens\n</{tag}>")
        };
        assert_eq!(told(&spoken), Some(Severity::Loop), "{tag}");
    }
    // Somebody else may mean each number, and a harness may have something to say.
    for other in [
        |n: usize| format!("<task>Book a table for {n}.</task>"),
        |n| format!("Step {n} of 50"),
        |n| format!("<env>Step 1</env> And now try port {n}."),
        |n| format!("<env>Step 1: open the {}</env>", ["box", "door", "lid", "hatch", "gate"][n]),
    ] {
        assert_eq!(told(&other), None, "{}", other(1));
    }
}

#[test]
fn what_a_reader_brings_may_tell_of_failures_of_others() {
    let ticket = |tool: &str, n: usize| {
        let said = format!("Ticket {n} of {}.\nThe upload failed.", ["Ada", "Bob", "Cy", "Dee", "Eve"][n]);
        call(tool, &format!("{{\"ticket\":{n}}}"), &said)
    };
    assert_eq!(verdict(&[0, 1, 2, 3, 4].map(|n| ticket("get_ticket", n))), None);
    assert_eq!(loops(&[0, 1, 2, 3, 4].map(|n| ticket("close_ticket", n))), [Kind::Churn]);
}

#[test]
fn a_canned_reply_is_no_new_word() {
    let run = times(4, &[user("Please go on."), sh("ls", "a")]);
    assert_eq!(loops(&run), [Kind::Repeat]);
}

#[test]
fn a_new_reply_to_a_text_restarts_the_counts() {
    let run: Vec<_> = (0..4)
        .flat_map(|n| {
            let asked = Line { thought: Some("Shall I list it again?".into()), ..Line::default() };
            [Line { result: Some(format!("Yes, for the time {n}")), ..asked }, sh("ls", "a")]
        })
        .collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn the_first_re_read_after_a_compaction_is_needed() {
    let reread = |run: &mut Vec<Line>| run.extend([read("a", "A"), read("b", "B")]);
    let mut run = Vec::new();
    reread(&mut run);
    reread(&mut run);
    run.push(compaction());
    reread(&mut run);
    assert_ne!(verdict(&run), Some(Severity::Loop));
    for _ in 0..3 {
        reread(&mut run);
    }
    assert_eq!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn paging_forward_is_work() {
    let run: Vec<_> = (0..20)
        .map(|n| {
            call(
                "read_file",
                &format!("{{\"path\":\"big\",\"offset\":{},\"limit\":200}}", n * 200),
                &format!("part {n}"),
            )
        })
        .collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn a_batch_that_answers_ok_each_time_is_work() {
    let run: Vec<_> = (0..40)
        .map(|n| call("convert_image", &format!("{{\"in\":\"{n}.png\",\"out\":\"{n}.jpg\"}}"), "ok"))
        .collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn ticking_off_a_list_is_work() {
    let list = |done: usize| {
        let items: Vec<String> = (0..6).map(|n| format!("{{\"t\":\"{n}\",\"done\":{}}}", n < done)).collect();
        call("todo_write", &format!("{{\"items\":[{}]}}", items.join(",")), "ok")
    };
    assert_eq!(verdict(&(0..7).map(list).collect::<Vec<_>>()), None);
}

#[test]
fn wording_never_enters_the_fingerprint() {
    let run: Vec<_> = ["let me look", "I should list the files", "checking the folder"]
        .map(|thought| Line { thought: Some(thought.into()), ..sh("ls", "x") })
        .into();
    assert_eq!(loops(&run), [Kind::Repeat]);
}

#[test]
fn moving_about_changes_what_is_seen() {
    let run: Vec<_> = ["src", "parser", "tests", ".."]
        .into_iter()
        .flat_map(|to| [sh(&format!("cd {to}"), ""), sh("ls", "mod.rs")])
        .collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
    let scrolls = times(5, &[call("browser", r#"{"action":"scroll_down"}"#, "scrolled down by 1000 pixels")]);
    assert_ne!(verdict(&scrolls), Some(Severity::Loop));
}

#[test]
fn another_folder_holds_other_files_of_the_same_name() {
    let run: Vec<_> = ["src/parser", "src/lexer", "src/printer"]
        .into_iter()
        .flat_map(|to| [sh(&format!("cd /work/{to}"), ""), sh("cat mod.rs", "//! A module.")])
        .collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn a_move_that_failed_changes_nothing() {
    let run: Vec<_> = ["parser", "lexer", "printer"]
        .into_iter()
        .flat_map(|to| {
            let moved = sh(&format!("cd {to}"), &format!("bash: cd: {to}: No such file or directory"));
            [moved.status(Status::Failure), sh("ls", "mod.rs")]
        })
        .collect();
    assert!(loops(&run).contains(&Kind::Repeat));
}

#[test]
fn back_off_is_counted_for_each_call_apart() {
    let limited = |page| {
        call("http_get", &format!("{{\"page\":{page}}}"), "429 Too Many Requests").status(Status::Failure)
    };
    assert_eq!(findings(&[limited(1), limited(2), limited(1)]), []);
}

#[test]
fn words_from_outside_never_make_a_numbered_round_look_like_one_that_is_played_again() {
    let mut detector = Redundancy::new(&RedundancyConfig::default());
    let call = Step::call("bash", r#"{"command":"ls src"}"#).answered("main.rs lib.rs", None);
    let mut found = detector.observe(&Step::heard("List the files."));
    for round in 0..3 {
        found.extend(detector.observe(&call.in_round(round)));
        found.extend(detector.end_round());
    }
    let last = found.last().expect("three equal answers");
    assert_eq!((last.severity, last.count), (Severity::Loop, 3));
}

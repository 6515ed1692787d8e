//! Each kind of loop: when it is one, and the nearest thing that is none.

use loopbreaker::{Kind, Severity, Status};

use crate::script::{Line, call, edit, findings, loops, read, says, sh, times, verdict, write};

#[test]
fn the_third_equal_answer_is_a_repeat() {
    let found = findings(&times(3, &[sh("ls", "a b")]));
    let severities: Vec<_> = found.iter().map(|finding| (finding.step, finding.severity)).collect();
    assert_eq!(severities, [(1, Severity::Warning), (2, Severity::Loop)]);
    assert_eq!((found[1].kind, found[1].count, found[1].onset), (Kind::Repeat, 3, 0));
    assert_eq!(found[1].evidence, [0, 1, 2]);
}

#[test]
fn a_repeat_is_found_across_other_steps() {
    let mut run = Vec::new();
    for other in ["a", "b", "c"] {
        run.push(sh("git status", "clean"));
        run.extend((0..5).map(|part| read(&format!("{other}{part}.rs"), &format!("text {other}{part}"))));
    }
    assert_eq!(loops(&run), [Kind::Repeat]);
}

#[test]
fn a_repeat_out_of_the_window_is_forgotten() {
    let mut run = Vec::new();
    for round in 0..3 {
        run.push(sh("git status", "clean"));
        run.extend((0..70).map(|part| read(&format!("{round}-{part}.rs"), &format!("text {round} {part}"))));
    }
    assert_eq!(verdict(&run), None);
}

#[test]
fn two_equal_answers_are_only_a_warning() {
    assert_eq!(verdict(&times(2, &[sh("ls", "a b")])), Some(Severity::Warning));
}

#[test]
fn a_failure_that_tells_other_numbers_is_still_the_same_failure() {
    let run: Vec<_> = (3..6)
        .map(|line| sh("make", &format!("error: line {line}0: missing separator")).status(Status::Failure))
        .collect();
    assert_eq!(loops(&run), [Kind::FailingRepeat]);
}

#[test]
fn another_class_of_failure_is_news() {
    let errors = ["KeyError: 'a'", "IndexError: out of range", "TypeError: bad operand", "OSError: gone"];
    let run = errors.map(|error| sh("python x.py", error).status(Status::Failure));
    assert_eq!(verdict(&run), None);
}

#[test]
fn an_edit_does_not_mend_a_missing_command() {
    let missing = sh("frob build", "bash: frob: command not found").status(Status::Failure);
    let run: Vec<_> =
        (0..3).flat_map(|n| [edit("a.rs", &format!("x{n}"), &format!("y{n}")), missing.clone()]).collect();
    assert_eq!(loops(&run), [Kind::FailingRepeat]);
}

#[test]
fn an_edit_that_fails_is_not_helped_by_other_edits() {
    let mut failing = edit("b.rs", "old", "new").status(Status::Failure);
    failing.result = Some("error: the old text was not found".into());
    let run: Vec<_> =
        (0..3).flat_map(|n| [edit("a.rs", &format!("x{n}"), &format!("y{n}")), failing.clone()]).collect();
    assert_eq!(loops(&run), [Kind::FailingRepeat]);
}

#[test]
fn a_commit_that_fails_may_be_helped_by_edits() {
    let commit = sh("git commit -m done", "error: the hook found a tab in a.rs").status(Status::Failure);
    let run: Vec<_> =
        (0..3).flat_map(|n| [edit("a.rs", &format!("x{n}"), &format!("y{n}")), commit.clone()]).collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn a_failure_survives_words_from_outside() {
    let run: Vec<_> = (0..3)
        .flat_map(|turn| {
            let failed = sh("make", "error: no rule to make target").status(Status::Failure);
            [crate::script::user(&format!("please try {turn}")), failed]
        })
        .collect();
    assert_eq!(loops(&run), [Kind::FailingRepeat]);
}

#[test]
fn a_cycle_is_named_by_its_period_and_copies() {
    let unit = [read("a", "A"), sh("grep foo a", "bar"), sh("git log", "c1")];
    let found = findings(&times(3, &unit));
    let cycle = found.iter().find(|finding| finding.severity == Severity::Loop).unwrap();
    assert_eq!((cycle.kind, cycle.period, cycle.count, cycle.step, cycle.onset), (Kind::Cycle, 3, 3, 6, 0));
    assert_eq!(cycle.evidence, (0..7).collect::<Vec<_>>());
}

#[test]
fn two_copies_of_a_cycle_are_only_a_warning() {
    let run = times(2, &[read("a", "A"), read("b", "B")]);
    assert_eq!(verdict(&run), Some(Severity::Warning));
}

#[test]
fn a_cycle_with_one_new_answer_is_none() {
    let run: Vec<_> =
        (0..4).flat_map(|turn| [read("a", "A"), sh("cat counter", &format!("{turn}"))]).take(4).collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn calls_in_turns_whose_answers_move_are_no_cycle() {
    let run: Vec<_> = (0..4)
        .flat_map(|turn| [sh("cat sent", &format!("{turn}")), sh("cat received", &format!("{turn}"))])
        .collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn one_step_again_and_again_is_no_cycle() {
    let found = findings(&times(8, &[sh("ls", "a b")]));
    assert!(found.iter().all(|finding| finding.kind == Kind::Repeat));
}

#[test]
fn moves_that_are_only_acknowledged_are_no_cycle() {
    let click = |what: &str| call("browser", &format!("{{\"action\":\"click\",\"on\":{what:?}}}"), "ok");
    assert_eq!(verdict(&times(3, &[click("next"), click("row")])), None);
    let on_and_on = findings(&times(6, &[click("next"), click("row")]));
    let first = on_and_on.iter().find(|finding| finding.severity == Severity::Loop).unwrap();
    assert_eq!((first.kind, first.count, first.step), (Kind::Cycle, 6, 11), "not for ever, though");
}

#[test]
fn calls_in_turns_that_are_only_acknowledged_are_told_with_every_repeat() {
    let run = times(4, &[call("tool_a", r#"{"x":1}"#, "ok"), call("tool_b", r#"{"x":2}"#, "ok")]);
    let found = findings(&run);
    let told: Vec<usize> = found
        .iter()
        .filter(|finding| finding.severity == Severity::Loop)
        .map(|finding| finding.step)
        .collect();
    assert_eq!(told, [5, 6, 7]);
}

#[test]
fn words_in_turns_are_a_monologue_and_no_cycle() {
    let turns = ["Shall I go on with it then?", "I could also stop here and wait."]
        .map(|text| Line { result: Some("Please go on.".into()), ..says(text) });
    assert_eq!(loops(&times(4, &turns)), [Kind::Monologue]);
}

#[test]
fn a_cycle_that_breaks_off_is_still_a_repeat() {
    let mut run = times(2, &[read("a", "A"), read("b", "B")]);
    run.extend([read("a", "A"), read("c", "C")]);
    assert_eq!(loops(&run), [Kind::Repeat]);
}

#[test]
fn a_cycle_that_the_run_ends_in_is_still_a_repeat() {
    let mut run = times(2, &[read("a", "A"), read("b", "B")]);
    run.push(read("a", "A"));
    assert_eq!(loops(&run), [Kind::Repeat]);
}

#[test]
fn variations_of_a_failing_call_are_churn() {
    let run = ["-v", "-i k1", "-i k2", "-4", "-6"].map(|option| {
        sh(&format!("ssh {option} host true"), "Permission denied (publickey).").status(Status::Failure)
    });
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn the_same_failure_of_quite_different_calls_takes_longer() {
    let run = ["alpha beta", "gamma delta", "epsilon zeta"].map(|words| {
        call("search", &format!("{{\"q\":{words:?}}}"), "error: index is corrupt").status(Status::Failure)
    });
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn other_work_in_between_does_not_end_a_row_of_failures() {
    let run: Vec<_> = ["alpha beta", "gamma delta", "epsilon zeta", "eta theta"]
        .iter()
        .flat_map(|words| {
            let search = call("search", &format!("{{\"q\":{words:?}}}"), "error: index is corrupt");
            [search.status(Status::Failure), read(&format!("{words}.md"), words)]
        })
        .collect();
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn variations_far_apart_are_other_attempts() {
    // What is wrong with the environment stays wrong for longer.
    for (error, between) in [("Error: bad owner of the config", 14), ("Permission denied (publickey).", 24)] {
        let run: Vec<_> = ["-v", "-4", "-6"]
            .iter()
            .flat_map(|option| {
                let ssh = sh(&format!("ssh {option} host true"), error);
                let others = (0..between)
                    .map(move |n| read(&format!("{n}{option}.md"), &format!("text {n} {option}")));
                std::iter::once(ssh.status(Status::Failure)).chain(others)
            })
            .collect();
        assert_eq!(verdict(&run), None, "{error}");
    }
}

#[test]
fn one_question_in_many_spellings_with_one_answer_is_churn() {
    let run = ["foo bar", "bar foo", "foo|bar", "bar|foo", "foo.*bar", "(foo|bar)"]
        .map(|pattern| call("grep", &format!("{{\"pattern\":{pattern:?}}}"), "no match"));
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn different_questions_with_one_answer_are_work() {
    let run: Vec<_> = (0..12)
        .map(|n| {
            call(
                "fetch_url",
                &format!("{{\"url\":\"https://www.example.com/docs/guide/en/latest/page/{n}\"}}"),
                "200, cached",
            )
        })
        .collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn one_answer_at_length_to_whatever_is_asked_is_churn() {
    let page = "Please log in to go on. Your session has ended, so that your name and your password are asked for again. \
                Forgot your password? Ask your administrator.";
    let ask = |n: usize| {
        let topic = ["tides", "wool", "brass", "moss", "ferries", "granite"][n];
        call("fetch_url", &format!("{{\"url\":\"https://docs.example.com/{topic}\"}}"), page)
    };
    let run: Vec<_> = (0..6).map(ask).collect();
    let found = findings(&run);
    let told: Vec<_> = found.iter().map(|finding| (finding.kind, finding.step, finding.severity)).collect();
    let warning = |step| (Kind::Churn, step, Severity::Warning);
    assert_eq!(told, [warning(3), warning(4), (Kind::Churn, 5, Severity::Loop)]);
    let moves: Vec<_> = (0..6).map(|n| if n == 3 { read("a.rs", "fn a() {}") } else { ask(n) }).collect();
    assert_ne!(verdict(&moves), Some(Severity::Loop), "five of them");
}

#[test]
fn one_question_whose_answers_move_back_and_forth_is_no_churn() {
    let run: Vec<_> = [3, 2, 3, 1, 3, 4, 3]
        .map(|n| call("queue_length", r#"{"q":"x"}"#, &format!("queue: {n} jobs")))
        .into();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn the_same_words_in_another_order_are_the_same_words() {
    let run = ["I will now fix the bug.", "Now I will fix the bug.", "I will fix the bug now."].map(says);
    assert_eq!(loops(&run), [Kind::Monologue]);
}

#[test]
fn a_command_that_is_put_aside_again_and_again_is_churn() {
    let run: Vec<_> = (0..4)
        .flat_map(|n| {
            let aside =
                format!("Command running in background with ID: b{n}x. Output is being written to /tmp/{n}");
            [
                sh(&format!("node connect.js --port 543{n} --host db"), &aside),
                sh(&format!("cat /tmp/out{n}"), ""),
            ]
        })
        .collect();
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn a_tool_that_is_called_in_the_wrong_way_is_not_mended_by_other_work() {
    let wrong = |args: &str| {
        call("page_down", args, "TypeError: forward() got an unexpected keyword argument 'x'")
            .status(Status::Failure)
    };
    let run = [
        wrong(r#"{"a":""}"#),
        write("notes.md", "one"),
        wrong(r#"{"b":""}"#),
        write("notes.md", "two"),
        wrong(r#"{"c":""}"#),
    ];
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn edits_there_and_back_oscillate() {
    let run = times(2, &[edit("a.rs", "x", "y"), edit("a.rs", "y", "x")]);
    let found = findings(&run);
    assert!(
        found.iter().any(|finding| finding.kind == Kind::Oscillation && finding.severity == Severity::Loop)
    );
}

#[test]
fn whole_contents_there_and_back_oscillate() {
    let run = times(2, &[write("a.rs", "one"), write("a.rs", "two")]);
    assert!(loops(&run).contains(&Kind::Oscillation));
}

#[test]
fn one_change_of_mind_is_only_a_warning() {
    let run = [edit("a.rs", "x", "y"), edit("a.rs", "y", "x")];
    assert_eq!(verdict(&run), Some(Severity::Warning));
}

#[test]
fn the_same_content_in_other_files_is_work() {
    let run: Vec<_> = (0..6).map(|file| write(&format!("{file}/mod.rs"), "//! empty")).collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn two_contents_in_turns_in_other_files_are_work() {
    let run = [("a", "one"), ("b", "two"), ("c", "one"), ("d", "two")]
        .map(|(file, content)| write(&format!("{file}.rs"), content));
    assert_eq!(verdict(&run), None);
}

#[test]
fn files_without_a_dot_in_their_names_are_other_files_too() {
    let run = [write("Makefile", "A"), write("Dockerfile", "B"), write("LICENSE", "A"), write("NOTICE", "B")];
    assert_eq!(verdict(&run), None);
    assert_eq!(verdict(&times(2, &[write("Makefile", "A"), write("Makefile", "B")])), Some(Severity::Loop));
}

#[test]
fn edits_that_go_on_from_one_another_are_work() {
    let run = [edit("a.rs", "w", "x"), edit("a.rs", "x", "y"), edit("a.rs", "y", "z")];
    assert_eq!(verdict(&run), None);
}

#[test]
fn a_write_that_failed_brings_nothing_back() {
    let mut back = edit("a.rs", "y", "x").status(Status::Failure);
    back.result = Some("error: the file is locked".into());
    assert_eq!(verdict(&[edit("a.rs", "x", "y"), back]), None);
}

fn page(number: usize) -> crate::script::Line {
    call("list_items", &format!("{{\"page\":{number}}}"), &format!("items of page {number}"))
}

#[test]
fn pages_read_again_from_the_start_are_a_sweep() {
    let run: Vec<_> = (1..=5).chain(1..=3).map(page).collect();
    assert_eq!(loops(&run), [Kind::Sweep]);
}

#[test]
fn two_pages_read_again_back_to_back_are_a_sweep() {
    let run: Vec<_> = [1, 2, 1, 2].map(page).into();
    assert_eq!(loops(&run), [Kind::Sweep]);
}

#[test]
fn a_second_look_at_one_page_is_no_sweep() {
    let run: Vec<_> = (1..=5).chain([2, 6, 7, 3, 8]).map(page).collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn pages_whose_items_changed_are_read_again_for_a_reason() {
    let again =
        |number| call("list_items", &format!("{{\"page\":{number}}}"), &format!("new items of {number}"));
    let run: Vec<_> = (1..=5).map(page).chain((1..=5).map(again)).collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn a_poll_may_stand_still_for_a_while() {
    let run = times(9, &[call("get_job_status", r#"{"id":7}"#, "state: queued")]);
    assert_eq!(verdict(&run), None);
    let run = times(12, &[call("get_job_status", r#"{"id":7}"#, "state: queued")]);
    assert_eq!(verdict(&run), Some(Severity::Warning));
}

#[test]
fn a_poll_that_never_moves_is_stale() {
    let run = times(20, &[call("get_job_status", r#"{"id":7}"#, "state: queued")]);
    assert_eq!(loops(&run), [Kind::StalePoll]);
}

#[test]
fn polling_a_finished_job_is_stale_soon() {
    let run = times(6, &[call("get_job_status", r#"{"id":7}"#, "state: completed")]);
    assert_eq!(loops(&run), [Kind::StalePoll]);
}

#[test]
fn waiting_and_asking_in_turns_is_a_poll_too() {
    let run = times(8, &[sh("sleep 5", ""), sh("kubectl get pod x", "x Pending")]);
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn an_answer_that_says_it_is_not_done_makes_a_poll_of_any_call() {
    let run = times(9, &[call("fetch_build", r#"{"id":7}"#, "build 7 is still running")]);
    assert_eq!(verdict(&run), None);
}

#[test]
fn pieces_of_code_that_look_alike_are_work() {
    let version = |name: &str| {
        says(&format!(
            "here is the file again with the change applied to it\n```\nfn main() {{ run({name}) }}\n```"
        ))
    };
    let run = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"].map(version);
    assert_eq!(verdict(&run), None);
}

#[test]
fn an_order_given_again_in_other_words_is_churn() {
    let run = [
        "Please scan through the video and list the moments where several birds are seen together",
        "Scan through the video please and list all moments where several birds are seen together",
        "Please scan the video and list the moments where several birds can be seen together",
        "Please scan through the whole video and list the moments where several birds are seen together",
    ]
    .iter()
    .enumerate()
    .map(|(n, order)| {
        call("web_surfer", &format!("{{\"order\":{order:?}}}"), &format!("I scrolled down to {n}0 percent"))
    })
    .collect::<Vec<_>>();
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn the_same_order_about_another_thing_is_work() {
    let run: Vec<_> = ["Skyfall", "Spectre", "Casino Royale", "Quantum of Solace", "No Time to Die"]
        .iter()
        .map(|movie| {
            call(
                "web_surfer",
                &format!(
                    "{{\"order\":\"please look up whether the movie {movie} can be streamed this week\"}}"
                ),
                &format!("{movie}: yes"),
            )
        })
        .collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn a_chant_inside_one_answer_is_found_at_once() {
    let found = findings(&[says(&"I am checking the file now. ".repeat(30))]);
    assert_eq!((found[0].kind, found[0].severity, found[0].step), (Kind::Chant, Severity::Loop, 0));
}

#[test]
fn a_chant_is_seen_in_the_reasoning_of_a_call_too() {
    let mut line = read("a", "A");
    line.thought = Some("Wait, let me think about it again. ".repeat(20));
    assert_eq!(loops(&[line]), [Kind::Chant]);
}

#[test]
fn a_tool_that_does_not_exist_is_none_with_other_arguments_either() {
    let run: Vec<_> = (0..3)
        .map(|n| call("frobnicate", &format!("{{\"n\":{n}}}"), "Error: unknown tool 'frobnicate'"))
        .collect();
    assert_eq!(loops(&run), [Kind::UnknownTool]);
}

#[test]
fn a_missing_tool_is_one_loop_whatever_its_arguments() {
    let found = findings(
        &["a", "b", "c", "d"]
            .map(|n| call("frob", &format!("{{\"n\":{n:?}}}"), "Error: unknown tool 'frob'")),
    );
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|finding| finding.identity == found[0].identity));
}

#[test]
fn guessing_at_the_names_of_tools_is_a_loop_until_one_exists() {
    let missing = |tool: &str| call(tool, "{}", &format!("Error: unknown tool '{tool}'"));
    let guesses = ["alpha", "beta", "gamma"].map(missing);
    assert_eq!(loops(&guesses), [Kind::UnknownTool]);
    let [alpha, beta, gamma] = guesses;
    assert_ne!(verdict(&[alpha, beta, read("a.rs", "fn a() {}"), gamma]), Some(Severity::Loop));
}

#[test]
fn a_tool_that_does_not_exist_is_not_there_after_other_work_either() {
    let missing = |n: usize| call("frob", &format!("{{\"n\":{n}}}"), "Error: unknown tool 'frob'");
    let run: Vec<_> =
        (0..3).flat_map(|n| [missing(n), read(&format!("{n}.rs"), &format!("fn a{n}() {{}}"))]).collect();
    assert_eq!(loops(&run), [Kind::UnknownTool]);
}

#[test]
fn a_tool_that_answered_in_between_does_exist() {
    let missing = |n: usize| call("frob", &format!("{{\"n\":{n}}}"), "Error: unknown tool 'frob'");
    let run = [missing(1), missing(2), call("frob", r#"{"n":3}"#, "three of them"), missing(4)];
    assert!(!loops(&run).contains(&Kind::UnknownTool));
}

#[test]
fn the_same_write_again_is_a_repeat_whatever_it_answers() {
    let run: Vec<_> = (1..4)
        .map(|size| call("append_file", r#"{"path":"log","text":"x"}"#, &format!("log has {size}00 lines")))
        .collect();
    assert_eq!(loops(&run), [Kind::Repeat]);
}

#[test]
fn every_finding_explains_itself() {
    let runs = [
        times(3, &[sh("ls", "a b")]),
        times(3, &[read("a", "A"), read("b", "B")]),
        times(3, &[says("I will now fix the bug.")]),
    ];
    for run in runs {
        for finding in findings(&run) {
            assert!(finding.message.len() > 20 && !finding.prevented_by.is_empty());
            assert!(finding.evidence.is_sorted() && finding.evidence.contains(&finding.onset));
            assert!(
                finding.evidence.iter().all(|step| *step <= finding.step),
                "only steps up to it were used"
            );
            assert!((0.0..=1.0).contains(&finding.score));
        }
    }
}

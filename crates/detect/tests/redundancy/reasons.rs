//! Rules that hold for agents nobody has seen: for each a run that shows it, and one that must stay quiet.

use loopbreaker::{
    Action, DetectorsConfig, Kind, Redundancy, RedundancyConfig, ReplayRules, Severity, Status,
};

use crate::script::{Line, call, edit, findings, loops, read, says, sh, times, user, verdict, write};

fn fails(line: Line) -> Line {
    line.status(Status::Failure)
}

/// What the default ladder does, step by step, up to the end of the run.
fn actions(lines: &[Line]) -> Vec<(usize, Action)> {
    let mut replay = ReplayRules::new(&DetectorsConfig::default()).start();
    for line in lines {
        replay.observe(&line.step());
    }
    replay.finish().actions
}

/// As many words as a short script has.
const WORDS: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
                     seventeen eighteen nineteen twenty plus some more";

#[test]
fn counts_that_end_with_a_bare_exit_code_are_different_questions() {
    let run = ["404", "403", "502", "503"]
        .map(|code| sh(&format!("grep -c ' {code}$' access.log"), "0\n[exit code 1]"));
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn the_same_call_with_the_same_bare_exit_code_is_a_failing_repeat() {
    let run = ["7", "8", "9"].map(|id| sh("nc host 2000", &format!("sensor {id}\n[exit code 1]")));
    assert_eq!(loops(&run), [Kind::FailingRepeat]);
}

#[test]
fn a_thing_that_is_not_there_under_ever_new_names_is_churn() {
    let run = ["rating", "stars", "score"].map(|column| {
        let query = format!("{{\"query\":\"select product, avg({column}) from items group by product\"}}");
        call("execute_sql", &query, &format!("Error: no such column: {column}"))
    });
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn another_error_for_each_name_is_progress() {
    let errors = ["no such column: rating", "ambiguous column: stars", "misuse of aggregate: score"];
    let run = ["rating", "stars", "score"].iter().zip(errors).map(|(column, error)| {
        let query = format!("{{\"query\":\"select product, avg({column}) from items group by product\"}}");
        call("execute_sql", &query, &format!("Error: {error}"))
    });
    assert_eq!(loops(&run.collect::<Vec<_>>()), []);
}

#[test]
fn one_question_whose_answer_moves_is_a_poll() {
    let ask = |answer: &str| {
        call("ask_worker", r#"{"order":"How far is the index of the whole archive by now?"}"#, answer)
    };
    let run = [15, 30, 55, 70, 90].map(|percent| ask(&format!("It is at {percent} of one hundred.")));
    assert_eq!(verdict(&run), None);
}

#[test]
fn the_same_lines_in_another_order_are_a_repeat() {
    let test = |result: &str| sh("cargo test", result);
    let run = [test("a: ok\nb: failed"), test("b: failed\na: ok"), test("a: ok\nb: failed")];
    assert_eq!(loops(&run).len(), 1);
    let other = [test("a: ok\nb: failed"), test("b: ok\na: failed"), test("a: ok\nb: failed")];
    assert_ne!(verdict(&other), Some(Severity::Loop));
}

#[test]
fn a_file_that_is_written_again_in_nearly_the_same_words_is_churn() {
    let again = |last: &str| write("solve.py", &format!("{WORDS} {last}"));
    assert_eq!(loops(&["alpha", "beta", "gamma", "delta"].map(again)), [Kind::Churn]);
    let spread = ["a.py", "b.py", "c.py", "d.py"].map(|path| write(path, WORDS));
    assert_ne!(verdict(&spread), Some(Severity::Loop), "one header for many files is a batch");
}

#[test]
fn a_file_that_is_tested_between_its_versions_is_work() {
    let run: Vec<_> = ["alpha", "beta", "gamma", "delta"]
        .iter()
        .flat_map(|last| {
            [write("solve.py", &format!("{WORDS} {last}")), sh("python3 -m unittest", "FAILED (failures=1)")]
        })
        .collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn a_shell_in_which_every_command_hangs_is_churn_at_the_fifth() {
    let hangs = |command: &str| sh(command, "Command running in background with ID: b1x.");
    let commands = ["curl -s localhost", "node test.js", "npm run check", "wget -q host", "psql -l"];
    assert_eq!(loops(&commands.map(hangs)), [Kind::Churn]);
    let mended: Vec<_> =
        commands.iter().flat_map(|command| [hangs(command), edit("a.js", command, "wait")]).collect();
    assert_ne!(verdict(&mended), Some(Severity::Loop), "something was changed each time");
}

#[test]
fn code_that_is_answered_in_the_words_of_the_last_time_has_changed_nothing() {
    let code = |name: &str| {
        says(&format!("Here is the module again:\n```\nclass Screen: show the score and the end {name}\n```"))
    };
    let report = || user("Traceback: cannot import name Screen from gameover, line 10 of main.py");
    let run = [report(), code("a"), report(), code("a"), report(), code("a")];
    assert_eq!(loops(&run), [Kind::Monologue]);
    let files = ["board", "player", "enemy"].map(|name| says(&format!("```\nclass {name}: pass\n```")));
    assert_ne!(verdict(&files), Some(Severity::Loop), "one file after the other");
}

#[test]
fn a_no_is_an_answer_each_time() {
    let texts = [
        "Shall I book it?",
        "Is the window seat fine?",
        "By card?",
        "At noon then?",
        "On Monday?",
        "Then never?",
    ];
    let run = texts.map(|text| Line { result: Some("No.".into()), ..says(text) });
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn a_page_that_was_shown_before_is_no_new_place() {
    let page = |name: &str| format!("{name}: {}", "a page with a long text on it, ".repeat(8));
    let click = |on: &str| call("click", &format!("{{\"element\":{on:?}}}"), &page(on));
    let round = [click("lamp"), click("back")];
    assert_eq!(loops(&times(3, &round)), [Kind::Cycle]);
    let compare: Vec<_> =
        ["lamp", "chair", "clock", "shelf"].iter().flat_map(|item| [click(item), click("back")]).collect();
    assert_ne!(verdict(&compare), Some(Severity::Loop), "each item is another one");
}

#[test]
fn a_page_that_was_shown_before_excuses_no_second_look() {
    let page = |name: &str| format!("{name}: {}", "a page with a long text on it, ".repeat(8));
    let click = |shows: &str| call("click", r#"{"element":"next"}"#, &page(shows));
    let look = read("prices.md", "lamp: 9");
    let run = |then| [click("lamp"), look.clone(), click(then), look.clone(), look.clone()];
    assert_eq!(loops(&run("lamp")), [Kind::Repeat]);
    assert_ne!(verdict(&run("chair")), Some(Severity::Loop), "another page is another place");
}

#[test]
fn a_failing_step_does_not_wait_for_the_end_of_a_cycle() {
    let unit = [fails(sh("make", "error: no rule")), read("Makefile", "all:")];
    let found = findings(&times(3, &unit));
    let first = found.iter().find(|finding| finding.severity == Severity::Loop).unwrap();
    assert_eq!((first.kind, first.step), (Kind::FailingRepeat, 4));
}

/// The loops that are found, with the step of each.
fn certain(lines: &[Line]) -> Vec<(Kind, usize)> {
    let found = findings(lines).into_iter().filter(|finding| finding.severity == Severity::Loop);
    found.map(|finding| (finding.kind, finding.step)).collect()
}

#[test]
fn a_step_of_a_cycle_is_told_when_it_comes_for_the_third_time_and_the_others_with_the_cycle() {
    let [a, b, c] = [read("a", "A"), read("b", "B"), read("c", "C")];
    let short = [a.clone(), b.clone()];
    assert_eq!(
        certain(&times(4, &short)),
        [(Kind::Repeat, 4), (Kind::Cycle, 5), (Kind::Cycle, 6), (Kind::Cycle, 7)]
    );
    assert!(
        certain(&times(4, &[a, b, c])).iter().all(|(kind, _)| *kind == Kind::Cycle),
        "of a long one the cycle is told at once"
    );
    let broken_off = [times(2, &short), vec![short[0].clone(), read("c", "C")]].concat();
    let mut detector = Redundancy::new(&RedundancyConfig::default());
    let mut online = |line: &Line| [detector.observe(&line.step()), detector.end_round()].concat();
    let seen: Vec<_> = broken_off.iter().map(&mut online).collect();
    assert!(
        seen[4].iter().any(|finding| finding.severity == Severity::Loop),
        "before it breaks off: {seen:?}"
    );
}

#[test]
fn a_second_cycle_tells_its_repeat_as_the_first_one_did() {
    let broken_off = |one: &str, other: &str| {
        [times(2, &[read(one, one), read(other, other)]), vec![read(one, one)]].concat()
    };
    let run = [broken_off("a", "b"), broken_off("c", "d")].concat();
    assert_eq!(certain(&run), [(Kind::Repeat, 4), (Kind::Repeat, 9)]);
}

#[test]
fn a_step_of_a_cycle_is_told_again_after_words_from_outside() {
    let (a, b) = (read("a", "A"), read("b", "B"));
    let told = || user("Go on with the task.");
    let silent = [vec![told()], times(3, &[a.clone(), b.clone()]), vec![a.clone()]].concat();
    assert_eq!(certain(&silent), [(Kind::Repeat, 5), (Kind::Cycle, 6), (Kind::Cycle, 7)]);
    let spoken = [vec![told()], times(3, &[a.clone(), b]), vec![told(), a]].concat();
    assert_eq!(certain(&spoken), [(Kind::Repeat, 5), (Kind::Cycle, 6), (Kind::Cycle, 8)]);
}

#[test]
fn a_step_of_a_cycle_that_fails_is_told_each_time() {
    let unit = [fails(sh("make", "error: no rule")), read("Makefile", "all:")];
    let told = [(Kind::FailingRepeat, 4), (Kind::Cycle, 5), (Kind::FailingRepeat, 6), (Kind::Cycle, 7)];
    assert_eq!(certain(&times(4, &unit)), told);
}

#[test]
fn writes_in_turns_that_were_worth_a_word_become_a_loop() {
    let run = times(3, &[write("a.md", "one"), write("b.md", "two")]);
    assert_eq!(loops(&run), [Kind::Repeat]);
}

#[test]
fn of_the_repeats_of_one_round_of_a_cycle_the_strongest_is_told() {
    let (often, seldom) = (read("alpha.md", "ok"), read("beta.md", "ok"));
    for round in [[&often, &seldom], [&seldom, &often]] {
        let twice = (2..4).flat_map(|number| round.map(|line| line.clone().round(number)));
        let run: Vec<_> =
            [often.clone().round(0), read("gamma.md", "ok").round(1)].into_iter().chain(twice).collect();
        assert_eq!(loops(&run), [Kind::Repeat]);
    }
}

#[test]
fn a_long_cycle_is_stopped_in_its_fourth_copy_and_a_short_one_in_its_fifth() {
    let [a, b, c] = [read("a", "A"), read("b", "B"), read("c", "C")];
    assert_eq!(actions(&times(6, &[a.clone(), b.clone(), c])).last(), Some(&(9, Action::Reject)));
    assert_eq!(actions(&times(6, &[a, b])).last(), Some(&(9, Action::Reject)));
}

#[test]
fn two_failing_calls_in_turns_climb_one_ladder() {
    let email = || fails(call("find_by_email", r#"{"email":"x@example.org"}"#, "Error: user not found"));
    let name = || fails(call("find_by_name", r#"{"name":"Doe"}"#, "Error: no such person"));
    let run: Vec<_> = (0..4).flat_map(|n| [email(), name(), user(&format!("Perhaps order {n}?"))]).collect();
    let ladder: Vec<Action> = actions(&run).into_iter().map(|(_, action)| action).collect();
    assert_eq!(ladder, [Action::Hint, Action::Hint, Action::Throttle, Action::Reject]);
}

/// The default ladder, rung by rung.
const LADDER: [Action; 4] = [Action::Hint, Action::Hint, Action::Throttle, Action::Reject];

fn rungs(lines: &[Line]) -> Vec<Action> {
    actions(lines).into_iter().map(|(_, action)| action).collect()
}

#[test]
fn an_apology_for_the_repetition_is_one_more_answer_that_does_nothing() {
    let mut run = times(3, &[says("Please tell me which task you would like me to do next.")]);
    run.push(says("I am sorry to repeat myself, let us look at this from another side."));
    run.push(says("Fair enough, a fresh start may help both of us here."));
    run.push(says("Understood: I can write, compute or search whenever needed."));
    assert_eq!(rungs(&run), LADDER);
}

#[test]
fn a_monologue_ends_where_something_is_done() {
    let plea = || says("Please tell me which task you would like me to do next.");
    let apology = || says("I am sorry to repeat myself, let us look at this from another side.");
    let ways_out = [
        read("notes.txt", "a plan"),
        user("Count the files in the folder."),
        says("Here it is:\n```\nprint(1)\n```"),
        Line { role: Some("reviewer"), ..says("The programmer goes in circles.") },
    ];
    for way_out in ways_out {
        let mut run = times(3, &[plea()]);
        run.extend([way_out, apology(), says("Fair enough, a fresh start may help both of us here.")]);
        assert_eq!(rungs(&run), [Action::Hint]);
    }
}

#[test]
fn variations_of_a_variation_are_one_churn_however_far_they_drift() {
    let words = ["one two three four", "three four five six", "five six seven eight", "seven eight nine ten"];
    let drifting = |words: &[&str]| -> Vec<Line> {
        words
            .windows(2)
            .map(|pair| fails(sh(&format!("deploy {}", pair.join(" ")), "Error: no release was given")))
            .collect()
    };
    assert_eq!(loops(&drifting(&words)), [Kind::Churn]);
    let new_ideas = ["red green blue white", "alder birch cedar maple", "north south east west"]
        .map(|words| fails(sh(&format!("deploy {words}"), "Error: no release was given")));
    assert_ne!(verdict(&new_ideas), Some(Severity::Loop), "each is another one");
}

#[test]
fn what_the_environment_refuses_is_the_same_trouble_after_a_long_look_around() {
    let login = |host: &str| sh(&format!("psql -h {host} -U app -d shop -c 'select 1'"), DENIED);
    let look = |n: usize| (0..7).map(move |file| read(&format!("{n}-{file}.conf"), &format!("line {file}")));
    let spread = |attempt: &dyn Fn(&str) -> Line| -> Vec<Line> {
        let hosts = ["localhost", "127.0.0.1", "db"].into_iter().enumerate();
        hosts.flat_map(|(n, host)| std::iter::once(attempt(host)).chain(look(n))).collect()
    };
    assert_eq!(loops(&spread(&login)), [Kind::Churn]);
    let query =
        |host: &str| sh(&format!("psql -h {host} -U app -d shop -c 'select 1'"), "Error: no such table: t");
    assert_ne!(
        verdict(&spread(&query)),
        Some(Severity::Loop),
        "what was wrong with the data may be mended by now"
    );
}

const DENIED: &str = "psql: error: password authentication failed for user \"app\"";

#[test]
fn a_tool_that_refuses_everything_in_the_same_words_is_broken() {
    let gone =
        |command: &str| sh(command, "Error response from daemon: No such container: box\n[exit code 1]");
    let run = ["make all", "python3 solve.py --fast", "sudo apt-get update"].map(gone);
    assert_eq!(loops(&run), [Kind::Churn]);
    let missing = ["strace ./a", "ltrace -c ./b", "perf stat"].map(|command| {
        let name = command.split(' ').next().unwrap_or_default();
        sh(command, &format!("bash: {name}: command not found\n[exit code 127]"))
    });
    assert_ne!(verdict(&missing), Some(Severity::Loop), "to see what is installed is work");
    let back =
        [gone("make all"), gone("python3 solve.py --fast"), sh("ls", "a b"), gone("sudo apt-get update")];
    assert_ne!(verdict(&back), Some(Severity::Loop), "it has answered in between");
}

#[test]
fn another_way_to_ask_that_is_told_the_same_is_no_change() {
    let ask =
        |option: &str| sh(&format!("bind {option} | grep readline"), "bind: line editing is off in here");
    assert_eq!(loops(&[ask("-p"), ask("-v"), ask("-p"), ask("-p")]), [Kind::Repeat]);
    let told_more = sh("bind -v | grep readline", "readline: emacs mode from now on");
    assert_ne!(verdict(&[ask("-p"), told_more, ask("-p"), ask("-p")]), Some(Severity::Loop));
}

/// Six answers that share no more than a few words, each after these words of somebody.
fn answers_to(prompt: &Line) -> Vec<Line> {
    let texts = [
        "Is there anything else that I should do?",
        "Thank you for working with me on this.",
        "It was a pleasure to explore the problem.",
        "Should more come up, tell me.",
        "Farewell, and all the best for the project.",
        "As nothing remains, this concludes it.",
    ];
    texts.iter().flat_map(|text| [prompt.clone(), says(text)]).collect()
}

#[test]
fn who_only_talks_while_told_to_go_on_in_the_same_words_does_nothing() {
    let told = |words| [vec![sh("ls", "a b")], answers_to(&user(words))].concat();
    let found = findings(&told("Please go on with the task."));
    let first =
        found.iter().find(|finding| finding.severity == Severity::Loop).map(|first| (first.rule, first.step));
    assert_eq!(first, Some(("canned_reply", 8)));
    assert_eq!(verdict(&told("Please go on with the task.")[..7]), Some(Severity::Warning));
    assert_eq!(verdict(&told("continue")), None, "a person may say so for long");
}

#[test]
fn a_writer_who_is_told_to_go_on_writes() {
    assert_eq!(verdict(&answers_to(&user("Please write the next chapter."))), None);
}

#[test]
fn who_is_told_to_go_on_and_does_so_works() {
    let calls = (0..).map(|n| sh(&format!("make part{n}"), &format!("part {n} is made")));
    let answers = answers_to(&user("Please go on with the task."));
    let run: Vec<_> =
        answers.chunks(2).zip(calls).flat_map(|(said, done)| [&[done], said].concat()).collect();
    assert_eq!(verdict(&run), None);
    let mut codes = answers_to(&user("The tests still fail."));
    codes.insert(0, sh("ls", "a b"));
    for line in codes.iter_mut().filter(|line| line.role.is_none()) {
        line.thought = line.thought.take().map(|text| format!("{text}\n```\nprint(1)\n```"));
    }
    assert_ne!(verdict(&codes), Some(Severity::Loop), "an answer that carries code is work");
}

#[test]
fn an_agent_that_gets_the_same_words_from_another_agent_is_not_listened_to() {
    let proxy = Line { role: Some("proxy"), ..says("Continue until you need to ask something.") };
    let run = answers_to(&proxy);
    assert!(findings(&run).iter().any(|found| found.rule == "canned_reply" && found.step == 7));
    let each = |at: usize| ["ada", "bob", "eve"][at % 3];
    let chaired: Vec<_> = answers_to(&proxy)
        .into_iter()
        .enumerate()
        .map(|(at, line)| if line.role.is_none() { Line { role: Some(each(at / 2)), ..line } } else { line })
        .collect();
    assert!(findings(&chaired).iter().all(|found| found.rule != "canned_reply"), "each has a turn");
}

#[test]
fn who_says_for_the_third_time_what_was_refused_twice_does_not_listen() {
    let plan = "1. Define the data.\n2. Draw the chart.\n```js\nconst chart = draw(data);\n```";
    let told = |spent: &str, reply: &str| Line {
        result: Some(format!("Tokens: {spent} sent, 2.0k received.\n{reply}")),
        ..says(plan)
    };
    let refused = |spent| told(spent, "The answer did not conform to the edit format.");
    let run = [user("Plan a chart, then write it."), refused("6.3k"), refused("10k"), refused("14k")];
    assert_eq!(loops(&run), [Kind::Monologue]);
    let mut other = run.clone();
    other[2] = told("10k", "Error: the file chart.js is not in the chat.");
    assert_ne!(verdict(&other), Some(Severity::Loop), "another refusal is news");
    let mut asked = run;
    asked[2] = told("10k", "Now the same for the second page, please.");
    assert_ne!(verdict(&asked), Some(Severity::Loop), "another request is news");
    let plans =
        ["First draw the chart, then define the data.", "Define the data first, then draw the chart."];
    let code = |plan: &str| format!("{plan}\n```js\nconst chart = draw(data);\n```");
    let said = |n: usize| Line { thought: Some(code(plans[n % 2])), ..refused("6.3k") };
    assert_eq!(loops(&[said(0), said(1), said(0)]), [Kind::Monologue], "in another order it is the same");
}

/// A thought that a tool takes down, as agents have it that act in one step and think in another.
fn thinks(thought: &str) -> Line {
    call("think", &format!("{{\"thought\":{thought:?}}}"), "OK.")
}

#[test]
fn a_third_try_is_told_when_it_comes_and_not_when_it_is_announced() {
    let click = fails(call("click", r#"{"on":"gray"}"#, "Invalid action!"));
    let thought = thinks("It only has one colour, so I will choose that.");
    let said = says("It only has one colour, so I will choose that.");
    for words in [&thought, &said] {
        let twice = times(2, &[click.clone(), words.clone()]);
        assert_eq!(certain(&twice), [], "two tries");
        let third = [twice, vec![click.clone()]].concat();
        assert_eq!(certain(&third), [(Kind::FailingRepeat, 4)]);
    }

    let other = thinks("It has two colours, so I will look at the list of them.");
    assert_eq!(certain(&[click.clone(), thought.clone(), click.clone(), other]), [], "another thought");
    assert_eq!(certain(&times(2, &[click.clone(), read("colours.md", "gray")])), [], "a look");
    let busy = fails(call("click", r#"{"on":"gray"}"#, "503 Service Unavailable"));
    assert_eq!(certain(&times(2, &[busy, thought.clone()])), [], "it passes by itself");
    let worked = call("click", r#"{"on":"gray"}"#, "You have clicked gray, which is sold out.");
    assert_eq!(certain(&times(2, &[worked, thought.clone()])), [], "it did not fail");
    let asked = [user("Check it, please."), click, thought];
    assert_eq!(certain(&times(2, &asked)), [], "somebody asks for it");
}

#[test]
fn what_hangs_after_two_looks_that_never_answered_is_none_of_the_commands() {
    let hangs = |command: &str| sh(command, "Command running in background with ID: b1x.");
    let looks =
        [hangs("sleep 5 && curl -s http://localhost:5000/health"), hangs("tail -n 20 /mnt/share/api.log")];
    let [first, second] = looks.clone();
    let log = sh("docker logs api", "listening on :5000");
    let third = hangs("node tests/api.js");
    let run = [first.clone(), second.clone(), log.clone(), third.clone()];
    assert_eq!(certain(&run), [(Kind::Churn, 3)]);

    assert_eq!(
        certain(&[&looks[..], &[hangs("sleep 15; curl -s localhost:5000")]].concat()),
        [],
        "who waits"
    );
    let servers = ["npm run dev", "python manage.py runserver", "celery worker"].map(hangs);
    assert_eq!(certain(&servers), [], "servers do not end");
    let [server, ..] = servers;
    assert_eq!(certain(&[server, first.clone(), third.clone()]), [], "one look");
    assert_eq!(certain(&[&looks[..], &[hangs("systemctl restart api")]].concat()), [], "who mends it");
    let mended = edit("src/server.js", "listen(80)", "listen(5000)");
    assert_eq!(certain(&[first.clone(), second.clone(), mended, third.clone()]), [], "who has mended it");
    assert_eq!(certain(&[first, second, log.clone(), log, third]), [], "who looks around first");
}

#[test]
fn a_command_that_is_left_running_is_put_aside_each_time() {
    // The harness tells whom to ask about it, by a name that is drawn anew; to start it once more asks nobody.
    let left = |name: &str, pid: usize| {
        let answer = format!(
            "Command still running (session {name}, pid {pid}). Use process (list/poll/log) for follow-up."
        );
        call("exec", r#"{"command":"npm run report"}"#, &answer)
    };
    let names = ["calm-otter", "brisk-shoal", "mild-cedar", "pale-comet"];
    let run: Vec<_> = names.iter().zip(400..).map(|(name, pid)| left(name, pid)).collect();
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn who_asks_about_what_was_left_running_starts_nothing() {
    let running = "Process running with session ID 7\nOutput:\n";
    let start = call("exec_command", r#"{"cmd":"npm run report"}"#, running);
    let ask = |said: &str| call("write_stdin", &format!("{{\"chars\":{said:?},\"session_id\":7}}"), running);
    let asks = [vec![start.clone()], vec![ask(""); 6]].concat();
    assert_eq!(loops(&asks), []);
    // Answers to a program that goes on are no starts, either.
    let answer = |n: usize| {
        call("write_stdin", r#"{"chars":"n\n","session_id":7}"#, &format!("{running}> item {n} of the list"))
    };
    let answers = [vec![start], (0..6).map(answer).collect()].concat();
    assert_eq!(loops(&answers), []);
}

#[test]
fn commands_that_answer_when_they_are_asked_about_do_not_hang() {
    // A harness that leaves everything running that takes a while, and an agent that asks until it is over.
    let parts = ["parse", "print", "check", "merge", "split", "count"];
    let run = |ends: bool| -> Vec<_> {
        let start = |part: &str, at: usize| {
            let left = format!("Process running with session ID {at}\nOutput:\n");
            call("exec_command", &format!("{{\"cmd\":\"cargo test -p loops --test {part}\"}}"), &left)
        };
        let ask = |part: &str, at: usize| {
            let over = format!("Process exited with code 0\nOutput:\n{part}: 7 passed");
            let left = format!("Process running with session ID {at}\nOutput:\n");
            let args = format!("{{\"chars\":\"\",\"session_id\":{at}}}");
            call("write_stdin", &args, if ends { &over } else { &left })
        };
        let pair = |(part, at): (&&str, usize)| [start(part, at), ask(part, at)];
        parts.iter().zip(7..).flat_map(pair).collect()
    };
    assert_eq!(loops(&run(true)), []);
    assert_eq!(loops(&run(false)), [Kind::Churn], "none of them answers");
}

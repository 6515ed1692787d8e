//! Forms of other agents: text worlds, debuggers, browsers, orchestrators, testers of servers. For each rule a run that
//! shows it, and one that must stay quiet.

use loopbreaker::{Kind, Severity, Status};

use crate::script::{Line, call, edit, loops, says, sh, times, user, verdict, write};

fn fails(line: Line) -> Line {
    line.status(Status::Failure)
}

fn act(action: &str, result: &str) -> Line {
    call("act", &format!("{{\"action\":{action:?}}}"), result)
}

#[test]
fn a_text_world_in_which_nothing_happens_refuses() {
    let tries = ["use sink", "clean cup", "clean cup in sink", "put cup in sink", "wash cup"];
    assert_eq!(loops(&tries.map(|action| act(action, "Nothing happens."))), [Kind::Churn]);
    let mut found = tries.map(|action| act(action, "Nothing happens."));
    found[2] = act("clean cup with sink", "You clean the cup.");
    assert_ne!(verdict(&found), Some(Severity::Loop));
}

#[test]
fn rooms_that_are_searched_one_after_the_other_are_work() {
    let look = |room: usize| act(&format!("open cabinet {room}"), "It is open. In it, you see nothing.");
    assert_ne!(verdict(&(1..9).map(look).collect::<Vec<_>>()), Some(Severity::Loop));
}

#[test]
fn what_is_left_of_a_budget_makes_no_new_result() {
    let told = |budget: &str| call("lookup", r#"{"query":"capital of Peru"}"#, &format!("Lima.\n{budget}"));
    let run =
        [5, 4, 3].map(|left| told(&format!("You have {left} steps left and 2 chances to answer remaining.")));
    assert_eq!(loops(&run), [Kind::Repeat]);
    let costs = [1, 2, 3].map(|turn| told(&format!("[Turn {turn} of 10, cost so far: $0.0{turn}]")));
    assert_eq!(loops(&costs), [Kind::Repeat]);
    let moves = [5, 4, 3].map(|left| told(&format!("{left} jobs are queued before yours.")));
    assert_eq!(verdict(&moves), None, "a queue that moves is no budget");
}

#[test]
fn one_refusal_is_one_class_whoever_passes_it_on() {
    let login = |host: &str, said: &str| sh(&format!("psql -h {host} -p 5432 -U app -c 'select 1'"), said);
    let run = [
        login(
            "localhost",
            r#"psql: error: server at "localhost" (::1): FATAL: password authentication failed"#,
        ),
        edit("compose.yaml", "a", "b"),
        login("127.0.0.1", r#"psql: error: server at "127.0.0.1": FATAL: password authentication failed"#),
        edit("compose.yaml", "b", "c"),
        login("db", "Failed: password authentication failed for user \"app\""),
    ];
    assert_eq!(loops(&run), [Kind::Churn]);
    let mut mended = run.clone();
    mended[4] = login("db", "1");
    assert_ne!(verdict(&mended), Some(Severity::Loop));
}

fn order(task: &str, answer: &str) -> Line {
    call("delegate", &format!("{{\"agent\":\"scout\",\"task\":{task:?}}}"), answer)
}

#[test]
fn a_form_that_is_filled_in_for_one_thing_after_the_other_is_a_batch() {
    let explore = |module: &str| {
        let task = format!("Explore the {module} module of this repository and report its open problems");
        order(&task, &format!("The {module} module has some."))
    };
    let batch = ["auth", "billing", "search", "invoices", "admin"].map(explore);
    assert_eq!(verdict(&batch), None);
    let again = ["auth", "billing", "search", "invoices"]
        .map(|module| Line { result: Some("I am not allowed to look at that.".into()), ..explore(module) });
    assert_eq!(verdict(&again), Some(Severity::Loop), "the same answer to each is no news");
}

#[test]
fn an_order_in_other_words_is_no_form_that_is_filled_in() {
    let tasks = [
        "Please watch the whole video and describe what happens in it.",
        "Please watch the video and describe what happens in it.",
        "Describe the whole video, please watch what happens in it.",
        "Please describe what happens in the whole video, and watch it.",
    ];
    let answers = ["I see one frame.", "There is one frame.", "It is one frame only.", "One frame, no more."];
    let run: Vec<_> = tasks.iter().zip(answers).map(|(task, answer)| order(task, answer)).collect();
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn a_key_that_is_answered_with_something_new_each_time_moves() {
    let key = |shows: &str| call("send_keys", r#"{"keys":"Down"}"#, shows);
    assert_eq!(verdict(&(1..7).map(|n| key(&format!("item {n} of the menu"))).collect::<Vec<_>>()), None);
    assert_eq!(loops(&times(3, &[key("the menu is closed")])), [Kind::Repeat]);
}

#[test]
fn a_command_that_is_answered_with_something_new_each_time_moves() {
    let bisect =
        |left: usize| sh("git bisect good", &format!("Bisecting: {left} revisions to test after this"));
    assert_ne!(verdict(&[40, 20, 10, 5, 2].map(bisect)), Some(Severity::Loop));
}

#[test]
fn a_text_that_is_put_in_the_same_place_again_leaves_the_same_whatever_it_answers() {
    let put =
        |line: usize| Line { result: Some(format!("written, now {line} lines")), ..write("a.py", "x = 1") };
    assert_eq!(loops(&[9, 10, 11].map(put)), [Kind::Repeat]);
}

#[test]
fn reports_on_different_files_are_different_failures() {
    let report =
        |name: &str| sh(&format!("pytest -q tests/test_{name}.py"), "E assert 1 == 2\n1 failed, 3 passed");
    assert_eq!(verdict(&["auth", "cart", "mail", "search", "admin", "export"].map(report)), None);
    assert_eq!(loops(&times(3, &[report("auth")])), [Kind::FailingRepeat]);
}

#[test]
fn guesses_at_places_are_churn_at_the_fourth_in_a_row() {
    let guess = |name: &str| {
        call("read_file", &format!("{{\"path\":\"/app/src/{name}.ts\"}}"), "File does not exist.")
    };
    let run = ["index", "main", "app", "start"].map(guess);
    assert_ne!(verdict(&run[..3]), Some(Severity::Loop));
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn a_wait_and_a_look_are_a_poll() {
    let wait = || call("wait", r#"{"seconds":5}"#, "Waited for 5 seconds");
    let look = || call("browser_snapshot", "{}", "Orders: loading");
    assert_eq!(verdict(&times(6, &[wait(), look()])), None);
    assert_eq!(loops(&times(3, &[look()])), [Kind::Repeat], "who does not wait only looks again");
    let pods = || sh("kubectl get pods", &"web-1 is up and serves what it is asked for\n".repeat(4));
    let looks = [pods(), call("read_file", r#"{"path":"web.yaml"}"#, "replicas: 1")];
    assert_eq!(verdict(&times(3, &looks)), Some(Severity::Loop), "a long answer is no wait");
}

#[test]
fn one_call_that_is_answered_by_turns_moves() {
    let step = |line: &str| call("gdb", r#"{"command":"next"}"#, line);
    let body = [step("7: for (;;)"), step("8: x++;")];
    assert_ne!(verdict(&times(4, &body)), Some(Severity::Loop), "a debugger in a loop of the program");
    assert_eq!(loops(&times(6, &body)), [Kind::Cycle]);
    let two = [step("7: for (;;)"), call("gdb", r#"{"command":"print x"}"#, "$1 = 3")];
    assert_eq!(verdict(&times(3, &two)), Some(Severity::Loop), "two questions in turns are none");
}

#[test]
fn what_a_server_refuses_is_an_answer_to_that_request() {
    let post = |body: &str| {
        sh(&format!("curl -s -X POST localhost:3000/users -d '{body}'"), r#"{"error":"invalid"}"#)
    };
    assert_ne!(verdict(&["{}", "{name:1}", "{mail:2}", "{age:x}", "{id:y}"].map(post)), Some(Severity::Loop));
    assert_eq!(loops(&times(3, &[post("{}")])), [Kind::Repeat]);
    let down =
        |path: &str| sh(&format!("curl -s http://api/users/{path}"), "curl: (6) Could not resolve host: api");
    assert_eq!(loops(&["a", "b", "c"].map(down)), [Kind::Churn], "what curl itself says is its own failure");
}

#[test]
fn what_was_sent_to_the_background_on_purpose_does_not_hang() {
    let start = |command: &str, rest: &str| {
        let args = format!("{{\"command\":{command:?}{rest}}}");
        call("bash", &args, "Command running in background with ID: b1x.")
    };
    let commands = ["npm run api", "npm run web", "redis-server", "celery worker", "mailhog"];
    let run = |rest| commands.map(|command| start(command, rest));
    assert_eq!(verdict(&run(",\"run_in_background\":true")), None);
    assert_eq!(loops(&run("")), [Kind::Churn]);
}

#[test]
fn a_ledger_that_is_kept_in_the_same_words_between_new_answers_is_no_monologue() {
    let ledger = || says("The request is not satisfied yet, and progress is being made.");
    let run: Vec<_> = ["opening hours", "ticket prices", "tram stops", "the cafe"]
        .iter()
        .flat_map(|topic| {
            [ledger(), call("surf", &format!("{{\"for\":\"{topic}\"}}"), &format!("{topic}: known"))]
        })
        .collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
    assert_eq!(loops(&times(3, &[ledger()])), [Kind::Monologue]);
}

#[test]
fn who_has_learned_something_and_names_something_new_makes_another_attempt() {
    let decompile = |name: &str| {
        let args = format!("{{\"path\":\"game\",\"function\":\"{name}\"}}");
        call("resolve_symbol", &args, &format!("Error: function {name} not found in game"))
    };
    let names = ["f100", "f200", "f300"];
    assert_eq!(loops(&names.map(decompile)), [Kind::Churn]);
    let reads = ["readelf -h game", "nm game", "strings game"]
        .map(|command| sh(command, &format!("{command}: much")));
    let run: Vec<_> = names.iter().zip(reads).flat_map(|(name, read)| [decompile(name), read]).collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

fn by(role: &'static str, text: &str) -> Line {
    Line { role: Some(role), ..says(text) }
}

#[test]
fn who_agrees_to_one_new_proposal_after_the_other_says_something_new() {
    let agrees = || by("lead", "I agree with this proposal, let us go on.");
    let proposals = [
        "Let us keep the notes in one small file.",
        "The editor should be plain, with a preview beside it.",
        "We ship a single program for three systems.",
        "The manual is written last, by all of us.",
    ];
    let meeting: Vec<_> = proposals.iter().flat_map(|text| [by("engineer", text), agrees()]).collect();
    assert_ne!(verdict(&meeting), Some(Severity::Loop));
    let again: Vec<_> = (0..3).flat_map(|_| [by("engineer", proposals[0]), agrees()]).collect();
    assert_eq!(loops(&again), [Kind::Monologue]);
}

#[test]
fn what_a_record_says_is_no_failure_of_the_tool_that_brings_it() {
    let order = |id: usize| format!("{{\"order\":{id},\"payment\":\"failed\"}}");
    let ask = |id: usize| call("order_details", &format!("{{\"id\":{id}}}"), &order(id));
    assert_eq!(verdict(&(1..8).map(ask).collect::<Vec<_>>()), None);
    let refuse =
        |id: usize| call("order_details", &format!("{{\"id\":{id}}}"), r#"{"error":"order not found"}"#);
    assert_eq!(loops(&[1, 2, 3].map(refuse)), [Kind::Churn]);
}

#[test]
fn a_command_that_is_called_in_the_wrong_way_is_not_helped_by_what_is_done_in_between() {
    let wrong = |rest: &str| {
        sh(
            &format!("ps -ef --forest --args {rest}"),
            "error: unknown gnu long option\n\nUsage:\n ps [options]",
        )
    };
    let run = [wrong(""), write("notes.txt", "a"), wrong("-w"), write("notes.txt", "b"), wrong("-ww")];
    assert_eq!(loops(&run), [Kind::Churn]);
    let other = |rest: &str| sh(&format!("make -s all {rest}"), "error: main.c does not compile");
    let mended = [other(""), write("main.c", "a"), other("-k"), write("main.c", "b"), other("-j")];
    assert_ne!(verdict(&mended), Some(Severity::Loop));
}

#[test]
fn a_command_that_is_answered_anew_each_time_changes_what_the_others_see() {
    let test = || fails(sh("cargo test -q regression", "test result: FAILED. 0 passed; 1 failed"));
    let bad = |left: usize| sh("git bisect bad", &format!("Bisecting: {left} revisions to test after this"));
    let bisect: Vec<_> = [64, 32, 16, 8, 4, 2].iter().flat_map(|left| [test(), bad(*left)]).collect();
    assert_ne!(verdict(&bisect), Some(Severity::Loop));
    let over: Vec<_> = (0..4).flat_map(|_| [test(), bad(0)]).collect();
    assert_eq!(verdict(&over), Some(Severity::Loop), "the same answer is no new one");
    let read = |n: usize| sh(&format!("cat part{n}.rs"), &format!("fn part{n}() {{}}"));
    let looks: Vec<_> = (0..5).flat_map(|n| [test(), bad(0), read(n)]).collect();
    assert!(loops(&looks).contains(&Kind::FailingRepeat), "nor is it one after a look elsewhere");
}

#[test]
fn asking_after_a_wait_is_waiting_whatever_asks() {
    let health =
        |wait: &str| sh(&format!("{wait}curl -s -o /dev/null -w '%{{http_code}}' localhost:8080"), "000");
    assert_eq!(verdict(&times(6, &[health("sleep 5; ")])), None);
    assert_eq!(loops(&times(3, &[health("")])), [Kind::Repeat]);
}

#[test]
fn what_is_done_in_a_world_is_answered_in_the_same_words_each_time() {
    let dig = |shows: &str| call("dig", r#"{"block":"stone"}"#, shows);
    assert_ne!(verdict(&times(5, &[dig("Dug 1 stone.")])), Some(Severity::Loop));
    assert_eq!(loops(&times(6, &[dig("Dug 1 stone.")])), [Kind::Repeat]);
}

#[test]
fn what_cannot_be_clicked_is_no_trouble_that_passes() {
    let click = |log: &str| {
        let said = format!("Error: click: Timeout 5000ms exceeded.\n{log}");
        call("browser_click", r#"{"element":"Accept","ref":"e12"}"#, &said)
    };
    let hidden = click("  - waiting for locator('aria-ref=e12')\n  - element is not visible");
    assert_eq!(loops(&times(3, &[hidden])), [Kind::FailingRepeat]);
    assert_ne!(verdict(&times(6, &[click("the server did not answer")])), Some(Severity::Loop));
}

#[test]
fn a_screen_with_a_clock_in_its_status_line_is_the_same_screen() {
    let screen = |text: &str, clock: &str| {
        let shown = format!("$ sudo apt update\n{text}\n[main] 0:bash* \"host\" {clock} 18-Nov-26");
        call("send_keys", r#"{"keys":"sudo apt update\n"}"#, &shown)
    };
    let asks = ["12:00", "12:01", "12:03"].map(|clock| screen("[sudo] password for agent:", clock));
    assert_eq!(loops(&asks), [Kind::Repeat]);
    let goes_on = ["12:00", "12:01", "12:03"].map(|clock| screen(&format!("Hit:{}", &clock[4..]), clock));
    assert_eq!(verdict(&goes_on), None);
}

#[test]
fn an_error_in_the_wrapping_of_a_harness_is_one() {
    let edit = |new: &str, said: &str| {
        call(
            "Edit",
            &format!(
                "{{\"file_path\":\"a.ts\",\"old_string\":\"return x\",\"new_string\":\"return {new}\"}}"
            ),
            said,
        )
    };
    let refused = "<tool_use_error>Found 4 matches of the string to replace, but replace_all is false.</tool_use_error>";
    assert_eq!(loops(&["x + 1", "x + 2", "x + 3"].map(|new| edit(new, refused))), [Kind::Churn]);
    let done = ["x + 1", "x + 2", "x + 3"].map(|new| edit(new, "The file a.ts has been updated."));
    assert_ne!(verdict(&done), Some(Severity::Loop));
}

#[test]
fn who_tries_one_number_after_the_other_goes_on_for_longer() {
    let key = |number: usize, said: &str| sh(&format!("./open --key {number}"), said);
    let found: Vec<_> = (10..18).map(|n| key(n, if n == 17 { "It opens." } else { "wrong key" })).collect();
    assert_ne!(verdict(&found), Some(Severity::Loop));
    let never: Vec<_> = (10..22).map(|n| key(n, "wrong key")).collect();
    assert_eq!(loops(&never), [Kind::Churn]);
    let varied = [7, 40, 7000].map(|n| key(n, "wrong key"));
    assert_eq!(verdict(&varied), Some(Severity::Loop), "guesses at random are no count");
    let edits = [1, 2, 3].map(|n| {
        let args = format!("{{\"path\":\"a.py\",\"old\":\"return x\",\"new\":\"return x + {n}\"}}");
        call("edit_file", &args, "Verification failed: those lines are not there.")
    });
    assert_eq!(verdict(&edits), Some(Severity::Loop), "what does not fit does not fit with another number");
}

#[test]
fn a_page_that_a_server_sends_is_no_failure_of_the_tool_that_asks() {
    let inject = |id: &str, said: &str| sh(&format!("curl -s 'http://t/item?id={id}'"), said);
    let ids = ["1'", "1 or 1=1", "1;--", "1 union select 1", "1 union select 1,2"];
    assert_ne!(verdict(&ids.map(|id| inject(id, "<html>Item not found</html>"))), Some(Severity::Loop));
    assert_eq!(verdict(&ids.map(|id| inject(id, "bash: curl: command not found"))), Some(Severity::Loop));
}

#[test]
fn a_few_words_answer_many_questions() {
    let channel =
        |name: &str, said: &str| call("list_messages", &format!("{{\"channel\":\"{name}\"}}"), said);
    let names = ["ops", "dev", "sales", "support", "design", "legal", "press"];
    let none = r#"{"messages":[],"has_more":false}"#;
    assert_ne!(verdict(&names.map(|name| channel(name, none))), Some(Severity::Loop));
    let more = ["law", "bar", "shop", "lab"].map(|name| channel(name, none));
    let ever = [names.map(|name| channel(name, none)).to_vec(), more.to_vec()].concat();
    assert_eq!(verdict(&ever), Some(Severity::Warning), "nobody knows how many there are");
    let passes = |name: &str| sh(&format!("pytest -q tests/test_{name}.py"), "....\n4 passed");
    assert_ne!(verdict(&names.map(passes)), Some(Severity::Loop), "file by file");
    let page = "Sign in to go on. Your session has ended, and you are asked to give your name and your password again. \
                Whoever has none may ask an administrator for one.";
    assert_eq!(verdict(&names.map(|name| channel(name, page))), Some(Severity::Loop));
    let weather = |word: &str| {
        call(
            "search",
            &format!("{{\"query\":\"weather rain tomorrow umbrella {word}\"}}"),
            "It will be dry there.",
        )
    };
    let words = ["forecast", "needed", "coat", "outlook", "morning", "evening"];
    assert_eq!(loops(&words.map(weather)), [Kind::Churn], "one thing in many words is no other question");
}

#[test]
fn a_look_that_changes_shows_that_an_action_does_something() {
    let look = |x: usize| call("observe", "{}", &format!("A red block is at {x}, 2."));
    let step = || call("move_arm", r#"{"dx":1,"dy":0}"#, "Moved.");
    let plus = || call("adjust", r#"{"by":1}"#, "ok");
    let moves: Vec<_> = (0..7).flat_map(|x| [look(x), step()]).collect();
    assert_ne!(verdict(&moves), Some(Severity::Loop));
    let adjusts: Vec<_> = (0..7).flat_map(|x| [look(x), plus()]).collect();
    assert_ne!(verdict(&adjusts), Some(Severity::Loop));
    let stuck: Vec<_> = (0..7).flat_map(|_| [look(0), plus()]).collect();
    assert_eq!(verdict(&stuck), Some(Severity::Loop));
}

#[test]
fn a_wait_is_a_wait_wherever_it_says_so() {
    let act = |action: &str| call("computer", &format!("{{\"action\":\"{action}\",\"duration\":3}}"), "");
    assert_eq!(verdict(&times(5, &[act("wait")])), None);
    assert_eq!(loops(&times(3, &[act("zoom")])), [Kind::Repeat]);
}

#[test]
fn who_is_asked_the_same_again_looks_again() {
    let asked = || user("Heartbeat: check the inbox.");
    let look = || call("check_inbox", "{}", "It holds three letters.");
    let report = || says("There are three letters in it.");
    assert_eq!(verdict(&times(6, &[asked(), look(), report()])), None);
    let mut alone = vec![asked()];
    alone.extend(times(3, &[look(), report()]));
    assert_eq!(verdict(&alone), Some(Severity::Loop), "nobody has asked again");
    assert_eq!(verdict(&times(4, &[asked(), look()])), Some(Severity::Loop), "nothing was reported");
    assert_eq!(verdict(&times(4, &[asked(), report()])), Some(Severity::Loop), "nothing was looked at");
    let words =
        ["Nobody has asked for it yet.", "All is quiet at the moment.", "Soon there may be more to tell."];
    let late: Vec<_> = words.iter().flat_map(|words| [asked(), says(words), asked(), look()]).collect();
    assert_eq!(loops(&late), [Kind::Repeat], "nothing was looked at when it was asked before");
}

#[test]
fn a_debugger_stands_somewhere_else_after_each_step() {
    let step = |address: usize| {
        call("gdb", r#"{"command":"si"}"#, &format!("0x0000555555555{address:03x} in main ()"))
    };
    assert_eq!(verdict(&(0x130..0x13c).map(step).collect::<Vec<_>>()), None);
    assert_eq!(loops(&times(6, &[step(0x130)])), [Kind::Repeat], "it does not move");
}

#[test]
fn what_has_not_come_yet_is_waited_for() {
    let check = |said: &str| call("check_messages", "{}", said);
    assert_eq!(verdict(&times(6, &[check("No new messages")])), None);
    assert_eq!(loops(&times(3, &[check("2 messages: hello, bye")])), [Kind::Repeat]);
}

#[test]
fn who_is_told_where_to_go_moves() {
    let go = |action: &str| call("step", &format!("{{\"action\":\"{action}\"}}"), "ok");
    assert_eq!(verdict(&times(3, &[go("left")])), None);
    assert_eq!(loops(&times(3, &[go("reset")])), [Kind::Repeat]);
}

//! Agents with tools of other names and forms: what holds for them, and what must not be held against them.

use loopbreaker::{Kind, Severity};

use crate::script::{Line, call, loops, sh, times, verdict, write};

#[test]
fn whoever_sends_a_command_or_a_request_is_told_by_the_answer() {
    let keys = |shows: &str| call("send_keystrokes", r#"{"keystrokes":"tail -n 3 train.log\n"}"#, shows);
    let line = |shows: &str| call("type_command", r#"{"text":"show the state of the robot"}"#, shows);
    let request = |shows: &str| {
        let args =
            r#"{"body":"query { order(id: 7) { state of the parcel } }","url":"https://shop.test/graphql"}"#;
        call("http_post", args, shows)
    };
    for send in [&keys as &dyn Fn(&str) -> Line, &line, &request] {
        let moves: Vec<_> = (1..6).map(|n| send(&format!("step {n}00 is reached"))).collect();
        assert_ne!(verdict(&moves), Some(Severity::Loop), "{:?}", moves[0].tool);
        assert_eq!(loops(&times(3, &[send("step 100 is reached")])), [Kind::Repeat], "it stands still");
    }
    let put = |n: usize| Line { result: Some(format!("written, {n} lines")), ..write("a.py", "x = 1") };
    assert_eq!(loops(&[1, 2, 3].map(put)), [Kind::Repeat], "a text that is put somewhere is no request");
}

fn wait() -> Line {
    call("wait", r#"{"seconds":60}"#, "done")
}

#[test]
fn what_is_looked_at_tells_whether_waiting_is_worth_the_while() {
    let build = |seconds: usize| {
        let shows = format!("{{\"state\":\"running\",\"jobs_done\":{seconds}}}");
        call("get_build", r#"{"number":771}"#, &shows)
    };
    let moves: Vec<_> = (1..25).flat_map(|minute| [build(minute), wait()]).collect();
    assert_eq!(verdict(&moves), None);
    let stands: Vec<_> = (1..25).flat_map(|_| [build(1), wait()]).collect();
    assert_eq!(loops(&stands), [Kind::StalePoll]);
}

#[test]
fn that_a_wait_is_over_is_no_end_of_what_it_waits_for() {
    assert_ne!(verdict(&times(6, &[wait()])), Some(Severity::Loop));
    let job = call("wait_for_job", r#"{"job":"nightly"}"#, "completed");
    assert_eq!(loops(&times(6, &[job])), [Kind::StalePoll], "this one has ended");
}

#[test]
fn the_screen_of_what_runs_may_stand_still_for_a_while() {
    let look = |tool: &str| call(tool, r#"{"id":"1"}"#, "Compiling syn v2.0.39\nCompiling tokio v1.34.0");
    assert_ne!(verdict(&times(6, &[look("get_terminal_output")])), Some(Severity::Loop));
    assert_eq!(loops(&times(20, &[look("get_terminal_output")])), [Kind::StalePoll]);
    assert_eq!(loops(&times(3, &[look("get_notes")])), [Kind::Repeat], "nothing says that it runs");
}

#[test]
fn who_does_the_same_again_between_two_waits_does_more_than_wait() {
    let sleep = || sh("sleep 2", "");
    let health = || sh("curl -s localhost:3000/health", r#"{"status":"ok","queue":"empty"}"#);
    let restart = || sh("rm -f server.pid", "");
    assert_eq!(loops(&times(3, &[restart(), sleep(), health()])), [Kind::Cycle]);
    assert_ne!(verdict(&times(3, &[sleep(), health()])), Some(Severity::Loop), "who only waits may go on");
}

#[test]
fn a_shell_that_shows_its_prompt_has_nothing_to_wait_for() {
    let look = |shows: &str| call("send_keystrokes", r#"{"keystrokes":"","timeout_sec":60}"#, shows);
    assert_eq!(loops(&times(5, &[look("New Terminal Output:\nroot@a1b2c3:/app# ")])), [Kind::StalePoll]);
    assert_ne!(verdict(&times(5, &[look("$ python train.py\nLoading data...")])), Some(Severity::Loop));
}

fn readme(package: &str, said: &str) -> Line {
    call("read_file", &format!("{{\"path\":\"packages/{package}/README.md\"}}"), said)
}

#[test]
fn what_is_not_there_for_each_item_is_an_answer_where_the_form_has_worked() {
    let missing = |package: &str| readme(package, "Path not found in project");
    let [auth, cart, mail, logs, jobs] = ["auth", "cart", "mail", "logs", "jobs"].map(missing);
    let there = |package: &str| readme(package, &format!("# {package}"));
    let mut batch = vec![there("core"), auth.clone(), cart.clone(), there("web"), mail.clone()];
    batch.extend([logs.clone(), there("api"), jobs.clone()]);
    assert_ne!(verdict(&batch), Some(Severity::Loop));
    let never = [auth, cart, mail, logs, jobs];
    let row = [&[there("core")], &never[..]].concat();
    assert_ne!(verdict(&row), Some(Severity::Loop));
    assert_eq!(loops(&never), [Kind::Churn], "a form that has never worked");
}

#[test]
fn a_command_with_one_option_after_the_other_is_no_form_that_is_filled_in() {
    let list = |rest: &str, said: &str| sh(&format!("ps -ef --forest --cols {rest}"), said);
    let refused = "error: unknown gnu long option\n\nUsage:\n ps [options]";
    let run = [list("90", "PID CMD"), list("args", refused), list("head", refused), list("sort", refused)];
    assert_eq!(loops(&run), [Kind::Churn]);
}

#[test]
fn changes_that_differ_in_numbers_only_are_a_series() {
    let code = |x: &str, name: &str| {
        let code = format!(
            "import bpy; bpy.ops.mesh.primitive_cube_add(size=1, location=(0, {x}, {x})); \
             bpy.context.object.scale = (2, 0.5, 0.2); bpy.context.object.name = {name}; \
             bpy.context.view_layer.update(); bpy.context.object.show_name = True"
        );
        call("execute_code", &format!("{{\"code\":{code:?}}}"), "Code executed successfully: ")
    };
    let steps = ["0.5", "1.0", "1.5", "2.0", "2.5"].map(|x| code(x, "step"));
    assert_ne!(verdict(&steps), Some(Severity::Loop));
    let words = ["one", "two", "red", "blue"].map(|name| code("0.5", name));
    assert_eq!(loops(&words), [Kind::Churn]);
}

#[test]
fn a_debugger_goes_on_whatever_its_argument_is_called() {
    let gdb =
        |name: &str, command: &str, said: &str| call("gdb", &format!("{{\"{name}\":\"{command}\"}}"), said);
    for name in ["command", "cmd", "input"] {
        let round = |n: usize| {
            [
                gdb(name, "continue", "Continuing.\n\nBreakpoint 1, main () at loop.c:20"),
                gdb(name, "print counter", &format!("${n} = {}", 256 << n)),
            ]
        };
        assert_ne!(verdict(&(1..9).flat_map(round).collect::<Vec<_>>()), Some(Severity::Loop), "{name}");
        let ends = gdb(name, "continue", "The program is not being run.");
        assert_eq!(verdict(&times(6, &[ends])), Some(Severity::Loop), "{name}");
    }
}

#[test]
fn keys_that_leave_the_screen_as_it_was_have_changed_nothing() {
    let keys =
        |keys: &str, shows: &str| call("send_keystrokes", &format!("{{\"keystrokes\":\"{keys}\"}}"), shows);
    let pager = "commit 9f1 (HEAD)\nAuthor: x\n\n    init\n(END)";
    let others = ["Enter", "C-c", "Escape"];
    let stuck: Vec<_> = others.iter().flat_map(|key| [keys("serve", pager), keys(key, pager)]).collect();
    assert_eq!(verdict(&stuck), Some(Severity::Loop));
    let moves: Vec<_> = others
        .iter()
        .flat_map(|key| [keys("serve", pager), keys(key, &format!("{pager}\nafter {key}"))])
        .collect();
    assert_ne!(verdict(&moves), Some(Severity::Loop));
}

#[test]
fn a_plan_that_is_written_five_times_and_never_begun_is_a_loop() {
    let plan = |first: &str| {
        let args = format!("{{\"plan\":[{{\"step\":\"{first}\"}},{{\"step\":\"Run the tests\"}}]}}");
        call("update_plan", &args, "Plan updated")
    };
    let words = [
        "Fix the type in a.ts",
        "Resolve a mismatch of assignments",
        "Correct how it is typed",
        "Address this small issue first",
        "Mend what tsc complains about",
    ];
    let run = words.map(plan);
    assert_ne!(verdict(&run[..4]), Some(Severity::Loop));
    assert_eq!(loops(&run), [Kind::Churn]);
    let begun: Vec<_> = run.iter().flat_map(|plan| [plan.clone(), sh("npx tsc", "2 errors")]).collect();
    assert!(!loops(&begun).contains(&Kind::Churn), "something is done in between");
    let add = |item: &str| call("add_todo", &format!("{{\"item\":\"{item}\"}}"), "added");
    assert_eq!(verdict(&words.map(add)), None, "a note for each item");
}

use super::CallFacts;
use crate::config::Effect;

#[track_caller]
fn effect(tool: &str, args: &str, expected: Option<Effect>) {
    assert_eq!(CallFacts::read(tool, args.as_bytes(), None).effect, expected, "{tool} {args}");
}

#[test]
fn common_names_tell_their_effect() {
    effect("read_file", r#"{"path":"a"}"#, Some(Effect::Read));
    effect("WebSearch", r#"{"q":"a"}"#, Some(Effect::Read));
    effect("find_user_id_by_email", "{}", Some(Effect::Read));
    effect("edit_file", r#"{"path":"a"}"#, Some(Effect::Write));
    effect("send_message", "{}", Some(Effect::Write));
    effect("get_job_status", "{}", Some(Effect::Poll));
    effect("convert_image", "{}", None);
}

#[test]
fn a_verb_that_changes_something_changes_it_whatever_stands_before() {
    effect("search_replace", r#"{"file_path":"a","new_string":"y","old_string":"x"}"#, Some(Effect::Write));
    effect("find_and_replace", "{}", Some(Effect::Write));
    effect("update_status", r#"{"status":"done"}"#, Some(Effect::Write));
    effect("get_edit_history", "{}", Some(Effect::Read));
    effect("check_order_status", "{}", Some(Effect::Poll));
}

#[test]
fn who_tells_what_is_looked_for_looks() {
    effect("google", r#"{"query":"loops"}"#, Some(Effect::Read));
    effect("knowledge_base", r#"{"query":"loops"}"#, Some(Effect::Read));
    effect("jira", r#"{"jql":"project = X"}"#, Some(Effect::Read));
    effect("browser_snapshot", "{}", Some(Effect::Read));
    effect("graphql", r#"{"query":"mutation { close }"}"#, None);
    effect("neo4j", r#"{"query":"CREATE (n)"}"#, None);
    effect("clear_history", "{}", None);
    effect("ask_agent", r#"{"question":"what now"}"#, None);
}

#[test]
fn a_page_that_is_named_is_read_and_a_page_that_is_gone_to_is_not() {
    let moves = |tool, args: &str| CallFacts::read(tool, args.as_bytes(), None).moves;
    assert!(!moves("visit_page", r#"{"url":"https://a.example"}"#));
    assert!(moves("visit_page", "{}"));
    assert!(!moves("find_on_page", r#"{"text":"x"}"#));
    assert!(moves("page_down", "{}"));
}

#[test]
fn a_line_that_is_typed_and_sent_off_is_a_command() {
    effect("send_keys", r#"{"keys":"ls -la\n"}"#, Some(Effect::Read));
    effect("terminal_input", r#"{"keystrokes":"rm a\n","wait":1}"#, Some(Effect::Write));
    effect("send_keys", r#"{"keys":"./solve --fast\n"}"#, None);
    effect("send_keys", r#"{"keys":"Escape"}"#, Some(Effect::Write));
    effect("send_message", r#"{"text":"ls\n"}"#, Some(Effect::Write));
}

#[test]
fn a_shell_tool_does_what_its_command_does() {
    effect("bash", r#"{"command":"ls -la"}"#, Some(Effect::Read));
    effect("run_command", r#"{"command":"echo \"x\" > f"}"#, Some(Effect::Write));
    effect("Bash", r#""cargo test""#, Some(Effect::Read));
    effect("shell", r#"{"command":["bash","-lc","cat a"]}"#, Some(Effect::Read));
    effect("shell", r#"{"command":["bash","-lc","cat a > b"]}"#, Some(Effect::Write));
    effect("shell", r#"{"command":["bash","run.sh"]}"#, None);
    effect("shell", r#"{"command":["rm","-r","a"]}"#, Some(Effect::Write));
    effect("ls", r#""-F""#, Some(Effect::Read));
}

#[test]
fn a_tool_with_the_name_of_a_program_does_what_its_line_does() {
    effect("kubectl", r#"{"command":"kubectl get pods"}"#, Some(Effect::Poll));
    effect("kubectl", r#"{"command":"delete pod a"}"#, Some(Effect::Write));
    effect("git", r#"{"args":["status","-s"]}"#, Some(Effect::Read));
    effect("git", r#"{"args":"push origin main"}"#, Some(Effect::Write));
    effect("aws_cli", r#"{"args":"s3 ls"}"#, Some(Effect::Read));
    effect("aws_cli", r#"{"args":"s3 cp a b"}"#, None);
}

#[test]
fn an_editor_does_what_its_command_says() {
    effect("str_replace_editor", r#"{"command":"view","path":"a"}"#, Some(Effect::Read));
    effect("str_replace_editor", r#"{"command":"create","path":"a"}"#, Some(Effect::Write));
}

#[test]
fn sql_does_what_its_verb_says() {
    effect("sql", r#""SELECT * FROM t""#, Some(Effect::Read));
    effect("run_sql", r#"{"query":"insert into t values (1)"}"#, Some(Effect::Write));
}

#[test]
fn what_is_declared_wins() {
    let facts = CallFacts::read("edit_file", b"{}", Some(Effect::Read));
    assert_eq!(facts.effect, Some(Effect::Read));
}

#[test]
fn what_is_declared_moves_nothing() {
    assert!(CallFacts::read("click_button", b"{}", None).moves);
    assert!(!CallFacts::read("click_button", b"{}", Some(Effect::Read)).moves);
}

#[test]
fn a_list_of_things_to_do_is_the_agents_own_note() {
    assert!(CallFacts::read("todo_write", b"{}", None).notes);
    assert!(!CallFacts::read("write_file", b"{}", None).notes);
}

#[test]
fn an_order_is_prose_and_a_command_is_none() {
    let prose = |tool, args: &str| CallFacts::read(tool, args.as_bytes(), None).prose;
    assert!(prose("ask_agent", r#"{"order":"please look at all the videos once more"}"#));
    assert!(!prose("bash", r#"{"command":"grep please look at all the videos"}"#));
}

#[test]
fn an_edit_tells_what_it_takes_and_what_it_leaves() {
    let there = CallFacts::read("edit", br#"{"new":"y","old":"x","path":"a"}"#, None);
    let back = CallFacts::read("edit", br#"{"new":"x","old":"y","path":"a"}"#, None);
    assert_eq!((there.before, there.after), (back.after, back.before));
    assert_ne!(there.before, 0);
}

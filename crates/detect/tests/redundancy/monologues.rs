//! Answers without a tool call: when they are one monologue, and when each is a new thought.

use loopbreaker::{Kind, Severity};

use crate::script::{Line, findings, loops, read, says, times, user, verdict};

#[test]
fn the_same_words_three_times_are_a_monologue() {
    assert_eq!(loops(&times(3, &[says("I will now fix the bug.")])), [Kind::Monologue]);
}

#[test]
fn nearly_the_same_words_are_a_monologue_a_little_later() {
    let run = [
        "I will now look into the parser and fix the failing test for empty input",
        "Now I will look into the parser and fix the failing test for the empty input",
        "I will look into the parser now and fix the failing test for empty input",
        "So now I will look into the parser and fix that failing test for empty input",
    ]
    .map(says);
    assert_eq!(loops(&run), [Kind::Monologue]);
}

#[test]
fn a_plan_that_goes_on_is_no_monologue() {
    let run = [
        "First the lexer needs a token for the empty string.",
        "Next comes the parser, which has to accept it.",
        "After that the printer should write it back.",
        "Finally, the documentation deserves an example.",
    ]
    .map(says);
    assert_eq!(verdict(&run), None);
}

#[test]
fn what_another_agent_said_is_no_monologue() {
    let run = ["Planner", "Coder", "Planner", "Coder"]
        .map(|name| Line { role: Some(name), ..says("I will now fix the bug in it.") });
    assert_eq!(verdict(&run), Some(Severity::Warning));
}

#[test]
fn three_words_are_alike_by_chance() {
    let run = ["Still working here.", "Here, still working.", "Working here still!", "Here still, working"];
    assert_eq!(verdict(&run.map(says)), None);
}

#[test]
fn like_words_about_new_results_are_no_monologue() {
    let run: Vec<_> = ["today", "tomorrow", "again", "soon", "now"]
        .iter()
        .flat_map(|when| {
            let says = says(&format!("I will look into the parser for errors {when}"));
            [says, read(&format!("{when}.rs"), when)]
        })
        .collect();
    assert_eq!(verdict(&run), None);
}

#[test]
fn like_words_about_another_thing_each_time_are_no_monologue() {
    let run = ["Skyfall", "Spectre", "Goldfinger", "Thunderball"]
        .map(|movie| says(&format!("next I will look up where the movie {movie} can be seen")));
    assert_eq!(verdict(&run), None);
}

#[test]
fn words_beside_a_call_of_the_same_round_are_no_monologue() {
    let run: Vec<_> = (0..4_u64)
        .flat_map(|round| {
            let text = says("Let me look at the next file of these.").round(round);
            [text, read(&format!("{round}.rs"), &format!("fn number_{round}() {{}}")).round(round)]
        })
        .collect();
    assert_eq!(verdict(&run), None);
    let alone: Vec<_> =
        (0..4).map(|round| says("Let me look at the next file of these.").round(round)).collect();
    assert_eq!(loops(&alone), [Kind::Monologue]);
}

#[test]
fn words_between_new_results_are_no_monologue() {
    let run: Vec<_> = (0..6)
        .flat_map(|file| {
            [
                says("Let me look at the next file in the list now."),
                read(&format!("{file}.rs"), &format!("{file}")),
            ]
        })
        .collect();
    assert_ne!(loops(&run), [Kind::Churn]);
    assert!(
        findings(&run)
            .iter()
            .all(|finding| finding.kind == Kind::Monologue || finding.severity == Severity::Warning)
    );
}

#[test]
fn different_words_to_one_canned_reply_are_a_monologue() {
    let texts = [
        "Is there anything else that I should do?",
        "Thank you for working with me on this.",
        "It was a pleasure to explore the problem.",
        "Should anything else come up, let me know.",
        "Farewell, and all the best for the project.",
        "As nothing remains, this concludes it.",
    ];
    let run = texts.map(|text| {
        let mut line = says(text);
        line.result = Some("Please go on.".into());
        line
    });
    assert_eq!(loops(&run), [Kind::Monologue]);
}

fn by(role: &'static str, text: &str) -> Line {
    Line { role: Some(role), ..says(text) }
}

#[test]
fn a_word_or_two_are_the_same_only_where_they_answer_the_same() {
    let ask = |question: &str| by("guesser", question);
    let yes = || by("host", "Yes.");
    let game: Vec<_> = [
        "Is it a large bird?",
        "Does it swim in the sea?",
        "Is it black and white?",
        "Does it breed in winter?",
    ]
    .iter()
    .flat_map(|question| [ask(question), yes()])
    .collect();
    assert_ne!(verdict(&game), Some(Severity::Loop));
    assert_eq!(loops(&times(4, &[yes()])), [Kind::Monologue], "nobody has asked");
    assert_eq!(verdict(&times(4, &[ask("Is it a large bird?"), yes()])), Some(Severity::Loop));
}

#[test]
fn an_error_that_a_harness_reports_is_answered_in_vain_at_the_third() {
    let texts = [
        "I am sorry for the confusion, and go on with it.",
        "Let me set the project up now.",
        "Apologies again: here comes the setup.",
    ];
    let told = |words: &str| texts.iter().flat_map(|text| [user(words), says(text)]).collect::<Vec<_>>();
    assert_eq!(loops(&told("[ERROR] You did not use a tool in your last answer!")), [Kind::Monologue]);
    let goes_on = told("Please write the next chapter of it for me.");
    assert_eq!(verdict(&goes_on), None, "a writer who is told to go on writes something new");
}

#[test]
fn near_equal_words_in_a_script_without_spaces_are_near_equal() {
    let run = [
        "好的，我现在就去修改登录页面的代码，请稍等。",
        "好的，我现在就来修改登录页面的代码，请稍等。",
        "好的，我马上就去修改登录页面的代码，请稍等。",
        "好的，我现在就去修改登录页面的代码，请稍候。",
    ]
    .map(says);
    assert_eq!(loops(&run), [Kind::Monologue]);
    let work = [
        "首先看看项目里有哪些文件。",
        "测试失败了，原因是端口被占用。",
        "换一个端口以后服务就能启动。",
        "最后更新说明文档并提交。",
    ];
    assert_eq!(loops(&work.map(says)), []);
}

//! Results that repeat their own question: what they tell besides is what counts.

use loopbreaker::{Kind, Severity};

use crate::script::{Line, call, loops, sh, verdict};

/// A search engine whose page begins with the query.
fn search(query: &str, hits: &str) -> Line {
    let page = format!("A search for '{query}' found 3 results:\n\n## Results\n{hits}");
    call("web_search", &format!("{{\"query\":{query:?}}}"), &page)
}

const HITS: &str = "1. The Treaty of Lorn, an overview of what it settled\n2. Lorn in the archives of the county\n\
                    3. A letter about the treaty, with a note of the editor";

const WORDINGS: [&str; 6] = [
    "Treaty of Lorn signatories",
    "who signed at Lorn",
    "list of names under the Lorn treaty",
    "Lorn treaty signed by whom",
    "signatories Lorn names",
    "people who put their name to the treaty",
];

#[test]
fn hits_are_the_same_whatever_query_stands_above_them() {
    assert_eq!(loops(&WORDINGS.map(|query| search(query, HITS))), [Kind::Churn]);
    let other = |number: usize| HITS.replace("letter", &format!("letter of the year {number}"));
    let moves: Vec<_> =
        WORDINGS.iter().zip(1801..).map(|(query, year)| search(query, &other(year))).collect();
    assert_eq!(verdict(&moves), None, "other hits are news");
}

#[test]
fn what_was_cut_short_may_end_somewhere_else() {
    let cut = |query: &str| {
        let page = format!("A search for '{query}' found 3 results:\n{HITS}\n4. The end of it");
        let page = &page[..page.len() - query.len() % 9];
        call("web_search", &format!("{{\"query\":{query:?}}}"), &format!("{page} …[truncated]"))
    };
    assert_eq!(loops(&WORDINGS.map(cut)), [Kind::Churn]);
}

#[test]
fn things_that_are_all_alike_but_for_their_names_are_looked_at_one_by_one() {
    let hosts =
        ["alpha-one", "beta-two", "gamma-three", "delta-four", "epsilon-five", "zeta-six", "eta-seven"];
    let get = |host: &str| {
        let says = format!(
            "host {host}\nstate: up\nports: 22 open, 80 open, 443 open\nkernel: as on all of them\nowner: operations"
        );
        call("get_host", &format!("{{\"host\":\"{host}\"}}"), &says)
    };
    assert_ne!(verdict(&hosts.map(get)), Some(Severity::Loop));
}

#[test]
fn an_error_that_repeats_the_question_is_one_kind_of_error() {
    let ways = ["Halden symphony", "Halden Symphony", "The Halden symphony", "Halden symphony composer"];
    let look = |query: &str| {
        call("Search", &format!("\"{query}\""), &format!("Could not find {query}. Similar: [Halden, Halde]."))
    };
    assert_eq!(loops(&ways.map(look)), [Kind::Churn]);
    let people = ["Ana Kovacic", "Bert Olsen", "Carla Diaz"];
    assert_ne!(verdict(&people.map(look)), Some(Severity::Loop), "three people are three questions");
}

#[test]
fn a_plain_word_of_the_question_means_something_else_in_the_error() {
    let push = |line: &str| sh(line, "error: failed to push some refs to 'example'\nhint: fetch first");
    let ways = ["git push", "git push origin main", "git push -u origin main", "git push origin HEAD:main"];
    assert_eq!(loops(&ways.map(push)), [Kind::Churn]);
}

#[test]
fn one_name_that_is_looked_for_by_several_commands_is_one_search() {
    let commands = [
        "grep -rn 'combine_outer' src",
        "grep -rni 'combine_outer' .",
        "find . -name '*combine_outer*'",
        "ag 'combine_outer'",
        "grep -rnw 'combine_outer' src tests docs",
        "git grep 'combine_outer'",
    ];
    assert_eq!(loops(&commands.map(|command| sh(command, ""))), [Kind::Churn]);
    let names = ["outer", "combine", "merge", "union", "left_join", "cross"];
    let others = names.map(|name| sh(&format!("grep -rn '{name}' src"), ""));
    assert_ne!(verdict(&others), Some(Severity::Loop), "other names are other searches");
}

#[test]
fn a_question_that_is_answered_in_the_same_sentence_was_the_same() {
    let ask =
        |question: &str, answer: &str| call("ask_human", &format!("{{\"question\":{question:?}}}"), answer);
    let ways = [
        "Which region should I deploy to?",
        "Which region should the deployment go to?",
        "In which region should I deploy?",
        "Could you tell me which region to deploy to?",
        "Which region shall I deploy to?",
    ];
    let answer = "I do not know that, ask the platform team.";
    assert_eq!(loops(&ways.map(|question| ask(question, answer))), [Kind::Churn]);
    let answers = ["the western one", "to the west", "as before: west", "it is called west", "I said: west"];
    let run: Vec<_> = ways.iter().zip(answers).map(|(question, answer)| ask(question, answer)).collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

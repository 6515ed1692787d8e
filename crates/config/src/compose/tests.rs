use super::compose;
use crate::report::Report;
use crate::tree::{Node, Spot, Value};

/// The tree in short, each value with its place: `{key=text@1:6}`.
fn draw(node: &Node) -> String {
    let Spot { line, column } = node.spot;
    let body = match &node.value {
        Value::Scalar { text, quoted: true } => format!("{text:?}"),
        Value::Scalar { text, quoted: false } => text.to_string(),
        Value::List(items) => format!("[{}]", items.iter().map(draw).collect::<Vec<_>>().join(" ")),
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, node)| format!("{}={}", key.text, draw(node)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(" "))
        }
    };
    format!("{body}@{line}:{column}")
}

fn tree(text: &str) -> String {
    let report = Report::default();
    let root = compose(text, &report).unwrap();
    assert_eq!(report.verdict(), Ok(vec![]));
    root.map_or_else(|| "nothing".to_owned(), |root| draw(&root))
}

fn fatal(text: &str) -> String {
    compose(text, &Report::default()).unwrap_err().message
}

#[test]
fn every_value_knows_its_line_and_column() {
    assert_eq!(tree("a: 1\nb:\n  - x\n  - 'y'\n"), "{a=1@1:4 b=[x@3:5 \"y\"@4:5]@3:3}@1:1");
}

#[test]
fn json_and_yaml_give_the_same_shape() {
    assert_eq!(tree("{\n\t\"a\": [1, 2]\n}"), "{a=[1@2:8 2@2:11]@2:7}@1:1");
}

#[test]
fn a_text_of_comments_is_nothing() {
    for text in ["", "\n\n", "# a\n# b\n", "---\n", "--- # a\n...\n"] {
        assert_eq!(tree(text), "nothing", "{text:?}");
    }
}

#[test]
fn a_value_that_is_not_there_stands_at_its_key() {
    assert_eq!(tree("a:\nb: ''\n"), "{a=@1:1 b=\"\"@2:4}@1:1");
}

#[test]
fn an_alias_stands_where_it_is_written_and_its_inside_where_the_anchor_is() {
    assert_eq!(tree("a: &x [1]\nb: *x\n"), "{a=[1@1:8]@1:4 b=[1@1:8]@2:4}@1:1");
}

#[test]
fn an_anchor_may_be_used_again_for_another_value() {
    assert_eq!(tree("[&x 1, *x, &x 2, *x]"), "[1@1:2 1@1:8 2@1:12 2@1:18]@1:1");
}

#[test]
fn lists_and_maps_may_be_64_levels_deep_and_no_more() {
    assert!(tree(&format!("{}{}", "[".repeat(64), "]".repeat(64))).starts_with('['));
    let too_deep = "lists and maps are nested more than 64 levels deep";
    assert_eq!(fatal(&format!("{}{}", "[".repeat(65), "]".repeat(65))), too_deep);
    assert_eq!(fatal(&"- ".repeat(65)), too_deep);
}

#[test]
fn aliases_do_not_dig_deeper_than_64_levels_either() {
    let chain = (1..=70).map(|n| format!("- &l{n} [*l{}]\n", n - 1)).collect::<Vec<_>>().concat();
    assert_eq!(fatal(&format!("- &l0 []\n{chain}")), "lists and maps are nested more than 64 levels deep");
}

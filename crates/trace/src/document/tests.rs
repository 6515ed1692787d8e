use super::*;

/// What an input is cut into: `line:text` for a record, `line!` for a problem.
fn cut(input: &str, max: usize) -> Vec<String> {
    let mut records = Records::new(input.as_bytes(), max);
    let mut found = Vec::new();
    loop {
        match records.next().unwrap() {
            Item::End => return found,
            Item::Problem(problem) => found.push(format!("{}!", problem.line)),
            Item::Record(record) => {
                let text: String = record.text.split_whitespace().collect();
                found.push(format!("{}:{text}", record.line));
            }
        }
    }
}

#[test]
fn a_complete_first_line_means_one_value_per_line() {
    assert_eq!(cut("{\"a\":1}\n\n[2]\r\n{\"b\"\n", 100), ["1:{\"a\":1}", "3:[2]", "4:{\"b\""]);
}

#[test]
fn a_document_over_several_lines_is_one_record() {
    assert_eq!(cut("\n{\n  \"a\": [\n 1, 2\n]\n}\n\n", 100), ["2:{\"a\":[1,2]}"]);
}

#[test]
fn documents_behind_each_other_are_a_record_each() {
    assert_eq!(cut("{\n\"a\":1\n}\n[\n2\n]\n{\"c\":3}\n", 100), ["1:{\"a\":1}", "4:[2]", "7:{\"c\":3}"]);
}

#[test]
fn a_first_line_that_was_cut_short_does_not_swallow_the_lines_behind_it() {
    let input = "{\"id\":\"a\",\"steps\":[\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n";
    assert_eq!(cut(input, 100), ["1:{\"id\":\"a\",\"steps\":[", "2:{\"id\":\"b\"}", "3:{\"id\":\"c\"}"]);
    let input = "{\"id\":\"a\n{\"id\":\"b\"}\n";
    assert_eq!(cut(input, 100), ["1:{\"id\":\"a", "2:{\"id\":\"b\"}"]);
}

#[test]
fn a_document_with_a_mistake_is_one_problem_on_the_right_line() {
    assert_eq!(cut("{\n\"a\": 1,\n\"b\": oops,\n\"c\": 2\n}\n", 100), ["3!"]);
}

#[test]
fn a_document_that_breaks_off_is_one_problem_where_it_begins() {
    assert_eq!(cut("[\n {\n \"a\": 1,\n", 100), ["1!"]);
}

#[test]
fn a_document_above_the_limit_is_a_problem_where_it_begins() {
    let input = format!("[\n{}1]\n", "1,\n".repeat(100));
    assert_eq!(cut(&input, 50), ["1!"]);
}

#[test]
fn nul_bytes_and_long_lines_are_problems_and_reading_goes_on() {
    let input = format!("[1]\n[\"\0\"]\n[{}]\n[4]\n", "1".repeat(60));
    assert_eq!(cut(&input, 50), ["1:[1]", "2!", "3!", "4:[4]"]);
}

#[test]
fn a_bracket_in_a_string_is_no_bracket() {
    assert_eq!(cut("{\n\"a\": \"}\\\"]\"\n}\n", 100), ["1:{\"a\":\"}\\\"]\"}"]);
}

#[test]
fn only_a_record_without_company_is_the_only_one() {
    for (input, only) in [("[1]\n\n", true), ("[\n1\n]", true), ("[1]\n[2]", false), ("[1]\nx", false)] {
        let mut records = Records::new(input.as_bytes(), 100);
        let Item::Record(record) = records.next().unwrap() else { panic!("no record in {input}") };
        assert_eq!(record.only, only, "{input}");
    }
}

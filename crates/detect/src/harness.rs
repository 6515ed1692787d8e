//! What a harness says itself, in tags of its own, beside what tools and people say.

use memchr::memmem;

/// Whether all of a text stands in a tag by which harnesses mark their own words: `<environment_details>`,
/// `<system-reminder>`.
pub(crate) fn is_of_a_harness(text: &str) -> bool {
    let Some((tag, rest)) = text.strip_prefix('<').and_then(|text| text.split_once('>')) else {
        return false;
    };
    let closes = || {
        rest.strip_suffix('>')
            .and_then(|rest| rest.strip_suffix(tag))
            .is_some_and(|rest| rest.ends_with("</"))
    };
    let tag_says = |word: &str| tag.split(['_', '-']).any(|part| part.eq_ignore_ascii_case(word));
    is_name(tag.as_bytes()) && WORDS.iter().any(|word| tag_says(word)) && closes()
}

/// Words in the names of such tags.
const WORDS: &[&str] = &["environment", "env", "reminder", "system", "status", "budget", "usage", "time"];

/// Tags in which a harness reminds of something, now and then, behind whatever a tool has answered.
const REMINDERS: &[&str] = &["system-reminder", "reminder"];

/// Tags in which it tells, behind each answer, how full the context is and what else it counts.
const TABLES: &[&str] = &[
    "environment-details",
    "system-warning",
    "token-usage",
    "token-budget",
    "context-usage",
    "context-window",
];

/// So many of them stand behind one answer.
const MOST: usize = 4;
/// A longer name is none of theirs.
const LONGEST: usize = 24;

/// Takes off the end of an answer what the harness has put there, and says whether that was a table, which may tell of what
/// runs beside. A reminder comes or not, whatever was asked; one that stands alone is what the harness says instead of an
/// answer. What has another name is left, since a world or a form may be told in tags, too.
pub(crate) fn take_off_its_words(answer: &mut Vec<u8>) -> bool {
    let mut was_table = false;
    for _ in 0..MOST {
        answer.truncate(answer.trim_ascii_end().len());
        let Some((start, name)) = last_block(answer) else { break };
        let is_one_of = |names: &[&str]| names.iter().any(|known| is_spelled(&answer[name.clone()], known));
        let is_table = is_one_of(TABLES);
        if !is_table && (!is_one_of(REMINDERS) || answer[..start].trim_ascii().is_empty()) {
            break;
        }
        was_table |= is_table;
        answer.truncate(start);
    }
    was_table
}

/// Where the tag begins that a text ends with, and where its name stands.
fn last_block(text: &[u8]) -> Option<(usize, std::ops::Range<usize>)> {
    let inside = text.strip_suffix(b">")?;
    let from = inside.len().saturating_sub(LONGEST + 2);
    let close = from + memmem::rfind(&inside[from..], b"</")?;
    let name = &inside[close + 2..];
    // What is opened is searched for by its name, and then looked at whether it is all of a tag.
    let open = is_name(name).then(|| memmem::rfind(&text[..close], name)).flatten()?;
    let is_tag = open > 0 && text[open - 1] == b'<' && text.get(open + name.len()) == Some(&b'>');
    is_tag.then(|| (open - 1, open..open + name.len()))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn is_spelled(name: &[u8], known: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    name.iter().map(|byte| plain(*byte)).eq(known.bytes())
}

#[cfg(test)]
mod tests {
    use super::take_off_its_words;

    #[track_caller]
    fn left(answer: &str, expected: &str) {
        let mut text = answer.as_bytes().to_vec();
        take_off_its_words(&mut text);
        assert_eq!(String::from_utf8(text).expect("as it came").trim_end(), expected);
    }

    #[test]
    fn a_reminder_behind_an_answer_is_none_of_it() {
        left("3 files\n\n<system-reminder>\nThe list is empty.\n</system-reminder>\n", "3 files");
        left(
            "3 files\n<system_reminder>one</system_reminder><system-reminder>two</system-reminder>",
            "3 files",
        );
    }

    #[test]
    fn a_table_of_the_environment_is_none_of_it() {
        let table = "<environment_details>\nUsed: 9,731 of 200K\n</environment_details>";
        left(&format!("3 files\n\n{table}"), "3 files");
        left(&format!("3 files\n{table}\n<system-reminder>Go on.</system-reminder>"), "3 files");
        left(table, "");
        assert!(take_off_its_words(&mut format!("3 files {table}").into_bytes()));
        assert!(!take_off_its_words(&mut b"3 files <reminder>Go on.</reminder>".to_vec()));
    }

    #[test]
    fn what_is_no_word_of_a_harness_stays() {
        for answer in [
            "<system-reminder>Nothing else.</system-reminder>",
            "You hit it.\n<status>HP: 30</status>",
            "<config>\n<usage>3</usage>\n</config>",
            "a < b, c </system-reminder>",
            "You hit it.\n<environment>HP: 30</environment>",
            "</system-reminder>",
            "words </>",
            ">",
            "",
        ] {
            left(answer, answer);
        }
    }
}

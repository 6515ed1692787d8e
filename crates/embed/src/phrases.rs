//! Phrases in the arguments of a call: what is worded, rather than named.

/// The arguments with their phrases out of the quotes: in them a whole query would be one name, and every other wording
/// of it another one. Names within a phrase are put in quotes instead: "weather in Rome" is not "weather in Oslo", and
/// "chapter three" is not "chapter four".
///
/// Everything that is no phrase (paths, ids, single words, code, keys) keeps its bytes.
pub(crate) fn out_of_quotes(args: &str) -> String {
    let mut out = String::with_capacity(args.len() + 8);
    let mut rest = args;
    while let Some(open) = rest.find('"') {
        let (before, quoted) = rest.split_at(open);
        out.push_str(before);
        let Some(length) = end_of_string(quoted) else {
            rest = quoted;
            break;
        };
        let (string, after) = quoted.split_at(length);
        let is_key = after.trim_start().starts_with(':');
        match string.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
            Some(inner) if !is_key && is_phrase(inner) => say(inner, &mut out),
            _ => out.push_str(string),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The length of the JSON string at the start of a text, with its quotes.
fn end_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })?;
    Some(end + 2)
}

/// Whether it is put in words: three or more of them, and none of the signs of code, paths and escapes.
fn is_phrase(text: &str) -> bool {
    let is_plain = |char: char| char.is_alphanumeric() || " ,.?!'’-:".contains(char);
    text.split(' ').filter(|word| !word.is_empty()).count() >= 3 && text.chars().all(is_plain)
}

/// A phrase, its proper names in quotes, and with them what is a name in all but its writing. That a phrase begins with
/// a capital says nothing, unless its next word does so too.
fn say(phrase: &str, out: &mut String) {
    let is_capital = |word: &str| word.starts_with(char::is_uppercase);
    let mut words = phrase.split(' ').peekable();
    let mut is_first = true;
    while let Some(word) = words.next() {
        let (bare, tail) = word.split_at(end_of_name(word));
        let is_proper = is_capital(word) && (!is_first || words.peek().is_some_and(|next| is_capital(next)));
        let is_name = !bare.is_empty() && (is_proper || tells_apart(bare));
        if !std::mem::replace(&mut is_first, false) {
            out.push(' ');
        }
        if is_name {
            out.extend(["\"", bare, "\"", tail]);
        } else {
            out.push_str(word);
        }
    }
}

/// Where the name in a word ends: "Rome's" and "Rome," name Rome.
fn end_of_name(word: &str) -> usize {
    let bare = word.trim_end_matches([',', '.', '?', '!', ':', '\'', '’']);
    bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s")).unwrap_or(bare).len()
}

/// Whether a word makes another question of the same phrase: a model finds "chapter three" and "chapter four", or
/// "active" and "not active", nearly the same. "One" and "may" are left out, since they mostly are other words.
fn tells_apart(word: &str) -> bool {
    const APART: [&str; 46] = [
        "not", "no", "never", "without", "except", "only", "before", "after", "next", "last", "previous",
        "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "first", "second", "third",
        "fourth", "fifth", "january", "february", "march", "april", "june", "july", "august", "september",
        "october", "november", "december", "monday", "tuesday", "wednesday", "thursday", "friday",
        "saturday", "sunday", "today", "tomorrow", "yesterday",
    ];
    APART.iter().any(|apart| apart.eq_ignore_ascii_case(word))
        || word.ends_with("n't")
        || word.ends_with("n’t")
}

#[cfg(test)]
mod tests {
    use loopbreaker::Names;
    use proptest::prelude::*;

    use super::out_of_quotes;

    #[test]
    fn a_query_in_other_words_names_nothing_else() {
        let (a, b) = (r#"{"query":"best pizza in Rome"}"#, r#"{"query":"top pizza places in Rome"}"#);
        assert_eq!(out_of_quotes(a), r#"{"query":best pizza in "Rome"}"#);
        assert_ne!(Names::of(a), Names::of(b));
        assert_eq!(Names::of(&out_of_quotes(a)), Names::of(&out_of_quotes(b)));
    }

    #[test]
    fn proper_names_stay_apart() {
        let names = |args: &str| Names::of(&out_of_quotes(args));
        assert_ne!(
            names(r#"{"query":"weather in Rome today"}"#),
            names(r#"{"query":"weather in Oslo today"}"#)
        );
        assert_ne!(names(r#"{"who":"John Smith of Boston"}"#), names(r#"{"who":"Jane Smith of Boston"}"#));
        assert_eq!(
            names(r#"{"query":"Best pizza in Rome"}"#),
            names(r#"{"query":"the pizza in Rome, please"}"#)
        );
    }

    #[test]
    fn numbers_times_and_denials_in_words_stay_apart() {
        let names = |query: &str| Names::of(&out_of_quotes(&format!(r#"{{"query":"{query}"}}"#)));
        for (a, b) in [
            ("summary of chapter three", "summary of chapter four"),
            ("sales of the store in june", "sales of the store in July"),
            ("users that are active", "users that are not active"),
            ("users that do act", "users that don't act"),
            ("flights on monday morning", "flights on friday morning"),
            ("population in 2019 of France", "population in 2020 of France"),
        ] {
            assert_ne!(names(a), names(b), "{a}, {b}");
        }
        assert_eq!(names("the sales for june"), names("sales in the month of june"));
    }

    #[test]
    fn a_name_is_the_same_whatever_it_is_followed_by() {
        let names = |query: &str| Names::of(&out_of_quotes(&format!(r#"{{"query":"{query}"}}"#)));
        let rome = names("the pizza in Rome");
        for query in [
            "what of Rome's pizza?",
            "in Rome, where is pizza",
            "where is pizza in Rome?!",
            "of Rome’s pizzas",
        ] {
            assert_eq!(names(query), rome, "{query}");
        }
    }

    #[test]
    fn several_phrases_and_what_stands_between_them_are_told_apart() {
        assert_eq!(
            out_of_quotes(r#"{"a":"one of many words","path":"x/y","b":["more of such words",3]}"#),
            r#"{"a":one of many words,"path":"x/y","b":[more of such words,3]}"#
        );
    }

    #[test]
    fn what_is_no_phrase_keeps_its_bytes() {
        for args in [
            r#"{"path":"src/main.rs","lines":[1,2]}"#,
            r#"{"name":"John Smith"}"#,
            r#"{"a long key indeed":"x"}"#,
            r#"{"code":"let a = 1; let b = 2"}"#,
            r#"{"text":"he said \"no no no\" and left"}"#,
            r#"{"cut":"off in the mid"#,
            "",
        ] {
            assert_eq!(out_of_quotes(args), args);
        }
    }

    proptest! {
        #[test]
        fn nothing_but_quotes_and_marks_is_added_or_lost(args in ".{0,60}") {
            let letters = |text: &str| text.chars().filter(|char| char.is_alphanumeric()).collect::<String>();
            prop_assert_eq!(letters(&out_of_quotes(&args)), letters(&args));
        }
    }
}

//! What a scalar's text stands for, by the rules of YAML 1.2 (which are those of JSON and a little more).

/// The meaning of an unquoted text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Meaning {
    Null,
    Flag(bool),
    /// A whole number in decimal, of any size and sign.
    Whole,
    /// Any other number, not-a-number and the infinities included.
    Real(f64),
    Text,
}

/// What an unquoted text means. `010` and `0x10` are left as text: readers of YAML disagree about their value.
pub(crate) fn meaning(text: &str) -> Meaning {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Meaning::Null,
        "true" | "True" | "TRUE" => Meaning::Flag(true),
        "false" | "False" | "FALSE" => Meaning::Flag(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Meaning::Real(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Meaning::Real(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => Meaning::Real(f64::NAN),
        _ if is_whole(text) => Meaning::Whole,
        _ => real(text).map_or(Meaning::Text, Meaning::Real),
    }
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let unambiguous = digits.len() == 1 || !digits.starts_with('0');
    !digits.is_empty() && unambiguous && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Rust reads `inf`, `nan` and the like as numbers too; YAML does not.
fn real(text: &str) -> Option<f64> {
    let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let written_as_real = text.contains(['.', 'e', 'E']) && text.bytes().all(numeric);
    written_as_real.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{Meaning, meaning};

    #[test]
    fn numbers_are_told_from_text() {
        for whole in ["0", "3", "-1", "+7", "99999999999999999999"] {
            assert_eq!(meaning(whole), Meaning::Whole, "{whole}");
        }
        for (text, value) in [("3.5", 3.5), (".5", 0.5), ("1e3", 1e3), ("-0.0", 0.0), (".inf", f64::INFINITY)]
        {
            assert_eq!(meaning(text), Meaning::Real(value), "{text}");
        }
        for text in
            ["three", "010", "0x10", "1_000", "inf", "nan", "NaN", "-", "+", ".", "e", "1.2.3", "50ms"]
        {
            assert_eq!(meaning(text), Meaning::Text, "{text}");
        }
    }

    #[test]
    fn yes_and_no_are_text() {
        assert_eq!(meaning("yes"), Meaning::Text);
        assert_eq!(meaning("True"), Meaning::Flag(true));
    }

    #[test]
    fn an_empty_value_is_null() {
        assert_eq!((meaning(""), meaning("~")), (Meaning::Null, Meaning::Null));
    }
}

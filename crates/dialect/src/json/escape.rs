//! Strings between their written form and their meaning.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::scan::backslash;

/// The one written form that all ways of writing a string have in common. What comes and goes is without the quotes.
///
/// Only `\u` and `\/` leave a choice, so nearly every string is in that form already and nothing is decoded.
pub(crate) fn canonical(inside: &str) -> Cow<'_, str> {
    if !leaves_a_choice(inside) {
        return Cow::Borrowed(inside);
    }
    let mut canonical = String::with_capacity(inside.len());
    push_escaped(&unescaped(inside), &mut canonical);
    Cow::Owned(canonical)
}

/// Whether there is an escape that can be written in another way. One that is escaped itself counts as well: that costs
/// a moment and changes nothing.
pub(crate) fn leaves_a_choice(inside: &str) -> bool {
    let bytes = inside.as_bytes();
    if bytes.len() > LONG {
        return UNICODE.find(bytes).is_some() || SLASH.find(bytes).is_some();
    }
    let mut next = backslash(bytes, 0);
    while let Some(at) = next {
        if let Some(b'u' | b'/') = bytes.get(at + 1) {
            return true;
        }
        next = backslash(bytes, at + 1);
    }
    false
}

static UNICODE: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\\u"));
static SLASH: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\\/"));

/// In a long text most escapes are ends of lines, and two searches that pass over them are faster than one that stops at
/// each.
const LONG: usize = 512;

/// Whether anything has to be decoded.
pub(crate) fn has_escapes(inside: &str) -> bool {
    backslash(inside.as_bytes(), 0).is_some()
}

/// What the inside of a JSON string means.
pub(crate) fn unescaped(inside: &str) -> Cow<'_, str> {
    if !has_escapes(inside) {
        return Cow::Borrowed(inside);
    }
    let mut text = String::with_capacity(inside.len());
    push_unescaped(inside, &mut text);
    Cow::Owned(text)
}

/// Appends a text as it stands inside of a JSON string.
pub(crate) fn push_escaped(text: &str, out: &mut String) {
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(text.get(plain..at).unwrap_or_default());
        out.push_str(short);
        if short.is_empty() && write!(out, "\\u{byte:04x}").is_err() {
            // Writing to a string cannot fail.
            return;
        }
        plain = at + 1;
    }
    out.push_str(text.get(plain..).unwrap_or_default());
}

/// Appends what the inside of a JSON string means. It has been parsed before, so its escapes are whole.
pub(crate) fn push_unescaped(inside: &str, out: &mut String) {
    let mut done = 0;
    while let Some(at) = backslash(inside.as_bytes(), done) {
        out.push_str(inside.get(done..at).unwrap_or_default());
        done = at + 2;
        out.push(match inside.as_bytes().get(at + 1) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'u') => {
                let (char, behind) = unicode(inside.get(done..).unwrap_or_default());
                done = inside.len() - behind.len();
                char
            }
            Some(byte) if byte.is_ascii() => char::from(*byte),
            _ => char::REPLACEMENT_CHARACTER,
        });
    }
    out.push_str(inside.get(done..).unwrap_or_default());
}

/// The character of the digits behind `\u`, with the second half of a pair where there is one, and what is behind.
fn unicode(rest: &str) -> (char, &str) {
    let unit = |text: &str| text.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let behind = rest.get(4..).unwrap_or_default();
    let Some(first) = unit(rest) else { return (char::REPLACEMENT_CHARACTER, behind) };
    if let (0xd800..0xdc00, Some(second)) = (first, behind.strip_prefix("\\u").and_then(unit))
        && (0xdc00..0xe000).contains(&second)
    {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
            behind.get(6..).unwrap_or_default(),
        );
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), behind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_way_to_write_a_string_has_one_form() {
        for form in [r#"a/é\n\""#, r"a\/\u00e9\u000a\u0022", r#"\u0061/\u00E9\n\""#] {
            assert_eq!(canonical(form), r#"a/é\n\""#, "{form}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_unescaped_to_one_replacement_character() {
        let mut out = String::new();
        push_unescaped(r"a\ud83db\ud83d\ude00\ude00", &mut out);
        assert_eq!(out, "a\u{fffd}b😀\u{fffd}");
    }

    proptest! {
        #[test]
        fn what_is_escaped_comes_back(text in any::<String>()) {
            let mut escaped = String::new();
            push_escaped(&text, &mut escaped);
            let json = format!("\"{escaped}\"");
            prop_assert_eq!(&serde_json::from_str::<String>(&json).unwrap(), &text);
            prop_assert_eq!(&*canonical(&escaped), &escaped);
            let mut back = String::new();
            push_unescaped(&escaped, &mut back);
            prop_assert_eq!(back, text);
        }

        #[test]
        fn every_character_may_be_written_by_its_number(text in any::<String>()) {
            let mut escaped = String::new();
            for unit in text.encode_utf16() {
                write!(escaped, "\\u{unit:04x}").unwrap();
            }
            let mut back = String::new();
            push_unescaped(&escaped, &mut back);
            prop_assert_eq!(back, text);
        }

        #[test]
        fn no_broken_escape_makes_it_panic(text in "[\\\\u0-9a-fdé\"]{0,40}") {
            push_unescaped(&text, &mut String::new());
        }
    }
}

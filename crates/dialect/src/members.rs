//! What a message says to the letter, however its JSON is spelt: the order of its members, white space, escapes and the
//! spelling of numbers aside.
//!
//! Members are hashed one by one and their hashes are added up, so that none has to be moved to where it belongs. The
//! one long text of a message is hashed once, for this and for its digest.

use std::cell::OnceCell;

use loopbreaker::with_canonical_text;
use twox_hash::XxHash3_128;

use crate::json::{Cursor, Json};

/// The members of one message.
#[derive(Debug, Default)]
pub(crate) struct Members<'a> {
    /// The hashes of all members but the long one.
    sum: u128,
    /// A bit for each name.
    names: u128,
    /// Two names have one bit, so they may be the same.
    may_repeat: bool,
    long: Option<(u128, LongText<'a>)>,
}

/// A text that is worth being hashed only once.
#[derive(Debug)]
pub(crate) struct LongText<'a> {
    text: Json<'a>,
    hash: OnceCell<Option<u128>>,
}

impl<'a> Members<'a> {
    /// Takes the next member.
    pub(crate) fn add(&mut self, name: &str, value: Json<'a>) {
        let name = XxHash3_128::oneshot(name.as_bytes());
        let bit = 1 << (name >> 121);
        self.may_repeat |= self.names & bit != 0;
        self.names |= bit;
        if self.long.is_none() && value.is_string() && value.get().len() > LONG {
            self.long = Some((name, LongText { text: value, hash: OnceCell::new() }));
        } else {
            self.sum = self.sum.wrapping_add(member(name, hash_of(value)));
        }
    }

    /// The long text among them.
    pub(crate) fn long(&self) -> Option<&LongText<'a>> {
        self.long.as_ref().map(|(_, long)| long)
    }

    /// The hash of the message with these members, whose text is `text`.
    pub(crate) fn hash(&self, text: &'a str) -> u128 {
        if self.names == 0 || self.may_repeat {
            // Of two members with one name the last one counts, and what has none may be no object.
            return with_canonical_text(text, |canonical| {
                let canonical = canonical.and_then(|canonical| str::from_utf8(canonical).ok());
                canonical.map_or_else(|| !XxHash3_128::oneshot(text.as_bytes()), hash_of_canonical)
            });
        }
        self.total()
    }

    fn total(&self) -> u128 {
        let long = self.long.as_ref();
        let long =
            long.map_or(0, |(name, long)| member(*name, long.hash().unwrap_or_else(|| hash_of(long.text))));
        self.sum.wrapping_add(long)
    }
}

impl LongText<'_> {
    /// Whether this is the text, and not only one that says the same.
    pub(crate) fn is(&self, text: Json<'_>) -> bool {
        std::ptr::eq(self.text.get(), text.get())
    }

    /// The hash of what stands between its quotes; `None` where that can be spelt in another way.
    pub(crate) fn hash(&self) -> Option<u128> {
        *self.hash.get_or_init(|| {
            let inside = self.text.inside().filter(|_| self.text.has_one_spelling());
            inside.map(|inside| XxHash3_128::oneshot(inside.as_bytes()))
        })
    }
}

/// A text in canonical form. Its names are told apart there.
fn hash_of_canonical(text: &str) -> u128 {
    let mut members = Members::default();
    let mut cursor = Cursor::new(text);
    let walked = cursor.walk(|name, cursor| {
        members.add(name, cursor.skip()?);
        Ok(())
    });
    if walked.is_ok() { members.total() } else { XxHash3_128::oneshot(text.as_bytes()) }
}

/// The hash of a value: of a string, what stands between its quotes.
fn hash_of(value: Json<'_>) -> u128 {
    if let Some(inside) = value.inside().filter(|_| value.has_one_spelling()) {
        return XxHash3_128::oneshot(inside.as_bytes());
    }
    with_canonical_text(value.get(), |canonical| match canonical {
        Some([b'"', inside @ .., b'"']) => XxHash3_128::oneshot(inside),
        // A number is not the string of its digits.
        Some(canonical) => !XxHash3_128::oneshot(canonical),
        None => XxHash3_128::oneshot(value.get().as_bytes()),
    })
}

fn member(name: u128, value: u128) -> u128 {
    let mut both = [0; 32];
    both[..16].copy_from_slice(&name.to_le_bytes());
    both[16..].copy_from_slice(&value.to_le_bytes());
    XxHash3_128::oneshot(&both)
}

/// Shorter texts are hashed as fast as it is remembered that they were.
const LONG: usize = 256;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::Members;
    use crate::json::Cursor;

    fn hash(text: &str) -> u128 {
        let mut members = Members::default();
        let walked = Cursor::new(text).walk(|name, cursor| {
            members.add(name, cursor.skip()?);
            Ok(())
        });
        walked.unwrap();
        members.hash(text)
    }

    #[test]
    fn every_spelling_of_a_message_has_one_hash() {
        let long = "line\\n".repeat(100);
        let plain = format!(r#"{{"role":"tool","content":"{long}é/","n":[1,{{"a":null}}],"x":"5"}}"#);
        for other in [
            format!(r#"{{ "x" : "5", "n": [1.0, {{"a": null}}], "content":"{long}é/","role":"tool"}}"#),
            format!(
                r#"{{"\u0072ole":"t\u006fol","content":"{long}\u00e9\/","n":[1e0,{{"a":null}}],"x":"5"}}"#
            ),
            format!(r#"{{"role":"user","content":"{long}é/","n":[1,{{"a":null}}],"x":"5","role":"tool"}}"#),
            format!(r#"{{"content":"","role":"tool","n":[1,{{"a":null}}],"x":"5","content":"{long}é/"}}"#),
        ] {
            assert_eq!(hash(&other), hash(&plain), "{other}");
        }
        for other in [
            format!(r#"{{"role":"tool","content":"{long}é","n":[1,{{"a":null}}],"x":"5"}}"#),
            format!(r#"{{"role":"tool","content":"{long}é/","n":[1,{{"a":null}}],"x":5}}"#),
            format!(r#"{{"role":"tool","content":"{long}é/","n":[1,{{}}],"x":"5"}}"#),
            format!(r#"{{"role":"5","content":"{long}é/","n":[1,{{"a":null}}],"x":"tool"}}"#),
            format!(r#"{{"role":"tool","content":"{long}é/","n":[1,{{"a":null}}]}}"#),
        ] {
            assert_ne!(hash(&other), hash(&plain), "{other}");
        }
    }

    #[test]
    fn the_names_that_messages_have_are_told_apart() {
        for names in [
            &["role", "content", "tool_call_id", "name"][..],
            &["role", "content", "tool_calls", "refusal", "reasoning_content", "audio", "annotations"],
            &["type", "id", "call_id", "name", "arguments", "status"],
            &["type", "role", "content", "id", "status"],
            &["type", "call_id", "output"],
            &["role", "parts"],
        ] {
            let mut members = Members::default();
            for name in names {
                members.add(name, crate::json::Json::from(serde_json::value::RawValue::NULL));
            }
            assert!(!members.may_repeat, "{names:?} would take the slow way");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3_i64..3).prop_map(Value::from),
            "[a/é\"\\\\\n]{0,4}".prop_map(Value::from),
            "[a/é\"\\\\\n]{260,270}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[ab]{1,2}", inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn two_messages_have_one_hash_exactly_when_they_say_the_same(
            one in proptest::collection::btree_map("[a-c]{1,2}", value(), 1..4),
            other in proptest::collection::btree_map("[a-c]{1,2}", value(), 1..4),
        ) {
            let written = |members: &mut dyn Iterator<Item = (&String, &Value)>| {
                let members = members.map(|(name, value)| format!("{}: {value}", Value::from(name.as_str())));
                format!("{{{}}}", members.collect::<Vec<_>>().join(" ,"))
            };
            let forwards = written(&mut one.iter());
            prop_assert_eq!(hash(&forwards), hash(&written(&mut one.iter().rev())));
            prop_assert_eq!(hash(&forwards) == hash(&written(&mut other.iter())), one == other);
        }
    }
}

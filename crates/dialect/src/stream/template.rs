//! Events that differ from the one before in a few values only, which are read without parsing.

use crate::json::Json;

/// The form of an event: all of its bytes but for some values.
///
/// Whatever fits it is the same JSON with other values in these places, so whoever has parsed one such event knows what
/// all others say. Nearly all events of a stream fit the one before, and comparing is several times faster than parsing.
#[derive(Debug)]
pub(super) struct Template {
    slots: Vec<Slot>,
    /// The bytes behind the last value.
    behind: Box<[u8]>,
}

/// A value that changes.
#[derive(Debug)]
struct Slot {
    /// The bytes between the value before and this one.
    before: Box<[u8]>,
    kind: Kind,
    /// Which of the values it is.
    index: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    String,
    Number,
    Object,
}

/// The most values that change.
pub(super) const VALUES: usize = 3;

impl Template {
    /// The form of an event in which these values, parts of `data` in any order, may change.
    pub(super) fn of(data: &str, values: [Option<Json<'_>>; VALUES]) -> Option<Self> {
        let mut places = Vec::with_capacity(VALUES);
        for (index, value) in values.into_iter().enumerate() {
            if let Some(value) = value.map(Json::get) {
                let start = (value.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
                places.push((start..start + value.len(), Kind::of(value)?, index));
            }
        }
        places.sort_unstable_by_key(|(place, ..)| place.start);
        let mut from = 0;
        let mut slots = Vec::with_capacity(VALUES);
        for (place, kind, index) in places {
            slots.push(Slot { before: data.get(from..place.start)?.as_bytes().into(), kind, index });
            from = place.end;
        }
        Some(Self { slots, behind: data.get(from..)?.as_bytes().into() })
    }

    /// The values of an event that has this form: what stands between the quotes of a string, and all of anything else.
    pub(super) fn values<'d>(&self, data: &'d str) -> Option<[&'d str; VALUES]> {
        let mut values = [""; VALUES];
        let mut at = 0;
        for slot in &self.slots {
            let rest = data.as_bytes().get(at..)?.strip_prefix(&*slot.before)?;
            at += slot.before.len();
            let length = slot.kind.length(rest)?;
            let quotes = usize::from(slot.kind == Kind::String);
            *values.get_mut(slot.index)? = data.get(at + quotes..at + length - quotes)?;
            at += length;
        }
        (data.as_bytes().get(at..)? == &*self.behind).then_some(values)
    }
}

impl Kind {
    fn of(value: &str) -> Option<Self> {
        match value.as_bytes().first()? {
            b'"' => Some(Self::String),
            b'0'..=b'9' => Some(Self::Number),
            b'{' => Some(Self::Object),
            _ => None,
        }
    }

    /// The length of the value with which the bytes begin.
    fn length(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::String => string_length(bytes),
            Self::Number => {
                let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
                (digits > 0).then_some(digits)
            }
            Self::Object => object_length(bytes),
        }
    }
}

fn string_length(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

fn object_length(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => at += string_length(bytes.get(at..)?)?,
            b'{' => {
                depth += 1;
                at += 1;
            }
            b'}' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            _ => at += 1,
        }
        if depth == 0 {
            // Anything but an object ends here at once, and is none.
            return (bytes.first() == Some(&b'{')).then_some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow)]
        text: Option<Json<'a>>,
        #[serde(borrow)]
        number: Option<Json<'a>>,
        #[serde(borrow)]
        usage: Option<Json<'a>>,
    }

    fn template(data: &str) -> Template {
        let event: Event<'_> = serde_json::from_str(data).unwrap();
        Template::of(data, [event.text, event.number, event.usage]).unwrap()
    }

    const EVENT: &str = r#"{"type":"x", "usage": {"a":[{"b":1}]},"text":"Hi","number":7,"end":null}"#;

    #[test]
    fn the_values_are_given_out_by_their_names_wherever_they_stand() {
        let other = r#"{"type":"x", "usage": {"c":"}"},"text":"a \"b\" \\","number":1234,"end":null}"#;
        assert_eq!(template(EVENT).values(other), Some([r#"a \"b\" \\"#, "1234", r#"{"c":"}"}"#]));
        assert_eq!(template(EVENT).values(EVENT), Some(["Hi", "7", r#"{"a":[{"b":1}]}"#]));
    }

    #[test]
    fn an_event_with_anything_else_changed_does_not_fit() {
        for other in [
            EVENT.replace("null", "\"stop\""),
            EVENT.replace("\"x\"", "\"y\""),
            EVENT.replace("\"Hi\"", "null"),
            EVENT.replace("\"Hi\"", "\"Hi\",\"more\":\"\""),
            EVENT.replace('7', "-7"),
            EVENT.replace('7', "7.5"),
            EVENT.replace("{\"a\":[{\"b\":1}]}", "null"),
            EVENT.replace("{\"a\":[{\"b\":1}]}", "[1]"),
            EVENT.trim_end_matches('}').to_owned(),
            EVENT.get(..50).unwrap().to_owned(),
            format!("{EVENT} "),
        ] {
            assert_eq!(template(EVENT).values(&other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn what_fits_says_the_same_as_what_is_parsed(text in any::<String>(), number in 0_u64.., tail in any::<bool>()) {
            let text = serde_json::Value::from(text).to_string();
            let data = format!(r#"{{"type":"x", "usage": {{}},"text":{text},"number":{number},"end":{}}}"#, if tail { "null" } else { "1" });
            match template(EVENT).values(&data) {
                Some(values) => {
                    let parsed: Event<'_> = serde_json::from_str(&data).unwrap();
                    prop_assert!(tail);
                    prop_assert_eq!(format!("\"{}\"", values[0]), parsed.text.unwrap().get());
                    prop_assert_eq!(values[1], parsed.number.unwrap().get());
                }
                None => prop_assert!(!tail),
            }
        }

        #[test]
        fn nothing_makes_it_panic(data in "[{}\"\\\\a-c:0-9, é]{0,60}") {
            template(EVENT).values(&data);
            template(EVENT).values(&format!("{}{data}", EVENT.get(..22).unwrap()));
        }
    }
}

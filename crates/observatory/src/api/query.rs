//! The part of a URL behind the question mark.

use hyper::Response;
use loopbreaker_record::Moment;

use super::reply::{Reply, error};

/// Names and values, decoded.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Rows of a page, unless another number is asked for.
    const PAGE: u32 = 50;
    const MAX_PAGE: u32 = 500;

    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name.replace('+', " ")), decoded(value.replace('+', " ")))
        });
        Self(pairs.collect())
    }

    /// A value that is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name)?;
        Some(found.1.as_str()).filter(|value| !value.is_empty())
    }

    pub(crate) fn owned(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// A value that stands for something; one that does not is refused by its name.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Box<Response<Reply>>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let refusal = || Box::new(error(400, "bad_request", &format!("{name} must be {expected}")));
        read(value).map(Some).ok_or_else(refusal)
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Box<Response<Reply>>> {
        self.read(name, "a number", |value| value.parse().ok())
    }

    /// A place in a list, or how much of it.
    pub(crate) fn whole<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Box<Response<Reply>>> {
        self.read(name, "a whole number from 0 on", |value| value.parse().ok())
    }

    /// One of a few words.
    pub(crate) fn one_of(&self, name: &str, words: &[&str]) -> Result<Option<String>, Box<Response<Reply>>> {
        self.read(name, &format!("one of {}", words.join(", ")), |value| {
            words.contains(&value).then(|| value.to_owned())
        })
    }

    /// A moment as RFC 3339 or in milliseconds since 1970.
    pub(crate) fn moment(&self, name: &str) -> Result<Option<i64>, Box<Response<Reply>>> {
        let read = |value: &str| Moment::parse(value).map(|moment| moment.millis()).or(value.parse().ok());
        self.read(name, "an RFC 3339 timestamp", read)
    }

    pub(crate) fn limit(&self) -> Result<u32, Box<Response<Reply>>> {
        self.limit_up_to(Self::MAX_PAGE)
    }

    pub(crate) fn limit_up_to(&self, max: u32) -> Result<u32, Box<Response<Reply>>> {
        let limit = self.read("limit", "a whole number from 1 on", |value| value.parse().ok())?;
        Ok(limit.unwrap_or(Self::PAGE).clamp(1, max))
    }
}

/// A text without its percent signs; what is no UTF-8 is replaced.
pub fn decoded(text: impl AsRef<str>) -> String {
    let text = text.as_ref().as_bytes();
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (text[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                at += 3;
            }
            (byte, _, _) => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Query, decoded};

    #[test]
    fn values_are_decoded_and_empty_ones_are_absent() {
        let query = Query::parse("q=caf%C3%A9+au%20lait&state=&x&q=second");
        assert_eq!(query.get("q"), Some("café au lait"));
        assert_eq!((query.get("state"), query.get("x")), (None, None));
        assert!(query.number::<u32>("q").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}") {
            Query::parse(&text);
        }

        #[test]
        fn what_was_encoded_is_decoded(text in ".{0,30}") {
            let encoded: Vec<String> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(decoded(encoded.concat()), text);
        }
    }
}

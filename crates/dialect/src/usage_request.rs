//! Asking for a usage chunk where the client did not.

use crate::splice::{Object, Splice};

/// The body of a chat completion that asks for a usage chunk; all other bytes stay as they are.
///
/// `None` when there is nothing to do: the answer is not streamed, or the client asks for itself.
///
/// ```
/// use loopbreaker_dialect::asking_for_usage;
/// let asking = asking_for_usage(br#"{"model":"m","stream":true}"#).expect("nobody has asked yet");
/// assert_eq!(asking, br#"{"stream_options":{"include_usage":true},"model":"m","stream":true}"#);
/// assert_eq!(asking_for_usage(&asking), None);
/// ```
pub fn asking_for_usage(body: &[u8]) -> Option<Vec<u8>> {
    let body = str::from_utf8(body).ok()?;
    let top = Object::at(body, 0..body.len(), &["stream", "stream_options"])?;
    if body.get(top.get("stream")?)? != "true" {
        return None;
    }
    let change = match top.get("stream_options") {
        None => top.put("stream_options", r#"{"include_usage":true}"#),
        Some(place) if body.get(place.clone())? == "null" => {
            Splice::replace(place, r#"{"include_usage":true}"#.to_owned())
        }
        Some(place) => {
            let options = Object::at(body, place, &["include_usage"])?;
            match options.get("include_usage") {
                None => options.put("include_usage", "true"),
                Some(value) if body.get(value.clone())? == "true" => return None,
                Some(value) => Splice::replace(value, "true".to_owned()),
            }
        }
    };
    Splice::apply(&[change], body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_put_where_it_is_missing() {
        for (body, expected) in [
            (r#"{ "stream" : true }"#, r#"{"stream_options":{"include_usage":true}, "stream" : true }"#),
            (
                r#"{"stream":true,"stream_options":null}"#,
                r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                r#"{"stream":true,"stream_options":{}}"#,
                r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                r#"{"stream":true,"stream_options":{ "x":1}}"#,
                r#"{"stream":true,"stream_options":{"include_usage":true, "x":1}}"#,
            ),
            (
                r#"{"stream":true,"stream_options":{"include_usage": false}}"#,
                r#"{"stream":true,"stream_options":{"include_usage": true}}"#,
            ),
        ] {
            let asking = asking_for_usage(body.as_bytes()).map(|body| String::from_utf8(body).unwrap());
            assert_eq!(asking.as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_body_that_needs_nothing_or_cannot_be_read_stays() {
        for body in [
            r#"{"stream":false}"#,
            "{}",
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            r#"{"stream":true,"stream_options":5}"#,
            "[]",
            "{",
            r#"{"stream":true"#,
        ] {
            assert_eq!(asking_for_usage(body.as_bytes()), None, "{body}");
        }
    }
}

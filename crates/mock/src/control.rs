//! The control API: `/mock/…`.

use hyper::Method;

use crate::base64;
use crate::json::{Json, object};
use crate::record::{Records, Request};
use crate::script::{Script, Scripts};

/// Answers a control request with a status and a JSON value.
pub(crate) fn answer(
    method: &Method,
    path: &str,
    query: Option<&str>,
    body: &[u8],
    scripts: &Scripts,
    records: &Records,
) -> (u16, Json) {
    match (method.as_str(), path) {
        ("POST", "/mock/script") => match read(body).map(|script| scripts.set(script)) {
            Ok(true) => (200, object! { "ok": true }),
            Ok(false) => problem(429, "there are too many scripts: send `POST /mock/reset` first"),
            Err(error) => problem(400, &format!("this is no script: {error}")),
        },
        ("GET", "/mock/requests") => (200, listing(records, query)),
        ("POST", "/mock/reset") => {
            scripts.clear();
            records.clear();
            (200, object! { "ok": true })
        }
        _ => problem(404, "use `POST /mock/script`, `GET /mock/requests` or `POST /mock/reset`"),
    }
}

fn problem(status: u16, message: &str) -> (u16, Json) {
    (status, object! { "error": message })
}

/// A bare list of turns is the script without a name.
fn read(body: &[u8]) -> Result<Script, serde_json::Error> {
    if body.trim_ascii_start().starts_with(b"[") {
        let turns = serde_json::from_slice(body)?;
        return Ok(Script { name: String::new(), turns, repeat_last: true });
    }
    serde_json::from_slice(body)
}

fn listing(records: &Records, query: Option<&str>) -> Json {
    let wanted = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("script=")));
    let all = records.all();
    let requests: Vec<Json> =
        all.iter().filter(|request| wanted.is_none_or(|name| request.script == name)).map(entry).collect();
    object! { "requests": requests, "dropped": records.lost() }
}

fn entry(request: &Request) -> Json {
    let pair =
        |(name, value): &(String, String)| Json::List(vec![name.as_str().into(), value.as_str().into()]);
    object! {
        "method": request.method.as_str(),
        "path": request.path.as_str(),
        "query": request.query.as_deref(),
        "version": request.version,
        "headers": request.headers.iter().map(pair).collect::<Vec<_>>(),
        "body_base64": base64::encode(&request.body),
        "body_text": std::str::from_utf8(&request.body).ok(),
        "script": request.script.as_str(),
        "status": u64::from(request.status),
        "chunks": request.chunks as u64,
        "outcome": request.outcome.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_script_is_a_list_or_an_object() {
        assert_eq!(read(br#" [{"text":"a"}]"#).unwrap().turns.len(), 1);
        let named = read(br#"{"name":"n","turns":[{"delay_ms":5}],"repeat_last":false}"#).unwrap();
        assert_eq!((named.name.as_str(), named.repeat_last), ("n", false));
        assert!(read(br#"[{"txet":"a"}]"#).is_err());
    }
}

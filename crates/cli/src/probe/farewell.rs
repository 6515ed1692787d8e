//! Leaves the loops of a probe, as an agent does that has listened, and ends their sessions in the log, as one does that
//! is done: nobody is called to a loop that is none. Where the log cannot be reached, they stay sessions that have come
//! out of their loop.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::Request;
use loopbreaker_config::BaseUrl;
use loopbreaker_record::{DecisionLog, Moment, Status, TraceId};
use serde_json::Value;

use super::synthetic::{LAST_CALL, Loop, WHO};
use crate::http;

/// Takes leave of every loop, each with how often it went round. Nobody waits for longer than the limit.
pub(super) async fn say(url: &BaseUrl, loops: &[(Loop, usize)]) {
    let leaving = async {
        for (synthetic, rounds) in loops {
            // What cannot be left or ended stays as it is.
            synthetic.leave(url, *rounds).await.unwrap_or_default();
            end(url, synthetic.name()).await.unwrap_or_default();
        }
    };
    // A probe has found out what it wanted to know, whatever becomes of this.
    drop(tokio::time::timeout(LIMIT, leaving).await);
}

async fn end(url: &BaseUrl, session: &str) -> Option<()> {
    if get(url, "/api/v1/whoami").await?.0 != 200 {
        return None;
    }
    let path = format!("/api/v1/sessions/{session}");
    // The tenant is the gateway's to say, and the log is written without anybody waiting for it.
    let tenant = loop {
        let (status, known) = get(url, &path).await?;
        let is_written = match status {
            200 => get(url, &format!("{path}/steps?limit=500")).await?.1.to_string().contains(LAST_CALL),
            404 => false,
            _ => return None,
        };
        if is_written {
            break known["tenant"].as_str()?.to_owned();
        }
        tokio::time::sleep(PAUSE).await;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = Moment::from_millis(i64::try_from(now.as_millis()).ok()?);
    let log = DecisionLog::builder(WHO, "probe", "2.0.0")
        .intent("the probe is over")
        .status(Status::Success)
        .is_last()
        .build(TraceId::derived(&[session.as_bytes(), b"over"]), at)
        .ok()?;
    let request = Request::post("/api/v1/decision-logs")
        .header("content-type", "application/json")
        .header("x-tenant-id", tenant)
        .header("x-session-id", session)
        .body(Full::from(serde_json::to_string(&log).ok()?))
        .ok()?;
    http::ask(url, request).await.ok().map(drop)
}

async fn get(url: &BaseUrl, path: &str) -> Option<(u16, Value)> {
    let request = Request::get(path).body(Full::default()).ok()?;
    let answer = http::ask(url, request).await.ok()?;
    Some((answer.status, serde_json::from_slice(&answer.body).ok()?))
}

const LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

//! Answers that go on: events and exports.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::header::HeaderMap;
use tokio::sync::mpsc;

use super::Caller;
use super::lists::search_filter;
use super::query::Query;
use super::reply::{Reply, error, streamed};
use crate::events::Topic;
use crate::observatory::Observatory;

/// A stream that says nothing for longer is closed by proxies.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Logs that are read at a time for an export.
const EXPORTED_AT_ONCE: u32 = 200;

impl Observatory {
    pub(super) fn stream_events(
        &self,
        headers: &HeaderMap,
        query: &Query,
        caller: &Caller,
    ) -> Response<Reply> {
        let mut topics = Vec::new();
        for name in query.get("topics").unwrap_or_default().split(',').filter(|name| !name.is_empty()) {
            let Some(topic) = Topic::parse(name.trim()) else {
                let known = Topic::ALL.map(Topic::as_str).join(", ");
                return error(400, "bad_request", &format!("topics are {known}"));
            };
            topics.push(topic);
        }
        if topics.is_empty() {
            topics = Topic::ALL.to_vec();
        }
        let Ok(place) = Arc::clone(&self.streams).try_acquire_owned() else {
            return error(503, "busy", "too many streams are open");
        };
        let mut leaving = self.leaving.subscribe();
        if *leaving.borrow() {
            return error(503, "stopping", "this process is about to end; ask the next one");
        }
        let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let mut subscription = self.subscribe(topics, caller.tenant.clone(), last);
        let (chunks, body) = mpsc::channel(64);
        tokio::spawn(async move {
            let _place = place;
            let mut next = Bytes::from_static(b"retry: 1000\n\n");
            while chunks.send(next).await.is_ok() {
                next = tokio::select! {
                    event = subscription.next() => Bytes::from(event.to_sse()),
                    () = tokio::time::sleep(HEARTBEAT) => Bytes::from_static(b": still here\n\n"),
                    () = chunks.closed() => return,
                    // Also when whoever could say it has gone.
                    _ = leaving.changed() => return,
                };
            }
        });
        streamed("text/event-stream", body)
    }

    pub(super) async fn stream_export(&self, query: &Query, caller: &Caller) -> Response<Reply> {
        let filter = match search_filter(query, caller) {
            Ok(filter) => filter,
            Err(refusal) => return *refusal,
        };
        let Ok(place) = Arc::clone(&self.streams).try_acquire_owned() else {
            return error(503, "busy", "too many streams are open");
        };
        self.index_words_for(&filter).await;
        let (chunks, body) = mpsc::channel(4);
        let readers = Arc::clone(&self.readers);
        tokio::spawn(async move {
            let _place = place;
            let mut behind = 0;
            loop {
                let filter = filter.clone();
                let read = Arc::clone(&readers)
                    .read(move |store| store.export(&filter, behind, EXPORTED_AT_ONCE))
                    .await;
                let lines = match read {
                    Ok((lines, last)) if !lines.is_empty() => {
                        behind = last;
                        lines
                    }
                    Ok(_) => return,
                    Err(problem) => vec![serde_json::json!({ "error": problem.code() }).to_string()],
                };
                let failed = lines.len() == 1 && lines[0].starts_with("{\"error\"");
                if chunks.send(Bytes::from(lines.join("\n") + "\n")).await.is_err() || failed {
                    return;
                }
            }
        });
        streamed("application/x-ndjson", body)
    }
}

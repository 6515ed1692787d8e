//! What a collector answers.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, RETRY_AFTER};
use hyper::{Response, StatusCode};

use super::{Failure, Retry};
use crate::spans::body::{rejected_in_json, rejected_in_protobuf};
use crate::spans::settings::Protocol;

/// A whole answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    trailers: HeaderMap,
    body: Bytes,
}

impl Answer {
    /// What is read of a body at most: a proper one says almost nothing.
    const MAX_BODY: usize = 64 * 1_024;
    /// The longest that the collector can make us wait.
    const MAX_WAIT: Duration = Duration::from_secs(60);

    /// Reads it to its end, so that the connection is free again.
    pub(super) async fn read(response: Response<Incoming>) -> Result<Self, Failure> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, Self::MAX_BODY).collect().await;
        let body = body.map_err(|error| Failure::soon(format!("the answer broke off: {error}")))?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        Ok(Self { status: head.status, headers: head.headers, trailers, body: body.to_bytes() })
    }

    /// How many spans were left out, when the batch as a whole was taken.
    pub(super) fn left_out(&self, protocol: Protocol) -> Result<u64, Failure> {
        if !self.status.is_success() {
            let retry = match self.status.as_u16() {
                429 | 502 | 503 | 504 => self.retry_after(),
                _ => Retry::Never,
            };
            return Err(Failure { reason: format!("the collector answered {}", self.status), retry });
        }
        match protocol {
            Protocol::HttpProtobuf => Ok(rejected_in_protobuf(&self.body)),
            Protocol::HttpJson => Ok(rejected_in_json(&self.body)),
            Protocol::Grpc => self.left_out_of_grpc(),
        }
    }

    fn left_out_of_grpc(&self) -> Result<u64, Failure> {
        let find = |name| self.trailers.get(name).or_else(|| self.headers.get(name))?.to_str().ok();
        match find("grpc-status") {
            // One message, behind a byte for its encoding and four for its length. We ask for no encoding.
            Some("0") => Ok(self.body.get(5..).map_or(0, rejected_in_protobuf)),
            Some(code) => {
                // Cancelled, deadline exceeded, resource exhausted, aborted, out of range, unavailable, data loss.
                let may_pass = matches!(code, "1" | "4" | "8" | "10" | "11" | "14" | "15");
                let message = find("grpc-message").unwrap_or_default();
                let reason = format!("the collector answered with gRPC status {code} {message}");
                Err(Failure { reason, retry: if may_pass { Retry::Soon } else { Retry::Never } })
            }
            None => Err(Failure::soon("the collector's answer has no gRPC status")),
        }
    }

    fn retry_after(&self) -> Retry {
        let seconds = self.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        seconds.map_or(Retry::Soon, |seconds| Retry::After(Duration::from_secs(seconds).min(Self::MAX_WAIT)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use hyper::StatusCode;

    use super::{Answer, Retry};
    use crate::spans::settings::Protocol;

    fn retry(status: u16, header: Option<(&'static str, &'static str)>) -> Retry {
        let mut answer = Answer { status: StatusCode::from_u16(status).unwrap(), ..Answer::default() };
        if let Some((name, value)) = header {
            answer.headers.insert(name, value.parse().unwrap());
        }
        answer.left_out(Protocol::HttpJson).unwrap_err().retry
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        assert_eq!([429, 502, 503, 504].map(|status| retry(status, None)), [Retry::Soon; 4]);
        assert_eq!([301, 400, 401, 413, 500].map(|status| retry(status, None)), [Retry::Never; 5]);
    }

    #[test]
    fn the_collector_may_name_a_time_but_not_an_eternity() {
        let after = |seconds| retry(503, Some(("retry-after", seconds)));
        assert_eq!(after("7"), Retry::After(Duration::from_secs(7)));
        assert_eq!(after("999999999"), Retry::After(Duration::from_secs(60)));
        assert_eq!(after("Wed, 21 Oct 2026 07:28:00 GMT"), Retry::Soon);
    }

    #[test]
    fn spans_that_were_left_out_are_told_in_every_protocol() {
        let answer = |body: &'static [u8]| Answer { body: Bytes::from_static(body), ..Answer::default() };
        let json = answer(br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#);
        assert_eq!(json.left_out(Protocol::HttpJson), Ok(3));
        let protobuf = answer(b"\x0a\x02\x08\x03");
        assert_eq!(protobuf.left_out(Protocol::HttpProtobuf), Ok(3));
        let mut grpc = answer(b"\0\0\0\0\x04\x0a\x02\x08\x03");
        grpc.trailers.insert("grpc-status", "0".parse().unwrap());
        assert_eq!(grpc.left_out(Protocol::Grpc), Ok(3));
        assert_eq!(answer(b"").left_out(Protocol::HttpProtobuf), Ok(0));
        assert_eq!(answer(b"{}").left_out(Protocol::HttpJson), Ok(0));
    }

    #[test]
    fn a_grpc_answer_is_judged_by_its_own_status() {
        let of = |code: Option<&str>| {
            let mut answer = Answer::default();
            code.map(|code| answer.headers.insert("grpc-status", code.parse().unwrap()));
            answer.left_out(Protocol::Grpc).map_err(|failure| failure.retry)
        };
        assert_eq!(of(Some("14")), Err(Retry::Soon));
        assert_eq!(of(Some("16")), Err(Retry::Never));
        assert_eq!(of(None), Err(Retry::Soon));
        assert_eq!(of(Some("0")), Ok(0));
    }
}

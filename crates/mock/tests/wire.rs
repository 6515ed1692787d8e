//! What holds for every answer over real connections: flushing, early ends, packing, HTTP/2, the control API.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use loopbreaker_mock::{Encoding, Mock, Outcome, Request, Turn};

const STREAMED: &str = r#"{"model":"m","messages":[],"stream":true}"#;
const WHOLE: &str = r#"{"model":"m","messages":[]}"#;

fn send(mock: &Mock, method: &str, target: &str, headers: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(mock.addr()).unwrap();
    let head =
        format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    stream
}

/// Status line, headers and body of an answer, read to the end of the connection.
fn ask(mock: &Mock, method: &str, target: &str, headers: &str, body: &str) -> String {
    let headers = format!("{headers}Connection: close\r\n");
    let mut stream = send(mock, method, target, &headers, body.as_bytes());
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn chat(mock: &Mock, body: &str) -> String {
    ask(mock, "POST", "/v1/chat/completions", "", body)
}

/// The only request, once its outcome is known.
fn settled(mock: &Mock) -> Request {
    let start = Instant::now();
    loop {
        let request = mock.requests().pop().unwrap();
        if request.outcome != Outcome::Open || start.elapsed() > Duration::from_secs(10) {
            return request;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_stream_that_is_read_to_its_end_is_answered() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    mock.script([Turn::text("one two three").chunk_delay_ms(1)]);
    assert!(chat(&mock, STREAMED).ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
    let request = settled(&mock);
    assert_eq!((request.outcome, request.chunks, request.status), (Outcome::Answered, 6, 200));
}

#[test]
fn a_client_that_goes_away_is_seen() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    mock.script([Turn::chant("again and ", 1_000).chunk_delay_ms(5)]);
    let mut stream = send(&mock, "POST", "/v1/chat/completions", "", STREAMED.as_bytes());
    let read = stream.read(&mut [0; 64]).unwrap();
    assert!(read > 0);
    drop(stream);
    let request = settled(&mock);
    assert_eq!(request.outcome, Outcome::Dropped);
    assert!(request.chunks < 2_000);
}

#[test]
fn a_client_that_goes_away_before_the_answer_is_seen() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    mock.script([Turn::text("late").delay_ms(60_000)]);
    let stream = send(&mock, "POST", "/v1/chat/completions", "", WHOLE.as_bytes());
    while mock.requests().is_empty() {
        std::thread::yield_now();
    }
    drop(stream);
    let request = settled(&mock);
    assert_eq!((request.outcome, request.status), (Outcome::Dropped, 0));
}

#[test]
fn a_script_can_break_a_stream() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    mock.script([Turn { drop_after: Some(2), ..Turn::text("one two three") }]);
    let answer = chat(&mock, STREAMED);
    assert_eq!(answer.matches("data: ").count(), 2);
    assert!(!answer.ends_with("0\r\n\r\n"), "a broken stream has no end");
    assert_eq!(settled(&mock).outcome, Outcome::Broken);
}

#[test]
fn a_packed_stream_can_be_unpacked_chunk_by_chunk() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    mock.script([Turn { encoding: Some(Encoding::Gzip), ..Turn::text("one two") }]);
    let mut stream =
        send(&mock, "POST", "/v1/chat/completions", "Connection: close\r\n", STREAMED.as_bytes());
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head_end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..head_end]);
    assert!(head.contains("content-encoding: gzip"));
    let mut packed = Vec::new();
    let mut rest = &answer[head_end + 4..];
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        packed.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
    }
    let mut plain = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut plain).unwrap();
    assert!(plain.ends_with("data: [DONE]\n\n"));
}

#[test]
fn a_packed_request_is_read_and_kept_as_it_came() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(STREAMED.as_bytes()).unwrap();
    let body = encoder.finish().unwrap();
    let headers = "Content-Encoding: gzip\r\nConnection: close\r\n";
    let mut answer = String::new();
    send(&mock, "POST", "/v1/chat/completions", headers, &body).read_to_string(&mut answer).unwrap();
    assert!(answer.contains("text/event-stream"));
    assert_eq!(settled(&mock).body, body);
}

#[test]
fn headers_are_kept_with_their_order_and_repeats() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    ask(&mock, "GET", "/v1/models?b=2&a=1", "X-B: 1\r\nX-A: 2\r\nX-B: 3\r\n", "");
    let request = settled(&mock);
    assert_eq!((request.method.as_str(), request.query.as_deref()), ("GET", Some("b=2&a=1")));
    let ours: Vec<_> = request.headers.iter().filter(|(name, _)| name.starts_with("x-")).collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(ours, [&pair("x-b", "1"), &pair("x-b", "3"), &pair("x-a", "2")]);
    assert_eq!(request.header("X-A"), Some("2"));
}

#[test]
fn an_error_of_the_provider_has_the_headers_of_the_script() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    mock.script([Turn::status(429).header("Retry-After", "7")]);
    let answer = ask(&mock, "POST", "/v1/messages", "", r#"{"model":"m","messages":[]}"#);
    assert!(answer.starts_with("HTTP/1.1 429 "));
    assert!(answer.contains("\r\nretry-after: 7\r\n"));
    assert!(answer.contains(r#""type":"rate_limit_error""#));
}

#[test]
fn the_control_api_sets_scripts_and_shows_requests() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    let script = r#"{"name":"n","turns":[{"text":"scripted"}]}"#;
    assert!(ask(&mock, "POST", "/mock/script", "", script).contains(" 200 "));
    let named = ask(&mock, "POST", "/v1/chat/completions", "X-Mock-Script: n\r\n", WHOLE);
    assert!(named.contains("scripted"));
    assert!(!chat(&mock, WHOLE).contains("scripted"));
    let listed = ask(&mock, "GET", "/mock/requests?script=n", "", "");
    let (_, listed) = listed.split_once("\r\n\r\n").unwrap();
    let listed: serde_json::Value = serde_json::from_str(listed).unwrap();
    let requests = listed["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["body_text"], WHOLE);
    assert_eq!(requests[0]["outcome"], "answered");
    assert!(ask(&mock, "POST", "/mock/script", "", r#"[{"txet":1}]"#).contains("unknown field `txet`"));
    ask(&mock, "POST", "/mock/reset", "", "");
    assert!(mock.requests().is_empty());
    assert!(ask(&mock, "GET", "/mock/nothing", "", "").starts_with("HTTP/1.1 404"));
}

#[test]
fn a_strict_provider_refuses_a_call_without_its_result() {
    let mock = Mock::builder().strict(true).start("127.0.0.1:0").unwrap();
    let body = r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a"}]}]}"#;
    assert!(chat(&mock, body).starts_with("HTTP/1.1 400"));
    let unknown = r#"{"model":"m","input":"x","previous_response_id":"resp_x"}"#;
    let answer = ask(&mock, "POST", "/v1/responses", "", unknown);
    assert!(answer.contains("Previous response with id 'resp_x' not found."));
}

#[test]
fn a_fixed_provider_gives_ready_bytes_and_keeps_nothing() {
    let mock = Mock::fixed().start("127.0.0.1:0").unwrap();
    assert_eq!(chat(&mock, STREAMED).matches("data: ").count(), 50);
    let whole = chat(&mock, "not even JSON");
    assert!(whole.contains("chat.completion") && whole.contains("content-length: "));
    assert!(mock.requests().is_empty());
    let usual = Mock::start("127.0.0.1:0").unwrap();
    let fast = ask(&usual, "POST", "/v1/messages?mock=fast", "", WHOLE);
    assert!(fast.contains("mock-fixed") && usual.requests().is_empty());
}

#[test]
fn nothing_answers_after_shutdown() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    let addr = mock.addr();
    chat(&mock, WHOLE);
    mock.shutdown();
    assert!(TcpStream::connect(addr).is_err());
}

#[tokio::test]
async fn http_2_without_tls_is_spoken_too() {
    let mock = Mock::start("127.0.0.1:0").unwrap();
    let stream = tokio::net::TcpStream::connect(mock.addr()).await.unwrap();
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let task = tokio::spawn(connection);
    let request = hyper::Request::post(format!("{}/v1/chat/completions", mock.url()))
        .body(Full::<bytes::Bytes>::from(STREAMED))
        .unwrap();
    let answer = client.send_request(request).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.ends_with(b"data: [DONE]\n\n"));
    assert_eq!(mock.requests()[0].version, "HTTP/2.0");
    drop(client);
    task.await.unwrap().unwrap();
}

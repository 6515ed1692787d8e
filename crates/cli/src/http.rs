//! Asking an HTTP server, for the commands that are clients themselves.

mod tls;

use std::io;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use loopbreaker_config::BaseUrl;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// An answer that has come to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    /// Nobody is there.
    #[error("nothing listens at {0}")]
    NothingListens(BaseUrl),
    /// The way there is closed: an unknown name, another network.
    #[error("{0} cannot be reached: {1}")]
    Unreachable(BaseUrl, io::Error),
    /// The server's certificate or protocol is not what it should be.
    #[error("no TLS with {0}: {1}")]
    Tls(BaseUrl, io::Error),
    /// Something is there and speaks another language.
    #[error("what listens at {0} does not speak HTTP: {1}")]
    NotHttp(BaseUrl, hyper::Error),
    /// It broke off, or went on for longer than anything that we ask for.
    #[error("{0} broke off its answer: {1}")]
    Broken(BaseUrl, Box<dyn std::error::Error + Send + Sync>),
}

/// Sends one request below a base URL and waits for the end of its answer, on a connection of its own.
pub(crate) async fn ask(url: &BaseUrl, request: Request<Full<Bytes>>) -> Result<Answer, Unanswered> {
    // An address in brackets is how URLs write it, not how it is looked up.
    let host = url.host().trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, url.port())).await.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => Unanswered::NothingListens(url.clone()),
        _ => Unanswered::Unreachable(url.clone(), error),
    })?;
    let request = addressed(url, request);
    let response = if url.is_https() {
        let stream = tls::connect(host, stream).await.map_err(|error| Unanswered::Tls(url.clone(), error))?;
        exchange(stream, request).await
    } else {
        exchange(stream, request).await
    };
    let (parts, body) = response.map_err(|error| Unanswered::NotHttp(url.clone(), error))?.into_parts();
    let collected = Limited::new(body, MAX_ANSWER).collect().await;
    let body = collected.map_err(|error| Unanswered::Broken(url.clone(), error))?.to_bytes();
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<hyper::body::Incoming>, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // What goes wrong on the connection is told to whoever waits for the answer.
    tokio::spawn(connection);
    sender.send_request(request).await
}

/// The request with the path that the base URL puts in front, and the host that it names.
fn addressed(url: &BaseUrl, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    if let Ok(uri) = format!("{}{}", url.path(), request.uri()).parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    if let Ok(host) = HeaderValue::try_from(url.authority()) {
        request.headers_mut().insert(HOST, host);
    }
    request
}

/// The longest answer that is read.
const MAX_ANSWER: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_stands_before_the_path() {
        let url = BaseUrl::parse("http://127.0.0.1:4141/guard/").unwrap();
        let request = addressed(&url, Request::get("/livez?a=b").body(Full::default()).unwrap());
        assert_eq!(request.uri(), "/guard/livez?a=b");
        assert_eq!(request.headers()[HOST], "127.0.0.1:4141");
    }
}

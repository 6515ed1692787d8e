//! A collector in this process: a real server that keeps what it gets and answers as it is told.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Read;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Who vouches for the collector's certificate.
pub(super) const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/authority.pem");

/// A running collector; it ends with the process.
pub(super) struct Collector {
    address: SocketAddr,
    is_secure: bool,
    requests: Receiver<Received>,
}

/// What came in.
pub(super) struct Received {
    /// Which connection it came on, from 0 on.
    pub(super) connection: usize,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// What it answers.
#[derive(Clone, Copy)]
pub(super) enum Reply {
    /// This status, and nothing more.
    Status(u16),
    /// This status, and the end of the connection.
    StatusAndHangUp(u16),
    /// A success that left out so many spans.
    LeftOut(u64),
    /// An answer of gRPC with this status.
    Grpc(&'static str),
    /// Nothing at all.
    Silence,
}

impl Collector {
    /// A collector that gives these answers, then 200.
    pub(super) fn start<const N: usize>(replies: [Reply; N]) -> Self {
        Self::listen(replies.into(), None)
    }

    /// The same behind TLS.
    pub(super) fn start_secure<const N: usize>(replies: [Reply; N]) -> Self {
        Self::listen(replies.into(), Some(acceptor()))
    }

    pub(super) fn url(&self) -> String {
        format!("{}://localhost:{}", if self.is_secure { "https" } else { "http" }, self.address.port())
    }

    /// The next request.
    pub(super) fn next(&self) -> Received {
        self.requests.recv_timeout(Duration::from_secs(30)).expect("no request came")
    }

    /// Whether nothing came that was not asked for yet.
    pub(super) fn has_none(&self) -> bool {
        self.requests.try_recv().is_err()
    }

    fn listen(replies: VecDeque<Reply>, tls: Option<TlsAcceptor>) -> Self {
        let listener = StdListener::bind("localhost:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let is_secure = tls.is_some();
        let (sender, requests) = channel();
        let replies = Arc::new(Mutex::new(replies));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                for connection in 0.. {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(serve(
                        stream,
                        tls.clone(),
                        connection,
                        sender.clone(),
                        Arc::clone(&replies),
                    ));
                }
            });
        });
        Self { address, is_secure, requests }
    }
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    connection: usize,
    sender: Sender<Received>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (sender, replies) = (sender.clone(), Arc::clone(&replies));
        async move {
            let (head, body) = request.into_parts();
            let received = Received {
                connection,
                method: head.method.to_string(),
                path: head.uri.path().to_owned(),
                headers: head.headers,
                body: body.collect().await.unwrap().to_bytes().to_vec(),
            };
            sender.send(received).unwrap_or_default();
            let reply = replies.lock().unwrap().pop_front().unwrap_or(Reply::Status(200));
            Ok::<_, Infallible>(answer(reply).await)
        }
    });
    let server = Builder::new(TokioExecutor::new());
    // A client that hangs up, or does not trust the certificate, is part of the tests.
    match tls {
        None => server.serve_connection(TokioIo::new(stream), service).await.unwrap_or_default(),
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                server.serve_connection(TokioIo::new(stream), service).await.unwrap_or_default();
            }
        }
    }
}

async fn answer(reply: Reply) -> Response<Answer> {
    let plain = |status, body: String| {
        let answer = Answer { body: Full::new(Bytes::from(body)), trailers: None };
        Response::builder().status(status).body(answer).unwrap()
    };
    match reply {
        Reply::Status(status) => plain(status, String::new()),
        Reply::StatusAndHangUp(status) => {
            let mut response = plain(status, String::new());
            response.headers_mut().insert("connection", "close".parse().unwrap());
            response
        }
        Reply::LeftOut(spans) => plain(200, format!(r#"{{"partialSuccess":{{"rejectedSpans":"{spans}"}}}}"#)),
        Reply::Grpc(status) => {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", status.parse().unwrap());
            let body = Full::new(Bytes::from_static(&[0; 5]));
            let answer = Answer { body, trailers: Some(trailers) };
            Response::builder().header("content-type", "application/grpc").body(answer).unwrap()
        }
        Reply::Silence => std::future::pending().await,
    }
}

/// A body with trailers behind it.
struct Answer {
    body: Full<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match std::pin::Pin::new(&mut self.body).poll_frame(context) {
            std::task::Poll::Ready(None) => {
                std::task::Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
            }
            other => other,
        }
    }
}

fn acceptor() -> TlsAcceptor {
    let file = |name| format!("{}/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let chain = CertificateDer::pem_file_iter(file("collector.pem")).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(file("collector.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

pub(super) fn unzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

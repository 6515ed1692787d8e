//! The collector: where spans are sent, and what it says about them.

mod answer;
mod connection;

use std::io::Write;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Uri};

use super::settings::{Protocol, SpanSettings};
use answer::Answer;
use connection::{Connection, Connector};

/// Sends batches, over one connection as long as it lasts.
pub(super) struct Collector {
    protocol: Protocol,
    uri: Uri,
    headers: HeaderMap,
    timeout: Duration,
    gzip: bool,
    connector: Connector,
    connection: Option<Connection>,
}

/// Why a batch was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// For the person who reads the log.
    pub(super) reason: String,
    pub(super) retry: Retry,
}

/// Whether it makes sense to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// No: the collector will not take it.
    Never,
    /// With the usual back-off.
    Soon,
    /// Not before the time that the collector named.
    After(Duration),
}

impl Collector {
    pub(super) fn new(settings: &SpanSettings) -> Self {
        Self {
            protocol: settings.protocol,
            uri: target(settings),
            headers: headers(settings),
            timeout: settings.timeout,
            gzip: settings.gzip,
            connector: Connector::new(settings),
            connection: None,
        }
    }

    /// Makes of an encoded batch what is sent, once for all attempts.
    pub(super) fn pack(&self, batch: Vec<u8>) -> Bytes {
        let batch = if self.gzip { gzip(&batch) } else { batch };
        if self.protocol != Protocol::Grpc {
            return batch.into();
        }
        let mut message = BytesMut::with_capacity(batch.len() + 5);
        message.put_u8(self.gzip.into());
        message.put_u32(batch.len() as u32);
        message.extend_from_slice(&batch);
        message.freeze()
    }

    /// Sends a batch once; how many of its spans the collector left out.
    pub(super) async fn send(&mut self, body: &Bytes) -> Result<u64, Failure> {
        // The other side may have closed an idle connection: then a new one is tried at once.
        if let Some(connection) = self.connection.take().filter(Connection::is_open)
            && let Ok(exchanged) = self.in_time(self.exchange(connection, body.clone())).await?
        {
            return self.conclude(exchanged);
        }
        let on_new_connection = async { self.exchange(self.connector.connect().await?, body.clone()).await };
        let exchanged = self.in_time(on_new_connection).await??;
        self.conclude(exchanged)
    }

    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let late = |_| Failure::soon(format!("no answer within {} ms", self.timeout.as_millis()));
        tokio::time::timeout(self.timeout, work).await.map_err(late)
    }

    async fn exchange(
        &self,
        mut connection: Connection,
        body: Bytes,
    ) -> Result<(Connection, Answer), Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = connection.target(&self.uri);
        *request.headers_mut() = self.headers.clone();
        let response = connection.send(request).await?;
        Ok((connection, Answer::read(response).await?))
    }

    fn conclude(&mut self, (connection, answer): (Connection, Answer)) -> Result<u64, Failure> {
        self.connection = Some(connection);
        answer.left_out(self.protocol)
    }
}

impl Failure {
    /// One that may pass.
    fn soon(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), retry: Retry::Soon }
    }
}

fn target(settings: &SpanSettings) -> Uri {
    if settings.protocol != Protocol::Grpc {
        return settings.endpoint.clone();
    }
    let mut parts = settings.endpoint.clone().into_parts();
    let method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    parts.path_and_query = Some(hyper::http::uri::PathAndQuery::from_static(method));
    Uri::from_parts(parts).unwrap_or_else(|_| settings.endpoint.clone())
}

fn headers(settings: &SpanSettings) -> HeaderMap {
    let known = HeaderValue::from_static;
    let mut headers = settings.headers.clone();
    headers.insert(header::USER_AGENT, known(concat!("loopbreaker/", env!("CARGO_PKG_VERSION"))));
    let (content_type, encoding) = match settings.protocol {
        Protocol::HttpProtobuf => ("application/x-protobuf", header::CONTENT_ENCODING),
        Protocol::HttpJson => ("application/json", header::CONTENT_ENCODING),
        Protocol::Grpc => {
            headers.insert(header::TE, known("trailers"));
            ("application/grpc", header::HeaderName::from_static("grpc-encoding"))
        }
    };
    headers.insert(header::CONTENT_TYPE, known(content_type));
    if settings.gzip {
        headers.insert(encoding, known("gzip"));
    }
    if settings.protocol != Protocol::Grpc
        && let Some(authority) = settings.endpoint.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        headers.insert(header::HOST, host);
    }
    headers
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    // Writing to memory cannot fail.
    encoder.write_all(bytes).unwrap_or_default();
    encoder.finish().unwrap_or_default()
}

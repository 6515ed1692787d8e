//! `/metrics` over plain HTTP.

use std::convert::Infallible;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::service::Service;

/// Scrapes that may go on at once: more have to wait.
const AT_ONCE: usize = 16;
/// How long a client may take to say what it wants.
const HEADERS_WITHIN: Duration = Duration::from_secs(5);

/// Answers scrapes until the end.
pub(super) async fn serve(listener: TcpListener, service: Service, mut ended: watch::Receiver<bool>) {
    let at_once = std::sync::Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(permit) = std::sync::Arc::clone(&at_once).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ended.wait_for(|end| *end) => return,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file handles, most likely: some will be free soon.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let service = service.clone();
        tokio::spawn(async move {
            let answer =
                service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&service, &request))));
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN).keep_alive(false);
            // A scraper that goes away early is its own affair.
            drop(http.serve_connection(TokioIo::new(stream), answer).await);
            drop(permit);
        });
    }
}

fn answer(service: &Service, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let known = request.method() == Method::GET && request.uri().path() == "/metrics";
    let mut response =
        Response::new(Full::new(Bytes::from(if known { service.metrics() } else { String::new() })));
    if known {
        let format = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4");
        response.headers_mut().insert(hyper::header::CONTENT_TYPE, format);
    } else {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

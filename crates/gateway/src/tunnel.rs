//! Connections that change their protocol, such as web sockets: tunnelled both ways, unread.

use hyper::body::Incoming;
use hyper::header::{CONNECTION, UPGRADE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use loopbreaker_dialect::Refusal;
use tokio::io::copy_bidirectional;

use crate::headers;
use crate::outgoing::Outgoing;
use crate::pipeline::Worker;
use crate::reply::{Reply, refuse};
use crate::route::Destination;
use crate::send::path_at;
use crate::settings::Settings;

/// Asks the provider for the other protocol, and joins both connections when it agrees.
pub(crate) async fn open(
    worker: &Worker,
    settings: &Settings,
    destination: &Destination,
    mut request: Request<Incoming>,
) -> Response<Reply> {
    let upstream = settings.upstream(destination.provider, destination.route);
    let mut asked = Request::new(Outgoing::whole(bytes::Bytes::new()));
    *asked.method_mut() = request.method().clone();
    *asked.headers_mut() = headers::to_upstream(request.headers(), &upstream.host, false);
    for name in [CONNECTION, UPGRADE] {
        if let Some(value) = request.headers().get(&name) {
            asked.headers_mut().insert(name, value.clone());
        }
    }
    if let Ok(uri) = path_at(&upstream.base_path, &destination.path_and_query).parse() {
        *asked.uri_mut() = uri;
    }
    let sent = worker.pool.send(&upstream.origin, asked, settings.config.upstreams.timeout, None).await;
    let (mut answer, _lease) = match sent {
        Ok(answer) => answer,
        Err(unreachable) => {
            return refuse(destination.dialect, Refusal::UpstreamUnavailable, 502, &unreachable.to_string());
        }
    };
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        let message =
            format!("the provider does not speak that protocol here: it answered {}", answer.status());
        return refuse(destination.dialect, Refusal::UpstreamUnavailable, 502, &message);
    }
    let mut reply = Response::new(Reply::EMPTY);
    *reply.status_mut() = answer.status();
    *reply.headers_mut() = answer.headers().clone();
    let (from_client, from_provider) = (hyper::upgrade::on(&mut request), hyper::upgrade::on(&mut answer));
    tokio::spawn(async move {
        if let (Ok(client), Ok(provider)) = tokio::join!(from_client, from_provider) {
            // However it ends, both sides see it by their connection.
            drop(copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(provider)).await);
        }
    });
    reply
}

//! The sidecar: the same comparison as a service of its own.

mod authority;
mod listener;
mod metrics;
mod options;
mod service;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

pub use options::{OptionsError, SidecarOptions};

use crate::counters::Counters;
use crate::desk::Desk;
use crate::embedder::EmbedError;
use crate::history::{HistoryError, open_history};
use crate::proto::{DESCRIPTORS, EmbeddingServiceServer};
use crate::reading::How;
use crate::sidecars::SERVICE;
use authority::AnyAuthority;
use listener::Socket;
use service::Service;

/// How long requests that are under way may still take when the sidecar is told to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// Hears of each check.
pub type Observer = Arc<dyn Fn(&Served<'_>) + Send + Sync>;

/// A check that a sidecar has done.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    /// The caller's place in its trace, if it told it.
    pub trace: Option<&'a str>,
    /// How it was found out, or why it was not.
    pub how: How,
    /// The largest similarity to an earlier prompt, where there is an answer.
    pub max_similarity: Option<f64>,
    /// How long it took.
    pub took: Duration,
}

/// Why the sidecar did not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SidecarError {
    /// The model cannot be loaded or warmed.
    #[error(transparent)]
    Model(#[from] EmbedError),
    /// The store is not as it has to be.
    #[error(transparent)]
    Store(#[from] HistoryError),
    /// Another sidecar listens there.
    #[error("another process listens on {}: stop it, or set UDS_PATH to another path", .0.display())]
    InUse(PathBuf),
    /// What stands there is not a socket.
    #[error("{} is there and is no socket: remove it, or set UDS_PATH to another path", .0.display())]
    NotASocket(PathBuf),
    /// The socket cannot be made.
    #[error("cannot listen on {}: {reason}; UDS_PATH sets the path", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// The address of the metrics cannot be listened on.
    #[error("cannot listen on {address}: {reason}; METRICS_LISTEN sets the address")]
    Metrics {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        reason: io::Error,
    },
    /// The service broke.
    #[error("the service ended: {0}")]
    Ended(String),
}

/// Runs the sidecar until SIGTERM or SIGINT. The model has done a real inference, and the store is ready, before the
/// socket exists; when either fails there is no socket.
///
/// A store that is away does not stop the start: it may come back, and until then each check says so.
pub async fn serve(options: SidecarOptions) -> Result<(), SidecarError> {
    serve_observed(options, Arc::new(|_| ()), |_| ()).await
}

/// The same, with somebody who hears of each check when it is over. `on_ready` is called once the socket is there, with
/// what is wrong with the store, if anything is.
pub async fn serve_observed(
    options: SidecarOptions,
    observer: Observer,
    on_ready: impl FnOnce(Option<&HistoryError>),
) -> Result<(), SidecarError> {
    let model = options.model.clone();
    let loaded = tokio::task::spawn_blocking(move || {
        let embedder = model.load()?;
        embedder.embed(&["warm up"])?;
        Ok::<_, EmbedError>(embedder)
    });
    let embedder = loaded.await.map_err(|error| SidecarError::Ended(error.to_string()))??;
    let store = open_history(&options.store, options.limits)?;
    let away = match store.prepare(embedder.dimensions()).await {
        Ok(()) => None,
        Err(error @ HistoryError::Unavailable { .. }) => Some(error),
        Err(error) => return Err(error.into()),
    };
    let desk = Desk::with(embedder)?;
    let counters = Arc::new(Counters::default());
    let service = Service::new(desk, store, Arc::clone(&counters), observer, &options);
    let (end, ended) = watch::channel(false);
    let mut metrics = None;
    if let Some(address) = options.metrics_listen {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|reason| SidecarError::Metrics { address, reason })?;
        metrics = Some(tokio::spawn(metrics::serve(listener, service.clone(), ended.clone())));
    }
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_service_status(SERVICE, tonic_health::ServingStatus::Serving).await;
    let described = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let undescribed = |error: tonic_reflection::server::Error| SidecarError::Ended(error.to_string());
    let reflection = described().build_v1().map_err(undescribed)?;
    // Python's client and older tools know no other.
    let old_reflection = described().build_v1alpha().map_err(undescribed)?;
    let broken = |error: io::Error| SidecarError::Ended(error.to_string());
    let mut terminated = signal(SignalKind::terminate()).map_err(broken)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(broken)?;
    let (socket, listener) = Socket::bind(&options.uds_path)?;
    on_ready(away.as_ref());
    let mut stop = ended.clone();
    let incoming = UnixListenerStream::new(listener).map(|accepted| accepted.map(AnyAuthority::new));
    let server = Server::builder()
        .add_service(health_service)
        .add_service(reflection)
        .add_service(old_reflection)
        .add_service(EmbeddingServiceServer::new(service).max_decoding_message_size(MAX_REQUEST))
        .serve_with_incoming_shutdown(incoming, async move {
            // It ends when it is told to, or with whoever would tell it.
            drop(stop.wait_for(|end| *end).await);
        });
    tokio::pin!(server);
    tokio::select! {
        served = &mut server => return served.map_err(|error| SidecarError::Ended(error.to_string())),
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    health.set_not_serving::<EmbeddingServiceServer<Service>>().await;
    // Nobody new can come; who is here gets an answer.
    drop(socket);
    end.send_replace(true);
    if let Ok(Err(error)) = tokio::time::timeout(FAREWELL, server).await {
        return Err(SidecarError::Ended(error.to_string()));
    }
    if let Some(metrics) = metrics {
        metrics.abort();
    }
    Ok(())
}

/// The longest request that is read: only the ends of a prompt are looked at.
const MAX_REQUEST: usize = 16 << 20;

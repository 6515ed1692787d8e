//! The provider as a running server.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::sync::oneshot;

use crate::record::Request;
use crate::script::Script;
use crate::service::{Service, Settings, Shared};
use crate::turn::Turn;

/// A provider that listens, on a thread and a runtime of its own: it can be used from anywhere. It stops when it is
/// dropped.
///
/// ```
/// use loopbreaker_mock::Mock;
/// # fn main() -> std::io::Result<()> {
/// let mock = Mock::builder().strict(true).start("127.0.0.1:0")?;
/// assert!(mock.url().starts_with("http://127.0.0.1:"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Mock {
    addr: SocketAddr,
    service: Shared,
    /// The server stops when this is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// How a provider is started.
#[derive(Debug, Clone, Copy)]
pub struct Builder(Settings);

impl Mock {
    /// Starts a provider at an address; port 0 takes any that is free.
    pub fn start(addr: impl ToSocketAddrs) -> io::Result<Self> {
        Self::builder().start(addr)
    }

    /// A provider with other settings.
    pub const fn builder() -> Builder {
        Builder(Settings { recording: true, strict: false, fixed: false })
    }

    /// A provider for benchmarks: the same ready bytes for every question, nothing recorded.
    pub const fn fixed() -> Builder {
        Builder(Settings { recording: false, strict: false, fixed: true })
    }

    /// Where it listens.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where it listens, for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Sets the turns of requests that name no script. The last one is repeated.
    pub fn script(&self, turns: impl IntoIterator<Item = Turn>) {
        self.script_for("", turns);
    }

    /// Sets the turns of requests whose `x-mock-script` header has this name. The last one is repeated.
    pub fn script_for(&self, name: impl Into<String>, turns: impl IntoIterator<Item = Turn>) {
        let turns = turns.into_iter().collect();
        self.service.scripts.set(Script { name: name.into(), turns, repeat_last: true });
    }

    /// What was received so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.service.records.all()
    }

    /// Forgets scripts and requests.
    pub fn reset(&self) {
        self.service.scripts.clear();
        self.service.records.clear();
    }

    /// Stops, and breaks what is still open.
    pub fn shutdown(mut self) {
        self.stop();
    }

    /// Waits until it stops by itself, which it does only when its listener fails.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has stopped as well.
            drop(thread.join());
        }
    }

    fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Builder {
    /// Whether requests are kept for [`Mock::requests`].
    #[must_use]
    pub const fn recording(mut self, recording: bool) -> Self {
        self.0.recording = recording;
        self
    }

    /// Whether transcripts are refused that the real providers refuse, such as a tool call without its result.
    #[must_use]
    pub const fn strict(mut self, strict: bool) -> Self {
        self.0.strict = strict;
        self
    }

    /// Starts the provider.
    pub fn start(self, addr: impl ToSocketAddrs) -> io::Result<Mock> {
        let listener = TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let service = Arc::new(Service::new(self.0));
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&service);
        let thread = std::thread::Builder::new().name("mock-provider".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    _ = accept(listener, shared) => {}
                }
            });
        })?;
        Ok(Mock { addr, service, stop: Some(stop), thread: Some(thread) })
    }
}

async fn accept(listener: TcpListener, service: Shared) -> io::Result<Infallible> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // A connection that was gone before we took it, or a moment without file descriptors.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Chunks have to leave when they are flushed.
        stream.set_nodelay(true)?;
        let service = Arc::clone(&service);
        let http = http.clone();
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let service = Arc::clone(&service);
                async move { Ok::<_, Infallible>(service.answer(request).await) }
            });
            // A client that goes away is part of many tests, and is seen in the record of its request.
            drop(http.serve_connection(TokioIo::new(stream), answer).await);
        });
    }
}

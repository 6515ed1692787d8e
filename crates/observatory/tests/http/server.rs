//! A small server around the observatory, and a client that speaks plain HTTP/1.1.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use loopbreaker_observatory::{Caller, Observatory, Options};
use loopbreaker_record::TraceId;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// A clock that stands still starts here: 2026-02-21T10:00:00Z.
pub(crate) const START: i64 = 1_771_668_000_000;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) observatory: Arc<Observatory>,
    clock: Arc<AtomicI64>,
    /// Whoever serves stops when this is gone, and lets go of the store.
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop = None;
        // A panic of that thread has failed its test already.
        drop(self.serving.take().map(JoinHandle::join));
    }
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub(crate) fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicI64::new(START));
        let mut options = crate::backend::options(folder.path());
        let for_options = Arc::clone(&clock);
        options.clock = Arc::new(move || for_options.load(Ordering::Relaxed));
        change(&mut options);
        let observatory = Arc::new(Observatory::open(options).unwrap());
        let (sender, receiver) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = Arc::clone(&observatory);
        let serving = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                tokio::select! {
                    () = serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
        });
        let address = receiver.recv().unwrap();
        let (stop, serving) = (Some(stop), Some(serving));
        Self { address, observatory, clock, stop, serving, _folder: folder }
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, millis: i64) {
        self.clock.fetch_add(millis, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.call("POST", path, &[], &body.to_string())
    }

    /// Takes a log in that must be accepted.
    pub(crate) fn accept(&self, log: &Value) -> Value {
        let (status, answer) = self.post("/decision-logs", log);
        assert_eq!(status, 201, "{answer}");
        answer
    }

    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, Value) {
        let (status, _, body) = exchange(self.address, method, path, headers, body).unwrap();
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }
}

/// Serves until the process ends. Tests say by headers who asks.
pub(crate) async fn serve(listener: tokio::net::TcpListener, observatory: Arc<Observatory>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let observatory = Arc::clone(&observatory);
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let observatory = Arc::clone(&observatory);
                async move {
                    let header =
                        |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
                    let mut caller =
                        Caller { tenant: header("x-test-tenant").map(Arc::from), ..Caller::local() };
                    if header("x-test-role") == Some("viewer") {
                        caller.operator = None;
                    }
                    Ok::<_, Infallible>(observatory.handle(request, &caller).await)
                }
            });
            // A client may go away at any time.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

/// One request and its whole answer: status, head, body.
pub(crate) fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<(u16, String, String)> {
    let mut stream = open(address, method, path, headers, body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return Err(std::io::Error::other("the answer broke off"));
    };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    Ok((status, head.to_owned(), body))
}

/// Sends a request and leaves its answer to be read.
pub(crate) fn open(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let extra: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let extra = extra.concat();
    let length = body.len();
    let head = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n{extra}\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    Ok(stream)
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

/// The name of the nth step of a test.
pub(crate) fn id(number: u32) -> String {
    TraceId::derived(&[b"test", &number.to_le_bytes()]).to_string()
}

/// The nth step of a test, by agent `a`.
pub(crate) fn log(number: u32) -> Value {
    json!({
        "meta": { "trace_id": id(number), "timestamp": "2026-02-21T10:00:00Z" },
        "identity": { "agent_id": "a", "agent_type": "coder", "capability_version": "1.0.0" },
        "cognition": { "intent": format!("intent {number}") },
        "action": { "status": "success" },
    })
}

/// The nth step, in a named session.
pub(crate) fn in_session(number: u32, session: &str) -> Value {
    let mut log = log(number);
    log["meta"]["session_id"] = session.into();
    log
}

/// The nth step, behind another.
pub(crate) fn behind(number: u32, parent: u32) -> Value {
    let mut log = log(number);
    log["meta"]["parent_step_id"] = id(parent).into();
    log
}

//! Workers: each has a thread, a listener on the shared port, and a pool of its own.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;

use crate::control;
use crate::headers;
use crate::inbound::Inbound;
use crate::lane::{Lane, Next};
use crate::pipeline::Worker;
use crate::reply::Reply;
use crate::seldom::Seldom;
use crate::wire::Rewound;
use crate::within::within;

/// Which of our endpoints a listener serves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serves {
    /// Traffic for providers, and decisions about it.
    pub(crate) traffic: bool,
    /// Health, metrics and the API.
    pub(crate) control: bool,
    /// Whether only this machine can reach it.
    pub(crate) is_local: bool,
}

/// One listener of a worker.
pub(crate) struct Door {
    pub(crate) listener: std::net::TcpListener,
    pub(crate) serves: Serves,
    pub(crate) tls: Option<TlsAcceptor>,
}

/// Opens a port that nobody else has, for the first worker.
pub(crate) fn open_first(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    // A port that several may share does not tell that another process listens there already.
    drop(std::net::TcpListener::bind(address)?);
    open(address)
}

/// Opens a port that several listeners can share, so that each worker accepts by itself.
pub(crate) fn open(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(4_096)?;
    Ok(socket.into())
}

/// Serves until `shutdown` changes, then lets what is under way end for at most `drain`. As long as something is, the
/// doors stay open: whoever asks whether we are ready has to hear that we are not, and who has not heard of it yet is
/// served.
pub(crate) async fn work(
    worker: Worker,
    doors: Vec<Door>,
    everybody: Everybody,
    mut shutdown: watch::Receiver<bool>,
    drain: Duration,
) {
    let Everybody { guests, late_guests } = everybody;
    let close = watch::Sender::new(false);
    let hours = Hours { shutdown: shutdown.clone(), closed: close.subscribe() };
    for door in doors {
        let Ok(listener) = TcpListener::from_std(door.listener) else { continue };
        let (guests, late_guests) = (guests.clone(), late_guests.clone());
        tokio::spawn(accept(
            worker.clone(),
            listener,
            door.serves,
            door.tls,
            hours.clone(),
            guests,
            late_guests,
        ));
    }
    let pool = worker.pool.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP).await;
            pool.sweep();
        }
    });
    stops(&mut shutdown).await;
    let drained = async {
        guests.have_left().await;
        close.send_replace(true);
        late_guests.have_left().await;
    };
    drop(within(drain, drained).await);
}

/// Who is connected to any of the workers: none of them closes its doors before all can.
#[derive(Clone)]
pub(crate) struct Everybody {
    guests: Guests,
    late_guests: Guests,
}

impl Everybody {
    /// Nobody yet.
    pub(crate) fn at(workers: usize) -> Self {
        let none = || Guests { count: Arc::default(), most: MAX_CONNECTIONS * workers };
        Self { guests: none(), late_guests: none() }
    }
}

/// When it is time to go.
#[derive(Clone)]
struct Hours {
    /// The process is going to end: connections that are open end with what is under way on them.
    shutdown: watch::Receiver<bool>,
    /// Nobody comes in any more.
    closed: watch::Receiver<bool>,
}

async fn accept(
    worker: Worker,
    listener: TcpListener,
    serves: Serves,
    tls: Option<TlsAcceptor>,
    mut hours: Hours,
    guests: Guests,
    late_guests: Guests,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stops(&mut hours.closed) => return,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, most likely: wait for some to be freed instead of spinning.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Who comes late is served once, and may stay until the doors are closed.
        let is_late = *hours.shutdown.borrow();
        let Some(guest) = (if is_late { &late_guests } else { &guests }).enter() else { continue };
        let stay = Stay { is_late, guest, hours: hours.clone(), late_guests: late_guests.clone() };
        tokio::spawn(greet(worker.clone(), stream, serves, tls.clone(), stay));
    }
}

async fn greet(worker: Worker, stream: TcpStream, serves: Serves, tls: Option<TlsAcceptor>, stay: Stay) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let stream = match tls {
        None => stream.into(),
        Some(tls) => match within(SLOWEST_HEADERS, tls.accept(stream)).await {
            Ok(Ok(stream)) => stream.into(),
            _ => return,
        },
    };
    if serves.traffic {
        serve_lane(worker, Lane::new(stream), serves, stay).await;
    } else {
        serve(worker, Rewound::new(Bytes::new(), stream), serves, stay).await;
    }
}

/// Serves one plain request after the other, and leaves the connection to hyper when something else comes.
async fn serve_lane(worker: Worker, mut lane: Lane, serves: Serves, mut stay: Stay) {
    let mut has_asked = false;
    let mut ends = pin!(Seldom::new(Box::pin(stay.ends())));
    loop {
        let next = tokio::select! {
            biased;
            next = lane.next(SLOWEST_HEADERS, MAX_HEADERS) => next,
            () = &mut ends => {
                if has_asked || !stay.becomes_late() {
                    return;
                }
                ends.set(Seldom::new(Box::pin(stay.ends())));
                continue;
            }
        };
        match next {
            Next::Nothing => return,
            Next::Other => break,
            Next::Request(head) => {
                has_asked = true;
                let request = head.request.map(|()| lane.body());
                // It is pinned where it is made: as an argument it would be carried along.
                let answered = {
                    let answering = pin!(worker.handle(request));
                    lane.unless_gone(answering).await
                };
                let Some(response) = answered else { return };
                if !lane.reply(response, head.closes || stay.is_over()).await {
                    return;
                }
            }
        }
    }
    if let Some(rewound) = lane.into_rewound() {
        serve(worker, rewound, serves, stay).await;
    }
}

/// Serves one connection as hyper does, HTTP/1.1 or HTTP/2.
async fn serve(worker: Worker, stream: Rewound, serves: Serves, mut stay: Stay) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(SLOWEST_HEADERS)
        .max_buf_size(MAX_HEADERS)
        .keep_alive(!stay.is_late);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADERS as u32)
        .max_concurrent_streams(256);
    let asked = Arc::new(Asked::default());
    let asking = Arc::clone(&asked);
    let service = service_fn(move |request| {
        asking.tell();
        let worker = worker.clone();
        async move { Ok::<_, Infallible>(answer(&worker, serves, request).await) }
    });
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let is_over = {
        let ends = pin!(async {
            tokio::select! {
                () = asked.never() => true,
                () = stay.ends() => false,
            }
        });
        tokio::select! {
            biased;
            // A client that breaks its connection hears nothing more from us anyway.
            _ = connection.as_mut() => true,
            is_over = Seldom::new(ends) => is_over,
        }
    };
    if is_over {
        return;
    }
    if !asked.is_told() && stay.becomes_late() {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = asked.told() => {}
            () = stay.ends() => {}
        }
    }
    connection.as_mut().graceful_shutdown();
    drop(connection.await);
}

async fn answer(worker: &Worker, serves: Serves, mut request: Request<Incoming>) -> Response<Reply> {
    if headers::names_no_one_host(&request) {
        // Whoever is in front of us may have believed the other one.
        return control::json_error(400, "bad_request", "a request names one `Host`");
    }
    if headers::is_coded_for_transfer(request.headers()) {
        return control::json_error(501, "not_implemented", "a body is sent `chunked` or with its length");
    }
    headers::as_in_http1(&mut request);
    let path = request.uri().path();
    let own = control::is_own(path);
    if own && (serves.control || (serves.traffic && crate::decision::is_asked(path))) {
        // Every request would carry the room for it otherwise, and be moved about with it.
        return Box::pin(worker.control(request, serves.is_local)).await;
    }
    if request.method() == Method::CONNECT {
        return control::json_error(405, "method_not_allowed", "this is no proxy for other hosts");
    }
    if !own && serves.traffic {
        return worker.handle(request.map(Inbound::Hyper)).await;
    }
    control::json_error(404, "not_found", "this port serves nothing here")
}

/// Waits until the gateway stops. The sender is dropped only when the process ends.
async fn stops(shutdown: &mut watch::Receiver<bool>) {
    drop(shutdown.wait_for(|stopping| *stopping).await);
}

/// Whether a connection has brought a request yet.
#[derive(Default)]
struct Asked {
    is_told: AtomicBool,
    first: Notify,
}

impl Asked {
    /// A request has come.
    fn tell(&self) {
        if !self.is_told.swap(true, Ordering::AcqRel) {
            self.first.notify_one();
        }
    }

    fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Acquire)
    }

    /// Waits for the first request.
    async fn told(&self) {
        self.first.notified().await;
    }

    /// Ends when a client has sent no request in the time that it has for its headers: before it has said which version
    /// of HTTP it speaks, nothing else looks at the clock.
    async fn never(&self) {
        tokio::time::sleep(SLOWEST_HEADERS).await;
        if self.is_told() {
            std::future::pending::<()>().await;
        }
    }
}

/// How long a connection stays.
struct Stay {
    /// Whether it came when the process was about to end, so that one request is all that it gets.
    is_late: bool,
    guest: Guest,
    hours: Hours,
    late_guests: Guests,
}

impl Stay {
    /// A connection that was opened a moment before the end, and whose first request may be on its way already, is as
    /// good as one that comes late. Whether it may stay.
    fn becomes_late(&mut self) -> bool {
        let late = if self.is_late { None } else { self.late_guests.enter() };
        self.is_late |= late.is_some();
        late.map(|guest| self.guest = guest).is_some()
    }

    /// Waits until the connection has to end.
    fn ends(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut hour = if self.is_late { &self.hours.closed } else { &self.hours.shutdown }.clone();
        async move { stops(&mut hour).await }
    }

    /// Whether the answer that is sent now is the last one.
    fn is_over(&self) -> bool {
        self.is_late || *self.hours.shutdown.borrow()
    }
}

/// Connections that are open.
#[derive(Clone)]
struct Guests {
    count: Arc<AtomicUsize>,
    most: usize,
}

impl Guests {
    /// Counts a connection as long as what is given lives; `None` when there are too many.
    fn enter(&self) -> Option<Guest> {
        if self.count.load(Ordering::Acquire) >= self.most {
            return None;
        }
        self.count.fetch_add(1, Ordering::AcqRel);
        Some(Guest(Arc::clone(&self.count)))
    }

    async fn have_left(&self) {
        while self.count.load(Ordering::Acquire) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

struct Guest(Arc<AtomicUsize>);

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A client that needs longer for its headers or its handshake is not served.
const SLOWEST_HEADERS: Duration = Duration::from_secs(30);
/// All headers of a request together.
const MAX_HEADERS: usize = 64 << 10;
/// Connections for each worker; what comes on top of them is closed at once.
const MAX_CONNECTIONS: usize = 50_000;
/// How often idle connections to providers are looked at.
const SWEEP: Duration = Duration::from_secs(10);

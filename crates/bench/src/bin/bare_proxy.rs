//! The HTTP stack that the gateway stands on and nothing else: what it costs to carry a request with it at all.
//!
//! usage: bare-proxy LISTEN UPSTREAM

use std::cell::RefCell;
use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn Error + Send + Sync>;
/// Connections that wait for a request, or for the end of their last answer.
type Pool = Rc<RefCell<Vec<SendRequest<Full<Bytes>>>>>;

fn main() -> Result<(), Failure> {
    let addresses: Vec<SocketAddr> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let [listen, upstream] = addresses[..] else { return Err("usage: bare-proxy LISTEN UPSTREAM".into()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind(listen).await?;
        let pool = Pool::default();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let pool = Rc::clone(&pool);
            let service = service_fn(move |request| carry(Rc::clone(&pool), upstream, request));
            // A client that goes away is no failure.
            spawn_local(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

async fn carry(
    pool: Pool,
    upstream: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, Failure> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut headers = HeaderMap::with_capacity(parts.headers.len() + 1);
    headers.append(HOST, HeaderValue::from_str(&upstream.to_string())?);
    for (name, value) in &parts.headers {
        if name != HOST && name != CONNECTION {
            headers.append(name.clone(), value.clone());
        }
    }
    let mut outgoing = Request::new(Full::new(body));
    (*outgoing.method_mut(), *outgoing.uri_mut(), *outgoing.headers_mut()) =
        (parts.method, parts.uri, headers);

    let ready = {
        let mut idle = pool.borrow_mut();
        idle.iter().position(SendRequest::is_ready).map(|at| idle.swap_remove(at))
    };
    let mut sender = if let Some(sender) = ready { sender } else { connect(upstream).await? };
    let answer = sender.send_request(outgoing).await?;
    pool.borrow_mut().push(sender);
    Ok(answer)
}

async fn connect(upstream: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(upstream).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    spawn_local(connection);
    Ok(sender)
}

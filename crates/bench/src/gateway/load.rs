//! The load: connections that each send their next request when the answer to the last one is complete, or when its
//! time has come.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use super::answer::{Answer, Heard};
use super::transcripts::{Request, Workload};

/// Open connections to one target, and what they send.
pub(crate) struct Fleet {
    connections: Vec<Rc<RefCell<Connection>>>,
    /// The length of every answer's body: the upstream always says the same.
    expected: usize,
    work: Rc<RefCell<Workload>>,
}

/// A connection that carries one request after the other.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
}

/// When a fleet stops.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// After this time.
    Elapsed(Duration),
    /// After so many requests.
    Requests(u64),
}

/// What a fleet has done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Nanoseconds from the first byte of a request to the last of its answer, of each request.
    pub(crate) latencies: Vec<u64>,
    /// Bytes of all bodies.
    pub(crate) bytes: u64,
    pub(crate) elapsed: Duration,
}

impl Fleet {
    /// Connects, and sends one request on each connection: what a first request costs is not measured.
    pub(crate) async fn connect(
        address: SocketAddr,
        connections: usize,
        expected: usize,
        work: Rc<RefCell<Workload>>,
    ) -> io::Result<Self> {
        let mut open = Vec::with_capacity(connections);
        for _ in 0..connections {
            let mut connection = Connection::open(address).await?;
            let request = work.borrow_mut().next_request();
            ask(&mut connection, &request, expected).await?;
            open.push(Rc::new(RefCell::new(connection)));
        }
        Ok(Self { connections: open, expected, work })
    }

    /// Sends requests until it is time to stop: so many per second in all, or as many as are answered.
    pub(crate) async fn run(&self, until: Until, per_second: Option<u32>) -> io::Result<Done> {
        let started = Instant::now();
        let apart = per_second.map(|rate| Duration::from_secs(1) / rate);
        let sent = Rc::new(Cell::new(0));
        let local = LocalSet::new();
        let mut running = Vec::with_capacity(self.connections.len());
        for (turn, connection) in (0..).zip(&self.connections) {
            // They take turns, and a turn lasts as long as all of them need.
            let pace = apart.map(|apart| Pace {
                next: started + apart * turn,
                apart: apart * self.connections.len() as u32,
            });
            let (connection, work) = (Rc::clone(connection), Rc::clone(&self.work));
            let sent = Rc::clone(&sent);
            let sending = send_all(connection, work, self.expected, sent, started, until, pace);
            running.push(local.spawn_local(sending));
        }
        let mut done = Done::default();
        local
            .run_until(async {
                for one in running {
                    let (latencies, bytes) = one.await.map_err(io::Error::other)??;
                    done.latencies.extend(latencies);
                    done.bytes += bytes;
                }
                Ok::<(), io::Error>(())
            })
            .await?;
        done.elapsed = started.elapsed();
        Ok(done)
    }
}

#[expect(clippy::await_holding_refcell_ref, reason = "each connection is used by one task only")]
async fn send_all(
    connection: Rc<RefCell<Connection>>,
    work: Rc<RefCell<Workload>>,
    expected: usize,
    sent: Rc<Cell<u64>>,
    started: Instant,
    until: Until,
    mut pace: Option<Pace>,
) -> io::Result<(Vec<u64>, u64)> {
    let mut connection = connection.borrow_mut();
    let (mut latencies, mut bytes) = (Vec::new(), 0);
    loop {
        let begun = match &mut pace {
            None => Instant::now(),
            Some(pace) => pace.begin().await,
        };
        let over = match until {
            Until::Elapsed(limit) => begun - started >= limit,
            Until::Requests(limit) => sent.get() >= limit,
        };
        if over {
            return Ok((latencies, bytes));
        }
        sent.set(sent.get() + 1);
        let request = work.borrow_mut().next_request();
        ask(&mut connection, &request, expected).await?;
        latencies.push(begun.elapsed().as_nanos() as u64);
        bytes += request.body_len() as u64;
    }
}

/// When a connection sends its requests.
struct Pace {
    next: Instant,
    apart: Duration,
}

impl Pace {
    /// Waits for the time of the next request. One that is late, since the answer before it was, counts from when it
    /// should have been sent.
    async fn begin(&mut self) -> Instant {
        let due = self.next;
        self.next += self.apart;
        if Instant::now() >= due {
            return due;
        }
        tokio::time::sleep_until(due.into()).await;
        Instant::now()
    }
}

/// The length of the body that an upstream answers with.
pub(crate) async fn answer_len(address: SocketAddr, request: &Request) -> io::Result<usize> {
    let heard = Connection::open(address).await?.exchange(request.pieces()).await?;
    Ok(heard.body)
}

/// Sends a healthy request: any other answer than the upstream's is a mistake, of ours or of the benchmark.
async fn ask(connection: &mut Connection, request: &Request, expected: usize) -> io::Result<()> {
    let heard = connection.exchange(request.pieces()).await?;
    if heard.is_plain() && heard.body == expected {
        return Ok(());
    }
    Err(io::Error::other(format!("{heard:?} instead of a plain answer of {expected} bytes")))
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; 32 << 10].into() })
    }

    /// Sends the pieces as one request, and reads its answer to the end.
    pub(crate) async fn exchange<const N: usize>(&mut self, pieces: [&[u8]; N]) -> io::Result<Heard> {
        let mut slices = pieces.map(IoSlice::new);
        let mut left = &mut slices[..];
        while !left.is_empty() {
            let written = self.stream.write_vectored(left).await?;
            IoSlice::advance_slices(&mut left, written);
        }
        let mut answer = Answer::default();
        loop {
            let read = self.stream.read(&mut self.buffer).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if answer.take(&self.buffer[..read])? {
                return Ok(answer.heard());
            }
        }
    }
}

//! HTTP/1.1 byte by byte: what goes over a connection is exactly what a test says, and what comes back is all there.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::lab::PATIENCE;

/// One end of a connection.
pub(crate) struct Wire {
    stream: TcpStream,
    /// What was received and not looked at yet.
    ahead: Vec<u8>,
}

/// The first line and the headers of a message, as they came.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) first: String,
    /// Names as they are written, and values, in their order.
    pub(crate) headers: Vec<(String, String)>,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

/// A whole request, as a provider gets it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

/// The bytes of a request with a length.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        bytes.extend(b"host: 127.0.0.1\r\n");
    }
    for (name, value) in headers {
        bytes.extend(format!("{name}: {value}\r\n").bytes());
    }
    if !body.is_empty() || method == "POST" {
        bytes.extend(format!("content-length: {}\r\n", body.len()).bytes());
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    bytes
}

/// The bytes of an answer with a length.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend(format!("{name}: {value}\r\n").bytes());
    }
    bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
    bytes.extend(body);
    bytes
}

/// One piece of a chunked body.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::on(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn on(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, ahead: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends as much as the other side takes; it may hang up in between.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Says that nothing more will be sent.
    pub(crate) fn half_close(&self) {
        // The other side may have closed it altogether.
        drop(self.stream.shutdown(Shutdown::Write));
    }

    /// The next first line and headers.
    pub(crate) fn head(&mut self) -> Head {
        self.try_head().expect("the connection ended before the headers did")
    }

    /// The same, or nothing where the connection ends first.
    pub(crate) fn try_head(&mut self) -> Option<Head> {
        let mut text = String::new();
        loop {
            let line = self.try_line()?;
            if line.is_empty() {
                break;
            }
            text.push_str(&line);
            text.push('\n');
        }
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default().to_owned();
        Some(Head { first, headers: lines.map(header).collect() })
    }

    /// A whole answer, read by its framing.
    pub(crate) fn reply(&mut self) -> Reply {
        self.try_reply().expect("the connection ended before the answer did")
    }

    /// The same, or nothing where the connection ends first.
    pub(crate) fn try_reply(&mut self) -> Option<Reply> {
        let head = self.try_head()?;
        let mut reply = head.into_reply();
        let by_length = reply.header("content-length").map(|length| length.parse().unwrap());
        if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(piece) = self.try_chunk()? {
                reply.body.extend(piece);
            }
            reply.trailers = self.trailers()?;
        } else if let Some(length) = by_length {
            reply.body = self.try_bytes(length)?;
        } else if !matches!(reply.status, 204 | 304) {
            while self.more() {}
            reply.body = std::mem::take(&mut self.ahead);
        }
        Some(reply)
    }

    /// How many answers have begun to come so far. Nothing else can be read from this connection any more.
    pub(crate) fn answers_so_far(&mut self) -> usize {
        self.stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let mut piece = [0; 16 * 1_024];
        while let Ok(read @ 1..) = self.stream.read(&mut piece) {
            self.ahead.extend(&piece[..read]);
        }
        let text = String::from_utf8_lossy(&self.ahead);
        text.matches("HTTP/1.1 ").count() - text.matches("HTTP/1.1 100 ").count()
    }

    /// A whole request, read by its framing; nothing where the connection ends first.
    pub(crate) fn asked(&mut self) -> Option<Asked> {
        let head = self.try_head()?;
        let (mut body, mut trailers) = (Vec::new(), Vec::new());
        if head.get("transfer-encoding") == Some("chunked") {
            while let Some(piece) = self.try_chunk()? {
                body.extend(piece);
            }
            trailers = self.trailers()?;
        } else if let Some(length) = head.get("content-length") {
            body = self.try_bytes(length.parse().unwrap())?;
        }
        Some(Asked { head, body, trailers })
    }

    /// The next piece of a chunked body; `None` when it has ended, trailers and all.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let piece = self.try_chunk().expect("the connection ended inside of the body");
        if piece.is_none() {
            self.trailers().expect("the connection ended inside of the trailers");
        }
        piece
    }

    /// The same; the outer `None` is a connection that ended inside of the body.
    pub(crate) fn try_chunk(&mut self) -> Option<Option<Vec<u8>>> {
        let size = usize::from_str_radix(self.try_line()?.trim(), 16).unwrap();
        if size == 0 {
            return Some(None);
        }
        let bytes = self.try_bytes(size)?;
        self.try_bytes(2)?;
        Some(Some(bytes))
    }

    /// Exactly so many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        self.try_bytes(count).expect("the connection ended before the bytes came")
    }

    /// Whether the other side has closed the connection, and sent nothing more before.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.ahead.is_empty() && !self.more()
    }

    fn try_bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.ahead.len() < count {
            if !self.more() {
                return None;
            }
        }
        Some(self.ahead.drain(..count).collect())
    }

    fn try_line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.ahead.drain(..end + 2).take(end).collect();
                return Some(line.iter().map(|byte| char::from(*byte)).collect());
            }
            if !self.more() {
                return None;
            }
        }
    }

    fn trailers(&mut self) -> Option<Vec<(String, String)>> {
        let mut trailers = Vec::new();
        loop {
            let line = self.try_line()?;
            if line.is_empty() {
                return Some(trailers);
            }
            trailers.push(header(&line));
        }
    }

    /// Receives some more; `false` at the end.
    fn more(&mut self) -> bool {
        let mut piece = [0; 16 * 1_024];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(read) => {
                self.ahead.extend(&piece[..read]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("nothing came within {PATIENCE:?}; so far: {:?}", String::from_utf8_lossy(&self.ahead))
            }
            Err(_) => false,
        }
    }
}

impl Head {
    /// The first value of a header.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Its status, where it is an answer's.
    pub(crate) fn status(&self) -> u16 {
        self.first.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// An answer with this head and no body.
    pub(crate) fn into_reply(self) -> Reply {
        Reply { status: self.status(), head: self, body: Vec::new(), trailers: Vec::new() }
    }
}

impl Reply {
    /// The first value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.get(name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("this is no JSON: {}", self.text()))
    }

    /// The names of our own headers that it has, sorted.
    pub(crate) fn ours(&self) -> Vec<String> {
        let names = self.head.headers.iter().map(|(name, _)| name.to_ascii_lowercase());
        let mut ours: Vec<String> = names.filter(|name| name.starts_with("x-loopbreaker-")).collect();
        ours.sort();
        ours
    }

    /// The code of a refusal in the shape of `OpenAI`.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

fn header(line: &str) -> (String, String) {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    (name.to_owned(), value.trim().to_owned())
}

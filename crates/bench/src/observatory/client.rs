//! A client that asks one question at a time over one connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<(u16, String)> {
        self.ask("GET", &format!("/api/v1{path}"), "application/json", "")
    }

    pub(crate) fn post(&mut self, path: &str, kind: &str, body: &str) -> io::Result<(u16, String)> {
        self.ask("POST", &format!("/api/v1{path}"), kind, body)
    }

    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        kind: &str,
        body: &str,
    ) -> io::Result<(u16, String)> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer sk-bench\r\ncontent-type: {kind}\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length, mut chunked) = (0, 0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.get(..3).and_then(|code| code.parse().ok()).unwrap_or(0);
            } else if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            } else if line.starts_with("transfer-encoding:") {
                chunked = line.contains("chunked");
            }
        }
        let mut answer = Vec::new();
        if chunked {
            loop {
                let size = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
                self.take(size, &mut answer)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.take(length, &mut answer)?;
        }
        Ok((status, String::from_utf8_lossy(&answer).into_owned()))
    }

    fn take(&mut self, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let taken = (&mut self.stream).take(length as u64).read_to_end(into)?;
        if taken < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

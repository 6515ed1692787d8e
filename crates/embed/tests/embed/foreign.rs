//! A client of another make, byte by byte: one that calls the socket by its path, as gRPC's C core does.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::sidecar::Sidecar;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header that is kept in the table of both ends.
fn field(name: &str, value: &str) -> Vec<u8> {
    [&[0x40, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
}

/// Asks how the sidecar is.
fn ask(stream: u32, headers: &[u8]) -> Vec<u8> {
    let message = [0; 5];
    [frame(HEADERS, END_HEADERS, stream, headers), frame(DATA, END_STREAM, stream, &message)].concat()
}

/// What is answered to a request: the first frame about it that is neither of the connection nor only headers.
fn answer(connection: &mut UnixStream, stream: u32) -> (u8, Vec<u8>) {
    loop {
        let mut head = [0; 9];
        connection.read_exact(&mut head).unwrap();
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        connection.read_exact(&mut payload).unwrap();
        let about = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        if about == stream && head[3] != HEADERS {
            return (head[3], payload);
        }
    }
}

#[test]
fn a_client_may_call_the_socket_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("embed.sock");
    let _sidecar = Sidecar::start(&socket, &[]);
    for authority in ["tmp%2Fembed.sock", "a%2Fb:c@d[e].sock", "localhost:80"] {
        let mut connection = UnixStream::connect(&socket).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let headers = [
            field(":method", "POST"),
            field(":scheme", "http"),
            field(":path", "/grpc.health.v1.Health/Check"),
            field(":authority", authority),
            field("te", "trailers"),
            field("content-type", "application/grpc"),
        ];
        connection.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).unwrap();
        connection.write_all(&ask(1, &headers.concat())).unwrap();
        // A message of two bytes: it serves.
        let serving = (DATA, vec![0, 0, 0, 0, 2, 8, 1]);
        assert_eq!(answer(&mut connection, 1), serving, "{authority}");
        // The second request names what both ends keep, newest first.
        let known: Vec<u8> = (62..68).rev().map(|at| 0x80 | at).collect();
        connection.write_all(&ask(3, &known)).unwrap();
        assert_eq!(answer(&mut connection, 3), serving, "{authority}");
    }
}

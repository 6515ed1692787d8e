//! A network between us and the server that swallows bytes: nothing is answered, and nothing is closed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::backend::Server;

/// What happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Everything passes.
    None,
    /// Nothing passes any more, in either direction.
    Everything,
    /// It begins with the next commit, which the server never sees.
    BeforeCommit,
    /// It begins behind the next commit: the server does it, and its answer is lost.
    AfterCommit,
}

pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    fault: Fault,
    /// Commits that were asked for.
    commits: u32,
    /// Both ends of every connection; those that were cut once stay cut, and open.
    open: Vec<(TcpStream, UnixStream)>,
}

impl Proxy {
    pub(crate) fn before(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Mutex::new(Shared { fault: Fault::None, commits: 0, open: Vec::new() }));
        let (for_thread, socket) = (Arc::clone(&shared), server.folder.path().join(".s.PGSQL.5432"));
        std::thread::spawn(move || listen(&listener, &socket, &for_thread));
        Self { port, shared }
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// How many commits have come from our side.
    pub(crate) fn commits(&self) -> u32 {
        self.shared.lock().unwrap().commits
    }

    /// From now on; connections that were cut stay so.
    pub(crate) fn set(&self, fault: Fault) {
        self.shared.lock().unwrap().fault = fault;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        for (client, server) in &self.shared.lock().unwrap().open {
            drop(client.shutdown(Shutdown::Both));
            drop(server.shutdown(Shutdown::Both));
        }
    }
}

fn listen(listener: &TcpListener, socket: &Path, shared: &Arc<Mutex<Shared>>) {
    for client in listener.incoming() {
        let client = client.unwrap();
        // The server may be stopped for good by now.
        let Ok(server) = UnixStream::connect(socket) else { continue };
        let is_cut = Arc::new(Mutex::new(false));
        let ends = (client.try_clone().unwrap(), server.try_clone().unwrap());
        shared.lock().unwrap().open.push(ends);
        let (from_client, to_client) = (client.try_clone().unwrap(), client);
        let (from_server, to_server) = (server.try_clone().unwrap(), server);
        let (one, other) = ((Arc::clone(shared), Arc::clone(&is_cut)), (Arc::clone(shared), is_cut));
        std::thread::spawn(move || pass(from_client, to_server, true, &one.0, &one.1));
        std::thread::spawn(move || pass(from_server, to_client, false, &other.0, &other.1));
    }
}

fn pass(mut from: impl Read, mut to: impl Write, asks: bool, shared: &Mutex<Shared>, is_cut: &Mutex<bool>) {
    let mut chunk = vec![0; 1 << 16];
    loop {
        let Ok(length @ 1..) = from.read(&mut chunk) else { return };
        let bytes = &chunk[..length];
        let mut is_cut = is_cut.lock().unwrap();
        let commits = asks && bytes.windows(6).any(|word| word == b"COMMIT");
        let fault = {
            let mut shared = shared.lock().unwrap();
            shared.commits += u32::from(commits);
            shared.fault
        };
        *is_cut |= fault == Fault::Everything || (fault == Fault::BeforeCommit && commits);
        if !*is_cut && to.write_all(bytes).is_err() {
            return;
        }
        *is_cut |= fault == Fault::AfterCommit && commits;
    }
}

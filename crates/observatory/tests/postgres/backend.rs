//! Databases for the tests, on a server that most of them share.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use loopbreaker_observatory::Options;
use postgres::{Client, NoTls};

use crate::machine::{is_root, run};

pub(crate) use crate::machine::Server;

/// The store of a folder: a database that its file `url` names, made with the first call.
pub(crate) fn options(folder: &Path) -> Options {
    let note = folder.join("url");
    let url = fs::read_to_string(&note).unwrap_or_else(|_| {
        let url = server().new_database();
        fs::write(&note, &url).unwrap();
        url
    });
    Options::url(url)
}

/// The server that most tests share.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Server::start(&[]);
        // Nobody drops what is static: whoever guards the server removes its folder.
        fs::write(server.folder.path().join("forget"), "").unwrap();
        server
    })
}

impl Server {
    pub(crate) fn url(&self, database: &str) -> String {
        let folder = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://postgres@/{database}?host={folder}")
    }

    pub(crate) fn new_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        apart(|| self.client("postgres").unwrap().batch_execute(&format!("CREATE DATABASE {name}")).unwrap());
        self.url(&name)
    }

    pub(crate) fn client(&self, database: &str) -> Result<Client, postgres::Error> {
        Client::connect(&self.url(database), NoTls)
    }

    /// A client of a server that listens on another port: its socket is named after it.
    pub(crate) fn client_at(&self, port: u16) -> Client {
        Client::connect(&format!("{}&port={port}", self.url("postgres")), NoTls).unwrap()
    }
}

/// On a thread of its own: the client waits, which a thread of a runtime must not.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join()).unwrap()
}

/// Files that the server reads, and that nobody else may.
pub(crate) fn give_to_server(files: &[&Path]) {
    use std::os::unix::fs::PermissionsExt;
    for file in files {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(file));
        }
    }
}

//! A real Redis that speaks TLS and nothing else, with a certificate that no system trusts.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server that ends with this value.
pub(crate) struct Encrypted {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Encrypted {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let file = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let cert = file("cert.pem", made.cert.pem());
        let key = file("key.pem", made.signing_key.serialize_pem());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--port", "0", "--tls-port", &port.to_string()])
            .args(["--tls-auth-clients", "no", "--dir"])
            .arg(folder.path())
            .arg("--tls-cert-file")
            .arg(&cert)
            .arg("--tls-key-file")
            .arg(key)
            .arg("--tls-ca-cert-file")
            .arg(&cert)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is missing: run `make setup`");
        let server = Self { child, port, folder };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(30), "it does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    /// Its address, which says nothing of whom to trust.
    pub(crate) fn url(&self) -> String {
        format!("rediss://localhost:{}", self.port)
    }

    /// What trusts it, as a parameter of its address.
    pub(crate) fn trust(&self) -> String {
        format!("sslrootcert={}", self.folder.path().join("cert.pem").display())
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        drop(self.child.wait());
    }
}

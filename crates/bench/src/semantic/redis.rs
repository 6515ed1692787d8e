//! Redis servers for the time of a measurement.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that ends with this value.
pub(crate) struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    pub(crate) fn start(server: &Path, module: Option<&Path>) -> io::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(server);
        if let Some(module) = module {
            command.arg("--loadmodule").arg(module);
        }
        command.args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--port",
            &port.to_string(),
        ]);
        let redis = Self { child: command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?, port };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if started.elapsed() > Duration::from_secs(20) {
                return Err(io::Error::other("redis-server does not come up"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(redis)
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        // It is gone, or it was before.
        drop(self.child.wait());
    }
}

//! The program that is measured, as users run it.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// `loopbreaker serve` in a folder of its own; it ends with this.
pub(crate) struct Program {
    child: Child,
    data: PathBuf,
    pub(crate) address: SocketAddr,
}

impl Program {
    /// Starts it with a log of this kind, in front of an upstream if there is one.
    pub(crate) fn start(folder: &Path, upstream: Option<SocketAddr>, log: &str) -> io::Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let data = folder.join("data");
        let config = folder.join("measured.yaml");
        std::fs::write(&config, format!("log: {{ url: \"{log}\", max_bytes: 200GiB }}\n"))?;
        let program = std::env::current_exe()?.with_file_name("loopbreaker");
        let mut command = Command::new(program);
        command
            .args(["serve", "--log-format", "off", "--listen", &address.to_string(), "--data-dir"])
            .arg(&data);
        command.arg("-c").arg(&config).current_dir(folder);
        if let Some(upstream) = upstream {
            command.args(["--upstream", &format!("http://{upstream}")]);
        }
        let child = command.stdout(Stdio::null()).spawn()?;
        let mut program = Self { child, data, address };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            if program.child.try_wait()?.is_some() || started.elapsed() > Duration::from_secs(30) {
                return Err(io::Error::other("the program does not listen"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(program)
    }

    pub(crate) fn bytes_on_disk(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for entry in std::fs::read_dir(&self.data)? {
            bytes += entry?.metadata()?.len();
        }
        Ok(bytes)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

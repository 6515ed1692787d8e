//! Who carries the requests: nginx, `HAProxy` and Loopbreaker, each a process of its own on the first core.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Something that requests are sent to.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    process: Option<Running>,
    /// What it says on stderr: nothing but troubles, or its log.
    log: Option<File>,
}

/// A process that is stopped when it is no longer needed.
#[derive(Debug)]
struct Running {
    child: Child,
    /// Itself and its workers.
    pids: Vec<u32>,
}

/// How Loopbreaker is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setup<'c> {
    /// Nothing is written down: no line per request, no decision log.
    Quiet,
    /// The same with this config.
    With(&'c str),
    /// The same with its state in a Redis at this port.
    Shared(u16),
    /// As it is without a word about it: a line of JSON per request, into a file here, and a decision log.
    Usual,
}

/// Loopbreaker with its state in Redis, and as it is without a word about it.
pub(crate) const SHARED: &str = "loopbreaker, state in Redis";
pub(crate) const USUAL: &str = "loopbreaker, default log";

/// Every detector but the semantic one.
const DETECTORS: &str = r"policies:
  - id: agents
    spec:
      loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 5, action: warn }
      tool_loops: { enabled: true, ladder: [hint, hint, throttle, reject] }
      chant: { enabled: true, action: cut }
";

impl Target {
    /// The upstream itself, for comparison.
    pub(crate) fn direct(upstream: SocketAddr) -> Self {
        Self { name: "direct", address: upstream, process: None, log: None }
    }

    /// nginx with one worker.
    pub(crate) fn nginx(folder: &Path, upstream: SocketAddr) -> io::Result<Self> {
        let address = free_address()?;
        let at = folder.display();
        let config = folder.join("nginx.conf");
        fs::write(
            &config,
            format!(
                "daemon off;\nworker_processes 1;\npid {at}/nginx.pid;\nerror_log {at}/nginx.log warn;\n\
                 events {{ worker_connections 4096; }}\n\
                 http {{\n  access_log off;\n  keepalive_requests 1000000000;\n  keepalive_timeout 600s;\n\
                 \x20 # Bodies stay in memory; the default would write those above 16 kB to a file.\n\
                 \x20 client_max_body_size 64m;\n  client_body_buffer_size 1m;\n\
                 \x20 client_body_temp_path {at}/body;\n  proxy_temp_path {at}/proxy;\n  fastcgi_temp_path {at}/fastcgi;\n\
                 \x20 uwsgi_temp_path {at}/uwsgi;\n  scgi_temp_path {at}/scgi;\n\
                 \x20 upstream provider {{ server {upstream}; keepalive 256; keepalive_requests 1000000000; }}\n\
                 \x20 server {{\n    listen {address};\n    location / {{\n      proxy_pass http://provider;\n\
                 \x20     proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n      proxy_buffering off;\n\
                 \x20   }}\n  }}\n}}\n"
            ),
        )?;
        let mut command = on_first_core("nginx");
        command.arg("-c").arg(&config).arg("-p").arg(folder).arg("-e").arg(folder.join("nginx.log"));
        Self::start("nginx", folder, command, address)
    }

    /// `HAProxy` with one thread.
    pub(crate) fn haproxy(folder: &Path, upstream: SocketAddr) -> io::Result<Self> {
        let address = free_address()?;
        let config = folder.join("haproxy.cfg");
        fs::write(
            &config,
            format!(
                "global\n  nbthread 1\n  maxconn 4096\n\
                 defaults\n  mode http\n  timeout connect 5s\n  timeout client 600s\n  timeout server 600s\n  \
                 http-reuse always\n\
                 frontend clients\n  bind {address}\n  default_backend provider\n\
                 backend provider\n  server provider {upstream}\n"
            ),
        )?;
        let mut command = on_first_core("haproxy");
        command.arg("-db").arg("-q").arg("-f").arg(&config);
        Self::start("haproxy", folder, command, address)
    }

    /// The HTTP stack that Loopbreaker stands on, without anything of ours.
    pub(crate) fn bare(folder: &Path, upstream: SocketAddr) -> io::Result<Self> {
        let address = free_address()?;
        let program = std::env::current_exe()?.with_file_name("bare-proxy");
        let mut command = on_first_core(&program.display().to_string());
        command.args([address.to_string(), upstream.to_string()]);
        Self::start("bare hyper", folder, command, address)
    }

    /// A Redis on the second core, which many gateways could share.
    pub(crate) fn redis(folder: &Path) -> io::Result<Self> {
        let address = free_address()?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "taskset", "--cpu-list", "1", "redis-server"]);
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &address.port().to_string(), "--dir"]);
        command.arg(folder);
        Self::start("redis", folder, command, address)
    }

    /// Loopbreaker with one worker.
    pub(crate) fn loopbreaker(folder: &Path, upstream: SocketAddr, setup: Setup<'_>) -> io::Result<Self> {
        let address = free_address()?;
        let program = std::env::current_exe()?.with_file_name("loopbreaker");
        let mut command = on_first_core(&program.display().to_string());
        command.args(["serve", "--workers", "1", "--listen", &address.to_string()]);
        command.args(["--upstream", &format!("http://{upstream}"), "--data-dir"]).arg(folder.join("data"));
        // A config that lies about is not what is measured.
        command.current_dir(folder);
        let (name, config) = match setup {
            Setup::Quiet => ("loopbreaker", Some(DETECTORS.to_owned())),
            Setup::With(config) => ("loopbreaker", Some(config.to_owned())),
            Setup::Shared(port) => (SHARED, Some(format!("state: redis://127.0.0.1:{port}\n{DETECTORS}"))),
            Setup::Usual => (USUAL, None),
        };
        if let Some(config) = config {
            let path = folder.join(format!("{}.yaml", address.port()));
            fs::write(&path, format!("log: {{ url: off }}\n{config}"))?;
            command.arg("-c").arg(path).args(["--log-format", "off"]);
        }
        Self::start(name, folder, command, address)
    }

    /// Loopbreaker as it is when somebody starts it for the first time: on all cores, with its defaults and an empty log.
    pub(crate) fn as_installed(folder: &Path, upstream: SocketAddr) -> io::Result<Self> {
        let address = free_address()?;
        let program = std::env::current_exe()?.with_file_name("loopbreaker");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(program).args(["serve", "--listen", &address.to_string()]);
        command
            .args(["--upstream", &format!("http://{upstream}"), "--data-dir"])
            .arg(folder.join("first-start"));
        command.current_dir(folder);
        Self::start("loopbreaker", folder, command, address)
    }

    fn start(
        name: &'static str,
        folder: &Path,
        mut command: Command,
        address: SocketAddr,
    ) -> io::Result<Self> {
        let path = folder.join(format!("{name}.stderr"));
        let log = File::options().create(true).append(true).open(&path)?;
        let child = command
            .stdout(Stdio::null())
            .stderr(log.try_clone()?)
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start {name}: {error}")))?;
        let mut running = Running { child, pids: Vec::new() };
        let since = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = running.child.try_wait()?.is_some();
            if ended || since.elapsed() > SLOWEST_START {
                let said = fs::read_to_string(&path)?;
                return Err(io::Error::other(format!("{name} does not listen on {address}: {said}")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        running.pids = with_children(running.child.id())?;
        Ok(Self { name, address, process: Some(running), log: Some(log) })
    }

    /// Processor time that it has used so far; `None` for the upstream.
    pub(crate) fn cpu(&self) -> io::Result<Option<Duration>> {
        let Some(running) = &self.process else { return Ok(None) };
        let mut nanos = 0;
        for pid in &running.pids {
            for task in fs::read_dir(format!("/proc/{pid}/task"))? {
                let schedstat = fs::read_to_string(task?.path().join("schedstat"))?;
                nanos += schedstat.split(' ').next().and_then(|ran| ran.parse::<u64>().ok()).unwrap_or(0);
            }
        }
        Ok(Some(Duration::from_nanos(nanos)))
    }

    /// Resident memory in bytes, of all its processes.
    pub(crate) fn resident(&self) -> io::Result<u64> {
        let pids = self.process.iter().flat_map(|running| &running.pids);
        pids.map(|pid| crate::memory::resident_of(&pid.to_string()).map(|bytes| bytes as u64)).sum()
    }

    /// Its process; `None` for the upstream.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|running| running.child.id())
    }

    /// A page of Loopbreaker's own, head and all.
    pub(crate) fn page(&self, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        let asked = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
        stream.write_all(asked.as_bytes())?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok(page)
    }

    /// What one of Loopbreaker's metrics says.
    pub(crate) fn metric(&self, name: &str) -> io::Result<f64> {
        let page = self.page("/metrics")?;
        let found = page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        found.ok_or_else(|| io::Error::other(format!("no metric {name}")))
    }

    /// Empties its log, so that a long measurement does not fill the disk.
    pub(crate) fn empty_log(&self) -> io::Result<()> {
        self.log.as_ref().map_or(Ok(()), |log| log.set_len(0))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A signal that can be handled, so that nginx takes its worker with it.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        if !asked.is_ok_and(|status| status.success()) {
            self.child.kill().unwrap_or_default();
        }
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// The program, bound to the first core; the load and the upstream have the second. It is told to stop even when the
/// measurement is killed.
fn on_first_core(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "taskset", "--cpu-list", "0", program]);
    command
}

/// An address that nobody listens on.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A process and the workers that it has started.
fn with_children(parent: u32) -> io::Result<Vec<u32>> {
    let mut pids = vec![parent];
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
    pids.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    Ok(pids)
}

/// The version that a program says it has.
pub(crate) fn version(program: &str, argument: &str) -> io::Result<String> {
    let output = Command::new(program).arg(argument).output()?;
    // nginx says it on stderr.
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let mut words = said.split([' ', '/', '\n']);
    let number = words.find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    number.map(str::to_owned).ok_or_else(|| io::Error::other(format!("{program} does not tell its version")))
}

/// The machine's load of the last minute.
pub(crate) fn load_average() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    text.split(' ')
        .next()
        .and_then(|load| load.parse().ok())
        .ok_or_else(|| io::Error::other("no load average"))
}

const SLOWEST_START: Duration = Duration::from_secs(10);

//! Whole checks: the sidecar over its socket, on each store; and the stores alone.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loopbreaker_embed::{
    Backend, Checker, CheckerOptions, Entry, History, HistoryLimits, How, Key, Question, Results, Rule,
    open_history,
};

use crate::Places;
use crate::redis::Redis;
use crate::table::{Report, Times};
use crate::texts::text;

pub(crate) fn measure(places: &Places, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let plain = Redis::start(Path::new("redis-server"), None)?;
    let stack = Redis::start(&places.stack.0, Some(&places.stack.1))?;
    let (list, hnsw) = (plain.address(), format!("{}?vector=hnsw", stack.address()));
    report.table("A store alone, 5 vectors of 384: milliseconds", &["store", "p50", "p99"])?;
    for (name, address, limit) in [("plain Redis", &list, 0.1), ("Redis Stack", &hnsw, 1.0)] {
        let store = open_history(
            address,
            HistoryLimits { timeout: Duration::from_secs(5), ..HistoryLimits::default() },
        )?;
        let times = runtime.block_on(exchanges(&store))?;
        report.row(&[
            name.to_owned(),
            format!("{:.3}", times.quantile(0.5)),
            format!("{:.3}", times.quantile(0.99)),
        ])?;
        let p50 = times.quantile(0.5);
        report.floor(format!("{name}, round trip: p50 {p50:.3} ms < {limit} ms"), p50 < limit);
    }
    report.table(
        "Whole check over the Unix socket, 64 tokens, 2 threads: milliseconds",
        &["engine", "store", "p50", "p95", "p99"],
    )?;
    for is_pure in [true, false] {
        for (name, address) in
            [("memory", ""), ("plain Redis", list.as_str()), ("Redis Stack", hnsw.as_str())]
        {
            let library = (!is_pure).then_some(&places.onnxruntime);
            let sidecar = Sidecar::start(&places.sidecar, address, library)?;
            let times = runtime.block_on(checks(&sidecar.socket, 4 * places.calls))?;
            let engine = if is_pure { "built-in" } else { "ONNX Runtime" };
            let (p50, p99) = (times.quantile(0.5), times.quantile(0.99));
            let cells = [p50, times.quantile(0.95), p99].map(|time| format!("{time:.1}"));
            report.row(&[&[engine.to_owned(), name.to_owned()][..], &cells].concat())?;
            if is_pure && !address.is_empty() {
                report.floor(format!("{engine}, {name}: p50 {p50:.1} ms < 25 ms"), p50 < 25.0);
            }
            if !is_pure && !address.is_empty() {
                report.floor(format!("{engine}, {name}: p50 {p50:.1} ms < 15 ms"), p50 < 15.0);
                report.floor(format!("{engine}, {name}: p99 {p99:.1} ms < 30 ms"), p99 < 30.0);
            }
        }
    }
    Ok(())
}

async fn exchanges(store: &Arc<dyn History>) -> Result<Times, Box<dyn Error>> {
    store.prepare(384).await?;
    let mut times = Vec::new();
    for id in 0..3_000_u64 {
        let vector: Vec<f32> = (0..384).map(|at| ((id * 31 + at * 7) % 97) as f32 - 48.0).collect();
        let session = (id % 50).to_string();
        let started = Instant::now();
        store
            .exchange(Key { tenant: "acme", session: &session }, Entry { id, vector: &vector, prompt: None })
            .await?;
        times.push(started.elapsed());
    }
    Ok(Times::new(times))
}

async fn checks(socket: &Path, calls: usize) -> Result<Times, Box<dyn Error>> {
    let address = socket.to_string_lossy().parse()?;
    let timeout = Duration::from_secs(2);
    let checker = Checker::new(CheckerOptions {
        backend: Backend::Sidecars(vec![address]),
        timeout,
        ..CheckerOptions::default()
    })?;
    let mut times = Vec::new();
    for number in 0..calls + 10 {
        let (text, session) = (text(64, number), (number % 10).to_string());
        let question = Question {
            tenant: "acme",
            session: &session,
            text: &text,
            results: Results::None,
            threshold: 0.95,
            rule: Rule::Literal,
            trace: None,
        };
        let started = Instant::now();
        let reading = checker.check(&question).await;
        if reading.how != How::Embedded {
            return Err(format!("a check ended as {:?}", reading.how).into());
        }
        // The first ones connect.
        if number >= 10 {
            times.push(started.elapsed());
        }
    }
    Ok(Times::new(times))
}

struct Sidecar {
    child: Child,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Sidecar {
    fn start(binary: &Path, store: &str, library: Option<&PathBuf>) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("embed.sock");
        let mut command = Command::new(binary);
        command.env("UDS_PATH", &socket).env("REDIS_URL", store).env_remove("ORT_DYLIB_PATH");
        if let Some(library) = library {
            command.env("ORT_DYLIB_PATH", library);
        }
        let sidecar = Self { child: command.stdout(Stdio::null()).spawn()?, socket, _folder: folder };
        let started = Instant::now();
        while !sidecar.socket.exists() {
            if started.elapsed() > Duration::from_secs(60) {
                return Err(io::Error::other("the sidecar does not come up"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(sidecar)
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        // It is gone, or it was before.
        drop(self.child.wait());
    }
}

//! `loopbreaker serve`: the gateway, until it is told to stop.

mod greeting;
mod watch;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loopbreaker_config::{Config, Problem};
use loopbreaker_gateway::{Gateway, Handle};
use loopbreaker_telemetry::{LogFormat, Telemetry};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::ServeArgs;
use crate::config_file::{self, ConfigFile};
use crate::exit::Exit;
use crate::failure::{Failure, say, warn};
use greeting::Greeting;
use watch::Watched;

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    keep_to_small_pages();
    let (config, files) = load(args)?;
    for notice in &config.notices {
        warn(&notice.to_string());
    }
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Whoever reads that it listens may send a signal at once, which must not end it by then.
    let signals = runtime.block_on(async { Signals::listen() })?;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let greeting = Greeting::of(args, &config);
    let gateway = start(args, config)?;
    writeln!(io::stdout(), "listening on {scheme}://{}", gateway.address())?;
    if let Some(admin) = gateway.admin_address() {
        writeln!(io::stdout(), "health, metrics and API on {scheme}://{admin}")?;
    }
    greeting.show(&gateway, scheme);
    runtime.block_on(watch_over(args, &gateway.handle(), files, signals));
    // Where nobody looks, stderr is the log's, and each of its lines is read by a machine.
    if io::stderr().is_terminal() {
        say("stopping: no new connections, open streams may end\n");
    }
    gateway.stop(DRAIN);
    Ok(Exit::Fine)
}

/// Starts a gateway with its log on stderr.
fn start(args: &ServeArgs, config: Config) -> Result<Gateway, Failure> {
    let terminal = io::stderr().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let format = match args.log_format.as_deref() {
        Some(name) => LogFormat::parse(name, colour).unwrap_or(LogFormat::Json),
        None => LogFormat::usual(terminal, colour),
    };
    let telemetry = Telemetry::start(format, Box::new(io::stderr()), |name| std::env::var(name).ok());
    let folder = data_dir(args.data_dir.as_deref(), &config);
    let workers = args.workers.map_or_else(
        || std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        std::num::NonZero::get,
    );
    Gateway::start(config, folder, workers, telemetry).map_err(|error| {
        Failure::told(error.to_string(), "choose another address with `--listen 127.0.0.1:PORT`")
    })
}

/// The config with what the command line says above it, and the files that it was read from.
fn load(args: &ServeArgs) -> Result<(Config, Watched), Failure> {
    let mut file = config_file::find(args.config.file.as_deref())?;
    let parsed = file.as_mut().map_or_else(|| Ok(Config::default()), ConfigFile::parse);
    let mut config = parsed.map_err(|problems| not_sound(file.as_ref(), &problems))?;
    if let Some(listen) = args.listen {
        config.listen = listen;
    }
    if let Some(url) = &args.upstream {
        config.upstreams = config.upstreams.all_at(url);
    }
    let config = config
        .with_environment(|name| std::env::var(name).ok())
        .map_err(|bad| Failure::told(bad.to_string(), "unset it, or give it another value"))?;
    // Without a file, the one that would have been taken may still come.
    let files = file.as_ref().map_or_else(|| vec![PathBuf::from(config_file::DEFAULT)], ConfigFile::paths);
    Ok((config, Watched::new(files)))
}

pub(crate) fn not_sound(file: Option<&ConfigFile>, problems: &[Problem]) -> Failure {
    let name = file.map_or("the config", |file| &file.name);
    let told = problems.iter().map(|problem| format!("{name}:{problem}")).collect::<Vec<_>>().join("\n");
    Failure::told(told, format!("`loopbreaker check -c {name}` shows each with its line"))
}

/// The signals that a running gateway hears.
struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}

/// Reloads when a file changes or SIGHUP comes, and returns when the gateway should stop.
async fn watch_over(args: &ServeArgs, gateway: &Handle, mut files: Watched, mut signals: Signals) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    loop {
        let reload = tokio::select! {
            _ = signals.hangup.recv() => true,
            _ = ticks.tick() => files.have_changed(),
            _ = signals.terminate.recv() => return,
            _ = signals.interrupt.recv() => return,
        };
        if reload && args.config.file.as_deref() == Some(Path::new("-")) {
            gateway.reload_failed("the config came from stdin, which cannot be read again");
        } else if reload {
            match load(args) {
                Ok((config, watched)) => {
                    files = watched;
                    gateway.reload(config);
                }
                Err(failure) => gateway.reload_failed(&failure.to_string()),
            }
        }
    }
}

/// Where files are kept: as the command line says, else the config, else the usual place of the user.
pub(crate) fn data_dir(asked: Option<&Path>, config: &Config) -> Option<PathBuf> {
    let configured = || config.data_dir.as_deref().unwrap_or(Config::DEFAULT_DATA_DIR).to_owned();
    let path = asked.map_or_else(|| PathBuf::from(configured()), Path::to_owned);
    match path.strip_prefix("~") {
        Ok(rest) => std::env::home_dir().map(|home| home.join(rest)),
        Err(_) => Some(path),
    }
}

/// Every connection needs two files, and the usual limit of 1,024 is for programs that have a few.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if setrlimit(Resource::Nofile, raised).is_err() {
        warn("the limit of open files could not be raised; many connections at once may fail");
    }
}

/// The allocator spreads what it hands out over its arena and asks for huge pages there, so that 7 MB in use would be
/// 30 MB resident. Where the system refuses, it only needs more memory.
fn keep_to_small_pages() {
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(true).unwrap_or_default();
}

/// How long open streams may take to end.
const DRAIN: Duration = Duration::from_secs(30);
/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

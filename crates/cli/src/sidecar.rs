//! `loopbreaker sidecar`: embeddings for several gateways, by gRPC.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use loopbreaker_embed::{Engine, HistoryError, Served, SidecarOptions, serve_observed};
use loopbreaker_telemetry::{Check, LogFormat, Spans, Telemetry, TraceContext};

use crate::exit::Exit;
use crate::failure::{Failure, warn};

pub(crate) fn run() -> Result<Exit, Failure> {
    let hint = "`loopbreaker sidecar --help` lists the variables";
    let variable = |name: &str| std::env::var(name).ok();
    let options =
        SidecarOptions::from_env(variable).map_err(|error| Failure::told(error.to_string(), hint))?;
    let telemetry = Telemetry::start(LogFormat::Json, Box::new(std::io::stderr()), variable);
    let spans = telemetry.spans.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let greeting = greeting(&options);
    let on_ready = move |away: Option<&HistoryError>| {
        // Whoever closed our output does not want to know.
        writeln!(anstream::stdout(), "{greeting}").unwrap_or_default();
        if let Some(away) = away {
            warn(&away.to_string());
        }
    };
    let observer = Arc::new(move |served: &Served<'_>| tell(&spans, served));
    let served = runtime.block_on(serve_observed(options, observer, on_ready));
    telemetry.shutdown(FAREWELL);
    served.map_err(|error| Failure::told(error.to_string(), hint))?;
    Ok(Exit::Fine)
}

/// Where it listens, what it computes with, and how a gateway finds it.
fn greeting(options: &SidecarOptions) -> String {
    let socket = options.uds_path.display();
    let model = options.model.path.as_ref().map_or("built in".to_owned(), |path| path.display().to_string());
    let engine = match options.model.engine {
        Engine::PureRust => "pure Rust",
        Engine::OnnxRuntime(_) => "ONNX Runtime",
    };
    let place = options.place();
    format!(
        "listening on {socket} (model: {model}, engine: {engine}, vectors: {place}); a gateway finds it by \
         LOOP_EMBEDDING_SIDECAR_UDS={socket} loopbreaker serve"
    )
}

/// A check as a span that belongs to whoever asked for it.
fn tell(spans: &Spans, served: &Served<'_>) {
    let caller = served.trace.and_then(TraceContext::parse);
    let Some(context) = spans.check_context(caller.as_ref()) else { return };
    let now = SystemTime::now();
    let check = Check {
        context,
        at: now.checked_sub(served.took).unwrap_or(now),
        took: served.took,
        result: served.how.name(),
        reason: served.how.reason(),
        similarity: served.max_similarity,
    };
    spans.served_check(check, caller.as_ref());
}

/// How long spans may still be on their way when the sidecar ends.
const FAREWELL: Duration = Duration::from_secs(5);

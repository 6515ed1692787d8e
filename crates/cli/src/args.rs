//! The arguments. Their doc comments are the help.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use loopbreaker_config::BaseUrl;
use loopbreaker_trace::Format;

/// The circuit breaker for AI agents: sees when an agent goes round in circles.
#[derive(Debug, Parser)]
#[command(name = "loopbreaker", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(ServeArgs),
    Sidecar(SidecarArgs),
    Replay(ReplayArgs),
    Check(CheckArgs),
    Demo(DemoArgs),
    Probe(ProbeArgs),
    Audit(AuditArgs),
    Completions(CompletionsArgs),
}

/// Run the gateway: point your agents' base URL at it, and loops are seen and broken
///
/// Needs no config: without one, loops in tool calls are hinted, throttled and then refused, and nothing else changes.
#[derive(Debug, Parser)]
#[command(after_help = SERVE_NOTES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArg,

    /// Where to listen [default: 127.0.0.1:4141]; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Send every dialect to this base URL, instead of the providers' own
    #[arg(long, value_name = "URL", value_parser = base_url)]
    pub(crate) upstream: Option<BaseUrl>,

    /// Where files are kept [default: ~/.local/state/loopbreaker]
    #[arg(long, value_name = "DIR", env = "LOOPBREAKER_DATA_DIR", hide_env_values = true, value_hint = ValueHint::DirPath)]
    pub(crate) data_dir: Option<PathBuf>,

    /// Threads that serve [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<NonZeroUsize>,

    /// How requests are logged on stderr: json, human or off [default: human on a terminal, else json]
    #[arg(long, value_name = "FORMAT", value_parser = ["json", "human", "off"])]
    pub(crate) log_format: Option<String>,
}

/// Run the embedding sidecar: one model for several gateways, by gRPC over a Unix socket
///
/// It is set up by the environment. The model is loaded and warmed before the socket exists.
#[derive(Debug, Parser)]
#[command(after_help = SIDECAR_NOTES)]
pub(crate) struct SidecarArgs {}

/// Say what would have fired in recorded runs, when, why, and what it would have saved
///
/// Each run is judged step by step as if it were live: only what came before a step is used. Steps are counted
/// from 0. The format is detected by content.
#[derive(Debug, Parser)]
#[command(after_help = REPLAY_NOTES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(crate) struct ReplayArgs {
    /// Recorded runs; `-` reads stdin
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) config: ConfigArg,

    /// Read every file as this format, instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub(crate) format: Option<Format>,

    /// Print one JSON object per run and line, and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a report that opens in any browser, and needs no network
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Show the evidence of each finding, and what would have prevented it
    #[arg(long)]
    pub(crate) explain: bool,

    /// Look for the same in other words, too; the `semantic` section of the config says how
    #[arg(long)]
    pub(crate) semantic: bool,

    /// Exit with 3 when a loop was found, for CI
    #[arg(long)]
    pub(crate) fail_on_loop: bool,

    /// List the runs in which nothing was found, too
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) verbose: bool,

    /// Print the summary only: no single runs, no progress bar, no notices
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

/// Validate a config, and explain what it does
#[derive(Debug, Parser)]
#[command(after_help = CHECK_NOTES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArg,

    /// Print one JSON document, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Watch six small agents run through the gateway, four of which go round in circles
///
/// Needs no key, no network and no config: a scripted model, the gateway and the agents are all part of the program,
/// and speak HTTP with each other in four providers' dialects. The gateway stays until Ctrl-C.
#[derive(Debug, Parser)]
#[command(after_help = DEMO_NOTES)]
pub(crate) struct DemoArgs {
    /// Print one JSON object per agent and line, and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// Waste no time: no pauses, one agent after the other, always the same output
    #[arg(long)]
    pub(crate) fast: bool,

    /// End when the agents have ended, instead of leaving the gateway running
    #[arg(long)]
    pub(crate) exit: bool,
}

/// Send a synthetic loop through a running gateway, and say whether its guard is alive
///
/// Costs nothing and needs no key: the gateway is asked what it would do, and no model hears of it.
#[derive(Debug, Parser)]
#[command(after_help = PROBE_NOTES)]
pub(crate) struct ProbeArgs {
    /// Where the gateway listens
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:4141", value_parser = gateway_url, value_hint = ValueHint::Url)]
    pub(crate) url: BaseUrl,

    /// Print one JSON document, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Look at what operators did
#[derive(Debug, Parser)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    Verify(VerifyArgs),
}

/// Check that no entry of the audit log was changed or removed
///
/// Each entry carries a hash of itself and of the one before it, so what was changed afterwards shows.
#[derive(Debug, Parser)]
#[command(after_help = AUDIT_NOTES)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArg,

    /// Where files are kept [default: ~/.local/state/loopbreaker]
    #[arg(long, value_name = "DIR", env = "LOOPBREAKER_DATA_DIR", hide_env_values = true, value_hint = ValueHint::DirPath)]
    pub(crate) data_dir: Option<PathBuf>,

    /// Print one JSON document, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a completion script for a shell
#[derive(Debug, Parser)]
#[command(after_help = COMPLETIONS_NOTES)]
pub(crate) struct CompletionsArgs {
    /// The shell that completes
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArg {
    /// The config; without it `./loopbreaker.yaml` if there, else the defaults; `-` reads stdin
    #[arg(
        short = 'c',
        long = "config",
        value_name = "FILE",
        env = "LOOPBREAKER_CONFIG",
        hide_env_values = true
    )]
    #[arg(value_hint = ValueHint::FilePath, value_parser = maybe_empty_path())]
    pub(crate) file: Option<PathBuf>,
}

/// clap's own parser of paths refuses the empty one, which is how a shell says that a variable is not set.
fn maybe_empty_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// The gateway's address as people have it at hand: without a scheme, or as the base URL of a client.
/// An address and a port, as the config file has them. Names are not looked up, but for `localhost`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let written = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    written.as_deref().unwrap_or(text).parse().map_err(|_| {
        let port = if text.parse::<u16>().is_ok() { text } else { "4141" };
        format!("write an address and a port, such as 127.0.0.1:{port}")
    })
}

fn base_url(text: &str) -> Result<BaseUrl, String> {
    BaseUrl::parse(text).map_err(|error| format!("{error}; write it like http://127.0.0.1:8000"))
}

fn gateway_url(text: &str) -> Result<BaseUrl, String> {
    let text = text.trim_end_matches('/');
    let text = text.strip_suffix("/v1").unwrap_or(text);
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    BaseUrl::parse(&url).map_err(|error| format!("{error}; write it like http://127.0.0.1:4141"))
}

fn format_parser() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.map(Format::as_str);
    PossibleValuesParser::new(names).try_map(|name| Format::parse(&name).ok_or("unknown format"))
}

const EXAMPLES: &str = "\
Examples:
  loopbreaker serve                           the gateway, on 127.0.0.1:4141
  loopbreaker probe                           is its guard alive
  loopbreaker sidecar                         embeddings for several gateways
  loopbreaker audit verify                    is the log of what operators did whole
  loopbreaker demo                            watch it break loops, without a key
  loopbreaker replay run.jsonl                what would have fired in a recorded run
  loopbreaker replay *.jsonl --html out.html  the same as a page for the browser
  loopbreaker check -c loopbreaker.yaml       is this config sound, and what does it do

Exit codes: 0 fine, 1 a config or an input is wrong or cannot be read, or a guard is not alive,
2 usage, 3 a loop was found (`replay --fail-on-loop`)";

const SERVE_NOTES: &str = "\
Examples:
  loopbreaker serve
  loopbreaker serve -c loopbreaker.yaml --listen 127.0.0.1:8080
  loopbreaker serve --upstream http://127.0.0.1:11434
  OPENAI_BASE_URL=http://127.0.0.1:4141/v1 python agent.py

SIGHUP, or a change of the config file, reloads it; SIGTERM lets open streams end.

Exit codes: 0 it was told to stop, 1 the config is wrong or the port is taken, 2 usage";

const SIDECAR_NOTES: &str = "\
Variables:
  UDS_PATH                   the socket [default: /tmp/embedding-sidecar.sock]
  REDIS_URL                  where vectors are kept: redis://…, rediss://… for TLS, with ?vector=hnsw for Redis
                             Stack; memory without it
  LOOP_SIMILARITY_THRESHOLD  from which similarity on two prompts are a loop [default: 0.95]
  LOOP_HISTORY_SIZE          how many earlier prompts are compared [default: 5]
  LOOP_EMBEDDING_TTL         how many seconds they are kept [default: 3600]
  LOOP_EMBEDDING_MODEL_PATH  a folder with model.onnx and tokenizer.json, or the .onnx file itself
  LOOP_EMBEDDING_ENGINE      auto, pure or onnxruntime [default: auto]
  ORT_DYLIB_PATH             ONNX Runtime's library; `auto` uses it where it is set
  LOOP_KEEP_PROMPTS          true keeps prompts in clear, and tells which one was similar [default: false]
  METRICS_LISTEN             serves /metrics there [default: off]
  OTEL_*                     where spans go, as OpenTelemetry names it [default: nowhere]

Examples:
  loopbreaker sidecar
  UDS_PATH=/run/embed.sock loopbreaker sidecar
  LOOP_EMBEDDING_SIDECAR_UDS=/run/embed.sock loopbreaker serve

Exit codes: 0 it was told to stop, 1 a variable, the model or the socket cannot be used, 2 usage";

const REPLAY_NOTES: &str = "\
Examples:
  loopbreaker replay session.jsonl
  loopbreaker replay ~/.claude/projects/*/*.jsonl --html report.html
  loopbreaker replay runs.jsonl --json | jq 'select(.verdict == \"loop\") | .id'
  zstd -dc runs.jsonl.zst | loopbreaker replay - --fail-on-loop

Exit codes:
  0  every input was read, whatever was found
  1  an input, a part of it or the config could not be read (what could be read is still reported)
  2  usage
  3  a loop was found and --fail-on-loop is given; when an input could not be read either, 1 wins,
     since the answer is not complete";

const CHECK_NOTES: &str = "\
Examples:
  loopbreaker check
  loopbreaker check -c loopbreaker.yaml --json

Exit codes: 0 the config is sound (or there is none), 1 it has problems or cannot be read, 2 usage";

const DEMO_NOTES: &str = "\
Examples:
  loopbreaker demo
  loopbreaker demo --fast --exit
  loopbreaker demo --json --exit | jq .verdict

It listens on 127.0.0.1:4141, or on any free port when that one is taken.";

const PROBE_NOTES: &str = "\
Examples:
  loopbreaker probe
  loopbreaker probe http://10.0.0.7:4141
  loopbreaker probe --json | jq .alive

Exit codes: 0 the guard is alive (in shadow, too), 1 it is not, or that is not known (a \
limit stops the probe, a shadow does not tell what it sees, nobody answers within 5 s), 2 usage";

const AUDIT_NOTES: &str = "\
Examples:
  loopbreaker audit verify
  loopbreaker audit verify -c loopbreaker.yaml --json

Exit codes: 0 the chain is whole, 1 it is broken, or there is no log, 2 usage";

const COMPLETIONS_NOTES: &str = "\
Examples:
  loopbreaker completions bash > ~/.local/share/bash-completion/completions/loopbreaker
  loopbreaker completions zsh > ~/.zfunc/_loopbreaker
  loopbreaker completions fish > ~/.config/fish/completions/loopbreaker.fish";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{Args, address, gateway_url};

    #[test]
    fn a_gateway_may_be_named_as_clients_name_it() {
        for text in ["http://127.0.0.1:4141", "127.0.0.1:4141", "http://127.0.0.1:4141/v1/"] {
            assert_eq!(gateway_url(text).unwrap().to_string(), "http://127.0.0.1:4141");
        }
        assert_eq!(gateway_url("https://guard.example/lb").unwrap().path(), "/lb");
        assert!(gateway_url("ftp://guard.example").is_err());
    }

    #[test]
    fn an_address_is_read_as_the_config_reads_it() {
        assert_eq!(address("localhost:4177").unwrap(), address("127.0.0.1:4177").unwrap());
        assert_eq!(address("[::1]:80").unwrap().port(), 80);
        assert_eq!(address("8080").unwrap_err(), "write an address and a port, such as 127.0.0.1:8080");
        assert!(address("example.com:80").unwrap_err().contains("127.0.0.1:4141"));
    }

    #[test]
    fn the_arguments_fit_together() {
        Args::command().debug_assert();
    }
}

//! `mock-provider`: a scripted model provider for tests and benchmarks in any language.

use std::io::{self, Write};
use std::process::ExitCode;

use loopbreaker_mock::{Builder, Mock};

const USAGE: &str = "\
usage: mock-provider [--listen ADDR] [--strict] [--fixed] [--no-record]

  --listen ADDR  where to listen, 127.0.0.1:0 without it; the first line printed says where that is
  --strict       refuse transcripts that the real providers refuse
  --fixed        the same ready bytes for every question, for benchmarks; nothing is recorded
  --no-record    keep no requests for `GET /mock/requests`
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Nobody is left to tell when stderr is closed.
            drop(writeln!(io::stderr(), "mock-provider: {message}"));
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let mut listen = "127.0.0.1:0".to_owned();
    let mut builder: Builder = Mock::builder();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--listen" => listen = args.next().ok_or("`--listen` needs an address such as 127.0.0.1:0")?,
            "--strict" => builder = builder.strict(true),
            "--fixed" => builder = Mock::fixed(),
            "--no-record" => builder = builder.recording(false),
            "--help" | "-h" => return say(USAGE),
            other => return Err(format!("`{other}` is no argument of mine\n\n{USAGE}")),
        }
    }
    let mock = builder.start(&listen).map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    say(&format!("listening on {}\n", mock.url()))?;
    mock.wait();
    Ok(())
}

fn say(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())
}

//! Embeddings alone: engines, models, lengths, threads.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loopbreaker_embed::{Embedder, Engine, ModelOptions};

use crate::Places;
use crate::table::{Report, Times};
use crate::texts::text;

pub(crate) const LENGTHS: [usize; 4] = [16, 64, 128, 256];

struct Contender {
    name: String,
    threads: usize,
    is_bundled: bool,
    is_pure: bool,
    embedder: Arc<dyn Embedder>,
    singles: [Vec<Duration>; LENGTHS.len()],
    batches: Vec<Duration>,
}

/// Rounds in which everybody takes a turn: a neighbour that comes and goes is shared by all.
const ROUNDS: usize = 3;

pub(crate) fn measure(places: &Places, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let mut contenders = Vec::new();
    for (model, path) in models(places) {
        for threads in [1, 2] {
            for engine in [Engine::PureRust, Engine::OnnxRuntime(places.onnxruntime.clone())] {
                let is_pure = engine == Engine::PureRust;
                let engine_name = if is_pure { "built-in" } else { "ONNX Runtime" };
                let options =
                    ModelOptions { path: path.clone(), engine, threads: NonZeroUsize::new(threads) };
                contenders.push(Contender {
                    name: format!("{engine_name}, {model}"),
                    threads,
                    is_bundled: path.is_none(),
                    is_pure,
                    embedder: options.load()?,
                    singles: Default::default(),
                    batches: Vec::new(),
                });
            }
        }
    }
    for round in 0..ROUNDS {
        for contender in &mut contenders {
            contender.take_a_turn(places.calls / ROUNDS, round)?;
        }
    }
    report.table(
        "One text: milliseconds p50 (p95); eight texts of 64 tokens: texts per second",
        &["who", "threads", "16", "64", "128", "256 (cut to 128)", "8 × 64"],
    )?;
    for contender in contenders {
        contender.tell(report)?;
    }
    Ok(())
}

fn models(places: &Places) -> Vec<(&'static str, Option<PathBuf>)> {
    let mut models = vec![("bundled int8", None)];
    models.extend(places.other_model.clone().map(|path| ("w8", Some(path))));
    models
}

impl Contender {
    fn take_a_turn(&mut self, calls: usize, round: usize) -> Result<(), Box<dyn Error>> {
        for (at, length) in LENGTHS.into_iter().enumerate() {
            for call in 0..calls.max(1) {
                let text = text(length, round * calls + call);
                let started = Instant::now();
                self.embedder.embed(&[&text])?;
                self.singles[at].push(started.elapsed());
            }
        }
        for call in 0..(calls / 4).max(1) {
            let texts: Vec<String> = (0..8).map(|number| text(64, 1_000 * call + number)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let started = Instant::now();
            self.embedder.embed(&texts)?;
            self.batches.push(started.elapsed());
        }
        Ok(())
    }

    fn tell(self, report: &mut Report) -> std::io::Result<()> {
        let singles = self.singles.map(Times::new);
        let per_second = 8_000.0 / Times::new(self.batches).quantile(0.5);
        let mut cells = vec![self.name.clone(), self.threads.to_string()];
        cells.extend(singles.iter().map(Times::shown));
        cells.push(format!("{per_second:.0}"));
        report.row(&cells)?;
        if self.is_bundled && self.threads == 2 {
            let (limit, p50) = (if self.is_pure { 20.0 } else { 10.0 }, singles[1].quantile(0.5));
            report.floor(
                format!("{}, 64 tokens, 2 threads: p50 {p50:.1} ms < {limit} ms", self.name),
                p50 < limit,
            );
        }
        Ok(())
    }
}

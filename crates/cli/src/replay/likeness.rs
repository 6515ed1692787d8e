//! `--semantic`: the same in other words, in recorded runs.

use std::time::Duration;

use loopbreaker::{DetectorName, Finding, Fingerprint, Kind, Severity, Step};
use loopbreaker_config::{Config, SemanticHistory, SemanticScope};
use loopbreaker_embed::{Backend, Checker, CheckerError, CheckerOptions, Delta, Question, Rule};
use tokio::runtime::Runtime;

use crate::failure::Failure;

/// Compares what each round of a run says with the rounds before it, as the gateway does with requests. A run is a
/// tenant of its own.
pub(crate) struct Likeness {
    checker: Checker,
    runtime: Runtime,
    threshold: f64,
    scope: SemanticScope,
    /// One similar text is a loop.
    is_literal: bool,
}

/// What the newest round of a run has said so far.
#[derive(Debug, Default)]
pub(crate) struct Said {
    delta: Delta,
    steps: usize,
    has_more: bool,
}

impl Likeness {
    /// What the config asks for, with as much time as it takes: nobody waits for a recorded run.
    pub(crate) fn new(config: &Config) -> Result<Self, Failure> {
        let service = &config.semantic;
        let environment = |name: &str| std::env::var(name).ok();
        let options = CheckerOptions::from_config(service, &config.detectors.semantic, environment);
        let checker = options.and_then(ready).map_err(|error| {
            Failure::told(
                error.to_string(),
                "the `semantic` section of the config says who compares, and how",
            )
        })?;
        let is_literal = service.scope == SemanticScope::Full || service.history == SemanticHistory::Tenant;
        Ok(Self {
            checker,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            threshold: config.detectors.semantic.threshold,
            scope: service.scope,
            is_literal,
        })
    }

    /// Takes a step in, and says what came of the round before where it has ended by that.
    pub(crate) fn step(&self, run: &str, said: &mut Said, step: &Step<'_>) -> Option<Finding> {
        let finding = said.delta.ends_before(step).then(|| self.end(run, said)).flatten();
        match self.scope {
            SemanticScope::Delta => said.delta.take(step),
            SemanticScope::Full => said.delta.take_all(step),
        }
        said.steps += 1;
        said.has_more = true;
        finding
    }

    /// The newest round has ended.
    pub(crate) fn end(&self, run: &str, said: &mut Said) -> Option<Finding> {
        if !std::mem::take(&mut said.has_more) || said.delta.text.is_empty() {
            return None;
        }
        let question = Question {
            tenant: run,
            session: run,
            text: &said.delta.text,
            results: said.delta.results,
            threshold: self.threshold,
            rule: if self.is_literal { Rule::Literal } else { said.delta.rule() },
            trace: None,
        };
        let reading = self.runtime.block_on(self.checker.check_within(&question, PATIENCE));
        let severity = said.delta.severity(&reading, !self.is_literal)?;
        let (step, count) = (said.steps - 1, reading.similar_count + 1);
        Some(Finding {
            step,
            detector: DetectorName::Semantic,
            kind: Kind::Semantic,
            rule: "semantic",
            severity,
            score: if severity == Severity::Loop { 1.0 } else { 0.5 },
            onset: step,
            period: 1,
            count,
            identity: Fingerprint::of_document(b"semantic"),
            evidence: vec![step],
            message: format!("the same was said {count} times in other words"),
            prevented_by: "another approach after the first answer",
        })
    }
}

/// A checker whose model is loaded: what comes while one is being loaded is not compared.
fn ready(options: CheckerOptions) -> Result<Checker, CheckerError> {
    match &options.backend {
        Backend::InProcess { model, .. } => {
            let embedder = model.load()?;
            Checker::with_embedder(options, embedder)
        }
        Backend::Sidecars(_) => Checker::new(options),
    }
}

/// Far longer than any text takes.
const PATIENCE: Duration = Duration::from_secs(60);

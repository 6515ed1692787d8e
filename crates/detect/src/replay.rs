//! What detectors and ladder would have done with one recorded session.

use crate::config::DetectorsConfig;
use crate::finding::{Finding, Severity};
use crate::ladder::{Action, Ladder};
use crate::redundancy::Redundancy;
use crate::redundancy::rules::Rules;
use crate::step::Step;
use crate::strikes::Strikes;
use std::sync::Arc;

/// The settings of a replay, compiled once for any number of runs.
///
/// ```
/// use loopbreaker::{Action, DetectorsConfig, ReplayRules, Step};
///
/// let rules = ReplayRules::new(&DetectorsConfig::default());
/// let mut run = rules.start();
/// for _ in 0..8 {
///     run.observe(&Step::call("bash", r#"{"command":"ls"}"#).answered("a b", None));
/// }
/// let report = run.finish();
/// assert_eq!(report.verdict(), "loop");
/// assert_eq!(report.actions.last(), Some(&(5, Action::Reject)));
/// assert_eq!(report.wasted.steps, 7);
/// ```
#[derive(Debug, Clone)]
pub struct ReplayRules {
    redundancy: Arc<Rules>,
    /// `None`: nothing is done about loops.
    ladder: Option<Ladder>,
}

impl ReplayRules {
    /// Compiles the settings.
    pub fn new(config: &DetectorsConfig) -> Self {
        Self { redundancy: Rules::compile(&config.redundancy), ladder: Some(config.ladder.clone()) }
    }

    /// The same with another ladder, or with none: then loops are found and nothing is done about them.
    #[must_use]
    pub fn with_ladder(self, ladder: Option<Ladder>) -> Self {
        Self { ladder, ..self }
    }

    /// A run from its first step on.
    pub fn start(&self) -> Replay {
        Replay {
            detector: Redundancy::with_rules(Arc::clone(&self.redundancy)),
            strikes: Strikes::default(),
            ladder: self.ladder.clone(),
            costs: Vec::new(),
            report: Report::default(),
        }
    }
}

/// One run under way.
#[derive(Debug)]
pub struct Replay {
    detector: Redundancy,
    strikes: Strikes,
    ladder: Option<Ladder>,
    /// Tokens and money of each step, to add up what was wasted.
    costs: Vec<StepCost>,
    report: Report,
}

#[derive(Debug, Clone, Copy, Default)]
struct StepCost {
    tokens: u64,
    cost_usd: f64,
    wasted: bool,
}

/// What would have happened in one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Steps that were read.
    pub steps: usize,
    /// Findings, once per loop identity and severity.
    pub findings: Vec<Finding>,
    /// What the ladder would have done at which step, had the agent ignored every hint; ends with the first reject.
    pub actions: Vec<(usize, Action)>,
    /// Every redundant repeat after the first occurrence.
    pub wasted: Wasted,
    /// The steps that were redundant repeats, in order.
    pub redundant_steps: Vec<usize>,
}

/// Steps, tokens and money that loops burned.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wasted {
    /// Redundant steps.
    pub steps: usize,
    /// Their tokens, where known.
    pub tokens: u64,
    /// Their cost in US dollars, where known.
    pub cost_usd: f64,
}

impl Report {
    /// `loop`, `warning` or `ok`: the worst that was found.
    pub fn verdict(&self) -> &'static str {
        self.findings.iter().map(|finding| finding.severity).max().map_or("ok", Severity::as_str)
    }
}

impl Replay {
    /// Takes the next step in.
    pub fn observe(&mut self, step: &Step<'_>) {
        let (tokens, cost_usd) = (step.tokens.unwrap_or(0), step.cost_usd.unwrap_or(0.0));
        self.costs.push(StepCost { tokens, cost_usd, wasted: false });
        for finding in self.detector.observe(step) {
            self.rule(finding);
        }
    }

    /// Takes in what another detector found in this run.
    pub fn take(&mut self, finding: Finding) {
        self.rule(finding);
    }

    /// No more steps: the report.
    pub fn finish(mut self) -> Report {
        for finding in self.detector.finish() {
            self.rule(finding);
        }
        self.report.steps = self.costs.len();
        for (index, cost) in self.costs.iter().enumerate().filter(|(_, cost)| cost.wasted) {
            self.report.redundant_steps.push(index);
            self.report.wasted.steps += 1;
            self.report.wasted.tokens = self.report.wasted.tokens.saturating_add(cost.tokens);
            self.report.wasted.cost_usd += cost.cost_usd;
        }
        self.report.findings.sort_by_key(|finding| finding.step);
        self.report
    }

    fn rule(&mut self, finding: Finding) {
        let rungs = self.ladder.as_ref();
        let ruling = self.strikes.rule(&finding, rungs.unwrap_or(&Ladder::default()));
        if finding.severity == Severity::Loop {
            for step in finding.evidence.iter().skip(finding.period) {
                if let Some(cost) = self.costs.get_mut(*step) {
                    cost.wasted = true;
                }
            }
            let stopped = self.report.actions.last().is_some_and(|(_, action)| *action == Action::Reject);
            if rungs.is_some() && !stopped && ruling.action > Action::Warn {
                self.report.actions.push((finding.step, ruling.action));
            }
        }
        if ruling.is_new {
            self.report.findings.push(finding);
        }
    }
}

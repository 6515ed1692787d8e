//! `--json`: one object per run and line.

use std::io::{self, Write};

use loopbreaker::{Action, Finding, Wasted};
use serde::Serialize;

use crate::replay::run::Run;
use crate::replay::runs::View;
use crate::replay::totals::Totals;

/// Writes each run as soon as it ends, and nothing else.
pub(crate) struct JsonLines<W> {
    out: W,
    explain: bool,
    line: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn new(out: W, explain: bool) -> Self {
        Self { out, explain, line: Vec::new() }
    }

    pub(crate) fn write(&mut self, run: &Run) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, &RunLine::of(run, self.explain))?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.out.flush()
    }
}

impl<W: Write> View for JsonLines<W> {
    fn run(&mut self, run: &Run) -> io::Result<()> {
        self.write(run)
    }

    fn end(&mut self, _totals: &Totals) -> io::Result<()> {
        Ok(())
    }
}

// The order of the fields is the order on the wire.
#[derive(Serialize)]
struct RunLine<'a> {
    id: &'a str,
    steps: usize,
    verdict: &'static str,
    findings: Vec<FindingLine<'a>>,
    actions: Vec<ActionLine>,
    wasted: WastedLine,
}

#[derive(Serialize)]
struct FindingLine<'a> {
    step: usize,
    detector: &'static str,
    kind: &'static str,
    severity: &'static str,
    onset: usize,
    period: usize,
    count: usize,
    identity: String,
    evidence: &'a [usize],
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prevented_by: Option<&'static str>,
}

#[derive(Serialize)]
struct ActionLine {
    step: usize,
    action: &'static str,
}

#[derive(Serialize)]
struct WastedLine {
    steps: usize,
    tokens: u64,
    cost_usd: f64,
}

impl<'a> RunLine<'a> {
    fn of(run: &'a Run, explain: bool) -> Self {
        let report = &run.report;
        Self {
            id: &run.id,
            steps: report.steps,
            verdict: report.verdict(),
            findings: report.findings.iter().map(|finding| FindingLine::of(finding, explain)).collect(),
            actions: report.actions.iter().map(|(step, action)| ActionLine::of(*step, *action)).collect(),
            wasted: WastedLine::of(report.wasted),
        }
    }
}

impl<'a> FindingLine<'a> {
    fn of(finding: &'a Finding, explain: bool) -> Self {
        Self {
            step: finding.step,
            detector: finding.detector.as_str(),
            kind: finding.kind.as_str(),
            severity: finding.severity.as_str(),
            onset: finding.onset,
            period: finding.period,
            count: finding.count,
            identity: finding.identity.to_string(),
            evidence: &finding.evidence,
            message: &finding.message,
            rule: explain.then_some(finding.rule),
            prevented_by: explain.then_some(finding.prevented_by),
        }
    }
}

impl ActionLine {
    fn of(step: usize, action: Action) -> Self {
        Self { step, action: action.as_str() }
    }
}

impl WastedLine {
    fn of(wasted: Wasted) -> Self {
        // Sums of cents end in …0000004; a billionth of a dollar is exact enough.
        let cost_usd = (wasted.cost_usd * 1e9).round() / 1e9;
        let cost_usd = if cost_usd.is_finite() { cost_usd } else { wasted.cost_usd.clamp(0.0, f64::MAX) };
        Self { steps: wasted.steps, tokens: wasted.tokens, cost_usd }
    }
}

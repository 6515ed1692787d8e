//! Runs as short scripts.

use loopbreaker::{Finding, Kind, Redundancy, RedundancyConfig, Role, Severity, Status, Step};

/// One step that owns its texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pub(crate) round: Option<u64>,
    pub(crate) role: Option<&'static str>,
    pub(crate) thought: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) args: Option<String>,
    pub(crate) result: Option<String>,
    pub(crate) status: Option<Status>,
}

impl Line {
    pub(crate) fn round(self, round: u64) -> Self {
        Self { round: Some(round), ..self }
    }

    pub(crate) fn status(self, status: Status) -> Self {
        Self { status: Some(status), ..self }
    }

    pub(crate) fn step(&self) -> Step<'_> {
        let role = match self.role {
            Some("compaction") => Role::Compaction,
            Some(name) => Role::named(name),
            None => Role::default(),
        };
        Step {
            round: self.round,
            role,
            thought: self.thought.as_deref(),
            tool: self.tool.as_deref(),
            args: self.args.as_deref(),
            result: self.result.as_deref(),
            status: self.status,
            ..Step::default()
        }
    }
}

/// A call with plain JSON arguments.
pub(crate) fn call(tool: &str, args: &str, result: &str) -> Line {
    Line { tool: Some(tool.into()), args: Some(args.into()), result: Some(result.into()), ..Line::default() }
}

/// A shell command.
pub(crate) fn sh(command: &str, result: &str) -> Line {
    call("bash", &format!("{{\"command\":{command:?}}}"), result)
}

pub(crate) fn read(path: &str, result: &str) -> Line {
    call("read_file", &format!("{{\"path\":{path:?}}}"), result)
}

pub(crate) fn edit(path: &str, old: &str, new: &str) -> Line {
    call("edit_file", &format!("{{\"path\":{path:?},\"old\":{old:?},\"new\":{new:?}}}"), "ok")
}

pub(crate) fn write(path: &str, content: &str) -> Line {
    call("write_file", &format!("{{\"path\":{path:?},\"content\":{content:?}}}"), "ok")
}

pub(crate) fn says(text: &str) -> Line {
    Line { thought: Some(text.into()), ..Line::default() }
}

pub(crate) fn user(text: &str) -> Line {
    Line { role: Some("user"), ..says(text) }
}

pub(crate) fn compaction() -> Line {
    Line { role: Some("compaction"), ..says("summary of what was done") }
}

/// Everything that is found in a run.
pub(crate) fn findings(lines: &[Line]) -> Vec<Finding> {
    findings_with(&RedundancyConfig::default(), lines)
}

pub(crate) fn findings_with(config: &RedundancyConfig, lines: &[Line]) -> Vec<Finding> {
    let mut detector = Redundancy::new(config);
    let mut found: Vec<Finding> = lines.iter().flat_map(|line| detector.observe(&line.step())).collect();
    found.extend(detector.finish());
    found
}

/// The worst that is found, if anything.
pub(crate) fn verdict(lines: &[Line]) -> Option<Severity> {
    findings(lines).iter().map(|finding| finding.severity).max()
}

/// The kinds of the loops that are found, in order, each once.
pub(crate) fn loops(lines: &[Line]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = findings(lines)
        .iter()
        .filter(|finding| finding.severity == Severity::Loop)
        .map(|finding| finding.kind)
        .collect();
    kinds.dedup();
    kinds
}

/// A script played several times over.
pub(crate) fn times(count: usize, lines: &[Line]) -> Vec<Line> {
    lines.iter().cloned().cycle().take(count * lines.len()).collect()
}

/// A word of letters only, so that no rule about numbers is met.
pub(crate) fn word(mut number: usize) -> String {
    let mut word = String::from("w");
    loop {
        word.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return word;
        }
    }
}

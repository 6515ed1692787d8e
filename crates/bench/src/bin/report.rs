//! Measures every scenario, ours and the peers' in turns, and says what the floors say: exit code 1 when one is
//! missed. With a part of a scenario's name (or `memory`) only that is measured.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use loopbreaker_bench::{Operation, Scenario, memory, scenarios};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let out = &mut io::stdout().lock();
    let passed = match arguments[..] {
        // The report starts itself anew for each of these, so that one's memory is not another's.
        ["hold", who, sessions] => memory::hold(who, sessions.parse().unwrap_or(0), out).map(|()| true),
        [] => report("", out),
        [part] => report(part, out),
        _ => Err(io::Error::other("usage: bench-report [part of a name]")),
    };
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            writeln!(io::stderr(), "bench-report: {error}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

/// Writes the tables; `true` when every floor holds.
fn report(part: &str, out: &mut impl Write) -> io::Result<bool> {
    let mut floors = Vec::new();
    writeln!(out, "Ratio: the peer's time divided by ours, so more than 1 means that ours is faster.\n")?;
    writeln!(out, "| scenario | who | ratio | median | fastest | remark |")?;
    writeln!(out, "|---|---|--:|--:|--:|---|")?;
    for scenario in scenarios().filter(|scenario| scenario.name.contains(part)) {
        measure(scenario, &mut floors, out)?;
    }
    if "memory".contains(part) {
        writeln!(out, "\n| sessions with 10 calls each | who | ratio | per session | in all |")?;
        writeln!(out, "|--:|---|--:|--:|--:|")?;
        let mut ours = None;
        for (who, sessions) in memory::HOLDERS {
            let bytes = memory::measure(who, *sessions)?;
            let each = bytes / *sessions as f64;
            let ratio = each / *ours.get_or_insert(each);
            writeln!(out, "| {sessions} | {who} | {ratio:.2} | {each:.0} B | {:.0} MB |", bytes / 1e6)?;
            if *sessions == memory::MILLION {
                floors.push(Floor::new(
                    format!("a million sessions with window 10, {who}"),
                    bytes / 1e6,
                    600.0,
                    " MB",
                ));
            }
        }
    }
    writeln!(out, "\n| floor | measured | at most | |")?;
    writeln!(out, "|---|--:|--:|---|")?;
    for Floor { what, measured, at_most, unit } in &floors {
        let verdict = if measured <= at_most { "PASS" } else { "FAIL" };
        writeln!(out, "| {what} | {measured:.2}{unit} | {at_most:.2}{unit} | {verdict} |")?;
    }
    Ok(floors.iter().all(|floor| floor.measured <= floor.at_most))
}

/// Something that must not be more than it may.
struct Floor {
    what: String,
    measured: f64,
    at_most: f64,
    unit: &'static str,
}

impl Floor {
    fn new(what: String, measured: f64, at_most: f64, unit: &'static str) -> Self {
        Self { what, measured, at_most, unit }
    }
}

/// Rounds that each contender runs in turn: whatever slows the machine for a while slows all of them.
const ROUNDS: usize = 61;
const ROUND: Duration = Duration::from_millis(2);
/// Where a floor is missed, a busy machine gets so many tries in all.
const TRIES: usize = 3;

fn measure(scenario: &Scenario, floors: &mut Vec<Floor>, out: &mut impl Write) -> io::Result<()> {
    let missed = |nanos: &[Vec<f64>]| scenario.at_most_nanos.is_some_and(|most| median(&nanos[0]) > most);
    let mut nanos = run(scenario);
    for _ in 1..TRIES {
        if missed(&nanos) {
            nanos = run(scenario);
        }
    }
    for (at, (contender, theirs)) in scenario.contenders.iter().zip(&nanos).enumerate() {
        // Of neighbouring rounds, so that the machine's moods cancel out.
        let ratios: Vec<f64> = theirs.iter().zip(&nanos[0]).map(|(theirs, ours)| theirs / ours).collect();
        let (ratio, middle) = (median(&ratios), median(theirs));
        let fastest = theirs.iter().copied().fold(f64::INFINITY, f64::min);
        let about = if at == 0 { scenario.about } else { "" };
        let (name, remark) = (contender.name, contender.remark);
        writeln!(out, "| {about} | {name} | {ratio:.2} | {} | {} | {remark} |", time(middle), time(fastest))?;
        if at == 0
            && let Some(at_most) = scenario.at_most_nanos
        {
            floors.push(Floor::new(scenario.about.to_owned(), middle / 1e3, at_most / 1e3, " µs"));
        }
        if contender.must_beat {
            let what = format!("{}: our time divided by that of {name}", scenario.name);
            floors.push(Floor::new(what, 1.0 / ratio, 1.0, ""));
        }
    }
    out.flush()
}

/// Nanoseconds per operation, of each contender and round.
fn run(scenario: &Scenario) -> Vec<Vec<f64>> {
    let mut runners: Vec<Runner> =
        scenario.contenders.iter().map(|contender| Runner::new((contender.prepare)())).collect();
    for round in 0..ROUNDS {
        // Nobody always comes first.
        for turn in 0..runners.len() {
            let at = (turn + round) % scenario.contenders.len();
            runners[at].run();
        }
    }
    runners.into_iter().map(|runner| runner.nanos).collect()
}

struct Runner {
    operation: Operation,
    /// How often the operation runs in a round.
    count: u32,
    /// Nanoseconds per operation, of each round.
    nanos: Vec<f64>,
}

impl Runner {
    fn new(mut operation: Operation) -> Self {
        let start = Instant::now();
        let mut count: u32 = 0;
        while start.elapsed() < ROUND * 5 || count < 10 {
            operation();
            count += 1;
        }
        Self { operation, count: (count / 5).max(1), nanos: Vec::new() }
    }

    fn run(&mut self) {
        let start = Instant::now();
        (0..self.count).for_each(|_| (self.operation)());
        self.nanos.push(start.elapsed().as_nanos() as f64 / f64::from(self.count));
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn time(nanos: f64) -> String {
    if nanos < 1_000.0 { format!("{nanos:.0} ns") } else { format!("{:.2} µs", nanos / 1_000.0) }
}

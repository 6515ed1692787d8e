//! What all runs add up to, in words.

use loopbreaker::Wasted;

use crate::number::{counted, dollars, grouped, percent};
use crate::replay::totals::Totals;

/// The sentences under the table.
pub(crate) fn sentences(totals: &Totals) -> Vec<String> {
    let mut lines = vec![format!(
        "{}, {} read: {}, {}, {} ok",
        counted(totals.runs, "run", "runs"),
        counted(totals.steps, "step", "steps"),
        counted(totals.loops, "loop", "loops"),
        counted(totals.warnings, "warning", "warnings"),
        grouped(totals.ok()),
    )];
    if totals.loops > 0 {
        let share = percent(totals.wasted.steps as u64, totals.steps);
        lines.push(format!("wasted on repeats: {} ({share} of all steps)", amounts(&totals.wasted)));
        lines.push(format!(
            "the ladder would have {}; an agent that obeys the first hint saves {}",
            ladder(totals),
            counted(totals.avoidable_steps, "step", "steps"),
        ));
    }
    lines
}

/// `24 steps, 91,023 tokens, $0.41`: tokens and money only where they are known.
pub(crate) fn amounts(wasted: &Wasted) -> String {
    let mut text = counted(wasted.steps as u64, "step", "steps");
    if wasted.tokens > 0 {
        text.push_str(", ");
        text.push_str(&counted(wasted.tokens, "token", "tokens"));
    }
    if wasted.cost_usd > 0.0 {
        text.push_str(", ");
        text.push_str(&dollars(wasted.cost_usd));
    }
    text
}

/// `hinted 4 runs, throttled 3, rejected 2`.
fn ladder(totals: &Totals) -> String {
    let steps = [
        ("hinted", totals.hinted),
        ("throttled", totals.throttled),
        ("paused", totals.paused),
        ("rejected", totals.rejected),
    ];
    let taken: Vec<_> = steps.into_iter().filter(|(_, runs)| *runs > 0).collect();
    let mut words = Vec::new();
    for (index, (verb, runs)) in taken.iter().enumerate() {
        let runs = if index == 0 { counted(*runs, "run", "runs") } else { grouped(*runs) };
        words.push(format!("{verb} {runs}"));
    }
    if words.is_empty() { "done nothing".into() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_money_are_told_only_where_known() {
        let wasted = Wasted { steps: 24, tokens: 91_023, cost_usd: 0.41 };
        assert_eq!(amounts(&wasted), "24 steps, 91,023 tokens, $0.41");
        assert_eq!(amounts(&Wasted { steps: 1, ..Wasted::default() }), "1 step");
    }

    #[test]
    fn runs_without_loops_need_one_line() {
        let totals = Totals { runs: 3, steps: 1_200, warnings: 1, ..Totals::default() };
        assert_eq!(sentences(&totals), ["3 runs, 1,200 steps read: 0 loops, 1 warning, 2 ok"]);
    }

    #[test]
    fn the_ladder_is_told_by_runs() {
        let totals = Totals { hinted: 4, rejected: 1, ..Totals::default() };
        assert_eq!(ladder(&totals), "hinted 4 runs, rejected 1");
    }
}

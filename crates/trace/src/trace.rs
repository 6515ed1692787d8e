//! `trace`: our own format, one run per line.

use loopbreaker::{Role, Status, Step, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::output::Output;
use crate::record::Record;
use crate::{Problem, Reader, time};
use loopbreaker_dialect::json::{Text, string, words};

/// Reads `{"id", "steps": […]}`, or a list of such runs.
pub(crate) struct Trace;

impl Reader for Trace {
    fn record(&mut self, record: Record<'_>, out: &mut Output<'_>) -> Result<(), Problem> {
        if !record.is_array() {
            return pass_on(record, &record.parse()?, out);
        }
        record.each(record.text, |run: Run<'_>| check(record, &run))?;
        record.each(record.text, |run: Run<'_>| pass_on(record, &run, out))
    }
}

#[derive(Deserialize)]
#[serde(expecting = "a run with `steps`")]
struct Run<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    steps: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(expecting = "a step")]
struct TraceStep<'a> {
    round: Option<u64>,
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    thought: Option<Text<'a>>,
    #[serde(borrow)]
    tool: Option<Text<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    time: Option<&'a RawValue>,
    #[serde(borrow)]
    tokens: Option<&'a RawValue>,
    cost_usd: Option<f64>,
}

fn pass_on<'a>(record: Record<'a>, run: &Run<'a>, out: &mut Output<'_>) -> Result<(), Problem> {
    check(record, run)?;
    let id = run.id.map_or_else(|| out.id_at(record.line), |id| words(id).into_owned());
    let name = out.begin(&id);
    record.each(run.steps.get(), |step: TraceStep<'_>| {
        step.show(|step| out.step(&name, step));
        Ok(())
    })?;
    out.end(&name);
    Ok(())
}

/// Reads every step once before the first is passed on, since half a run would be judged as if it were all of it.
fn check<'a>(record: Record<'a>, run: &Run<'a>) -> Result<(), Problem> {
    record.each(run.steps.get(), |_: TraceStep<'_>| Ok(()))
}

impl TraceStep<'_> {
    fn show(&self, emit: impl FnOnce(&Step<'_>)) {
        let result = self.result.map(words);
        let has_args = self.args.is_some_and(|args| args.get() != "null");
        emit(&Step {
            round: self.round,
            role: self.role.as_ref().map_or_else(Role::default, |role| match &*role.0 {
                "compaction" => Role::Compaction,
                name => Role::named(name),
            }),
            thought: self.thought.as_ref().map(|text| &*text.0),
            // A model that leaves the name out has called nothing by that name; without arguments it has called nothing.
            tool: self.tool.as_ref().map(|text| &*text.0).filter(|tool| !tool.is_empty() || has_args),
            args: self.args.map(RawValue::get),
            result: result.as_deref(),
            status: self.status.as_ref().and_then(|status| Status::parse(&status.0)),
            time: self.time.and_then(moment),
            tokens: self.tokens.and_then(count),
            cost_usd: self.cost_usd,
        });
    }
}

/// A moment as RFC 3339 text or as a number.
pub(crate) fn moment(value: &RawValue) -> Option<Timestamp> {
    match string(value) {
        Some(text) => time::parse(&text),
        None => value.get().parse().ok().and_then(time::from_number),
    }
}

/// A number of tokens: a number, or an object with numbers for its parts (where it names their total, that one).
fn count(value: &RawValue) -> Option<u64> {
    if !value.get().starts_with('{') {
        return whole(value.get().parse().ok()?);
    }
    let parts: std::collections::HashMap<Text<'_>, &RawValue> = serde_json::from_str(value.get()).ok()?;
    let number = |value: &&RawValue| value.get().parse::<f64>().ok();
    let total = parts.iter().find(|(name, _)| matches!(&*name.0, "total" | "total_tokens"));
    match total.and_then(|(_, value)| number(value)) {
        Some(total) => whole(total),
        None => whole(parts.values().filter_map(number).sum()),
    }
}

#[expect(clippy::cast_sign_loss, reason = "negative numbers are refused here")]
fn whole(number: f64) -> Option<u64> {
    (0.0..1e18).contains(&number).then_some(number as u64)
}

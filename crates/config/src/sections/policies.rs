//! `policies`: what is done, for which requests. The ladder is in force today; the rest is checked in shape,
//! and its meaning belongs to the gateway.

use loopbreaker::{Action, ConfigError, IdenticalRequestConfig, Ladder};

use crate::cursor::{Cursor, Read};
use crate::fields::Fields;
use crate::kinds::{duration, flag, size, text, whole};

/// What this version knows about one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) id: String,
    pub(crate) mode: Mode,
    /// The rungs for tool loops; `None` when they are not looked for.
    pub(crate) ladder: Option<Ladder>,
}

/// Whether a policy acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Enforce,
    Shadow,
    Off,
}

/// The ladder of the first policy that looks for tool loops, else the default one.
pub(super) fn ladder_in_force(policies: &[Policy]) -> Ladder {
    let mut acting = policies.iter().filter(|policy| policy.mode != Mode::Off);
    acting.find_map(|policy| policy.ladder.clone()).unwrap_or_default()
}

pub(super) fn read(section: Cursor<'_>) -> Read<Vec<Policy>> {
    section.list(policy)
}

fn policy(value: Cursor<'_>) -> Read<Policy> {
    let mut fields = value.map()?;
    let id = fields.field("id", String::new(), text);
    let spec = fields.field("spec", (Mode::Enforce, None), spec);
    fields.finish();
    let (mode, ladder) = spec?;
    Ok(Policy { id: id?, mode, ladder })
}

fn spec(value: Cursor<'_>) -> Read<(Mode, Option<Ladder>)> {
    let mut fields = value.map()?;
    let mode = fields.field("mode", Mode::Enforce, |value| {
        value.choice(&[("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)])
    });
    fields.check("selector", selector);
    fields.check("limit_keys", |value| value.list(text));
    fields.check("loop_detection", loop_detection);
    let ladder = fields.field("tool_loops", None, tool_loops);
    fields.check("semantic", semantic);
    fields.check("chant", chant);
    fields.check("cache", cache);
    fields.check("rules", |value| value.list(|rule| rule.entries(|_, _| Ok(()))));
    fields.finish();
    Ok((mode?, ladder?))
}

fn selector(value: Cursor<'_>) -> Read<()> {
    let mut fields = value.map()?;
    fields.check("pathExact", text);
    fields.check("pathPrefix", text);
    fields.check("methods", |value| value.list(text));
    fields.check("hosts", |value| value.list(text));
    fields.check("tenants", |value| value.list(text));
    fields.check("models", |value| value.list(text));
    fields.finish();
    Ok(())
}

fn loop_detection(value: Cursor<'_>) -> Read<()> {
    // Each number alone, beside one that suits it.
    let default = IdenticalRequestConfig::default();
    let window = |seconds| IdenticalRequestConfig::new(seconds, default.threshold());
    let threshold = |count| IdenticalRequestConfig::new(default.window_seconds(), count);
    let checked = |value: Cursor<'_>, config: Result<_, ConfigError>| {
        let hint = "the action fires at so many equal requests within so many seconds; 5 within 60 is usual";
        config.map_err(|error| value.refuse(error.to_string(), hint))
    };

    let mut fields = value.map()?;
    let enabled = enabled(&mut fields);
    fields.check("window_seconds", |value| checked(value, window(whole(value)?)));
    fields.check("threshold_identical_requests", |value| checked(value, threshold(whole(value)?)));
    fields.check("action", |value| value.choice(&names(&["reject", "throttle", "warn", "hint", "pause"])));
    fields.check("similarity", |value| value.choice(&names(&["exact", "semantic"])));
    fields.finish();
    enabled.map(drop)
}

fn tool_loops(value: Cursor<'_>) -> Read<Option<Ladder>> {
    let mut fields = value.map()?;
    let enabled = enabled(&mut fields);
    let ladder = fields.field("ladder", Ladder::default(), ladder);
    fields.finish();
    let ladder = ladder?;
    Ok(enabled?.then_some(ladder))
}

fn ladder(value: Cursor<'_>) -> Read<Ladder> {
    const RUNGS: [Action; 6] =
        [Action::Allow, Action::Warn, Action::Hint, Action::Throttle, Action::Pause, Action::Reject];
    let rungs = value.list(|rung| rung.choice(&RUNGS.map(|action| (action.as_str(), action))))?;
    Ladder::new(rungs).ok_or_else(|| {
        value.refuse(
            "a ladder without rungs does nothing",
            "write `[hint, hint, throttle, reject]`, or `enabled: false`",
        )
    })
}

fn semantic(value: Cursor<'_>) -> Read<()> {
    let mut fields = value.map()?;
    let enabled = enabled(&mut fields);
    fields.check("threshold", super::semantic::threshold);
    fields.check("action", |value| value.choice(&names(&["warn", "hint", "throttle", "pause", "reject"])));
    fields.finish();
    enabled.map(drop)
}

fn chant(value: Cursor<'_>) -> Read<()> {
    let mut fields = value.map()?;
    let enabled = enabled(&mut fields);
    fields.check("action", |value| value.choice(&names(&["warn", "cut"])));
    fields.finish();
    enabled.map(drop)
}

fn cache(value: Cursor<'_>) -> Read<()> {
    let mut fields = value.map()?;
    let enabled = enabled(&mut fields);
    fields.check("ttl", duration);
    fields.check("max_bytes", size);
    fields.check("similarity", |value| value.choice(&names(&["exact", "semantic"])));
    fields.check("allow_sampled", flag);
    fields.check("tools", |value| value.list(text));
    fields.finish();
    enabled.map(drop)
}

/// The switch that each part of a policy has. A part without it is off, which is easily overlooked.
fn enabled(fields: &mut Fields<'_>) -> Read<bool> {
    let enabled = fields.field("enabled", false, flag);
    if !fields.has("enabled") {
        fields.about("enabled", |at| {
            at.notice("this is off, since `enabled` is missing", "write `enabled: true`");
        });
    }
    enabled
}

fn names<const N: usize>(names: &[&'static str; N]) -> [(&'static str, ()); N] {
    names.map(|name| (name, ()))
}

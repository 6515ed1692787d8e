//! `sentinel`: how often one call may stand among the last ones.

use loopbreaker::{ConfigError, SentinelConfig, SentinelLimit, ToolPattern};

use crate::cursor::{Cursor, Read, Refused};
use crate::fields::Fields;
use crate::kinds::{text, whole};

pub(super) fn read(section: Cursor<'_>) -> Read<SentinelConfig> {
    let mut fields = section.map()?;
    let default = fields.field("default", SentinelLimit::default(), default_limit);
    let overrides = fields.field("overrides", Vec::new(), |value| {
        value.entries(|tool, limit| {
            let (tools, limit) = (tool_pattern(&tool.text, limit), override_limit(limit, default.as_ref()));
            Ok((tools?, limit?))
        })
    });
    let bypass =
        fields.field("bypass", Vec::new(), |value| value.list(|tool| tool_pattern(&text(tool)?, tool)));
    fields.finish();
    Ok(SentinelConfig { default: default?, overrides: overrides?, bypass: bypass? })
}

/// The name or glob of a tool, `at` the place that says it.
pub(super) fn tool_pattern(text: &str, at: Cursor<'_>) -> Read<ToolPattern> {
    if text.is_empty() {
        return Err(at.refuse("the name of a tool is empty", "write its name, or `\"*\"` for every tool"));
    }
    Ok(ToolPattern::new(text))
}

fn default_limit(value: Cursor<'_>) -> Read<SentinelLimit> {
    let mut fields = value.map()?;
    let limit = numbers(&mut fields, Ok(&SentinelLimit::default()));
    fields.finish();
    limit
}

/// The limit of some tools; what it does not say, it takes from the default.
fn override_limit(value: Cursor<'_>, default: Result<&SentinelLimit, &Refused>) -> Read<SentinelLimit> {
    let mut fields = value.map()?;
    let limit = numbers(&mut fields, default.map_err(|refused| *refused));
    let reason = fields.field("reason", None, |value| text(value).map(Some));
    fields.finish();
    let limit = limit?;
    Ok(match reason? {
        Some(reason) => limit.because(reason),
        None => limit,
    })
}

fn numbers(fields: &mut Fields<'_>, default: Read<&SentinelLimit>) -> Read<SentinelLimit> {
    let threshold = fields.field_or("threshold", default.map(SentinelLimit::threshold), whole);
    let window_size = fields.field_or("window_size", default.map(SentinelLimit::window_size), whole);

    // Each number alone first, so that two wrong ones are two problems. Alone, only 0 is a wrong threshold.
    let check = |limit: Result<SentinelLimit, ConfigError>| limit.map_err(|error| blame(fields, &error));
    let threshold = threshold.and_then(|value| check(SentinelLimit::new(value.min(1), 1)).map(|_| value));
    let window_size = window_size.and_then(|value| check(SentinelLimit::new(1, value)).map(|_| value));
    let limit = check(SentinelLimit::new(threshold?, window_size?))?;

    if let Some(warning) = limit.warning().filter(|_| fields.has("threshold")) {
        fields.about("threshold", |at| {
            at.notice(warning, "write 2 or more, unless no call may ever be repeated");
        });
    }
    Ok(limit)
}

fn blame(fields: &Fields<'_>, error: &ConfigError) -> Refused {
    let (key, hint) = match error {
        ConfigError::ThresholdZero => (
            "threshold",
            "write at least 1; to leave a tool unguarded, list it under `sentinel.bypass`".to_owned(),
        ),
        ConfigError::WindowZero => {
            ("window_size", "write how many calls to remember, 10 is usual".to_owned())
        }
        ConfigError::WindowTooLarge { max, .. } => ("window_size", format!("write at most {max}")),
        ConfigError::ThresholdAboveWindow { threshold, window_size } if fields.has("threshold") => {
            ("threshold", format!("write at most {window_size}, or a `window_size` of at least {threshold}"))
        }
        ConfigError::ThresholdAboveWindow { threshold, .. } => {
            ("window_size", format!("write at least {threshold}, or a smaller `threshold`"))
        }
        _ => ("threshold", "write another value".to_owned()),
    };
    fields.about(key, |at| at.refuse(error.to_string(), hint))
}

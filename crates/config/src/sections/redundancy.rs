//! `redundancy`: how far back to look for steps without progress, and what is known about tools.

use loopbreaker::{ConfigError, Effect, RedundancyConfig, ToolPattern, ToolProfile};

use super::sentinel::tool_pattern;
use crate::cursor::{Cursor, Read};
use crate::kinds::{text, whole};
use crate::path::quote;

pub(super) fn read(section: Cursor<'_>) -> Read<RedundancyConfig> {
    let mut fields = section.map()?;
    let window = fields.field("window", RedundancyConfig::default(), window);
    let tools = fields.field("tools", Vec::new(), |value| {
        value.entries(|tool, declared| {
            let (tools, profile) = (tool_pattern(&tool.text, declared), profile(declared));
            Ok((tools?, profile?))
        })
    });
    fields.finish();
    let add = |config: RedundancyConfig, (tool, profile)| {
        config.with_tool(tool, profile).map_err(|error| section.refuse(one_line(&error), PATTERN_HINT))
    };
    tools?.into_iter().try_fold(window?, add)
}

fn window(value: Cursor<'_>) -> Read<RedundancyConfig> {
    let (min, max) = (RedundancyConfig::MIN_WINDOW, RedundancyConfig::MAX_WINDOW);
    RedundancyConfig::new(whole(value)?).map_err(|error| {
        value.refuse(error.to_string(), format!("write a number of steps from {min} to {max}, 64 is usual"))
    })
}

fn profile(declared: Cursor<'_>) -> Read<ToolProfile> {
    let mut fields = declared.map()?;
    let effect = fields.field("effect", None, |value| {
        value.choice(&[("read", Effect::Read), ("write", Effect::Write), ("poll", Effect::Poll)]).map(Some)
    });
    let loop_key = fields.field("loop_key", Vec::new(), |value| value.list(text));
    let ignore_result = fields.field("ignore_result", Vec::new(), |value| value.list(pattern));
    fields.finish();
    Ok(ToolProfile { effect: effect?, loop_key: loop_key?, ignore_result: ignore_result? })
}

/// A regular expression, tried out alone so that the one to blame is known.
fn pattern(value: Cursor<'_>) -> Read<String> {
    let text = text(value)?;
    let profile = ToolProfile { ignore_result: vec![text.clone()], ..ToolProfile::default() };
    match RedundancyConfig::default().with_tool(ToolPattern::new("*"), profile) {
        Ok(_) => Ok(text),
        Err(error) => Err(value.refuse(one_line(&error), PATTERN_HINT)),
    }
}

/// A pattern can be pages long, and its compiler may draw a picture of it; a message is one line.
fn one_line(error: &ConfigError) -> String {
    match error {
        ConfigError::BadPattern { pattern, reason } => {
            let reason: String =
                reason.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
            format!("pattern {} cannot be used: {reason}", quote(pattern))
        }
        other => other.to_string(),
    }
}

const PATTERN_HINT: &str = "write a regular expression; `\\` escapes a special character";

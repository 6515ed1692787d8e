//! `claude-code`: session transcripts, one entry per line.

use std::borrow::Cow;

use loopbreaker::Timestamp;
use loopbreaker_dialect::{answer_block, content, heard};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::output::Output;
use crate::record::Record;
use crate::runs::Runs;
use crate::{Problem, Reader, time};
use loopbreaker_dialect::conversation::{Answer, Event};
use loopbreaker_dialect::json::{Text, words};

/// Reads entries, each of which belongs to a session; what a sub-agent does is a run of its own.
pub(crate) struct ClaudeCode {
    runs: Runs<Progress>,
}

impl ClaudeCode {
    pub(crate) fn new() -> Self {
        Self { runs: Runs::new() }
    }
}

impl Reader for ClaudeCode {
    fn record(&mut self, record: Record<'_>, out: &mut Output<'_>) -> Result<(), Problem> {
        let entry: Entry<'_> = record.parse()?;
        let compacts = entry.is_compaction();
        if !compacts && !entry.is_turn() {
            return Ok(());
        }
        let id = entry.run(out.name());
        // The boundary and the summary behind it are one compaction.
        if compacts && self.runs.get(&id, out).state.compacted {
            return Ok(());
        }
        self.runs.walk(&id, out, |take| entry.events(record, take))?;
        self.runs.get(&id, out).state.compacted = compacts;
        Ok(())
    }

    fn finish(&mut self, out: &mut Output<'_>) {
        self.runs.end_all(out);
    }
}

#[derive(Default)]
struct Progress {
    /// Whether the last thing that happened was a compaction.
    compacted: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an entry of a session")]
struct Entry<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    subtype: Option<Text<'a>>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow)]
    agent_id: Option<Text<'a>>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_api_error_message: Option<bool>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(expecting = "a message")]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl<'a> Entry<'a> {
    /// The session, and within it the sub-agent.
    fn run(&self, name: &str) -> String {
        let session = self.session_id.as_ref().map_or(name, |id| &*id.0);
        match &self.agent_id {
            Some(agent) => format!("{session}/{}", agent.0),
            None if self.is_sidechain == Some(true) => format!("{session}/sidechain"),
            None => session.to_owned(),
        }
    }

    /// Whether the entry is part of the conversation.
    fn is_turn(&self) -> bool {
        self.message.is_some() && matches!(self.kind(), Some("user" | "assistant"))
    }

    /// Whether the history was compacted here.
    fn is_compaction(&self) -> bool {
        let is_boundary = self.subtype.as_ref().is_some_and(|subtype| subtype.0 == "compact_boundary");
        match self.kind() {
            Some("system") => is_boundary,
            Some("user") => self.is_compact_summary == Some(true),
            _ => false,
        }
    }

    fn kind(&self) -> Option<&str> {
        self.kind.as_ref().map(|kind| &*kind.0)
    }

    fn events(&self, record: Record<'a>, take: &mut dyn FnMut(Event<'a>)) -> Result<(), Problem> {
        let time = self.timestamp.as_ref().and_then(|text| time::parse(&text.0));
        match self.kind() {
            _ if self.is_compaction() => take(Event::Compacted { time }),
            Some("user") => self.heard(record, time, take)?,
            Some("assistant") => self.answered(record, time, take)?,
            _ => {}
        }
        Ok(())
    }

    fn answered(
        &self,
        record: Record<'a>,
        time: Option<Timestamp>,
        take: &mut dyn FnMut(Event<'a>),
    ) -> Result<(), Problem> {
        let Some(message) = self.message else { return Ok(()) };
        let message: Message<'a> = record.parse_part(message)?;
        // The program itself writes these when the model could not be reached: the model has said nothing.
        let is_synthetic = message.model.as_ref().is_some_and(|model| model.0 == "<synthetic>");
        if is_synthetic || self.is_api_error_message == Some(true) {
            return Ok(());
        }
        let tokens = message.usage.map(|usage| {
            usage.input_tokens.unwrap_or_default().saturating_add(usage.output_tokens.unwrap_or_default())
        });
        take(Event::Answer(Answer { id: message.id.map(|id| id.0), agent: None, time, tokens }));
        let Some(content) = message.content else { return Ok(()) };
        content::each(content, &mut |block| answer_block(block, take))
            .map_err(|broken| record.malformed(&broken.into()))
    }

    fn heard(
        &self,
        record: Record<'a>,
        time: Option<Timestamp>,
        take: &mut dyn FnMut(Event<'a>),
    ) -> Result<(), Problem> {
        let Some(message) = self.message else { return Ok(()) };
        let message: Message<'a> = record.parse_part(message)?;
        let Some(content) = message.content else { return Ok(()) };
        let heard = heard(content, time, &mut |event| match event {
            // Nobody outside has said what the program adds by itself.
            Event::Heard { .. } if self.is_meta == Some(true) => {}
            Event::Heard { text, time } => {
                if let Some(text) = without_reminders(text) {
                    take(Event::Heard { text, time });
                }
            }
            Event::Returned { call, mut outcome } => {
                let is_empty = outcome.result.as_ref().is_none_or(|result| result.is_empty());
                if is_empty && let Some(result) = self.tool_use_result {
                    outcome.result = Some(words(result));
                }
                take(Event::Returned { call, outcome });
            }
            other => take(other),
        });
        heard.map_err(|malformed| record.malformed(&malformed))
    }
}

/// What is left of the text without the reminders that the program adds; `None` when that is nothing.
fn without_reminders(text: Cow<'_, str>) -> Option<Cow<'_, str>> {
    if !text.contains(REMINDER) {
        return Some(text);
    }
    let mut rest = &*text;
    let mut left = String::new();
    while let Some((before, behind)) = rest.split_once(REMINDER) {
        left.push_str(before);
        rest = behind.split_once(REMINDER_END).map_or("", |(_, behind)| behind);
    }
    left.push_str(rest);
    let left = left.trim_ascii();
    (!left.is_empty()).then(|| Cow::Owned(left.to_owned()))
}

const REMINDER: &str = "<system-reminder>";
const REMINDER_END: &str = "</system-reminder>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reminder_is_no_word_from_outside() {
        assert_eq!(without_reminders("<system-reminder>a</system-reminder>\n".into()), None);
        let text = without_reminders("do it\n<system-reminder>a</system-reminder>".into());
        assert_eq!(text.as_deref(), Some("do it"));
        assert_eq!(without_reminders("plain".into()).as_deref(), Some("plain"));
    }
}

//! Results that operators replaced, put into the requests that carry them.

use loopbreaker::Step;
use loopbreaker_dialect::{Conversation, Dialect, Event, read_request, with_last_words, with_result};
use loopbreaker_record::TraceId;

use crate::journal::{self, trace_id};
use crate::orders::Edit;
use crate::sessions::SessionKey;

/// The body with every result that an operator replaced; `None` when it carries none of them.
pub(crate) fn rewritten(
    dialect: Dialect,
    body: &[u8],
    (session, anchor): (SessionKey, u128),
    edits: &[Edit],
) -> Option<Vec<u8>> {
    let mut edited: Option<Vec<u8>> = None;
    for edit in edits {
        let Edit::Rewrite(step, content) = edit else { continue };
        let now = edited.as_deref().unwrap_or(body);
        let changed = match find(dialect, body, (session, anchor), *step) {
            Some(Found::Call(nth)) => with_result(dialect, now, nth, content),
            Some(Found::Words) => with_last_words(dialect, now, content),
            None => None,
        };
        edited = changed.or(edited);
    }
    edited
}

/// A step of a transcript.
enum Found {
    /// The call of this number.
    Call(usize),
    /// An answer in words, which is followed by words from outside.
    Words,
}

/// The step that the log knows by this name.
fn find(
    dialect: Dialect,
    body: &[u8],
    (session, anchor): (SessionKey, u128),
    wanted: TraceId,
) -> Option<Found> {
    let (mut position, mut calls) = (0, 0);
    let mut found = None;
    let mut look = |step: &Step<'_>| {
        let args = step.args.map(journal::input);
        let tool = step.tool.map(journal::tool_name);
        if found.is_none() && trace_id(session, anchor, position, tool, args.as_deref()) == wanted {
            found = Some(if tool.is_some() { Found::Call(calls) } else { Found::Words });
        }
        position += 1;
        calls += usize::from(tool.is_some());
    };
    let mut conversation = Conversation::default();
    let read = read_request(dialect, body, None, &mut |message| {
        message.events(&mut |event: Event<'_>| conversation.take(event, &mut look));
    });
    conversation.finish(&mut look);
    read.ok()?;
    found
}

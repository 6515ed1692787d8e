//! Chat completions: system messages.

use std::ops::Range;

use super::{Hint, Placement, Request};
use crate::Speaker;
use crate::splice::{Splice, quoted};

pub(super) fn changes(request: &Request<'_>, hint: &Hint<'_>) -> Option<Vec<Splice>> {
    let messages = request.list(&request.top(&["messages"])?.get("messages")?)?;
    let message = |role| format!(r#"{{"role":{},"content":{}}}"#, quoted(role), quoted(hint.text));
    let system = request.messages.iter().find(|(speaker, _)| *speaker == Speaker::System);
    let change = match (hint.placement, system) {
        (Placement::Extend, Some((_, system))) => extend(request, system, hint.text)?,
        (Placement::Prepend | Placement::Extend, _) => messages.put_first(&message("system")),
        (Placement::Append, _) => messages.put_last(&message(hint.append_role)),
    };
    Some(vec![change])
}

/// Puts the text into a system message.
fn extend(request: &Request<'_>, message: &Range<usize>, text: &str) -> Option<Splice> {
    let content = request.object(message, &["content"])?.get("content")?;
    if request.is_string(&content) {
        return Some(Splice::behind_string(&content, text));
    }
    let blocks = request.list(&content)?;
    let first = blocks.elements.iter().find_map(|block| request.string_in(block, "text"));
    Some(match first {
        Some(string) => Splice::behind_string(&string, text),
        None => blocks.put_last(&format!(r#"{{"type":"text","text":{}}}"#, quoted(text))),
    })
}

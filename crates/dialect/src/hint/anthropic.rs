//! Anthropic: `system`, or a last block of the last user message.

use super::{Hint, Placement, Request};
use crate::Speaker;
use crate::splice::{Splice, quoted};

pub(super) fn changes(request: &Request<'_>, hint: &Hint<'_>) -> Option<Vec<Splice>> {
    let top = request.top(&["system", "messages"])?;
    top.get("messages")?;
    let block = format!(r#"{{"type":"text","text":{}}}"#, quoted(hint.text));
    if hint.placement == Placement::Append {
        let is_user = |speaker| matches!(speaker, Speaker::Outside | Speaker::Tool);
        let (_, last) = request.messages.iter().rev().find(|(speaker, _)| is_user(*speaker))?;
        let content = request.object(last, &["content"])?.get("content")?;
        if request.is_string(&content) {
            return Some(vec![Splice::behind_string(&content, hint.text)]);
        }
        return Some(vec![request.list(&content)?.put_last(&block)]);
    }
    let Some(system) = top.get("system") else { return Some(vec![top.put("system", &quoted(hint.text))]) };
    if request.text(&system) == "null" {
        return Some(vec![Splice::replace(system, quoted(hint.text))]);
    }
    let extends = hint.placement == Placement::Extend;
    if request.is_string(&system) {
        let put = if extends { Splice::behind_string } else { Splice::before_string };
        return Some(vec![put(&system, hint.text)]);
    }
    let blocks = request.list(&system)?;
    let first = blocks.elements.iter().find_map(|block| request.string_in(block, "text"));
    Some(vec![match first.filter(|_| extends) {
        Some(string) => Splice::behind_string(&string, hint.text),
        None => blocks.put_first(&block),
    }])
}

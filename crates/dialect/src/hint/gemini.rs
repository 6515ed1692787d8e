//! Gemini: `systemInstruction`, or a part of the last user content.

use std::ops::Range;

use super::{Hint, Placement, Request};
use crate::json::{Json, string};
use crate::splice::{Splice, quoted};

pub(super) fn changes(request: &Request<'_>, hint: &Hint<'_>) -> Option<Vec<Splice>> {
    let top = request.top(&["systemInstruction", "system_instruction", "contents"])?;
    let contents = request.list(&top.get("contents")?)?;
    let part = format!(r#"{{"text":{}}}"#, quoted(hint.text));
    if hint.placement == Placement::Append {
        let last = contents.elements.last()?;
        if matches!(role(request, last).as_deref(), Some("function" | "tool")) {
            // What tools return is no place for words, but a user may speak behind it.
            return Some(vec![contents.put_last(&format!(r#"{{"role":"user","parts":[{part}]}}"#))]);
        }
        let is_user = |content: &&Range<usize>| role(request, content).is_none_or(|role| role == "user");
        let content = contents.elements.iter().rev().find(is_user)?;
        let parts = request.object(content, &["parts"])?.get("parts")?;
        return match request.list(&parts) {
            Some(parts) => Some(vec![parts.put_last(&part)]),
            None => Some(vec![Splice::behind_string(&request.string_in(&parts, "text")?, hint.text)]),
        };
    }
    if request.cached_content {
        return None;
    }
    let system = top.get("systemInstruction").or_else(|| top.get("system_instruction"));
    let whole = format!(r#"{{"parts":[{part}]}}"#);
    let Some(system) = system else { return Some(vec![top.put("systemInstruction", &whole)]) };
    if request.text(&system) == "null" {
        return Some(vec![Splice::replace(system, whole)]);
    }
    let content = request.object(&system, &["parts"])?;
    let extends = hint.placement == Placement::Extend;
    let Some(parts) = content.get("parts") else {
        return Some(vec![content.put("parts", &format!("[{part}]"))]);
    };
    let Some(list) = request.list(&parts) else {
        // A single part may stand there without a list around it.
        let put = if extends { Splice::behind_string } else { Splice::before_string };
        return Some(vec![put(&request.string_in(&parts, "text")?, hint.text)]);
    };
    let first = list.elements.iter().find_map(|part| request.string_in(part, "text"));
    Some(vec![match first.filter(|_| extends) {
        Some(string) => Splice::behind_string(&string, hint.text),
        None => list.put_first(&part),
    }])
}

fn role(request: &Request<'_>, content: &Range<usize>) -> Option<String> {
    let place = request.string_in(content, "role")?;
    let value: Json<'_> = serde_json::from_str(request.text(&place)).ok()?;
    string(value).map(std::borrow::Cow::into_owned)
}

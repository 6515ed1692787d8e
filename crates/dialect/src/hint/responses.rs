//! The Responses API: `instructions`, or a last input item.

use super::{Hint, Placement, Request};
use crate::splice::{Splice, quoted};

pub(super) fn changes(request: &Request<'_>, hint: &Hint<'_>) -> Option<Vec<Splice>> {
    let top = request.top(&["instructions", "input"])?;
    let text = quoted(hint.text);
    if hint.placement == Placement::Append {
        let input = top.get("input")?;
        let item = format!(r#"{{"type":"message","role":{},"content":{text}}}"#, quoted(hint.append_role));
        if request.is_string(&input) {
            // The string is short for a list with one message of the user.
            return Some(vec![
                Splice::insert(input.start, r#"[{"type":"message","role":"user","content":"#.to_owned()),
                Splice::insert(input.end, format!("}},{item}]")),
            ]);
        }
        return Some(vec![request.list(&input)?.put_last(&item)]);
    }
    let change = match top.get("instructions") {
        None => top.put("instructions", &text),
        Some(place) if request.text(&place) == "null" => Splice::replace(place, text),
        Some(place) if request.is_string(&place) => Splice::behind_string(&place, hint.text),
        Some(_) => return None,
    };
    Some(vec![change])
}

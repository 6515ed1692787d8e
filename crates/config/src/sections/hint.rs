//! `hint`: what the model is told, and where in the request.

use crate::cursor::{Cursor, Read};
use crate::kinds::text;

pub(super) fn check(section: Cursor<'_>) -> Read<()> {
    let mut fields = section.map()?;
    fields.check("placement", |value| value.choice(&[("prepend", ()), ("extend", ()), ("append", ())]));
    fields.check("message", |value| value.or_null(text));
    fields.finish();
    Ok(())
}

//! `reject`: how a refusal is answered.

use crate::cursor::{Cursor, Read};
use crate::kinds::whole;

pub(super) fn check(section: Cursor<'_>) -> Read<()> {
    let mut fields = section.map()?;
    fields.check("status", status);
    fields.finish();
    Ok(())
}

fn status(value: Cursor<'_>) -> Read<u32> {
    match whole(value)? {
        status @ (400 | 403 | 429) => Ok(status),
        other => {
            Err(value.refuse(format!("the status {other} is not possible here"), "write 400, 403 or 429"))
        }
    }
}

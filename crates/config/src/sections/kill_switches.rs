//! `kill_switches`: tenants whose every request is refused.

use crate::cursor::{Cursor, Read};
use crate::kinds::text;

/// How many there are.
pub(super) fn count(section: Cursor<'_>) -> Read<usize> {
    section.list(kill_switch).map(|all| all.len())
}

fn kill_switch(value: Cursor<'_>) -> Read<()> {
    let mut fields = value.map()?;
    fields.check("tenant", text);
    fields.check("reason", text);
    fields.check("expires_at", text);
    fields.finish();
    Ok(())
}

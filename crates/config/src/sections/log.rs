//! `log`: where decisions are kept, and for how long.

use crate::cursor::{Cursor, Read};
use crate::kinds::{duration, flag, size, text};

pub(super) fn check(section: Cursor<'_>) -> Read<()> {
    let mut fields = section.map()?;
    fields.check("url", text);
    fields.check("max_age", duration);
    fields.check("max_bytes", size);
    fields.check("keep_prompts", flag);
    fields.finish();
    Ok(())
}

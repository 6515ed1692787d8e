//! `throttle`: how many calls may wait at once.

use crate::cursor::{Cursor, Read};
use crate::kinds::whole;

pub(super) fn check(section: Cursor<'_>) -> Read<()> {
    let mut fields = section.map()?;
    fields.check("max_held", whole);
    fields.finish();
    Ok(())
}

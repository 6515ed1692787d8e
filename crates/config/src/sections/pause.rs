//! `pause`: how long a call waits for an operator.

use crate::cursor::{Cursor, Read};
use crate::kinds::duration;

pub(super) fn check(section: Cursor<'_>) -> Read<()> {
    let mut fields = section.map()?;
    fields.check("hold", duration);
    fields.check("timeout", duration);
    fields.finish();
    Ok(())
}

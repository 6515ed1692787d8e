//! `admin`: who may look and who may act.

use crate::cursor::{Cursor, Read};
use crate::kinds::{flag, text};

pub(super) fn check(section: Cursor<'_>) -> Read<()> {
    let mut fields = section.map()?;
    fields.check("tokens", |value| value.list(token));
    fields.check("trust_tenant_header", flag);
    fields.finish();
    Ok(())
}

fn token(value: Cursor<'_>) -> Read<()> {
    let mut fields = value.map()?;
    fields.check("role", |value| value.choice(&[("viewer", ()), ("operator", ())]));
    fields.check("sha256", text);
    fields.finish();
    Ok(())
}

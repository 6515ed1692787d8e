//! `upstreams`: where requests are sent on to.

use crate::cursor::{Cursor, Read};
use crate::kinds::{duration, text, whole};

pub(super) fn check(section: Cursor<'_>) -> Read<()> {
    let mut fields = section.map()?;
    fields.check("openai", text);
    fields.check("anthropic", text);
    fields.check("gemini", text);
    fields.check("routes", |value| value.list(route));
    fields.check("timeout", duration);
    fields.check("breaker", breaker);
    fields.finish();
    Ok(())
}

fn route(value: Cursor<'_>) -> Read<()> {
    let mut fields = value.map()?;
    fields.check("prefix", text);
    fields.check("base_url", text);
    fields.check("dialect", |value| value.choice(&[("openai", ()), ("anthropic", ()), ("gemini", ())]));
    fields.finish();
    Ok(())
}

fn breaker(value: Cursor<'_>) -> Read<()> {
    let mut fields = value.map()?;
    fields.check("failures", whole);
    fields.check("open_for", duration);
    fields.finish();
    Ok(())
}

//! Which format a record has, by its content.

use crate::record::Record;
use crate::{Format, Problem};

/// The format of a record.
pub(crate) fn format_of(record: Record<'_>) -> Result<Format, Problem> {
    record.parse::<serde::de::IgnoredAny>()?;
    Ok(Format::Trace)
}

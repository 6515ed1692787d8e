//! `log`: where decisions are kept, and for how long.

use std::time::Duration;

use crate::cursor::{Cursor, Read};
use crate::kinds::{flag, size, some_time, text};
use crate::store_url::StoreUrl;

/// Where decisions are kept, and for how long.
///
/// ```
/// use loopbreaker_config::{Config, LogPlace};
/// assert_eq!(Config::parse("log: off").unwrap().log.place, LogPlace::Off);
/// assert_eq!(Config::default().log.max_age.as_secs(), 30 * 86_400);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStore {
    /// Where they are kept; the key is `url`.
    pub place: LogPlace,
    /// What is older is removed.
    pub max_age: Duration,
    /// What is kept may take so many bytes; the oldest goes first.
    pub max_bytes: u64,
    /// Whether texts of requests and answers are kept, or only what was decided.
    pub keep_prompts: bool,
}

/// Where decisions are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPlace {
    /// In a file below the data folder.
    Sqlite,
    /// In a Postgres.
    Postgres(StoreUrl),
    /// Nowhere.
    Off,
}

impl Default for LogStore {
    fn default() -> Self {
        Self {
            place: LogPlace::Sqlite,
            max_age: Duration::from_secs(30 * 86_400),
            max_bytes: 10 << 30,
            keep_prompts: true,
        }
    }
}

pub(super) fn read(section: Cursor<'_>) -> Read<LogStore> {
    let default = LogStore::default();
    // `log: off` is short for `log: { url: off }`.
    if section.scalar() == Some("off") {
        return Ok(LogStore { place: LogPlace::Off, ..default });
    }
    let mut fields = section.map()?;
    let place = fields.field("url", default.place, place);
    let max_age = fields.field("max_age", default.max_age, some_time);
    let max_bytes = fields.field("max_bytes", default.max_bytes, max_bytes);
    let keep_prompts = fields.field("keep_prompts", default.keep_prompts, flag);
    fields.finish();
    Ok(LogStore { place: place?, max_age: max_age?, max_bytes: max_bytes?, keep_prompts: keep_prompts? })
}

fn place(value: Cursor<'_>) -> Read<LogPlace> {
    match &*text(value)? {
        "sqlite" => Ok(LogPlace::Sqlite),
        "off" => Ok(LogPlace::Off),
        // The text is not repeated: it may hold a password.
        url => StoreUrl::parse(url, &["postgres", "postgresql"]).map(LogPlace::Postgres).ok_or_else(|| {
            value.refuse(
                "this is no place to keep a log in",
                "write `sqlite`, `postgres://host/name` or `off`",
            )
        }),
    }
}

fn max_bytes(value: Cursor<'_>) -> Read<u64> {
    match size(value)? {
        0 => {
            Err(value.refuse("a log of 0 bytes keeps nothing", "write a size such as `10GiB`, or `url: off`"))
        }
        bytes => Ok(bytes),
    }
}

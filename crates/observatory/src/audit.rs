//! Who did what and when, in a chain in which nothing can be changed unseen.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{StoreError, Stored};
use crate::options::Options;
use crate::store::Store;

/// One deed. Its hash covers every field and the hash of the entry before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Counted from 1 without a gap.
    pub seq: u64,
    /// When, as RFC 3339.
    pub at: String,
    /// Who.
    pub operator: String,
    /// What: `pause`, `config` and so on.
    pub action: String,
    /// The session that it was done to.
    pub session_id: Option<String>,
    /// Why, in the operator's words.
    pub reason: Option<String>,
    /// A hash of what was there before.
    pub before: Option<String>,
    /// A hash of what is there now.
    pub after: Option<String>,
    /// The hash of the entry before this one; 64 zeros for the first.
    pub prev_hash: String,
    /// SHA-256 over all of the above, each field framed by its length.
    pub hash: String,
}

/// What a check of the chain found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditCheck {
    /// Every entry is as it was written.
    Intact {
        /// How many entries there are.
        entries: u64,
    },
    /// The chain is broken.
    Broken {
        /// The first entry that is not as it was written, or is missing.
        seq: u64,
    },
}

/// What is written about a deed; the chain adds the rest.
#[derive(Debug, Default)]
pub(crate) struct Deed<'a> {
    pub(crate) operator: &'a str,
    pub(crate) action: &'a str,
    pub(crate) session_id: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// The last entry, kept apart from the chain, so that a tail that was cut off is missed.
const HEAD: &str = "audit_head";

impl AuditEntry {
    fn expected_hash(&self) -> String {
        let mut hash = Sha256::new();
        let seq = self.seq.to_string();
        let required = [&seq, &self.at, &self.operator, &self.action, &self.prev_hash].map(Some);
        let optional = [&self.session_id, &self.reason, &self.before, &self.after].map(Option::as_ref);
        for field in required.into_iter().chain(optional) {
            // An absent field and an empty one are told apart.
            hash.update(field.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
            hash.update(field.map(String::as_bytes).unwrap_or_default());
        }
        hex(&hash.finalize())
    }
}

/// Writes a deed behind the last one, inside of the writer's transaction.
pub(crate) fn append(store: &mut Store, at: &str, deed: Deed<'_>) -> Stored<AuditEntry> {
    let last = store.last_audit()?;
    // What is hashed is what every database can keep, and the texts of some cannot hold a zero.
    let kept = |text: &str| text.replace('\0', "\u{fffd}");
    let mut entry = AuditEntry {
        seq: last.as_ref().map_or(1, |last| last.seq + 1),
        at: at.to_owned(),
        operator: kept(deed.operator),
        action: kept(deed.action),
        session_id: deed.session_id.map(kept),
        reason: deed.reason.map(|reason| kept(&loopbreaker_telemetry::mask(reason))),
        before: deed.before.map(|text| kept(&text)),
        after: deed.after.map(|text| kept(&text)),
        prev_hash: last.map_or_else(|| FIRST.to_owned(), |last| last.hash),
        hash: String::new(),
    };
    entry.hash = entry.expected_hash();
    store.add_audit(&entry)?;
    store.put_setting(HEAD, &format!("{} {}", entry.seq, entry.hash))?;
    Ok(entry)
}

/// Goes through the whole audit log of a store without starting anything: what `loopbreaker audit verify` does.
///
/// ```
/// use loopbreaker_observatory::{AuditCheck, Observatory, Options, verify_audit};
///
/// # let folder = tempfile::tempdir().expect("a folder");
/// let options = Options::at(folder.path().join("log.db"));
/// drop(Observatory::open(options.clone())?);
/// assert_eq!(verify_audit(&options)?, AuditCheck::Intact { entries: 0 });
/// # Ok::<(), loopbreaker_observatory::StoreError>(())
/// ```
pub fn verify_audit(options: &Options) -> Result<AuditCheck, StoreError> {
    let source = options.source.clone();
    let verifying = std::thread::spawn(move || verify(&mut source.open_reader()?));
    verifying.join().unwrap_or_else(|_| Err(StoreError::Other("reading it panicked".to_owned())))
}

/// Goes through the whole chain.
pub(crate) fn verify(store: &mut Store) -> Stored<AuditCheck> {
    let mut last = (0, FIRST.to_owned());
    loop {
        let entries = store.audit(last.0, 1_000)?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            let fits =
                entry.seq == last.0 + 1 && entry.prev_hash == last.1 && entry.hash == entry.expected_hash();
            if !fits {
                return Ok(AuditCheck::Broken { seq: last.0 + 1 });
            }
            last = (entry.seq, entry.hash);
        }
    }
    let head = store.setting(HEAD)?;
    let complete = head.is_none_or(|head| head == format!("{} {}", last.0, last.1));
    Ok(if complete { AuditCheck::Intact { entries: last.0 } } else { AuditCheck::Broken { seq: last.0 + 1 } })
}

/// SHA-256 of bytes in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

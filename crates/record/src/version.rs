//! Which versions of the log are accepted, and which fields each of them has.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

/// The versions that are accepted: the newest and the one before it.
///
/// ```
/// use loopbreaker_record::Versions;
/// let versions = Versions::builtin();
/// assert_eq!(versions.range(), ">=1.0.0 <3.0.0");
/// assert!(versions.of(3).is_none());
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    versions: Vec<Version>,
}

/// What one major version of the log looks like.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    major: u64,
    unknown_fields: UnknownFields,
    fields: BTreeSet<String>,
}

/// What happens to fields that a version does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownFields {
    /// The log is refused, and each of them is named.
    Reject,
    /// They are kept under `extensions`.
    Extensions,
}

impl Versions {
    /// The newest version and the one before it are spoken, no more.
    const KEPT: usize = 2;

    /// The registry that this crate brings along.
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Versions> = LazyLock::new(|| {
            // A test reads the same file, so that the empty registry never happens.
            let versions = Versions::parse(include_str!("../data/versions.json"));
            versions.unwrap_or(Versions { versions: Vec::new() })
        });
        &BUILTIN
    }

    /// Reads a registry: the newest two of its versions are accepted.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let mut registry: Self = serde_json::from_str(text)?;
        registry.versions.sort_by_key(|version| version.major);
        let too_old = registry.versions.len().saturating_sub(Self::KEPT);
        registry.versions.drain(..too_old);
        Ok(registry)
    }

    /// The version of this major number, if it is accepted.
    pub fn of(&self, major: u64) -> Option<&Version> {
        self.versions.iter().find(|version| version.major == major)
    }

    /// The newest version.
    pub fn newest(&self) -> Option<&Version> {
        self.versions.last()
    }

    /// Every version that is accepted, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter()
    }

    /// What is accepted, as a range of semantic versions.
    pub fn range(&self) -> String {
        match (self.versions.first(), self.versions.last()) {
            (Some(first), Some(last)) => format!(">={}.0.0 <{}.0.0", first.major, last.major + 1),
            _ => "none".to_owned(),
        }
    }
}

impl Version {
    /// The number before the first dot.
    pub const fn major(&self) -> u64 {
        self.major
    }

    /// What happens to fields that it does not have.
    pub const fn unknown_fields(&self) -> UnknownFields {
        self.unknown_fields
    }

    /// Whether it has the field of this path, as `meta.trace_id`.
    pub fn has(&self, path: &str) -> bool {
        self.fields.contains(path)
    }

    /// Every field that it has.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(String::as_str)
    }
}

/// The major number of a semantic version, which may have a leading `v`, a pre-release tag and build data.
pub(crate) fn major_of(version: &str) -> Option<u64> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let (version, build) = split(version, '+');
    let (core, tag) = split(version, '-');
    let is_tag = |tag: &str| {
        tag.split('.').all(|part| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    // What sorts as a number is written like one: `01` is none.
    let has_padded = |tag: &str| {
        let is_padded = |part: &str| {
            part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        tag.split('.').any(is_padded)
    };
    if !tag.is_none_or(|tag| is_tag(tag) && !has_padded(tag)) || !build.is_none_or(is_tag) {
        return None;
    }
    let number = |part: &str| {
        let plain = part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
        if plain && part.len() <= 9 { part.parse().ok() } else { None }
    };
    let mut parts = core.split('.').map(number);
    let major: u64 = parts.next()??;
    let rest = [parts.next()??, parts.next()??];
    let _: [u64; 2] = rest;
    parts.next().is_none().then_some(major)
}

/// What [`major_of`] accepts of one major version, for a JSON Schema.
pub(crate) fn pattern_of(major: u64) -> String {
    let number = "(0|[1-9][0-9]{0,8})";
    let part = "(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)";
    let build = "[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*";
    format!("^v?{major}\\.{number}\\.{number}(-{part}(\\.{part})*)?(\\+{build})?$")
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

#[cfg(test)]
mod tests {
    use super::{UnknownFields, Versions, major_of};

    #[test]
    fn the_builtin_registry_accepts_the_newest_and_the_one_before() {
        let versions = Versions::parse(include_str!("../data/versions.json")).unwrap();
        assert_eq!(versions.of(1).unwrap().unknown_fields(), UnknownFields::Reject);
        assert_eq!(versions.newest().unwrap().major(), 2);
        assert_eq!(versions.of(2).unwrap().unknown_fields(), UnknownFields::Extensions);
        assert!(versions.of(0).is_none());
    }

    #[test]
    fn a_registry_with_three_versions_accepts_the_newest_two() {
        let entry = |major| format!(r#"{{"major":{major},"unknown_fields":"reject","fields":[]}}"#);
        let text = format!(r#"{{"versions":[{},{},{}]}}"#, entry(3), entry(1), entry(2));
        let versions = Versions::parse(&text).unwrap();
        assert_eq!(versions.range(), ">=2.0.0 <4.0.0");
        assert!(versions.of(1).is_none());
    }

    #[test]
    fn semantic_versions_are_read_with_v_and_tags() {
        for (text, major) in [
            ("1.0.0", Some(1)),
            ("v2.13.4", Some(2)),
            ("2.0.0-rc.1", Some(2)),
            ("2.0.0+build-7", Some(2)),
            ("2.0.0-rc.1+build.7", Some(2)),
            ("10.0.0", Some(10)),
            ("1.0", None),
            ("1", None),
            ("1.0.0.0", None),
            ("01.0.0", None),
            ("1.0.x", None),
            ("1.0.0-", None),
            ("1.0.0-rc..1", None),
            ("vv1.0.0", None),
            ("", None),
            ("2.0.0-0.10.x01", Some(2)),
            ("2.0.0+01", Some(2)),
            ("2.0.0-01", None),
            ("2.0.0-rc.01", None),
            ("99999999999999999999.0.0", None),
        ] {
            assert_eq!(major_of(text), major, "{text}");
        }
    }
}

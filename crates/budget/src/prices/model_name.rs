//! Names of models as clients write them.

use std::borrow::Cow;

/// A name in one spelling: lower case, without the host or vendor before it, `-` for `.`, `:` and `@`.
pub(super) fn normalise(model: &str) -> Cow<'_, str> {
    // Most clients write a name as its provider does.
    if model.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        return Cow::Borrowed(model);
    }
    let name = model.rsplit('/').next().unwrap_or(model);
    // Bedrock: `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
    let vendor = if name.contains('.') { name.rsplit_once("anthropic.") } else { None };
    let name = vendor.map_or(name, |(_, name)| name);
    spell(name)
}

/// The same with the vendor, for patterns that name one.
pub(super) fn spell(model: &str) -> Cow<'_, str> {
    const MARKS: [char; 3] = ['.', ':', '@'];
    let name = model.trim();
    if name.bytes().any(|byte| byte.is_ascii_uppercase() || matches!(byte, b'.' | b':' | b'@')) {
        Cow::Owned(name.to_ascii_lowercase().replace(MARKS, "-"))
    } else {
        Cow::Borrowed(name)
    }
}

/// The name itself and what is left of it without a version, the longest first.
///
/// Only what is surely a version is cut off: `gpt-5-pro` is not a `gpt-5`, and `claude-opus-4-7` not a
/// `claude-opus-4`; each may cost many times as much.
pub(super) fn bases(name: &str) -> impl Iterator<Item = &str> {
    let cuts = name.rmatch_indices('-').filter(|(at, _)| is_version(&name[at + 1..]));
    std::iter::once(name).chain(cuts.map(|(at, _)| &name[..at]))
}

/// `2024-11-20`, `20250929-v1-0`, `0613`, `001`, `latest`, `preview-09-2025`.
fn is_version(suffix: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = |part: &str| {
        matches!(part, "latest" | "preview" | "exp") || part.strip_prefix('v').is_some_and(is_number)
    };
    let mut parts = suffix.split('-');
    // A first number of one or two digits belongs to the model.
    parts.next().is_some_and(|part| is_word(part) || (is_number(part) && part.len() >= 3))
        && parts.all(|part| is_word(part) || is_number(part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{bases, normalise};

    fn has_base(model: &str, base: &str) -> bool {
        bases(&normalise(model)).any(|name| name == normalise(base))
    }

    #[test]
    fn versions_are_cut_off() {
        for (model, base) in [
            ("gpt-4o-2024-11-20", "gpt-4o"),
            ("gpt-4-0613", "gpt-4"),
            ("openai/gpt-4o", "gpt-4o"),
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
            ("anthropic/claude-opus-5.5", "claude-opus-5-5"),
            ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
            ("models/gemini-2.5-pro", "gemini-2.5-pro"),
            ("publishers/google/models/gemini-2.0-flash-001", "gemini-2.0-flash"),
            ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
            ("GPT-4o", "gpt-4o"),
        ] {
            assert!(has_base(model, base), "{model}");
        }
    }

    #[test]
    fn other_models_are_not_versions() {
        for (model, base) in [
            ("gpt-5-pro", "gpt-5"),
            ("gpt-5.5", "gpt-5"),
            ("gpt-4o-mini", "gpt-4o"),
            ("gpt-4o-audio-preview", "gpt-4o"),
            ("gemini-2.5-flash-preview-tts", "gemini-2.5-flash"),
            ("o3-pro-2025-06-10", "o3"),
            ("claude-opus-4-7", "claude-opus-4"),
            ("claude-opus-4-7-20260301", "claude-opus-4"),
            ("ft:gpt-4o-2024-08-06:acme::id", "gpt-4o"),
            ("gpt-4o-", "gpt-4o"),
        ] {
            assert!(!has_base(model, base), "{model}");
        }
    }

    proptest! {
        #[test]
        fn every_name_is_its_own_longest_base(model in ".{0,40}") {
            let name = normalise(&model);
            let lengths: Vec<usize> = bases(&name).map(str::len).collect();
            prop_assert_eq!(lengths[0], name.len());
            prop_assert!(lengths.is_sorted_by(|longer, shorter| longer > shorter));
        }
    }
}

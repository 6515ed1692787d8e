//! Credentials are masked before anything is written, stored or exported.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};

/// The text with `***` in the place of everything that looks like a credential.
///
/// It knows keys by how they start (`sk-…`, `AKIA…`, `ghp_…`, `AIza…` and others), bearer tokens, signed tokens, the
/// `key` of a URL's query, and private keys. It would rather mask a harmless word than show a key. The time it takes
/// grows linearly with the text, whatever stands in it.
///
/// ```
/// use loopbreaker_telemetry::mask;
///
/// assert_eq!(mask("agent-7"), "agent-7");
/// assert_eq!(mask("curl -H 'Authorization: Bearer sk-proj-a1B2c3D4'"), "curl -H 'Authorization: Bearer ***'");
/// assert_eq!(mask("OPENAI_API_KEY=sk-proj-a1B2c3D4"), "OPENAI_API_KEY=sk-***");
/// ```
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut masked = String::new();
    // Everything before `copied` is in `masked`; the next sign is looked for from `from` on.
    let (mut copied, mut from) = (0, 0);
    // Without the finder nothing is known to be harmless.
    let Some(finder) = &*SIGNS_FINDER else { return Cow::Borrowed("***") };
    while let Some(found) = finder.find(Input::new(text).range(from..)) {
        let (_, secret) = SIGNS[found.pattern().as_usize()];
        let Some(hidden) = secret.behind(text.as_bytes(), found.range()) else {
            from = found.start() + 1;
            continue;
        };
        masked.push_str(&text[copied..hidden.start]);
        masked.push_str("***");
        (copied, from) = (hidden.end, hidden.end);
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    masked.push_str(&text[copied..]);
    Cow::Owned(masked)
}

/// The masked text, cut where it is too long. It is masked first: half a credential is no longer known for one.
pub(crate) fn mask_and_cut(text: &str, max: usize) -> Cow<'_, str> {
    let masked = mask(text);
    if masked.len() <= max {
        return masked;
    }
    let end = (0..=max).rev().find(|end| masked.is_char_boundary(*end)).unwrap_or_default();
    Cow::Owned(format!("{}…", &masked[..end]))
}

/// How credentials start. All of it is ASCII, so that cutting there never splits a character.
const SIGNS: [(&str, Secret); 34] = [
    ("sk-", KEY),
    ("sk_live_", KEY),
    ("sk_test_", KEY),
    ("rk_live_", KEY),
    ("ghp_", KEY),
    ("gho_", KEY),
    ("ghu_", KEY),
    ("ghs_", KEY),
    ("ghr_", KEY),
    ("github_pat_", KEY),
    ("glpat-", KEY),
    ("xoxa-", KEY),
    ("xoxb-", KEY),
    ("xoxp-", KEY),
    ("xoxr-", KEY),
    ("xoxs-", KEY),
    ("pplx-", LONG_KEY),
    ("xai-", LONG_KEY),
    ("gsk_", LONG_KEY),
    ("hf_", LONG_KEY),
    ("r8_", LONG_KEY),
    ("npm_", LONG_KEY),
    ("AIza", LONG_KEY),
    ("ya29.", LONG_KEY),
    ("AKIA", Secret::Run { least: 8, of: is_upper_or_digit }),
    ("ASIA", Secret::Run { least: 8, of: is_upper_or_digit }),
    // A JSON object in base64: the head of every signed token.
    ("eyJ", Secret::Run { least: 16, of: is_token }),
    ("Bearer ", Secret::Bearer),
    ("bearer ", Secret::Bearer),
    ("BEARER ", Secret::Bearer),
    ("?key=", Secret::QueryValue),
    ("&key=", Secret::QueryValue),
    ("-----BEGIN ", Secret::PrivateKey),
    ("\\u0026key=", Secret::QueryValue),
];

/// Short enough for made-up keys, long enough for the names of languages and libraries (`sk-SK`, `sk-learn`).
const KEY: Secret = Secret::Run { least: 6, of: is_key };
/// For signs that are ordinary words or parts of them.
const LONG_KEY: Secret = Secret::Run { least: 16, of: is_key };

static SIGNS_FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(SIGNS.map(|(sign, _)| sign)).ok()
});

/// What stands behind a sign.
#[derive(Clone, Copy)]
enum Secret {
    /// At least so many characters of an alphabet, at the start of a word.
    Run { least: usize, of: fn(u8) -> bool },
    /// The token of a bearer, whatever space is before it.
    Bearer,
    /// The value of a query parameter, however short.
    QueryValue,
    /// A private key in PEM form, up to its end or the end of the text.
    PrivateKey,
}

impl Secret {
    /// Where the secret stands behind its sign, if one does.
    fn behind(self, text: &[u8], sign: Range<usize>) -> Option<Range<usize>> {
        let (before, rest) = (&text[..sign.start], &text[sign.end..]);
        // What stands inside of a word is turned down before anything is scanned, or hostile texts would take long.
        let (skipped, length) = match self {
            Self::Run { .. } | Self::Bearer if !starts_word(before) => return None,
            Self::Run { least, of } => (0, run(rest, least, of)?),
            Self::Bearer => {
                let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
                (blanks, run(&rest[blanks..], 8, is_token)?)
            }
            Self::QueryValue => (0, run(rest, 1, |byte| !b" \t\r\n&#\"'\\<>)".contains(&byte))?),
            Self::PrivateKey => {
                let label = find(&rest[..rest.len().min(64)], b"-----")?;
                find(&rest[..label], b"PRIVATE KEY")?;
                let skipped = label + b"-----".len();
                let body = &rest[skipped..];
                (skipped, find(body, b"-----END ").unwrap_or(body.len()))
            }
        };
        let first = sign.end + skipped;
        Some(first..first + length)
    }
}

/// How many characters of an alphabet the text starts with, when these are enough. The dashes of a private key end
/// every run, or it would hide the sign of that key.
fn run(text: &[u8], least: usize, of: fn(u8) -> bool) -> Option<usize> {
    let belongs = |at: &usize| of(text[*at]) && !text[*at..].starts_with(b"-----");
    let length = (0..text.len()).take_while(belongs).count();
    (length >= least).then_some(length)
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// Whether a word begins behind this text: `disk-` is no `sk-`. Escapes count as what they stand for, since texts are
/// often masked in their JSON or URL form.
fn starts_word(before: &[u8]) -> bool {
    match before {
        [] | [.., b'\\', b'n' | b'r' | b't'] | [.., b'\\', b'u', _, _, _, _] => true,
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        [.., last] => !last.is_ascii_alphanumeric(),
    }
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn is_token(byte: u8) -> bool {
    is_key(byte) || b".~+/=".contains(&byte)
}

fn is_upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::{SIGNS, mask};

    #[test]
    fn keys_of_every_provider_are_masked() {
        for (text, masked) in [
            ("sk-ant-api03-AbCdEf0123456789", "sk-***"),
            ("sk-svcacct-1_2-3456789", "sk-***"),
            ("AKIAIOSFODNN7EXAMPLE", "AKIA***"),
            ("ghp_0123456789abcdefABCDEF0123456789abcd", "ghp_***"),
            ("github_pat_11AAAAAAA0abcdefghijkl", "github_pat_***"),
            ("AIzaSyA-0123456789abcdefghijklmnopqrstu", "AIza***"),
            ("Bearer abcdefgh.ijk/l+m=", "Bearer ***"),
            ("bearer   abcdefghijkl", "bearer   ***"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJ***"),
            ("/v1beta/models?key=x&alt=sse", "/v1beta/models?key=***&alt=sse"),
            ("/v1beta/models?alt=sse&key=abc", "/v1beta/models?alt=sse&key=***"),
        ] {
            assert_eq!(mask(text), masked);
            assert_eq!(mask(&format!("before {text} behind")), format!("before {masked} behind"));
        }
    }

    #[test]
    fn a_private_key_is_masked_up_to_its_end() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----";
        let masked = "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----";
        assert_eq!(mask(&format!("cat id_rsa\n{key}\nok")), format!("cat id_rsa\n{masked}\nok"));
        assert_eq!(mask("-----BEGIN PRIVATE KEY-----\nMIIE"), "-----BEGIN PRIVATE KEY-----***");
        assert_eq!(
            mask("-----BEGIN PGP PRIVATE KEY BLOCK-----lQ"),
            "-----BEGIN PGP PRIVATE KEY BLOCK-----***"
        );
        assert_eq!(
            mask("sk-abcdefgh-----BEGIN PRIVATE KEY-----MIIE"),
            "sk-***-----BEGIN PRIVATE KEY-----***"
        );
        assert_eq!(mask("?key=a-----BEGIN PRIVATE KEY-----MIIE"), "?key=***-----BEGIN PRIVATE KEY-----***");
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----";
        assert_eq!(mask(certificate), certificate);
    }

    #[test]
    fn a_key_behind_an_escape_is_masked() {
        assert_eq!(mask(r#"{"text":"my key:\nsk-abcdef0123"}"#), r#"{"text":"my key:\nsk-***"}"#);
        assert_eq!(mask("q=%20sk-abcdef0123"), "q=%20sk-***");
        assert_eq!(mask(r"\u0022sk-abcdef0123"), r"\u0022sk-***");
        assert_eq!(mask("clé=sk-abcdef0123é"), "clé=sk-***é");
    }

    #[test]
    fn ordinary_words_stay() {
        for text in [
            "task-management-system",
            "risk-assessment",
            "import sk-learn",
            "sk-SK",
            "the bearer of news",
            "an AKIA",
            "half_ghp_",
            "monkey=banana",
            "hf_hub",
            "",
        ] {
            assert!(matches!(mask(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn every_sign_is_ascii() {
        assert!(SIGNS.iter().all(|(sign, _)| sign.is_ascii()));
    }

    #[test]
    fn hostile_texts_take_linear_time() {
        let started = std::time::Instant::now();
        for piece in [
            "-----BEGIN ", "-eyJ", "Bearer ", "sk-", "-----BEGIN X-----", "?key=", "-sk-a ", "xsk-",
            "sk------", "?key=-----",
        ] {
            mask(&piece.repeat((4 << 20) / piece.len()));
        }
        assert!(started.elapsed().as_secs() < 20, "a quadratic scan of 4 MiB takes minutes");
    }

    proptest! {
        #[test]
        fn masking_again_changes_nothing(text in "(sk-|[?&]key=|Bearer |-----BEGIN |PRIVATE KEY-----|eyJ|[a-zA-Z0-9_ \\\\.é-]{0,12}){0,8}") {
            let once = mask(&text).into_owned();
            prop_assert_eq!(mask(&once), once.clone());
        }

        #[test]
        fn no_key_survives_wherever_it_stands(
            before in "([^a-zA-Z0-9]|[ -~]{0,20}[^a-zA-Z0-9])?", key in "[a-zA-Z0-9]{24}", behind in ".{0,20}"
        ) {
            for sign in ["sk-", "ghp_", "xoxb-", "Bearer ", "?key="] {
                let text = format!("{before}{sign}{key}{behind}");
                prop_assert!(!mask(&text).contains(&key), "{}", mask(&text));
            }
        }
    }
}

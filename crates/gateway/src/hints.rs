//! Where the hint goes into a request, and what a provider that refuses it there has taught us.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hyper::header::{AUTHORIZATION, HeaderMap};
use loopbreaker_config::Placement as Configured;
use loopbreaker_dialect::{Dialect, Facts, Hint, Placement, with_hint};

/// What was learned about placements, by upstream and model.
#[derive(Debug, Default)]
pub(crate) struct Placements {
    refused: Mutex<HashMap<UpstreamAndModel, u8>>,
}

type UpstreamAndModel = (Box<str>, Box<str>);

/// A hint to put into a body.
pub(crate) struct ToPlace<'r> {
    pub(crate) dialect: Dialect,
    pub(crate) body: &'r [u8],
    pub(crate) text: &'r str,
    pub(crate) facts: &'r Facts,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) upstream: &'r str,
    pub(crate) model: Option<&'r str>,
    pub(crate) configured: Configured,
}

impl Placements {
    /// So many models are remembered; more than that are one too many to learn from.
    const MAX: usize = 4_096;

    /// The body with the hint; `None` where it may stand nowhere.
    pub(crate) fn place(&self, hint: &ToPlace<'_>) -> Option<Vec<u8>> {
        if hint.facts.signed || is_signed(hint.headers) {
            return None;
        }
        let order = order(hint.configured);
        let learned = self.learned(hint.upstream, hint.model);
        let mut allowed = order.into_iter().skip(usize::from(learned));
        // A cached content holds the system text already, and none may stand beside it.
        allowed.find_map(|placement| {
            if hint.facts.cached_content && placement != Placement::Append {
                return None;
            }
            let append_role = if hint.upstream == "api.openai.com" { "system" } else { "user" };
            with_hint(hint.dialect, hint.body, &Hint { text: hint.text, placement, append_role })
        })
    }

    /// The provider refused a body with a hint: the next placement is tried from now on.
    pub(crate) fn refused(&self, upstream: &str, model: Option<&str>) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= Self::MAX {
            refused.clear();
        }
        let level = refused.entry((upstream.into(), model.unwrap_or_default().into())).or_default();
        *level = level.saturating_add(1);
    }

    /// Whether there is a model that accepts a hint nowhere.
    pub(crate) fn have_run_out(&self, configured: Configured) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.values().any(|level| usize::from(*level) >= order(configured).len())
    }

    fn learned(&self, upstream: &str, model: Option<&str>) -> u8 {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.is_empty() {
            return 0;
        }
        refused.get(&(upstream.into(), model.unwrap_or_default().into())).copied().unwrap_or(0)
    }
}

/// The placements in the order in which they are tried.
fn order(configured: Configured) -> Vec<Placement> {
    match configured {
        Configured::Prepend => vec![Placement::Prepend, Placement::Extend, Placement::Append],
        Configured::Extend => vec![Placement::Extend, Placement::Append],
        Configured::Append => vec![Placement::Append],
    }
}

/// Whether a signature covers the body.
pub(crate) fn is_signed(headers: &HeaderMap) -> bool {
    headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().starts_with(b"AWS4-HMAC-SHA256"))
}

#[cfg(test)]
mod tests {
    use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
    use loopbreaker_config::Placement as Configured;
    use loopbreaker_dialect::{Dialect, Facts};

    use super::{Placements, ToPlace};

    const BODY: &[u8] =
        br#"{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":"hi"}]}"#;

    fn place(placements: &Placements, facts: &Facts, headers: &HeaderMap) -> Option<String> {
        let hint = ToPlace {
            dialect: Dialect::Chat,
            body: BODY,
            text: "STOP",
            facts,
            headers,
            upstream: "example.com",
            model: None,
            configured: Configured::Prepend,
        };
        placements.place(&hint).map(|body| String::from_utf8(body).unwrap())
    }

    #[test]
    fn a_refused_placement_is_followed_by_the_next_until_none_is_left() {
        let (placements, facts, headers) = (Placements::default(), Facts::default(), HeaderMap::new());
        let mut bodies = Vec::new();
        for _ in 0..3 {
            bodies.push(place(&placements, &facts, &headers).unwrap());
            assert!(!placements.have_run_out(Configured::Prepend));
            placements.refused("example.com", None);
        }
        assert!(bodies[0].contains(r#""messages":[{"role":"system","content":"STOP"}"#), "{}", bodies[0]);
        assert_eq!(bodies[1].matches("role").count(), 2, "extended: {}", bodies[1]);
        assert!(bodies[2].contains(r#""role":"user","content":"STOP""#), "{}", bodies[2]);
        assert_eq!(place(&placements, &facts, &headers), None);
        assert!(placements.have_run_out(Configured::Prepend));
        placements.refused("other.com", None);
    }

    #[test]
    fn a_signed_body_is_never_edited() {
        let placements = Placements::default();
        let aws = HeaderMap::from_iter([(
            AUTHORIZATION,
            HeaderValue::from_static("AWS4-HMAC-SHA256 Credential=x"),
        )]);
        assert_eq!(place(&placements, &Facts::default(), &aws), None);
        let signed = Facts { signed: true, ..Facts::default() };
        assert_eq!(place(&placements, &signed, &HeaderMap::new()), None);
    }
}

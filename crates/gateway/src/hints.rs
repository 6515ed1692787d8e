//! Where the hint goes into a request, and what a provider that refuses what we add has taught us.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use hyper::header::{AUTHORIZATION, HeaderMap};
use loopbreaker_config::Placement as Configured;
use loopbreaker_dialect::{Dialect, Facts, Hint, Placement, with_hint};

/// What was learned about placements and about the question for usage, by upstream and model.
#[derive(Debug, Default)]
pub(crate) struct Placements {
    refused: Mutex<HashMap<UpstreamAndModel, Vec<Placement>>>,
    /// Who does not want to be asked for usage.
    mute: Mutex<HashSet<UpstreamAndModel>>,
}

type UpstreamAndModel = (Box<str>, Box<str>);

/// A hint to put into a body.
pub(crate) struct ToPlace<'r> {
    pub(crate) dialect: Dialect,
    pub(crate) body: &'r [u8],
    pub(crate) text: &'r str,
    pub(crate) facts: &'r Facts,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) query: &'r str,
    pub(crate) upstream: &'r str,
    pub(crate) model: Option<&'r str>,
    pub(crate) configured: Configured,
}

impl Placements {
    /// So many models are remembered; more than that are one too many to learn from.
    const MAX: usize = 4_096;

    /// The body with the hint, and where it stands there; `None` where it may stand nowhere.
    pub(crate) fn place(&self, hint: &ToPlace<'_>) -> Option<(Vec<u8>, Placement)> {
        if hint.facts.signed || is_signed(hint.headers, hint.query) {
            return None;
        }
        let refused = self.refused_by(hint.upstream, hint.model);
        let allowed = order(hint.configured).iter().filter(|placement| !refused.contains(placement));
        // A cached content holds the system text already, and none may stand beside it.
        let mut allowed =
            allowed.filter(|placement| !hint.facts.cached_content || **placement == Placement::Append);
        let append_role = if hint.upstream == "api.openai.com" { "system" } else { "user" };
        allowed.find_map(|&placement| {
            let placed =
                with_hint(hint.dialect, hint.body, &Hint { text: hint.text, placement, append_role })?;
            Some((placed, placement))
        })
    }

    /// The provider refused a body with a hint at this place: others are tried from now on. Several requests that were
    /// under way together teach it once.
    pub(crate) fn refused(&self, upstream: &str, model: Option<&str>, placement: Placement) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= Self::MAX {
            refused.clear();
        }
        let places = refused.entry(named(upstream, model)).or_default();
        if !places.contains(&placement) {
            places.push(placement);
        }
    }

    /// Whether there is a model that accepts a hint nowhere.
    pub(crate) fn have_run_out(&self, configured: Configured) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.values().any(|places| order(configured).iter().all(|placement| places.contains(placement)))
    }

    /// The provider refused a body that asks for usage: nobody asks again.
    pub(crate) fn usage_refused(&self, upstream: &str, model: Option<&str>) {
        let mut mute = self.mute.lock().unwrap_or_else(PoisonError::into_inner);
        if mute.len() >= Self::MAX {
            mute.clear();
        }
        mute.insert(named(upstream, model));
    }

    /// Whether this model may be asked for usage.
    pub(crate) fn may_ask_for_usage(&self, upstream: &str, model: Option<&str>) -> bool {
        let mute = self.mute.lock().unwrap_or_else(PoisonError::into_inner);
        mute.is_empty() || !mute.contains(&named(upstream, model))
    }

    fn refused_by(&self, upstream: &str, model: Option<&str>) -> Vec<Placement> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.is_empty() {
            return Vec::new();
        }
        refused.get(&named(upstream, model)).cloned().unwrap_or_default()
    }
}

fn named(upstream: &str, model: Option<&str>) -> UpstreamAndModel {
    (upstream.into(), model.unwrap_or_default().into())
}

/// The placements in the order in which they are tried.
const fn order(configured: Configured) -> &'static [Placement] {
    match configured {
        Configured::Prepend => &[Placement::Prepend, Placement::Extend, Placement::Append],
        Configured::Extend => &[Placement::Extend, Placement::Append],
        Configured::Append => &[Placement::Append],
    }
}

/// Whether a signature covers the body. It stands in a header, or in the query of an address that was signed before.
pub(crate) fn is_signed(headers: &HeaderMap, query: &str) -> bool {
    let in_query = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        name.eq_ignore_ascii_case("X-Amz-Algorithm") && value.starts_with(AWS)
    };
    headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().starts_with(AWS.as_bytes()))
        || (!query.is_empty() && query.split('&').any(in_query))
}

const AWS: &str = "AWS4-HMAC-SHA256";

#[cfg(test)]
mod tests {
    use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
    use loopbreaker_config::Placement as Configured;
    use loopbreaker_dialect::{Dialect, Facts, Placement};

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
            query: "",
            upstream: "example.com",
            model: None,
            configured: Configured::Prepend,
        };
        placements.place(&hint).map(|(body, _)| String::from_utf8(body).unwrap())
    }

    #[test]
    fn a_refused_placement_is_followed_by_the_next_until_none_is_left() {
        let (placements, facts, headers) = (Placements::default(), Facts::default(), HeaderMap::new());
        let mut bodies = Vec::new();
        for placement in [Placement::Prepend, Placement::Extend, Placement::Append] {
            bodies.push(place(&placements, &facts, &headers).unwrap());
            assert!(!placements.have_run_out(Configured::Prepend));
            placements.refused("example.com", None, placement);
        }
        assert!(bodies[0].contains(r#""messages":[{"role":"system","content":"STOP"}"#), "{}", bodies[0]);
        assert_eq!(bodies[1].matches("role").count(), 2, "extended: {}", bodies[1]);
        assert!(bodies[2].contains(r#""role":"user","content":"STOP""#), "{}", bodies[2]);
        assert_eq!(place(&placements, &facts, &headers), None);
        assert!(placements.have_run_out(Configured::Prepend));
    }

    #[test]
    fn one_placement_that_is_refused_to_several_at_once_is_one_lesson() {
        let (placements, facts, headers) = (Placements::default(), Facts::default(), HeaderMap::new());
        for _ in 0..3 {
            placements.refused("example.com", None, Placement::Prepend);
        }
        let extended = place(&placements, &facts, &headers).unwrap();
        assert_eq!(extended.matches("role").count(), 2, "{extended}");
    }

    #[test]
    fn a_model_that_refuses_to_be_asked_for_usage_is_not_asked_again_but_others_are() {
        let placements = Placements::default();
        assert!(placements.may_ask_for_usage("example.com", Some("m")));
        placements.usage_refused("example.com", Some("m"));
        assert!(!placements.may_ask_for_usage("example.com", Some("m")));
        assert!(placements.may_ask_for_usage("example.com", Some("n")));
        assert!(placements.may_ask_for_usage("other.com", Some("m")));
    }

    #[test]
    fn a_signed_body_is_never_edited() {
        let placements = Placements::default();
        let aws = HeaderMap::from_iter([(
            AUTHORIZATION,
            HeaderValue::from_static("AWS4-HMAC-SHA256 Credential=x"),
        )]);
        assert_eq!(place(&placements, &Facts::default(), &aws), None);
        assert!(super::is_signed(
            &HeaderMap::new(),
            "a=b&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0"
        ));
        assert!(!super::is_signed(&HeaderMap::new(), "X-Amz-Algorithm=none&q=AWS4-HMAC-SHA256"));
        let signed = Facts { signed: true, ..Facts::default() };
        assert_eq!(place(&placements, &signed, &HeaderMap::new()), None);
    }
}

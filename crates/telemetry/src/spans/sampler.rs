//! Which traces are kept.

use crate::trace_context::TraceContext;

/// Decides by a trace's id and by what its caller decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sampler {
    own: Own,
    /// Whether the caller's decision wins where there is a caller.
    follows_caller: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Always,
    Never,
    /// Ids below this, of 2^63.
    Below(u64),
}

impl Sampler {
    /// The sampler of this name.
    pub(super) fn parse(name: &str, ratio: f64) -> Option<Self> {
        let (name, follows_caller) = match name.strip_prefix("parentbased_") {
            Some(name) => (name, true),
            None => (name, false),
        };
        #[expect(clippy::cast_sign_loss, reason = "a ratio is not negative")]
        let own = match name {
            "always_on" => Own::Always,
            "always_off" => Own::Never,
            "traceidratio" => Own::Below((ratio * IDS) as u64),
            _ => return None,
        };
        Some(Self { own, follows_caller })
    }

    pub(super) fn keeps(self, trace_id: [u8; 16], caller: Option<&TraceContext>) -> bool {
        if let (true, Some(caller)) = (self.follows_caller, caller) {
            return caller.sampled;
        }
        match self.own {
            Own::Always => true,
            Own::Never => false,
            Own::Below(threshold) => {
                // The last 63 bits, as in the SDKs, so that all services of a trace decide alike.
                (u128::from_be_bytes(trace_id) as u64) >> 1 < threshold
            }
        }
    }
}

impl Default for Sampler {
    /// `parentbased_always_on`, the usual one.
    fn default() -> Self {
        Self { own: Own::Always, follows_caller: true }
    }
}

const IDS: f64 = (1_u64 << 63) as f64;

#[cfg(test)]
mod tests {
    use super::Sampler;
    use crate::trace_context::TraceContext;

    fn caller(sampled: bool) -> TraceContext {
        TraceContext { trace_id: [7; 16], span_id: [7; 8], sampled }
    }

    #[test]
    fn a_caller_is_followed_only_when_asked_to() {
        let keeps = |name, sampled| Sampler::parse(name, 1.0).unwrap().keeps([7; 16], Some(&caller(sampled)));
        assert!(!keeps("parentbased_always_on", false) && keeps("parentbased_always_off", true));
        assert!(keeps("always_on", false) && !keeps("always_off", true));
        assert!(!Sampler::default().keeps([7; 16], Some(&caller(false))));
    }

    #[test]
    fn a_ratio_keeps_its_share_of_traces() {
        let share = |ratio| {
            let sampler = Sampler::parse("parentbased_traceidratio", ratio).unwrap();
            let ids = (0..1_000_u64).map(|id| (u128::from(id) << 54).to_be_bytes());
            ids.filter(|id| sampler.keeps(*id, None)).count()
        };
        assert_eq!([0.0, 0.25, 1.0].map(share), [0, 256, 1_000]);
    }

    #[test]
    fn other_names_are_unknown() {
        assert_eq!(Sampler::parse("xray", 1.0), None);
        assert_eq!(Sampler::parse("parentbased_", 1.0), None);
    }
}

//! Policy bundles of Fairvisor edge, mapped to our rules.
//!
//! What has no counterpart is refused by name, with the next step.

mod algorithm;

use loopbreaker::Action;

use super::rule::Rule;
use super::{id, limit_key};
use crate::cursor::{Cursor, Read};
use crate::fields::Fields;
use crate::kinds::{flag, moment, positive};
use algorithm::Allowance;

/// The keys beside `policies` and `kill_switches` that a bundle begins with.
pub(in crate::sections) fn head(fields: &mut Fields<'_>) {
    fields.check("bundle_version", positive);
    fields.check("issued_at", moment);
    fields.check("expires_at", |value| {
        let hint = "remove it; what should end is taken out of the file";
        value.notice("a bundle's `expires_at` is not looked at: what was loaded stays in force", hint);
        moment(value)
    });
    fields.check("kill_switch_override", |value| {
        let hint = "remove the kill switches that should not act";
        unless_off(value, "there is no switch over the kill switches", hint)
    });
    fields.ignored("defaults");
    fields.foreign(
        "jwt_keys",
        "tokens are not verified here, so keys for them have no counterpart",
        "remove it, and let the proxy in front verify tokens",
    );
}

/// The parts of a policy that have no counterpart.
pub(super) fn spec(fields: &mut Fields<'_>) {
    fields.foreign(
        "fallback_limit",
        "`fallback_limit` has no counterpart: every rule of a policy holds for each of its requests",
        "write it as one more rule, or as a policy of its own with another selector",
    );
    fields.check("circuit_breaker", |value| {
        let hint =
            "write a rule with `cost_usd` and `period: 1m`; failing upstreams have `upstreams.breaker`";
        unless_off(value, "`circuit_breaker` has no counterpart: what it counts is no money", hint)
    });
}

/// A part that may stand there as long as it is switched off.
fn unless_off(value: Cursor<'_>, message: &str, hint: &str) -> Read<()> {
    let fields = value.map()?;
    let enabled = fields.about("enabled", |at| if fields.has("enabled") { flag(at) } else { Ok(false) })?;
    if enabled { Err(value.refuse(message, hint)) } else { Ok(()) }
}

/// One rule of a bundle as rules of ours.
pub(super) fn rule(mut fields: Fields<'_>) -> Read<Vec<Rule>> {
    let name = if fields.has("id") { "id" } else { "name" };
    let id = fields.required(name, "give the rule a name, such as `name: rpm`", id::read);
    let keys =
        fields.required("limit_keys", "write what is counted apart, such as `[\"jwt:org_id\"]`", |value| {
            value.list(limit_key::read)
        });
    let algorithm = fields.required("algorithm", "write `algorithm: token_bucket`", algorithm::name);
    let hint = "write the numbers of the algorithm, such as `{ tokens_per_second: 10, burst: 20 }`";
    let allowance =
        fields.required("algorithm_config", hint, |config| algorithm::allowance(algorithm?, config));
    fields.foreign(
        "match",
        "`match` has no counterpart: a rule holds for every request of its policy",
        "make a policy of its own, whose `selector` names the paths, hosts, tenants or models",
    );
    fields.finish();
    let (id, keys) = (id?, keys?);
    let Allowance { limits, warn_at, throttled } = allowance?;
    let rule = |id, limits, warn_at, on_exceed| Rule { id, keys: keys.clone(), limits, warn_at, on_exceed };
    let throttle_id = format!("{id}/throttle");
    let throttled = throttled.map(|limit| rule(throttle_id, vec![limit], Vec::new(), Action::Throttle));
    Ok(std::iter::once(rule(id, limits, warn_at, Action::Reject)).chain(throttled).collect())
}

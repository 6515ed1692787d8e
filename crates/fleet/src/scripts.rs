//! The scripts. Redis runs each of them in one step, and knows it by its hash after the first time.

use std::sync::LazyLock;

use redis::{Script, ScriptInvocation};

/// What a request asks before it goes out.
pub(crate) static ASK: LazyLock<Script> =
    LazyLock::new(|| script(&[include_str!("scripts/counter.lua"), include_str!("scripts/ask.lua")]));

/// What a request leaves behind.
pub(crate) static AFTER: LazyLock<Script> =
    LazyLock::new(|| script(&[include_str!("scripts/counter.lua"), include_str!("scripts/after.lua")]));

/// What operators and policies decide about a session.
pub(crate) static ORDER: LazyLock<Script> = LazyLock::new(|| script(&[include_str!("scripts/order.lua")]));

/// What operators change at run time.
pub(crate) static SETTING: LazyLock<Script> =
    LazyLock::new(|| script(&[include_str!("scripts/setting.lua")]));

fn script(parts: &[&str]) -> Script {
    let mut code = include_str!("scripts/preamble.lua").to_owned();
    for part in parts {
        code.push_str(part);
    }
    Script::new(&code)
}

/// What begins every key of a tenant. The part in braces puts them all into one slot of a cluster.
pub(crate) fn prefix(tenant: u64) -> String {
    format!("lb:{{{tenant:016x}}}:")
}

/// A call of a script about a tenant. It names two keys that nobody has: in a slot that is moving to another node a script
/// with one of them would run there, where nothing is yet, and begin everything anew; with two Redis says to come again.
pub(crate) fn about(script: &Script, tenant: u64) -> ScriptInvocation<'_> {
    let prefix = prefix(tenant);
    let mut call = script.key(&prefix);
    call.key(format!("{prefix}."));
    call
}

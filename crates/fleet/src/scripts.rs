//! The scripts. Redis runs each of them in one step, and knows it by its hash after the first time.

use std::sync::LazyLock;

use redis::Script;

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

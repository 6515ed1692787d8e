//! What the gateway is set to, in plain sentences.

use std::net::SocketAddr;

use super::words::{duration, names, plural, size};
use crate::Config;
use crate::sections::admin::{Admin, Role};
use crate::sections::hint::{Hint, Placement};
use crate::sections::log::{LogPlace, LogStore};
use crate::sections::prices::Price;
use crate::sections::state::State;
use crate::sections::upstreams::Upstreams;

pub(super) fn explain(config: &Config, said: &mut Vec<String>) {
    listen(config, said);
    upstreams(&config.upstreams, said);
    said.push(match &config.state {
        State::Memory => "state: counters and sessions are kept in this process".to_owned(),
        State::Redis(url) => format!("state: counters and sessions are shared through {url}"),
        State::RedisCluster(url) => {
            format!("state: counters and sessions are shared through the cluster at {url}")
        }
    });
    said.push(log(&config.log, config.data_dir.as_deref()));
    admin(config, said);
    let (hold, timeout) = (duration(config.pause.hold), duration(config.pause.timeout));
    said.push(format!(
        "pause: a request is held for {hold} at most; after {timeout} without an operator its session is rejected"
    ));
    said.push(format!("throttle: at most {} requests wait at once", config.throttle.max_held));
    said.push(format!("reject: a refusal is answered with status {}", config.reject.status));
    said.push(hint(&config.hint));
    for (models, price) in &config.prices.models {
        let Price { input, output, .. } = price;
        said.push(format!("prices: a million tokens of `{models}` cost ${input} in and ${output} out"));
    }
}

fn listen(config: &Config, said: &mut Vec<String>) {
    let by = if config.tls.is_some() { "https" } else { "http" };
    let all = "API, the dashboard, health and metrics";
    let is_open = |address: SocketAddr| !is_private(address) && config.admin.tokens.is_empty();
    match config.admin_listen {
        None if is_open(config.listen) => said.push(format!(
            "listen: the gateway alone is at {by}://{}; others can reach it and there are no tokens, so the {all} are \
             served nowhere: set `admin.tokens` or `admin_listen`",
            config.listen
        )),
        None => said.push(format!("listen: the gateway, the {all} are at {by}://{}", config.listen)),
        Some(admin) => {
            said.push(format!("listen: the gateway is at {by}://{}", config.listen));
            let all = if is_open(admin) { "dashboard, health and metrics" } else { all };
            said.push(format!("admin_listen: the {all} are at {by}://{admin}"));
        }
    }
}

/// Whether only this machine can reach it.
fn is_private(address: SocketAddr) -> bool {
    address.ip().is_loopback()
}

fn upstreams(upstreams: &Upstreams, said: &mut Vec<String>) {
    let Upstreams { openai, anthropic, gemini, routes, timeout, breaker } = upstreams;
    said.push(format!(
        "upstreams: OpenAI's requests go to {openai}, Anthropic's to {anthropic}, Gemini's to {gemini}"
    ));
    for route in routes {
        let (prefix, url, dialect) = (&route.prefix, &route.base_url, route.dialect.as_str());
        said.push(format!("upstreams: requests below `{prefix}` go to {url}, which speaks {dialect}"));
    }
    let (timeout, failures, open_for) = (duration(*timeout), breaker.failures, duration(breaker.open_for));
    said.push(format!(
        "upstreams: an answer may take {timeout}; after {failures} failure{} in a row nothing is sent to an upstream \
         for {open_for}",
        plural(failures as usize)
    ));
}

fn log(log: &LogStore, data_dir: Option<&str>) -> String {
    let place = match &log.place {
        LogPlace::Sqlite => format!("in SQLite below {}", data_dir.unwrap_or(Config::DEFAULT_DATA_DIR)),
        LogPlace::Postgres(url) => format!("in {url}"),
        LogPlace::Off => return "log: decisions are not kept".to_owned(),
    };
    let texts = if log.keep_prompts { "with" } else { "without" };
    let (age, bytes) = (duration(log.max_age), size(log.max_bytes));
    format!(
        "log: decisions are kept {place} for {age}, at most {bytes}, {texts} the texts of requests and answers"
    )
}

fn admin(config: &Config, said: &mut Vec<String>) {
    let Admin { tokens, trust_tenant_header, tenant_header } = &config.admin;
    let count = |role| tokens.iter().filter(|token| token.role == role).count();
    let (viewers, operators) = (count(Role::Viewer), count(Role::Operator));
    said.push(if !tokens.is_empty() {
        let ending = plural(operators);
        format!(
            "admin: the API and the dashboard ask for a token: {operators} token{ending} may act, {viewers} may \
             only look"
        )
    } else if is_private(config.admin_listen.unwrap_or(config.listen)) {
        "admin: there are no tokens, so the API and the dashboard serve this machine only".to_owned()
    } else {
        "admin: there are no tokens, so whoever asks the API is refused".to_owned()
    });
    said.push(if *trust_tenant_header || is_private(config.listen) {
        format!("admin: the header `{tenant_header}` names the tenant; without it, the API key does")
    } else {
        format!("admin: the API key names the tenant; the header `{tenant_header}` is not believed")
    });
}

fn hint(hint: &Hint) -> String {
    let place = match hint.placement {
        Placement::Prepend => "as a system text before all others",
        Placement::Extend => "as a part of the first system text",
        Placement::Append => "at the end of the conversation",
    };
    match &hint.message {
        Some(message) => format!("hint: the model is told {} {place}", names(&[message], "and")),
        None => format!("hint: the model is told what it repeats {place}"),
    }
}

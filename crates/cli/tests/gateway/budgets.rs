//! Requests, tokens and money: reserved before, settled after, and never overrun.

mod requests;
mod settling;
mod usage;

/// One policy with these rules.
fn rules(rules: &str) -> String {
    format!("policies: [{{ id: p, spec: {{ rules: [{rules}] }} }}]")
}

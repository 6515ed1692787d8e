//! The six agents: one file each, with its story.

mod chant;
mod exact_loop;
mod healthy;
mod paraphrase;
mod ping_pong;
mod polling;

use super::script::Agent;

pub(super) fn all() -> [Agent; 6] {
    [
        healthy::agent(),
        polling::agent(),
        exact_loop::agent(),
        ping_pong::agent(),
        paraphrase::agent(),
        chant::agent(),
    ]
}

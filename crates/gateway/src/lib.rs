//! The gateway: a reverse proxy that sees loops in what passes, and breaks them.
//!
//! The path of a request, top to bottom (`pipeline`):
//!
//! ```text
//! listen → route → inbound (body, limits) → consider: identity → inspect → locate → judge → limits
//!        → hold (throttle, pause) → reserve → hints → send (breaker, pool) → answer (usage, calls, chant) → settle
//! ```
//!
//! Nothing on it waits for a store, and whatever of ours fails lets the request through.

mod access;
mod accounts;
mod agreed;
mod answer;
mod broken;
mod cache;
mod certificate;
mod collected;
mod consider;
mod control;
mod credentials;
mod decision;
mod decode;
mod delta;
mod few;
mod fleet;
mod framed;
mod gateway;
mod govern;
mod headers;
mod health;
mod hints;
mod holds;
mod identical;
mod identity;
mod inbound;
mod inspect;
mod joining;
mod journal;
mod judge;
mod keeping;
mod lane;
mod limits;
mod listen;
mod loops;
mod meaning;
mod obey;
mod observe;
mod opening;
mod operator;
mod orders;
mod outgoing;
mod pauses;
mod pipeline;
mod prefix;
mod probe;
mod reading;
mod recency;
mod recent;
mod reminders;
mod reply;
mod rewrite;
mod route;
mod secret;
mod seldom;
mod send;
mod sessions;
mod settings;
mod settle;
mod similar;
mod spellings;
mod state;
mod ticket;
mod timely;
mod transcripts;
mod tunnel;
mod upload;
mod upstream;
mod verdict;
mod wire;
mod within;

pub use certificate::{BadCertificate, check_certificate};
pub use gateway::{Gateway, Handle, StartError};

//! The observatory: everything that agents decide becomes one record that can be searched, loops raise an alarm, and a
//! person can really stop an agent.
//!
//! ```text
//!  logs ─► validate ─► writer: one thread, one transaction for all that waits ─► commit ─► answers
//!          (record)      │ ingest.rs   known or new, session, place in the graph, entropy    │
//!                        │ orders.rs   pause, resume, reject, inject, rewrite, audit         └─► events.rs ─► SSE
//!                        ▼
//!                      store.rs: the one trait that a database has to fit ◄── sqlite.rs ◄── readers: lists, searches
//! ```
//!
//! Nothing is answered before it is safe on disk, and events are numbered in the order of commits. When the store
//! fails, that is a typed error for those who asked and visible in [`Health`]; nothing panics and nothing is lost that
//! was acknowledged.

mod again;
mod agreed;
mod alerts;
mod api;
mod audit;
mod chores;
mod concern;
mod database;
mod detectors;
mod elsewhere;
mod error;
mod events;
mod graph;
mod guarded;
mod health;
mod hitl;
mod ingest;
mod kill_switches;
mod notes;
mod observatory;
mod options;
mod orders;
mod overview;
mod policies;
mod polite;
mod postgres;
mod rates;
mod readers;
mod redact;
mod rewrite;
mod session;
mod sqlite;
mod store;
mod thresholds;
mod time_span;
mod traffic;
mod trial;
mod waste;
mod writer;

pub use agreed::{Setting, SettingChange};
pub use api::{Caller, LoneGuard, Reply, decoded};
pub use audit::{AuditCheck, AuditEntry, verify_audit};
pub use concern::STEPS_OUT_OF_A_LOOP;
pub use elsewhere::OrderElsewhere;
pub use error::StoreError;
pub use events::{Event, Subscription, Topic};
pub use health::Health;
pub use hitl::{HandedOutBy, Held, Observer, Order, OrderGiven, Pause, Standing};
pub use ingest::{Accepted, Arrival, Refusal};
pub use notes::{Completion, Note, Usage, Verdict};
pub use observatory::Observatory;
pub use options::Options;
pub use orders::{Given, OrderRefused};
pub use policies::Policies;
pub use polite::{after_you, hurry};
pub use waste::finding_json;

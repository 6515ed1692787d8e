//! The tests of `tests/http` once more, with a real `PostgreSQL` server; and what only several processes can do.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what cannot be sent or read ends its test")]

#[path = "../http/api.rs"]
mod api;
mod backend;
mod cost;
#[path = "../http/costs.rs"]
mod costs;
#[path = "../http/entropy.rs"]
mod entropy;
#[path = "../http/events.rs"]
mod events;
#[path = "../http/graph.rs"]
mod graph;
#[path = "../http/ingest.rs"]
mod ingest;
#[path = "../http/kill.rs"]
mod kill;
#[path = "../http/loops.rs"]
mod loops;
mod machine;
#[path = "../http/orders.rs"]
mod orders;
#[path = "../http/policies.rs"]
mod policies;
mod proxy;
mod reach;
#[path = "../http/rewrite.rs"]
mod rewrite;
#[path = "../http/server.rs"]
mod server;
mod several;
mod standstill;
#[path = "../http/traffic.rs"]
mod traffic;
#[path = "../http/waste.rs"]
mod waste;

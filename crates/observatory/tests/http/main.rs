//! The observatory over a real TCP port, as agents, operators and dashboards use it.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what cannot be sent or read ends its test")]

mod api;
mod backend;
mod costs;
mod entropy;
mod events;
mod examples;
mod fuzz;
mod graph;
mod ingest;
mod kill;
mod loops;
mod orders;
mod policies;
mod power;
mod rewrite;
mod room;
mod server;
mod traffic;
mod waste;

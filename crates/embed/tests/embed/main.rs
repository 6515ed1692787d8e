//! The embeddings beside their reference, the stores on real servers, the sidecar as a real process.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod encrypted;
mod engines;
mod faults;
mod foreign;
mod proto;
mod reference;
mod server;
mod sidecar;
mod stores;
mod ways;

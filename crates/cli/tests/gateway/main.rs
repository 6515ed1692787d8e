//! The gateway as its clients and its operators meet it: the real binary between real sockets, and every attack on it
//! that we could think of.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]
#![expect(clippy::expect_used, reason = "a test that cannot go on fails where it stands")]
#![expect(clippy::float_cmp, reason = "metrics are counts that are written as decimal numbers")]
#![expect(clippy::option_option, reason = "a chunk, the last chunk, or no chunk any more")]
#![expect(clippy::panic, reason = "a test that cannot go on fails where it stands")]

mod attacks;
mod budgets;
mod cache;
mod decisions;
#[path = "../../../embed/tests/embed/encrypted.rs"]
mod encrypted;
mod faithful;
mod faults;
mod fleet;
mod lab;
mod loops;
mod nginx;
mod ops;
mod orders;
mod policies;
#[path = "../../../observatory/tests/postgres/machine.rs"]
mod postgres;
mod provider;
#[path = "../../../fleet/tests/fleet/server.rs"]
mod redis;
mod safety;
mod talk;
mod traces;
mod wire;

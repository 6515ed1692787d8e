//! The decision log: what an agent wanted, did and got, as one typed record.
//!
//! The types of [`DecisionLog`] are the single source: the JSON Schema for agents in other languages is made from them
//! ([`json_schema`]), and [`DecisionLog::parse`] enforces what it says. Everything that is wrong with a log is
//! reported at once:
//!
//! ```
//! use loopbreaker_record::{DecisionLog, Rejection};
//!
//! let Err(Rejection::Invalid(violations)) = DecisionLog::parse(b"{}") else { panic!("seven fields are required") };
//! assert_eq!(violations.len(), 7);
//! assert_eq!(violations[0].to_string(), "meta.trace_id is required");
//! ```
//!
//! Agents in Rust make logs with [`DecisionLog::builder`].

mod builder;
mod fields;
mod log;
mod moment;
mod rejection;
mod schema;
mod trace_id;
mod validate;
mod version;

pub use builder::Builder;
pub use log::{Action, Cognition, Control, DecisionLog, Identity, Interrupt, Meta, StateDelta, Status};
pub use moment::Moment;
pub use rejection::{Rejection, Violation};
pub use schema::{json_schema, json_schema_of_all};
pub use trace_id::TraceId;
pub use version::{UnknownFields, Version, Versions};

//! The dialects, by recorded requests, answers and streams, and by what holds for all of them.

#![expect(clippy::unwrap_used, reason = "a test ends with the first thing that is not as it should be")]

mod answers;
mod bodies;
mod chants;
mod golden;
mod hints;
mod items;
mod properties;
mod refusals;
mod requests;
mod splits;

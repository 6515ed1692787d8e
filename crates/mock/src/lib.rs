//! A scripted model provider that speaks every dialect: for the demo, the tests and the benchmarks.
//!
//! It answers over real HTTP (1.1 and h2c), in the shapes that the providers' own SDKs accept: `OpenAI` chat and
//! Responses, Anthropic messages, Gemini contents, whole and streamed. What it answers is decided by a script of
//! [`Turn`]s, so that an agent loop can be driven from outside, and everything it was sent can be read back.
//!
//! ```
//! use loopbreaker_mock::{Mock, Turn};
//! # fn main() -> std::io::Result<()> {
//! let mock = Mock::start("127.0.0.1:0")?;
//! mock.script([Turn::call("bash", r#"{"command":"ls"}"#), Turn::text("done")]);
//! println!("point a client at {}", mock.url());
//! assert!(mock.requests().is_empty());
//! mock.shutdown();
//! # Ok(())
//! # }
//! ```
//!
//! The same is there over HTTP for clients in other languages, and from the command line as `mock-provider`:
//!
//! | call | does |
//! |---|---|
//! | `POST /mock/script` | a list of turns, or `{"name": …, "turns": […], "repeat_last": true}` |
//! | `GET /mock/requests` | what was received, oldest first; `?script=NAME` for one script's only |
//! | `POST /mock/reset` | forgets scripts and requests |
//!
//! A request belongs to the script that its `x-mock-script` header names, else to the one without a name.

mod answer;
mod anthropic;
mod base64;
mod body;
mod chat;
mod control;
mod fixed;
mod gemini;
mod issued;
mod json;
mod mock;
mod models;
mod order;
mod provider;
mod question;
mod record;
mod refusal;
mod reply;
mod responses;
mod script;
mod service;
mod turn;

pub use mock::{Builder, Mock};
pub use record::{Outcome, Request};
pub use turn::{Call, Encoding, Turn, Usage};

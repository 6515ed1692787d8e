//! Provider wire formats: bytes to steps, usage and tool calls, hints and refusals back; pure.
//!
//! | to do | how |
//! |---|---|
//! | read a request: what it asks for, its messages, and what happens in them | [`read_request`], [`Facts`], [`Message`] |
//! | go on from an earlier body with the same beginning | [`Mark`] |
//! | put calls and results together into steps | [`Conversation`] |
//! | put a hint into a request, all other bytes as they were | [`with_hint`] |
//! | refuse a request in the client's own language | [`refusal`] |
//! | read an answer: usage, calls, words | [`read_answer`] |
//! | read an answer while it streams, and end it when it goes round in circles | [`StreamReader`] |
//! | ask for usage that the client did not ask for, and keep it from the client | [`asking_for_usage`], [`UsageFilter`] |
//!
//! Nothing here builds a tree of a body. Texts are borrowed from it, objects and lists are walked, and of what is not
//! asked for only the end is looked for. Broken, hostile and endless input costs time in proportion to its length,
//! bounded memory, and never a panic.
//!
//! ```
//! use loopbreaker_dialect::{Conversation, Dialect, read_request};
//!
//! let body = br#"{"model":"claude-sonnet-4-5","messages":[
//!     {"role":"user","content":"list the files"},
//!     {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"bash","input":{"command":"ls"}}]},
//!     {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a.txt"}]}]}"#;
//! let mut conversation = Conversation::default();
//! let mut steps = Vec::new();
//! let reading = read_request(Dialect::Anthropic, body, None, &mut |message| {
//!     message.events(&mut |event| {
//!         conversation.take(event, &mut |step| steps.push(format!("{:?} {:?}", step.tool, step.result)));
//!     });
//! })?;
//! assert_eq!(reading.facts.model.as_deref(), Some("claude-sonnet-4-5"));
//! assert_eq!(steps, ["None None", r#"Some("bash") Some("a.txt")"#]);
//! # Ok::<(), loopbreaker_dialect::Unreadable>(())
//! ```

mod answer;
pub mod content;
pub mod conversation;
mod dialect;
mod digest;
mod events;
mod facts;
mod gemini;
mod hint;
pub mod json;
mod members;
mod refusal;
mod request;
mod rewrite;
mod splice;
mod stream;
mod typed;
mod usage;
mod usage_filter;
mod usage_request;
mod written;

pub use answer::{Answer, Call, Ran, read_answer};
pub use conversation::{CallName, Conversation, Event, Held, Outcome, Who};
pub use dialect::Dialect;
pub use events::{answer_block, events, heard};
pub use facts::Facts;
pub use hint::{Hint, Placement, with_hint};
pub use refusal::{Refusal, refusal};
pub use request::{Mark, Message, Reading, Speaker, Unreadable, read_messages, read_request};
pub use rewrite::{with_last_words, with_result};
pub use stream::{Cut, StreamReader};
pub use usage::Usage;
pub use usage_filter::UsageFilter;
pub use usage_request::asking_for_usage;
pub use written::{Malformed, Written};

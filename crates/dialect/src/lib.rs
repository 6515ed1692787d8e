//! Provider wire formats: bytes to steps, usage and tool calls, hints and refusals back; pure.

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
mod refusal;
mod request;
mod splice;
mod stream;
mod usage;
mod usage_filter;
mod usage_request;
mod written;

pub use answer::{Answer, Call, read_answer};
pub use conversation::{CallName, Conversation, Event, Held, Outcome, Who};
pub use dialect::Dialect;
pub use events::{answer_block, events, heard};
pub use facts::Facts;
pub use hint::{Hint, Placement, with_hint};
pub use refusal::{Refusal, refusal};
pub use request::{Mark, Message, Reading, Speaker, Unreadable, read_request};
pub use stream::{Cut, StreamReader};
pub use usage::Usage;
pub use usage_filter::UsageFilter;
pub use usage_request::asking_for_usage;
pub use written::{Malformed, Written};

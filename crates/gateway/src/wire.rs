//! HTTP/1.1 as nearly every request and answer speaks it: a head, and a body with its length.
//!
//! hyper serves everything that HTTP can be; a request passes through its queues, channels and tasks on both sides of
//! a proxy, and that costs more than all that is thought about it. Agents send one plain request after the other, so
//! these go a short way: read and written here, by whoever waits for them. Whatever is out of the ordinary (another
//! version, a coding for the transfer, an upgrade, an expectation, two lengths) is left to hyper, byte for byte.

mod answer;
mod chunked;
mod known;
mod patience;
mod pipe;
mod request;
mod rewound;
mod stream;
mod write;
mod written;

pub(crate) use answer::{AnswerHead, Framing, MAX_HEADERS, read_answer_head};
pub(crate) use chunked::{Chunked, Piece};
pub(crate) use patience::Patience;
pub(crate) use pipe::{Pipe, Queue};
pub(crate) use request::{Most, RequestHead, Seen, read_request_head};
pub(crate) use rewound::Rewound;
pub(crate) use stream::Stream;
pub(crate) use write::{Encoding, ReplyHead, RequestLine, chunk_end, chunk_start, last_chunk};

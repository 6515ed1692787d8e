//! What somebody sends who wants to get past it, through it or to bring it down.

mod framing;
mod lanes;
mod paths;
mod transcripts;

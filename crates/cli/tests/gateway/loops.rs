//! Loops: the same request again, and the same call again inside of a transcript.

mod holds;
mod identical;
mod ladder;
mod references;
mod retries;
mod tails;
mod tenants;
mod typed;
mod way_out;

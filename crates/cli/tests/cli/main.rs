//! The binary as its users meet it: arguments, files and pipes in; output, errors and exit codes out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod binary;
mod broken_input;
mod cases;
mod check;
mod colour;
mod completions;
mod config_lookup;
mod credentials;
mod demo;
mod exit_codes;
mod formats;
mod golden;
mod help;
mod json_shape;
mod memory;
mod page;
mod pipes;
mod probe;
mod quality;
mod semantic;
mod served;
mod table;

//! What the redundancy detector must see, and above all what it must not.

mod answers;
mod envelopes;
mod frames;
mod inferred;
mod kinds;
mod monologues;
mod names;
mod properties;
mod reasons;
mod remarks;
mod rounds;
mod screens;
mod script;
mod searches;
mod standstills;
mod strangers;
mod sweeps;
mod thresholds;
mod unseen;
mod vetoes;

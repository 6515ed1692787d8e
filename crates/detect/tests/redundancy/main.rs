//! What the redundancy detector must see, and above all what it must not.

mod kinds;
mod monologues;
mod properties;
mod reasons;
mod script;
mod searches;
mod strangers;
mod sweeps;
mod thresholds;
mod unseen;
mod vetoes;

//! Which requests a policy is for, whether it acts, and how it is changed while requests run.

mod modes;
mod reloads;
mod selectors;
mod switches;
mod thresholds;

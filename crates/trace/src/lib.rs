//! Recorded runs.

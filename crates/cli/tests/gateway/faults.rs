//! Whatever fails, ours or the provider's: requests go on, it is told, and it heals by itself.

mod clients;
mod ours;
mod shutdown;
mod store;
mod upstream;

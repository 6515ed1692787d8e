//! Credentials, logs and the operator's API: who may see and do what.

mod api;
mod credentials;
mod privacy;

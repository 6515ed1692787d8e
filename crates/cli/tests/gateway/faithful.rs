//! What passes stays as it is, in both directions.

mod compressed;
mod headers;
mod large;
mod protocols;
mod streams;

pub(crate) use protocols::over_http2;

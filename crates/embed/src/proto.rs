//! The messages and the service of `proto/loopbreaker/embedding/v1/embedding.proto`.

#[expect(
    unreachable_pub,
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated; `tests/embed/proto.rs` keeps it up to date"
)]
mod v1 {
    include!("proto/loopbreaker.embedding.v1.rs");
}

pub(crate) use v1::embedding_service_client::EmbeddingServiceClient;
pub(crate) use v1::embedding_service_server::{EmbeddingService, EmbeddingServiceServer};
pub(crate) use v1::{CheckLoopRequest, CheckLoopResponse};

/// The descriptors, for reflection.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!("proto/loopbreaker.embedding.v1.bin");

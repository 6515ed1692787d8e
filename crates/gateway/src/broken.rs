//! Why a body broke off before its end.

use std::io;

/// What went wrong with a connection in the middle of a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenOff {
    /// On a connection that hyper serves.
    #[error(transparent)]
    Hyper(#[from] hyper::Error),
    /// The connection itself.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// The other side does not keep to the framing.
    #[error("{0}")]
    Framing(&'static str),
}

impl BrokenOff {
    /// The other side closed the connection in the middle of something.
    pub(crate) fn early_end() -> Self {
        Self::Connection(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "connection closed before message completed",
        ))
    }

    /// Whether a body of a client's broke while it was passed on, which is no fault of the provider.
    pub(crate) fn is_of_the_client(&self) -> bool {
        matches!(self, Self::Hyper(error) if error.is_user())
    }
}

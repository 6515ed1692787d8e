//! A connection whose first bytes were read already, as if they had not been.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::stream::Stream;

/// Gives what was read before, then what comes.
#[derive(Debug)]
pub(crate) struct Rewound {
    before: Bytes,
    stream: Stream,
}

impl Rewound {
    pub(crate) const fn new(before: Bytes, stream: Stream) -> Self {
        Self { before, stream }
    }
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.before.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, into);
        }
        let most = self.before.len().min(into.remaining());
        into.put_slice(&self.before[..most]);
        self.before.advance(most);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::Rewound;

    #[tokio::test]
    async fn what_was_read_comes_again_before_the_rest() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut there = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let here = listener.accept().await.unwrap().0;
        there.write_all(b" and after").await.unwrap();
        there.shutdown().await.unwrap();
        let mut rewound = Rewound::new(Bytes::from_static(b"before"), here.into());
        let mut few = [0; 3];
        rewound.read_exact(&mut few).await.unwrap();
        let mut rest = String::new();
        rewound.read_to_string(&mut rest).await.unwrap();
        assert_eq!((&few, &*rest), (b"bef", "ore and after"));
        rewound.write_all(b"heard").await.unwrap();
        drop(rewound);
        let mut heard = String::new();
        there.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "heard");
    }
}

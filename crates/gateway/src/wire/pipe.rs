//! Bytes that have come on a connection, and bytes that are to go.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWrite};

use super::stream::Stream;

/// A connection and what was read of it.
#[derive(Debug)]
pub(crate) struct Pipe {
    stream: Stream,
    /// What has come and was not taken yet.
    pub(crate) ahead: BytesMut,
    /// Room for a message like the last one.
    room: usize,
}

impl Pipe {
    /// Room for a head and a short body.
    const LEAST_ROOM: usize = 8 << 10;
    /// Whoever sends long messages gets so much room for the next one before it says how long that is.
    const MOST_ROOM: usize = 256 << 10;
    /// A buffer that has grown beyond this is not kept for the next message.
    const MOST_KEPT: usize = 64 << 10;

    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, ahead: BytesMut::new(), room: Self::LEAST_ROOM }
    }

    /// Reads what has come; 0 when the other side sends no more.
    pub(crate) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_fill_for(context, 0)
    }

    /// Reads what has come, with room for as much as is `expected`.
    pub(crate) fn poll_fill_for(
        &mut self,
        context: &mut Context<'_>,
        expected: usize,
    ) -> Poll<io::Result<usize>> {
        // Room is made when there is something to read: most connections wait most of the time.
        if let Stream::Plain(stream) = &self.stream {
            ready!(stream.poll_read_ready(context))?;
        }
        let free = self.ahead.capacity() - self.ahead.len();
        if free <= expected || free < Self::LEAST_ROOM / 2 {
            // One byte more than is expected tells that nothing else has come, without asking once more.
            self.ahead.reserve((expected + 1).max(self.room));
        }
        pin!(self.stream.read_buf(&mut self.ahead)).poll(context)
    }

    /// Takes what has come, at most so many bytes.
    pub(crate) fn take(&mut self, most: usize) -> Bytes {
        self.ahead.split_to(most.min(self.ahead.len())).freeze()
    }

    /// A message of this length is over: what was needed for a long one is given back.
    pub(crate) fn rest(&mut self, length: usize) {
        let like_this = length.saturating_add(Self::LEAST_ROOM / 4).min(Self::MOST_ROOM);
        self.room = like_this.next_power_of_two().max(Self::LEAST_ROOM);
        if self.ahead.is_empty() && self.ahead.capacity() > Self::MOST_KEPT {
            self.ahead = BytesMut::new();
        }
    }

    /// Sends what is in the queue, to its end.
    pub(crate) fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut Queue) -> Poll<io::Result<()>> {
        if queue.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while !queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); Queue::AT_ONCE];
            let count = queue.slices(&mut slices);
            let slices = slices.get(..count).unwrap_or_default();
            let stream = Pin::new(&mut self.stream);
            let written = match slices {
                [one] => ready!(stream.poll_write(context, one))?,
                several => ready!(stream.poll_write_vectored(context, several))?,
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            queue.advance(written);
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Sends one part and then the other, of which so much has been written.
    pub(crate) fn poll_send_both(
        &mut self,
        context: &mut Context<'_>,
        parts: [&[u8]; 2],
        written: &mut usize,
    ) -> Poll<io::Result<()>> {
        let [first, second] = parts;
        if *written == first.len() + second.len() {
            return Poll::Ready(Ok(()));
        }
        while *written < first.len() + second.len() {
            let stream = Pin::new(&mut self.stream);
            let behind = second.get(written.saturating_sub(first.len())..).unwrap_or_default();
            let more = match first.get(*written..) {
                None | Some([]) => ready!(stream.poll_write(context, behind))?,
                Some(front) => {
                    ready!(stream.poll_write_vectored(context, &[IoSlice::new(front), IoSlice::new(behind)]))?
                }
            };
            if more == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *written += more;
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Tells the other side that nothing more comes.
    pub(crate) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    /// The connection, and what was read of it and not taken.
    pub(crate) fn into_parts(self) -> (Stream, Bytes) {
        (self.stream, self.ahead.freeze())
    }
}

/// What is to be sent, in pieces that are not copied together.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pieces: VecDeque<Bytes>,
    bytes: usize,
}

impl Queue {
    /// As many pieces go in one call of the system.
    const AT_ONCE: usize = 16;
    /// More than this is sent before anything is added.
    const FULL: usize = 64 << 10;

    pub(crate) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.bytes += piece.len();
            self.pieces.push_back(piece);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether it is time to send what is there.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= Self::FULL || self.pieces.len() >= Self::AT_ONCE
    }

    fn slices<'q>(&'q self, into: &mut [IoSlice<'q>; Self::AT_ONCE]) -> usize {
        let filled = into.iter_mut().zip(&self.pieces).map(|(slice, piece)| *slice = IoSlice::new(piece));
        filled.count()
    }

    fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(first) = self.pieces.front_mut() {
            if first.len() > written {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use bytes::{Bytes, BytesMut};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::{Pipe, Queue};

    async fn both_ends() -> (Pipe, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Pipe::new(listener.accept().await.unwrap().0.into()), there)
    }

    #[tokio::test]
    async fn pieces_arrive_in_their_order_however_many_and_large_they_are() {
        let (mut pipe, mut there) = both_ends().await;
        let mut queue = Queue::default();
        let pieces: Vec<Vec<u8>> = (0_u8..60).map(|n| vec![n; usize::from(n) * 3_000]).collect();
        for piece in &pieces {
            queue.push(Bytes::copy_from_slice(piece));
        }
        assert!(queue.is_full());
        let sending = tokio::spawn(async move {
            std::future::poll_fn(|context| pipe.poll_send(context, &mut queue)).await.unwrap();
            assert!(queue.is_empty() && !queue.is_full());
        });
        let mut came = Vec::new();
        there.read_to_end(&mut came).await.unwrap();
        sending.await.unwrap();
        assert!(came == pieces.concat());
    }

    #[tokio::test]
    async fn two_parts_arrive_one_behind_the_other() {
        for (first, second) in [(9, 0), (9, 900_000), (700_000, 800_000), (0, 3)] {
            let (mut pipe, mut there) = both_ends().await;
            let parts = [vec![1; first], vec![2; second]];
            let whole = parts.concat();
            let sending = tokio::spawn(async move {
                let mut written = 0;
                let parts = [&*parts[0], &*parts[1]];
                std::future::poll_fn(|context| pipe.poll_send_both(context, parts, &mut written))
                    .await
                    .unwrap();
                assert_eq!(written, first + second);
            });
            let mut came = Vec::new();
            there.read_to_end(&mut came).await.unwrap();
            sending.await.unwrap();
            assert!(came == whole, "{first} {second}");
        }
    }

    #[tokio::test]
    async fn what_has_come_is_taken_in_parts_and_the_end_is_seen() {
        let (mut pipe, mut there) = both_ends().await;
        there.write_all(b"head and body").await.unwrap();
        drop(there);
        while std::future::poll_fn(|context| pipe.poll_fill(context)).await.unwrap() > 0 {}
        assert_eq!(pipe.take(4), "head");
        assert_eq!(pipe.take(100), " and body");
    }

    #[tokio::test]
    async fn as_long_as_nothing_comes_no_room_is_made() {
        let (mut pipe, mut there) = both_ends().await;
        // Of a new connection it is not known yet that nothing has come.
        for _ in 0..2 {
            pipe.ahead = BytesMut::new();
            let nothing = std::future::poll_fn(|context| Poll::Ready(pipe.poll_fill(context))).await;
            assert!(nothing.is_pending());
        }
        assert_eq!(pipe.ahead.capacity(), 0);
        there.write_all(b"something").await.unwrap();
        assert_eq!(std::future::poll_fn(|context| pipe.poll_fill(context)).await.unwrap(), 9);
    }

    #[tokio::test]
    async fn room_that_a_long_message_needed_is_given_back() {
        let (mut pipe, mut there) = both_ends().await;
        let sending = tokio::spawn(async move { there.write_all(&vec![7; 300_000]).await.unwrap() });
        while pipe.ahead.len() < 300_000 {
            std::future::poll_fn(|context| pipe.poll_fill_for(context, 300_000)).await.unwrap();
        }
        sending.await.unwrap();
        assert_eq!(pipe.take(300_000).len(), 300_000);
        pipe.rest(300_000);
        assert!(pipe.ahead.capacity() <= Pipe::MOST_KEPT);
    }
}

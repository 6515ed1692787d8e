//! How long an answer may take, where the one who waits may be late, too.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, timeout};

/// A timer goes off at most this late on a worker that has time for it.
const PUNCTUAL: Duration = Duration::from_millis(2);

/// Waits for an answer within the limit. A worker that had its hands full finds the limit over and has not looked for the
/// answer meanwhile, or has not even sent the question: that says nothing about whoever is asked, so it looks once more.
pub(crate) async fn within<F: Future + ?Sized>(
    limit: Duration,
    mut answer: Pin<&mut F>,
) -> Option<F::Output> {
    let begun = Instant::now();
    match timeout(limit, answer.as_mut()).await {
        Ok(answer) => Some(answer),
        Err(_) if begun.elapsed() > limit + PUNCTUAL => timeout(limit, answer).await.ok(),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    use super::within;

    const LIMIT: Duration = Duration::from_millis(200);

    /// Asks a peer on another thread, which answers at once where it `answers`.
    async fn asked(answers: bool) -> (Option<u8>, Duration) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let peer = listener.into_std().expect("a listener");
        peer.set_nonblocking(false).expect("it waits");
        let thread = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = peer.accept().expect("a connection");
            let mut question = [0];
            while stream.read(&mut question).is_ok_and(|read| read > 0) {
                if answers {
                    stream.write_all(&question).expect("an answer");
                }
            }
        });
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let begun = Instant::now();
        let answer = {
            let mut asking = pin!(async {
                // Somebody else has its turn before the question is sent, and takes all the time that there is.
                tokio::task::yield_now().await;
                stream.write_all(&[7]).await.expect("it is sent");
                stream.read_u8().await.expect("an answer")
            });
            within(LIMIT, asking.as_mut()).await
        };
        let waited = begun.elapsed();
        drop(stream);
        thread.join().expect("the peer ends");
        (answer, waited)
    }

    #[tokio::test]
    async fn the_time_in_which_a_worker_was_busy_is_nobodys_fault() {
        let busy = tokio::spawn(async { std::thread::sleep(2 * LIMIT) });
        assert_eq!(asked(true).await.0, Some(7));
        busy.await.expect("it ends");
    }

    #[tokio::test]
    async fn who_does_not_answer_is_waited_for_within_the_limit() {
        let (answer, waited) = asked(false).await;
        assert_eq!(answer, None);
        assert!(waited < 3 * LIMIT, "{waited:?}");
    }
}

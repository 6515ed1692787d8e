//! Connections that become web sockets: tunnelled both ways, unread.

use hyper::Response;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use crate::answer::{End, Ended, WhenOver};

/// Joins a client's connection with that of the provider, as soon as both have changed their protocol.
pub(crate) fn join(client: OnUpgrade, mut answer: Response<Incoming>, when_over: WhenOver) {
    let provider = hyper::upgrade::on(&mut answer);
    tokio::spawn(async move {
        if let (Ok(client), Ok(provider)) = tokio::join!(client, provider) {
            // However it ends, both sides see it by their connection.
            drop(copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(provider)).await);
        }
        when_over(Ended { end: End::Complete, answer: None, chant: None, first_chunk: None, kept: None });
    });
}

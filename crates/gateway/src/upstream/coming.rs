//! The body of an answer, as it comes from the provider.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::direct::Direct;
use super::line::Line;
use super::{Origin, Pool};
use crate::broken::BrokenOff;
use crate::wire::{Chunked, Framing, Piece};

/// A body, and the connection on which it comes.
#[derive(Debug)]
pub(crate) enum Coming {
    /// On a connection that goes back to its pool at the end.
    Direct(Box<Reading>),
    /// On one that hyper reads, and that ends with it.
    Line(Box<Line>, Incoming),
}

/// A body that is read here.
#[derive(Debug)]
pub(crate) struct Reading {
    /// `None` when the body is over.
    connection: Option<Direct>,
    left: Left,
    /// Whether the provider lets the connection carry another request.
    keeps_alive: bool,
    home: (Pool, Origin),
}

#[derive(Debug)]
enum Left {
    Length(u64),
    Chunked(Chunked),
    Close,
}

/// Room for what comes at once of a long body.
const MAX_ROOM: u64 = 64 << 10;

impl Coming {
    pub(super) fn direct(
        connection: Direct,
        framing: Framing,
        keeps_alive: bool,
        home: (Pool, Origin),
    ) -> Self {
        let left = match framing {
            Framing::Length(length) => Left::Length(length),
            Framing::Chunked => Left::Chunked(Chunked::default()),
            Framing::Close => Left::Close,
        };
        let mut reading = Reading { connection: Some(connection), left, keeps_alive, home };
        if reading.is_over() {
            reading.give_back();
        }
        Self::Direct(Box::new(reading))
    }

    /// The connection changes its protocol: it goes on by itself.
    pub(crate) fn into_upgrading(self) -> Option<Incoming> {
        match self {
            Self::Direct(_) => None,
            Self::Line(line, incoming) => {
                line.run_by_itself();
                Some(incoming)
            }
        }
    }
}

impl Reading {
    fn is_over(&self) -> bool {
        match &self.left {
            Left::Length(left) => *left == 0,
            Left::Chunked(chunked) => chunked.is_over(),
            Left::Close => self.connection.is_none(),
        }
    }

    /// The answer was read to its end: the connection is free again, unless something is left over on it.
    fn give_back(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && self.keeps_alive
            && connection.is_clean()
        {
            connection.pipe().rest(0);
            self.home.0.keep(&self.home.1, connection);
        }
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        // A provider that answers early gets the rest of its request all the same. One that takes no more of it may
        // still have something to say.
        drop(connection.poll_send(context));
        loop {
            let pipe = connection.pipe();
            let piece = match &mut self.left {
                Left::Length(left) => {
                    let data = pipe.take(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= data.len() as u64;
                    if data.is_empty() { Piece::More } else { Piece::Data(data) }
                }
                Left::Chunked(chunked) => chunked.next(&mut pipe.ahead)?,
                Left::Close => {
                    let data = pipe.take(usize::MAX);
                    if data.is_empty() { Piece::More } else { Piece::Data(data) }
                }
            };
            match piece {
                Piece::Data(data) => {
                    if self.is_over() {
                        self.give_back();
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Piece::Trailers(trailers) => return Poll::Ready(Some(Ok(self.end_with(trailers)))),
                Piece::End => {
                    self.give_back();
                    return Poll::Ready(None);
                }
                Piece::More => {
                    let room = match &self.left {
                        Left::Length(left) => (*left).min(MAX_ROOM) as usize,
                        Left::Chunked(_) | Left::Close => 0,
                    };
                    match ready!(connection.pipe().poll_fill_for(context, room)) {
                        Ok(0) if matches!(self.left, Left::Close) => {
                            self.connection = None;
                            return Poll::Ready(None);
                        }
                        Ok(0) => return Poll::Ready(Some(Err(BrokenOff::early_end()))),
                        Ok(_) => {}
                        Err(error) => return Poll::Ready(Some(Err(error.into()))),
                    }
                }
            }
        }
    }

    fn end_with(&mut self, trailers: HeaderMap) -> Frame<Bytes> {
        self.give_back();
        Frame::trailers(trailers)
    }
}

impl Body for Coming {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Direct(reading) => reading.poll_piece(context),
            Self::Line(line, body) => {
                let polled = line.poll(context, |context| Pin::new(&mut *body).poll_frame(context));
                polled.map(|frame| frame.map(|frame| frame.map_err(BrokenOff::from)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Direct(reading) => reading.is_over(),
            Self::Line(_, body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Direct(reading) => match reading.left {
                Left::Length(left) => SizeHint::with_exact(left),
                Left::Chunked(_) | Left::Close => SizeHint::new(),
            },
            Self::Line(_, body) => body.size_hint(),
        }
    }
}

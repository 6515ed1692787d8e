//! A provider that does with its connections exactly what a test says.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::wire::{Asked, Wire};

/// It listens until it is dropped.
pub(crate) struct Provider {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
    stopping: Arc<AtomicBool>,
}

/// What one connection is told to do.
pub(crate) struct Conversation {
    pub(crate) wire: Wire,
    seen: Arc<Mutex<Vec<Asked>>>,
}

impl Provider {
    /// Answers every request with the same bytes.
    pub(crate) fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::doing(
            move |conversation| while conversation.asked().is_some() && conversation.wire.try_send(&bytes) {},
        )
    }

    /// Gives every connection to `work`, on a thread of its own.
    pub(crate) fn doing(work: impl Fn(&mut Conversation) + Send + Sync + 'static) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), work)
    }

    /// The same at an address of choice.
    pub(crate) fn at(address: SocketAddr, work: impl Fn(&mut Conversation) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let provider = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            connections: Arc::default(),
            stopping: Arc::default(),
        };
        let (seen, connections, stopping) =
            (Arc::clone(&provider.seen), Arc::clone(&provider.connections), Arc::clone(&provider.stopping));
        let work = Arc::new(work);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopping.load(Ordering::Acquire) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                connections.fetch_add(1, Ordering::AcqRel);
                let (work, seen) = (Arc::clone(&work), Arc::clone(&seen));
                std::thread::spawn(move || work(&mut Conversation { wire: Wire::on(stream), seen }));
            }
        });
        provider
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().clone()
    }

    /// How often somebody has connected.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }
}

impl Conversation {
    /// The next request; nothing when the other side has gone.
    pub(crate) fn asked(&mut self) -> Option<Asked> {
        let asked = self.wire.asked()?;
        self.seen.lock().unwrap().push(asked.clone());
        Some(asked)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        // It looks up when somebody comes.
        drop(TcpStream::connect(self.address));
    }
}

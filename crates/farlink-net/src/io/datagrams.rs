//! Datagrams of applications over the sessions of an endpoint.

use std::net::SocketAddr;

use bytes::Bytes;

use crate::mux::{Datagram, DatagramError, Route, USUAL_CLASS};
use crate::seal::PublicKey;

use super::endpoint::Endpoint;

impl Endpoint {
    /// Sends a datagram to a port of a peer ([`Mux::send_datagram`](crate::mux::Mux::send_datagram)): it arrives once or not at all.
    /// Nothing is awaited. [`finish`](Self::finish) waits until all have been sent.
    ///
    /// # Errors
    /// If it is longer than [`longest_datagram`](Self::longest_datagram), or no session can be begun.
    pub fn send_datagram(
        &self,
        peer: &PublicKey,
        address: SocketAddr,
        port: u16,
        data: Bytes,
    ) -> Result<(), DatagramError> {
        self.send_datagram_in_class(peer, address, (USUAL_CLASS, port), data)
    }

    /// As [`send_datagram`](Self::send_datagram), in a class and to a port
    /// ([`Mux::send_datagram_in_class`](crate::mux::Mux::send_datagram_in_class)).
    ///
    /// # Errors
    /// As [`send_datagram`](Self::send_datagram).
    pub fn send_datagram_in_class(
        &self,
        peer: &PublicKey,
        address: SocketAddr,
        (class, port): (u8, u16),
        data: Bytes,
    ) -> Result<(), DatagramError> {
        let mut state = self.shared.lock();
        let now = state.clock.now();
        state.mux.send_datagram_in_class(now, peer, Route::to(address), &self.connection, (class, port, data))?;
        state.has_datagrams = true;
        drop(state);
        self.shared.wake_driver.notify_one();
        Ok(())
    }

    /// As [`send_datagram_in_class`](Self::send_datagram_in_class), but only over a session that there is with the peer
    /// ([`Mux::answer_datagram`](crate::mux::Mux::answer_datagram)). Returns whether it was taken.
    pub fn answer_datagram(&self, peer: &PublicKey, (class, port): (u8, u16), data: Bytes) -> bool {
        let mut state = self.shared.lock();
        if !state.mux.answer_datagram(peer, &self.connection, (class, port, data)) {
            return false;
        }
        state.has_datagrams = true;
        drop(state);
        self.shared.wake_driver.notify_one();
        true
    }

    /// The longest datagram that may be sent to a peer at present, bytes: some 900 in the first round trip, some 1,100 after it, and
    /// as much as the longest packet that is found to pass.
    pub fn longest_datagram(&self, peer: &PublicKey, address: SocketAddr) -> usize {
        self.shared.lock().mux.longest_datagram(peer, &Route::to(address))
    }

    /// Datagrams to a port are kept for [`receive_datagram`](Self::receive_datagram): up to 1 MiB of all ports together. What
    /// exceeds that is dropped and counted.
    pub fn listen_datagrams(&self, port: u16) {
        self.shared.lock().mux.listen_datagrams(port);
    }

    /// The next datagram; `None` if the socket cannot be used any more. It may be cancelled and loses nothing then.
    pub async fn receive_datagram(&self) -> Option<Datagram> {
        loop {
            let arrived = self.shared.datagrams.notified();
            {
                let mut state = self.shared.lock();
                if let Some(datagram) = state.mux.poll_datagram() {
                    return Some(datagram);
                }
                if state.failure.is_some() {
                    return None;
                }
            }
            arrived.await;
        }
    }
}

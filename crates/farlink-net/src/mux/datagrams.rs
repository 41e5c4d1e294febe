//! Datagrams of applications: sent once, never repeated, and delivered in the order in which they arrive. `[Y22]`

use bytes::Bytes;
use farlink_core::Time;
use farlink_core::protocol::aerotp::AerotpConfig;

use crate::seal::PublicKey;

use super::datagram_queue::{Datagram, longest};
use super::rates::USUAL_CLASS;
use super::{Mux, OpenError, Route};

/// Why a datagram was not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// No packet of the path can hold it.
    #[error(
        "a datagram of {bytes} bytes is too long: at present {most} fit into a packet; send less at once, or a stream"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest one that may be sent now.
        most: usize,
    },
    /// There is no session with the peer, and none could be begun.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl Mux {
    /// Sends a datagram to a port of a peer, over the session that there is with it or a new one. It arrives once, or not at all; it
    /// needs no round trip. Datagrams take turns with the data of connections with the same settings, at their rate, though they
    /// tell the rate control nothing: without connections a learnt rate stays at its beginning, so set one. When more than 1 MiB
    /// waits, the oldest datagrams are dropped and counted.
    ///
    /// # Errors
    /// If no packet can hold it, or as [`connect`](Self::connect).
    pub fn send_datagram(
        &mut self,
        now: Time,
        peer: &PublicKey,
        route: Route,
        config: &AerotpConfig,
        (port, data): (u16, Bytes),
    ) -> Result<(), DatagramError> {
        self.send_datagram_in_class(now, peer, route, config, (USUAL_CLASS, port, data))
    }

    /// As [`send_datagram`](Self::send_datagram), in a class from 0 to 7: of connections and datagrams that wait, the lowest class goes first.
    /// `[Y25]`
    ///
    /// # Errors
    /// As [`send_datagram`](Self::send_datagram).
    pub fn send_datagram_in_class(
        &mut self,
        now: Time,
        peer: &PublicKey,
        route: Route,
        config: &AerotpConfig,
        (class, port, data): (u8, u16, Bytes),
    ) -> Result<(), DatagramError> {
        // First, as a session that is begun and not used would not be forgotten.
        let (bytes, most) = (data.len(), self.longest_datagram(peer, &route));
        if bytes > most {
            return Err(DatagramError::TooLong { bytes, most });
        }
        let id = self.session_with(now, peer, route)?;
        let session = self.sessions.get_mut(&id).expect("it was just found");
        session.connections.send_datagram(config, class, port, data);
        self.with_datagrams.insert(id);
        self.touch(id);
        Ok(())
    }

    /// As [`send_datagram_in_class`](Self::send_datagram_in_class), but only over a session that there is with the peer, wherever that leads: the one from which
    /// something has come last. So nobody who says that a peer is elsewhere makes this host begin a session there. `[Y8]`
    ///
    /// Returns whether it was taken.
    pub fn answer_datagram(
        &mut self,
        peer: &PublicKey,
        config: &AerotpConfig,
        (class, port, data): (u8, u16, Bytes),
    ) -> bool {
        let sessions = self.sessions.values_mut().filter(|session| session.peer == *peer);
        let Some(session) = sessions.max_by_key(|session| session.last_opened) else { return false };
        if data.len() > session.longest_datagram() {
            return false;
        }
        let id = session.own_id;
        session.connections.send_datagram(config, class, port, data);
        self.with_datagrams.insert(id);
        self.touch(id);
        true
    }

    /// Datagrams to a port are kept for [`poll_datagram`](Self::poll_datagram).
    pub fn listen_datagrams(&mut self, port: u16) {
        self.datagram_ports.insert(port);
    }

    /// The next datagram that has arrived.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.unread.pop()
    }

    /// Whether there is one.
    pub fn has_datagram(&self) -> bool {
        !self.unread.is_empty()
    }

    /// The longest datagram that may be sent to a peer at present: it grows when the handshake has ended and with the longest packet
    /// that the path carries.
    pub fn longest_datagram(&self, peer: &PublicKey, route: &Route) -> usize {
        match self.known_session(peer, route).and_then(|id| self.sessions.get(&id)) {
            Some(session) => session.longest_datagram(),
            None => longest(super::BASE_BYTES, route.ip_bytes(), super::INITIATION_BYTES),
        }
    }

    /// Whether datagrams wait to be sent.
    pub fn has_unsent_datagrams(&self) -> bool {
        !self.with_datagrams.is_empty()
    }

    /// A datagram has come over a session.
    pub(super) fn on_datagram(&mut self, datagram: Datagram) {
        if !self.datagram_ports.contains(&datagram.port) {
            self.counts.unusable += 1;
        } else if !self.unread.push(datagram) {
            self.counts.dropped_datagrams += 1;
        }
    }
}

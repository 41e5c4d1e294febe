//! Datagrams of applications: sent once, never repeated, and delivered in the order in which they arrive. `[Y22]`

use std::collections::VecDeque;

use bytes::Bytes;
use farlink_core::Time;
use farlink_core::protocol::aerotp::{AerotpConfig, Mode};
use farlink_core::wire::aerotp::sealed::{OUTER_BYTES, TAG_BYTES};

use crate::seal::PublicKey;

use super::message::DATAGRAM_HEADER_BYTES;
use super::route::UDP_BYTES;
use super::{Mux, OpenError, Route};

/// Bytes that wait to be sent over a session, and to be read by the application.
const MOST_WAITING_BYTES: usize = 1 << 20;

/// A datagram that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Who sent it.
    pub peer: PublicKey,
    /// From where.
    pub route: Route,
    /// The port to which it was sent.
    pub port: u16,
    /// Its content.
    pub data: Bytes,
}

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

/// What waits, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queue: VecDeque<(u16, Bytes)>,
    bytes: usize,
}

impl Waiting {
    /// Adds a datagram to a port. The oldest ones give way, as newer data is worth more; returns how many.
    pub(super) fn push(&mut self, port: u16, data: Bytes) -> u64 {
        self.bytes += data.len();
        self.queue.push_back((port, data));
        let mut dropped = 0;
        while self.bytes > MOST_WAITING_BYTES {
            self.pop();
            dropped += 1;
        }
        dropped
    }

    pub(super) fn pop(&mut self) -> Option<(u16, Bytes)> {
        let next = self.queue.pop_front()?;
        self.bytes -= next.1.len();
        Some(next)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// What has arrived and was not read.
#[derive(Debug, Default)]
pub(super) struct Unread {
    queue: VecDeque<Datagram>,
    bytes: usize,
}

impl Unread {
    /// Whether there was room.
    pub(super) fn push(&mut self, datagram: Datagram) -> bool {
        let has_room = self.bytes + datagram.data.len() <= MOST_WAITING_BYTES;
        if has_room {
            self.bytes += datagram.data.len();
            self.queue.push_back(datagram);
        }
        has_room
    }

    fn pop(&mut self) -> Option<Datagram> {
        let next = self.queue.pop_front()?;
        self.bytes -= next.data.len();
        Some(next)
    }
}

/// The settings of the rate at which datagrams go: those of connections, which share it.
pub(super) fn rate_of(config: &AerotpConfig) -> AerotpConfig {
    AerotpConfig { mode: Mode::Reliable, ..config.clone() }
}

/// The longest datagram in a packet of so many bytes, with `before` bytes of a hello in front of it.
pub(super) fn longest(packet_bytes: u16, ip_bytes: usize, before: usize) -> usize {
    let around = ip_bytes + UDP_BYTES + before + OUTER_BYTES + DATAGRAM_HEADER_BYTES + TAG_BYTES;
    usize::from(packet_bytes) - around
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
        let id = self.session_with(now, peer, route)?;
        let session = self.sessions.get_mut(&id).expect("it was just found");
        let (bytes, most) = (data.len(), session.longest_datagram());
        if bytes > most {
            return Err(DatagramError::TooLong { bytes, most });
        }
        self.counts.dropped_datagrams += session.connections.send_datagram(config, port, data);
        self.with_datagrams.insert(id);
        self.touch(id);
        Ok(())
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
        !self.unread.queue.is_empty()
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
    pub(super) fn on_datagram(&mut self, peer: PublicKey, route: Route, port: u16, data: Bytes) {
        if !self.datagram_ports.contains(&port) {
            self.counts.unusable += 1;
        } else if !self.unread.push(Datagram { peer, route, port, data }) {
            self.counts.dropped_datagrams += 1;
        }
    }
}

//! Datagrams that wait: to be sent, and to be read.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use farlink_core::protocol::aerotp::{AerotpConfig, Mode};
use farlink_core::wire::aerotp::sealed::{OUTER_BYTES, TAG_BYTES};

use crate::seal::PublicKey;

use super::message::DATAGRAM_HEADER_BYTES;
use super::route::{Route, UDP_BYTES};

/// Bytes that wait to be sent over a session, and to be read by the application.
pub(super) const MOST_WAITING_BYTES: usize = 1 << 20;
/// Bytes that a datagram counts besides its content, so that empty ones are bounded as well.
pub(super) const ENTRY_BYTES: usize = 128;

/// A datagram that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Key of the sender.
    pub peer: PublicKey,
    /// Route that it came over.
    pub route: Route,
    /// The port to which it was sent.
    pub port: u16,
    /// Its content.
    pub data: Bytes,
    /// Whether some of the content is wrong: only in sessions without seal ([`insecure`](super::MuxConfig::insecure)).
    pub is_damaged: bool,
}

/// Waiting datagrams by class, the oldest of a class first.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queues: BTreeMap<u8, VecDeque<(u16, Bytes)>>,
    bytes: usize,
}

impl Waiting {
    /// Adds a datagram to a port. The oldest ones of the last class give way, as newer data is worth more; returns how many.
    pub(super) fn push(&mut self, class: u8, port: u16, data: Bytes) -> u64 {
        self.bytes += data.len() + ENTRY_BYTES;
        self.queues.entry(class).or_default().push_back((port, data));
        let mut dropped = 0;
        while self.bytes > MOST_WAITING_BYTES
            && let Some((&last, _)) = self.queues.last_key_value()
        {
            self.pop(last);
            dropped += 1;
        }
        dropped
    }

    pub(super) fn pop(&mut self, class: u8) -> Option<(u16, Bytes)> {
        let queue = self.queues.get_mut(&class)?;
        let next = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&class);
        }
        self.bytes -= next.1.len() + ENTRY_BYTES;
        Some(next)
    }

    pub(super) fn has(&self, class: u8) -> bool {
        self.queues.contains_key(&class)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queues.values().map(VecDeque::len).sum()
    }
}

/// Datagrams that have arrived and were not read.
#[derive(Debug, Default)]
pub(super) struct Unread {
    queue: VecDeque<Datagram>,
    bytes: usize,
}

impl Unread {
    /// Whether there was room.
    pub(super) fn push(&mut self, datagram: Datagram) -> bool {
        let bytes = self.bytes + datagram.data.len() + ENTRY_BYTES;
        let has_room = bytes <= MOST_WAITING_BYTES;
        if has_room {
            self.bytes = bytes;
            self.queue.push_back(datagram);
        }
        has_room
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn pop(&mut self) -> Option<Datagram> {
        let next = self.queue.pop_front()?;
        self.bytes -= next.data.len() + ENTRY_BYTES;
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

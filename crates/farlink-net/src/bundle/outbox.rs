//! Datagrams to one place that the kernel takes at once (UDP segmentation offload).

use std::io;

use farlink_core::emulator::ip::ecn_of;

use crate::io::Socket;
use crate::mux::{Batch, Route};

use super::session::Place;

/// Most bytes that one call gives to the kernel: the length of a UDP datagram before it is cut.
const MOST_BYTES: usize = 60_000;

/// Datagrams of equal length, the last of which may be shorter.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    to: Option<Place>,
    bytes: Vec<u8>,
    /// The byte of traffic class that all have.
    traffic_class: u8,
    each: usize,
    count: usize,
    is_full: bool,
}

impl Outbox {
    /// Takes a datagram, or not, if what waits has to be sent first.
    pub(super) fn push(&mut self, to: Place, traffic_class: u8, datagram: &[u8], most: usize) -> bool {
        if self.count == 0 {
            (self.to, self.each, self.traffic_class) = (Some(to), datagram.len(), traffic_class);
        } else if self.is_full
            || self.to != Some(to)
            || self.traffic_class != traffic_class
            || datagram.len() > self.each
            || self.count >= most
            || self.bytes.len() + datagram.len() > MOST_BYTES
        {
            return false;
        }
        self.bytes.extend(datagram);
        self.count += 1;
        self.is_full = datagram.len() < self.each;
        true
    }

    /// Where to, if something waits.
    pub(super) fn to(&self) -> Option<Place> {
        self.to.filter(|_| self.count > 0)
    }

    /// Waiting datagrams.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Sends what waits; it is gone whether the kernel takes it or not.
    pub(super) fn send(&mut self, socket: &Socket) -> io::Result<()> {
        let Some(to) = self.to() else { return Ok(()) };
        let batch = Batch {
            route: Route { remote: to.remote, local: to.local },
            ecn: ecn_of(self.traffic_class),
            bytes: self.bytes.len(),
            datagram_bytes: self.each,
        };
        let has_dscp = self.traffic_class >> 2 != 0;
        let sent = if has_dscp {
            socket.try_send_with_class(&batch, self.traffic_class, &self.bytes)
        } else {
            socket.try_send(&batch, &self.bytes)
        };
        self.clear();
        sent
    }

    /// Forgets what waits.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        (self.count, self.is_full) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_datagrams_go_together_and_a_shorter_one_ends_them() {
        let place = |port: u16| Place { socket: 0, remote: ([127, 0, 0, 1], port).into(), local: None };
        let mut outbox = Outbox::default();
        assert_eq!(outbox.to(), None);
        assert!(outbox.push(place(1), 0, &[0; 100], 3) && outbox.push(place(1), 0, &[0; 100], 3));
        assert!(!outbox.push(place(2), 0, &[0; 100], 3), "to somebody else");
        assert!(!outbox.push(place(1), 0, &[0; 101], 3), "longer");
        assert!(!outbox.push(place(1), 2, &[0; 100], 3), "with another mark");
        assert!(outbox.push(place(1), 0, &[0; 50], 3), "the last");
        assert!(!outbox.push(place(1), 0, &[0; 50], 9));
        outbox.clear();
        assert!(
            outbox.push(place(2), 0, &[0; 50_000], 9) && !outbox.push(place(2), 0, &[0; 50_000], 9),
            "too long together"
        );
    }
}

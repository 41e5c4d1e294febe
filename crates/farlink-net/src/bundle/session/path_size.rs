//! How long the datagrams of a path may be: found and watched as sessions do it (RFC 8899, crate's `mux::path_mtu`). `[J11]`

use farlink_core::Time;

use crate::mux::{PathMtu, PathProbe};

use super::packet::SEAL_BYTES;

const UDP_BYTES: u16 = 8;

/// The longest datagram of a path.
#[derive(Debug)]
pub(super) struct PathSize {
    mtu: PathMtu,
    /// Headers of IP and UDP.
    header_bytes: u16,
    settled: u64,
    is_in_flight: bool,
    timeout: Time,
}

impl Default for PathSize {
    fn default() -> Self {
        PathSize::new(1500, true)
    }
}

impl PathSize {
    pub(super) fn new(longest_bytes: u16, is_ipv4: bool) -> Self {
        let ip_bytes = if is_ipv4 { 20 } else { 40 };
        PathSize {
            mtu: PathMtu::new(longest_bytes),
            header_bytes: ip_bytes + UDP_BYTES,
            settled: 0,
            is_in_flight: false,
            timeout: Time::from_secs(1),
        }
    }

    /// Longest content of a sealed datagram, in bytes.
    pub(super) fn content_bytes(&self) -> u32 {
        self.content_of(self.mtu.bytes()) as u32
    }

    /// Content of a sealed datagram in an IP packet of this length.
    pub(super) fn content_of(&self, packet_bytes: u16) -> usize {
        usize::from(packet_bytes.saturating_sub(self.header_bytes)).saturating_sub(SEAL_BYTES)
    }

    pub(super) fn note(&mut self, settled: u64, is_in_flight: bool, timeout: Time) {
        (self.settled, self.is_in_flight, self.timeout) = (settled, is_in_flight, timeout);
    }

    /// A datagram was sent: full ones, or nearly, begin the search and the watch.
    pub(super) fn on_sent(&mut self, now: Time, content_bytes: usize) {
        if content_bytes + 64 > self.content_bytes() as usize {
            self.mtu.on_full(now, || self.settled, || self.timeout);
        }
    }

    pub(super) fn due(&self) -> Time {
        self.mtu.due()
    }

    /// Whether datagrams have become shorter.
    pub(super) fn handle_timeout(&mut self, now: Time) -> bool {
        self.mtu.handle_timeout(now, || self.settled, || self.is_in_flight)
    }

    pub(super) fn next_probes(&mut self, now: Time) -> [Option<PathProbe>; 2] {
        self.mtu.next_probes(now, self.timeout)
    }

    /// Whether datagrams may be longer from now on.
    pub(super) fn on_answer(&mut self, now: Time, number: u32) -> bool {
        self.mtu.on_answer(now, number.into())
    }
}

//! How long the datagrams of a path may be: found and watched as sessions do it (RFC 8899, crate's `mux::path_mtu`). `[J11]`

use farlink_core::Time;

use crate::mux::{PathMtu, PathProbe};

use super::packet::SEAL_BYTES;

const UDP_BYTES: u16 = 8;
const IPV4_BYTES: u16 = 20;
const IPV6_BYTES: u16 = 40;
/// A path that carries pieces of this length would carry longer ones if it could: they are searched. Lines so slow that packets are cut shorter
/// do not pay for the search.
const LONG_BYTES: usize = 512;

/// The longest datagram of a path.
#[derive(Debug)]
pub(super) struct PathSize {
    mtu: PathMtu,
    /// Headers of IP and UDP.
    header_bytes: u16,
    /// Packets were lost, and it is not known yet whether the long ones still come through.
    is_suspected: bool,
    timeout: Time,
}

impl Default for PathSize {
    fn default() -> Self {
        PathSize::new(1500, true)
    }
}

impl PathSize {
    pub(super) fn new(longest_bytes: u16, is_ipv4: bool) -> Self {
        let ip_bytes = if is_ipv4 { IPV4_BYTES } else { IPV6_BYTES };
        PathSize {
            mtu: PathMtu::new(longest_bytes),
            header_bytes: ip_bytes + UDP_BYTES,
            is_suspected: false,
            timeout: Time::from_secs(1),
        }
    }

    /// Whether headers are those of IPv4.
    pub(super) fn is_ipv4(&self) -> bool {
        self.header_bytes == IPV4_BYTES + UDP_BYTES
    }

    /// Length of the headers of IP and UDP.
    pub(super) fn header_bytes(&self) -> u16 {
        self.header_bytes
    }

    /// Longest content of a sealed datagram, in bytes.
    pub(super) fn content_bytes(&self) -> u32 {
        self.content_of(self.mtu.bytes()) as u32
    }

    /// Content of a sealed datagram in an IP packet of this length.
    pub(super) fn content_of(&self, packet_bytes: u16) -> usize {
        usize::from(packet_bytes.saturating_sub(self.header_bytes)).saturating_sub(SEAL_BYTES)
    }

    /// State of the path: whether packets were lost, and how long an answer takes at most.
    pub(super) fn note(&mut self, now: Time, has_lost: bool, timeout: Time) {
        self.timeout = timeout;
        if has_lost && !self.is_suspected {
            self.is_suspected = true;
            self.look(now);
        }
    }

    /// A datagram was sent.
    pub(super) fn on_sent(&mut self, now: Time, content_bytes: usize) {
        if content_bytes >= LONG_BYTES {
            self.look(now);
        }
    }

    fn look(&mut self, now: Time) {
        self.mtu.on_full(now, || 0, || self.timeout);
    }

    pub(super) fn due(&self) -> Time {
        self.mtu.due()
    }

    /// Whether datagrams have become shorter.
    pub(super) fn handle_timeout(&mut self, now: Time) -> bool {
        let has_shrunk = self.mtu.handle_timeout(now, || 0, || self.is_suspected);
        self.is_suspected &= !has_shrunk;
        has_shrunk
    }

    pub(super) fn next_probes(&mut self, now: Time) -> [Option<PathProbe>; 2] {
        self.mtu.next_probes(now, self.timeout)
    }

    /// Whether datagrams may be longer from now on.
    pub(super) fn on_answer(&mut self, now: Time, number: u32) -> bool {
        let is_longer = self.mtu.on_answer(now, number.into());
        // The long ones come through.
        self.is_suspected &= self.mtu.due() != Time::NEVER;
        is_longer
    }
}

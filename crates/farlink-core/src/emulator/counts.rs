//! Outcomes of the packets of one direction.

use crate::histogram::Histogram;
use crate::time::Time;

/// Counts of the packets of one way. Each packet that came in is refused, dropped, lost, ruined, out, or still on the way.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Packets that came in,
    pub in_packets: u64,
    /// and their bytes on the wire.
    pub in_bytes: u64,
    /// Packets for which there was no memory.
    pub refused: u64,
    /// Packets that a full queue or a policer dropped.
    pub dropped: u64,
    /// Packets that a channel or a bundle lost.
    pub lost: u64,
    /// Packets with wrong bits that nobody would pass on.
    pub ruined: u64,
    /// Packets that left,
    pub out_packets: u64,
    /// and their bytes on the wire.
    pub out_bytes: u64,
    /// Packets that left with wrong bits.
    pub damaged: u64,
    /// Packets that left with a mark of this path.
    pub marked: u64,
    /// Delays of the packets that left, and their sum in picoseconds.
    pub delays: Histogram,
    /// See `delays`.
    pub delay_sum_ps: u128,
}

impl Counts {
    /// Mean delay of the packets that left.
    pub fn mean_delay_s(&self) -> Option<f64> {
        (self.out_packets > 0).then(|| self.delay_sum_ps as f64 / self.out_packets as f64 / 1e12)
    }

    /// Mean bytes on the wire of the packets that came in.
    pub fn mean_bytes(&self) -> Option<f64> {
        (self.in_packets > 0).then(|| self.in_bytes as f64 / self.in_packets as f64)
    }

    pub(super) fn leave(&mut self, bytes: u32, delay: Time) {
        self.out_packets += 1;
        self.out_bytes += u64::from(bytes);
        self.delays.record(delay, 1);
        self.delay_sum_ps += u128::from(delay.as_ps());
    }
}

//! Numbers of packets that arrived and that were lost.

/// Packets of which it is known what became of them. Parts of a packet count where only the number of losses among several is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Packets {
    pub(super) arrived: f64,
    pub(super) lost: f64,
}

impl Packets {
    /// Counts one more packet, of which a share arrived.
    #[inline]
    pub(super) fn add_one(&mut self, arrived: f64) {
        self.arrived += arrived;
        self.lost += 1.0 - arrived;
    }

    pub(super) fn add(&mut self, more: Packets) {
        self.arrived += more.arrived;
        self.lost += more.lost;
    }

    pub(super) fn known(&self) -> f64 {
        self.arrived + self.lost
    }

    /// The share that was lost; 0 of none.
    pub(super) fn lost_share(&self) -> f64 {
        self.lost / self.known().max(1.0)
    }
}

/// Standard deviation of a share among `packets` packets that are lost independently.
pub(super) fn deviation(share: f64, packets: f64) -> f64 {
    libm::sqrt((share * (1.0 - share)).max(0.0) / packets)
}

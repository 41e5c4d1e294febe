//! Estimate of the packet loss rate.

/// Largest loss rate. Above it almost no packet gets through, and the remedy is another packet length.
pub(super) const WORST_LOSS: f64 = 0.95;
/// Weight of the initial estimate, in packets; a hint of the link weighs more.
const EXPECTED_WEIGHT: f64 = 8.0;
const HINTED_WEIGHT: f64 = 64.0;
/// Memory of the estimate: the weight of a measurement decays to 1/e after this many packets.
const MEMORY_PACKETS: f64 = 2000.0;

/// `[K10]` Estimates the loss rate from the numbers of sent and arrived packets, and from the initial estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    expected: f64,
    /// -ln(1 - BER), if the link has reported its bit error rate.
    hinted: Option<f64>,
    /// Whether packets vary in length, so that the loss is estimated per bit.
    is_by_length: bool,
    sent: f64,
    lost: f64,
    bits: f64,
    /// Arrivals that are not assigned to a packet yet.
    early: u64,
}

impl Loss {
    pub(super) fn new(expected: f64, is_by_length: bool) -> Self {
        Loss { expected, hinted: None, is_by_length, sent: 0.0, lost: 0.0, bits: 0.0, early: 0 }
    }

    /// Adds `sent` packets with `bits` bits together, when `arrived` packets have arrived. Returns how many of those sent have; others
    /// may have arrived early.
    pub(super) fn add(&mut self, sent: u64, bits: u64, arrived: u64) -> u64 {
        if sent == 0 {
            self.early += arrived;
            return 0;
        }
        let kept = libm::exp(-(sent as f64) / MEMORY_PACKETS);
        let arrived = arrived + self.early;
        self.early = arrived.saturating_sub(sent);
        self.sent = self.sent * kept + sent as f64;
        self.bits = self.bits * kept + bits as f64;
        self.lost = self.lost * kept + sent.saturating_sub(arrived) as f64;
        arrived.min(sent)
    }

    /// Takes a report of the link's bit error rate.
    pub(super) fn set_link_ber(&mut self, ber: f64) {
        self.hinted = Some(-libm::log1p(-ber.clamp(0.0, 0.5)));
    }

    /// The probability that a packet of `bits` bits is lost.
    pub(super) fn of(&self, bits: f64) -> f64 {
        let (prior, weight) = match self.hinted {
            Some(hazard) => (1.0 - libm::exp(-hazard * bits), HINTED_WEIGHT),
            None => (self.expected, EXPECTED_WEIGHT),
        };
        let measured = if self.is_by_length && self.sent > 0.0 {
            let share = (self.lost / self.sent).min(WORST_LOSS);
            1.0 - libm::exp(libm::log1p(-share) * bits * self.sent / self.bits)
        } else {
            self.lost / self.sent.max(1.0)
        };
        ((prior * weight + measured * self.sent) / (weight + self.sent)).min(WORST_LOSS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_loss_replaces_expected_loss() {
        let mut loss = Loss::new(0.5, false);
        assert_eq!(loss.of(8e3), 0.5);
        loss.add(1000, 8_000_000, 900);
        assert!((loss.of(8e3) - 0.1).abs() < 0.005, "{}", loss.of(8e3));
        loss.add(10_000, 80_000_000, 10_000);
        assert!(loss.of(8e3) < 0.002, "and is forgotten: {}", loss.of(8e3));
        assert!(loss.of(8e3) > 0.0, "never quite");
    }

    #[test]
    fn shorter_packets_lose_less_where_the_length_varies() {
        let mut loss = Loss::new(0.0, true);
        loss.add(100_000, 800_000_000, 30_000);
        assert!((loss.of(8e3) - 0.7).abs() < 0.01);
        assert!((loss.of(2e3) - (1.0 - libm::pow(0.3, 0.25))).abs() < 0.01);
        loss.add(100_000, 800_000_000, 0);
        assert!(loss.of(8e3) <= WORST_LOSS, "the estimate is limited");
    }

    #[test]
    fn a_hint_counts_until_enough_was_measured() {
        let mut loss = Loss::new(0.0, false);
        loss.set_link_ber(1e-4);
        assert!((loss.of(1e4) - (1.0 - libm::exp(-1.00005))).abs() < 1e-4);
        loss.add(10_000, 100_000_000, 10_000);
        assert!(loss.of(1e4) < 0.05);
    }

    #[test]
    fn a_late_packet_that_arrives_before_the_verdict_is_not_lost() {
        let mut loss = Loss::new(0.0, false);
        loss.add(0, 0, 10);
        loss.add(10, 80_000, 0);
        assert_eq!(loss.of(8e3), 0.0);
    }
}

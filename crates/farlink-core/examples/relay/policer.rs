//! A policer: a token bucket that drops what exceeds it, and has no queue.

use farlink_core::Time;

pub(crate) struct Policer {
    bytes_per_s: f64,
    most_bytes: f64,
    tokens_bytes: f64,
    updated: Time,
}

impl Policer {
    /// A full bucket.
    pub(crate) fn new(rate_bps: f64, bytes: u64) -> Self {
        let most_bytes = bytes as f64;
        Policer { bytes_per_s: rate_bps / 8.0, most_bytes, tokens_bytes: most_bytes, updated: Time::ZERO }
    }

    /// Whether a packet may pass, which then takes its length from the bucket.
    pub(crate) fn passes(&mut self, now: Time, bytes: u32) -> bool {
        let since_s = now.since(self.updated).as_secs_f64();
        self.updated = now;
        self.tokens_bytes = (self.tokens_bytes + since_s * self.bytes_per_s).min(self.most_bytes);
        let does_pass = self.tokens_bytes >= f64::from(bytes);
        if does_pass {
            self.tokens_bytes -= f64::from(bytes);
        }
        does_pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_passes_what_it_holds_and_then_its_rate() {
        let mut policer = Policer::new(8e6, 3000); // a byte in a microsecond
        let mut passed = |millis: u64, packets: usize| {
            (0..packets).filter(|_| policer.passes(Time::from_millis(millis), 1000)).count()
        };
        assert_eq!([passed(0, 5), passed(1, 5), passed(3, 5), passed(100, 5)], [3, 1, 2, 3]);
    }

    #[test]
    fn a_packet_that_is_dropped_takes_nothing() {
        let mut policer = Policer::new(8e6, 1500);
        assert!(policer.passes(Time::ZERO, 1000));
        assert!(!policer.passes(Time::ZERO, 1000) && policer.passes(Time::ZERO, 500));
    }
}

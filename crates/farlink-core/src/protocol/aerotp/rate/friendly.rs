//! The rate that TCP would reach. `[P9]`

/// Rate of TCP in bytes per second, from the segment length, the round-trip time and the number of loss events per segment.
///
/// RFC 5348, section 3.1: X = s / (R sqrt(2 b p / 3) + t_RTO (3 sqrt(3 b p / 8)) p (1 + 32 p^2)), b = 1, t_RTO = 4 R. Infinite
/// without losses.
pub(super) fn tcp_rate(segment_bytes: f64, round_trip_s: f64, loss_events: f64) -> f64 {
    let p = loss_events;
    let recovery = libm::sqrt(2.0 * p / 3.0);
    let timeouts = 4.0 * 3.0 * libm::sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p);
    segment_bytes / (round_trip_s * (recovery + timeouts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_tfrc_equation() {
        // R = 0.1 s, p = 0.01: 0.1 x (0.08165 + 0.4 ...) by hand.
        let by_hand = 1460.0 / (0.1 * (0.081_649_658 + 12.0 * 0.061_237_244 * 0.01 * 1.0032));
        assert!((tcp_rate(1460.0, 0.1, 0.01) / by_hand - 1.0).abs() < 1e-6);
        assert_eq!(tcp_rate(1460.0, 0.1, 0.0), f64::INFINITY);
    }
}

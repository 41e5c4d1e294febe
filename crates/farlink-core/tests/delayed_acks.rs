//! Timers of delayed acknowledgements that are drawn from a range.

use crate::connections::{LONG, one_way};
use crate::pair::Pair;
use farlink_core::protocol::tcp::{AckTimeout, Flags, Segment, TcpConfig, UniformSeconds};
use farlink_core::units::PositiveSeconds;
use farlink_core::{Time, Virtual};

/// Delays of the acknowledgements of lone segments, which arrive a second apart.
fn ack_delays(timeout: AckTimeout, seed: u64) -> Vec<f64> {
    let config = TcpConfig { delayed_ack: true, delayed_ack_timeout_s: timeout, ..one_way() };
    let mut pair = Pair::<Virtual>::new(&config, seed, &[]);
    let first = seed as u32; // Initial sequence number of side 0; that of side 1 is 0.
    let ack = 1;
    for second in 0..1000_u32 {
        let segment = Segment {
            seq: first.wrapping_add(1 + 100 * second),
            ack,
            flags: Flags::ACK,
            header_bytes: 40,
            window: 3_000,
            payload: Virtual(100),
            ..Segment::default()
        };
        pair.insert(Time::from_secs(1 + u64::from(second)), 1, segment);
    }
    pair.run_until(LONG);
    let answers = pair.log.iter().filter(|(_, side, _)| *side == 1);
    answers.enumerate().map(|(second, sent)| sent.0.as_secs_f64() - (1 + second) as f64).collect()
}

#[test]
fn delays_of_acknowledgements_are_drawn_from_the_range() {
    let drawn = |least_s, most_s| AckTimeout::Uniform(UniformSeconds::new(least_s, most_s).unwrap());
    // Four standard errors of the mean of 1000 delays.
    for (least_s, most_s) in [(0.0, 0.2), (0.1, 0.2)] {
        let delays = ack_delays(drawn(least_s, most_s), 7);
        assert_eq!(delays.len(), 1000);
        assert!(delays.iter().all(|delay| (least_s - 1e-9..most_s).contains(delay)));
        let mean = delays.iter().sum::<f64>() / 1000.0;
        assert!((mean - (least_s + most_s) / 2.0).abs() < 0.0366 * (most_s - least_s), "{mean}");
        assert_eq!(delays, ack_delays(drawn(least_s, most_s), 7), "the same seed");
        assert_ne!(delays, ack_delays(drawn(least_s, most_s), 8), "another seed");
    }
    let fixed = ack_delays(AckTimeout::Fixed(PositiveSeconds::new(0.2).unwrap()), 7);
    assert!(fixed.len() == 1000 && fixed.iter().all(|delay| (delay - 0.2).abs() < 1e-9));
}

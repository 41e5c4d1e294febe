//! ARQ stations over a network that loses, duplicates, reorders and damages: the stream arrives, byte for byte, or
//! missing data is reported.

mod behaviour;
mod length;
mod network;
mod refusals;

use farlink_core::protocol::ProtocolConfig;
use farlink_core::protocol::arq::{
    Acknowledgement, AdaptiveLength, ArqConfig, Incremental, LengthRule, Mode, TimerSide,
};
use farlink_core::protocol::parts::rto::{RtoAlgorithm, RtoConfig};
use farlink_core::units::{BitRate, PositiveSeconds, Seconds, Whole};
use farlink_core::{Time, Virtual};
use network::{LONG, assert_done, stations, transfer};
use proptest::prelude::*;

use crate::pair::{Fault, WithoutContent, count, fault};

pub(crate) fn whole(n: u64) -> Whole {
    Whole::new(n as f64).unwrap()
}

const MODES: [Mode; 3] = [Mode::StopAndWait, Mode::GoBackN, Mode::SelectiveRepeat];
const ALGORITHMS: [RtoAlgorithm; 6] = [
    RtoAlgorithm::Rfc793,
    RtoAlgorithm::JacobsonKarels,
    RtoAlgorithm::Rfc6298,
    RtoAlgorithm::Linux,
    RtoAlgorithm::Conservative,
    RtoAlgorithm::Fixed,
];

fn rtos() -> impl Strategy<Value = RtoConfig> {
    (prop::sample::select(&ALGORITHMS[..]), prop_oneof![Just(0.05), Just(0.3), Just(1.0)]).prop_map(
        |(algorithm, minimum_s)| {
            let minimum_s = (algorithm != RtoAlgorithm::Fixed).then(|| Seconds::new(minimum_s).unwrap());
            RtoConfig { algorithm, minimum_s, ..RtoConfig::default() }
        },
    )
}

/// Lengths that adapt to losses within the seconds of a bad network.
fn lengths() -> impl Strategy<Value = Option<AdaptiveLength>> {
    let rules = vec![LengthRule::Optimal, LengthRule::Power, LengthRule::TwoLengths];
    let memory = prop_oneof![Just(0.05), Just(1.0)];
    proptest::option::of((prop::sample::select(rules), memory).prop_map(|(rule, memory_s)| AdaptiveLength {
        rule,
        memory_s: PositiveSeconds::new(memory_s).unwrap(),
        ..AdaptiveLength::default()
    }))
}

/// All options, and windows down to one frame, in valid combinations.
pub(crate) fn configs() -> impl Strategy<Value = ArqConfig> {
    let flags = any::<[bool; 5]>();
    let windows = (1_u64..12, proptest::option::of(0_u64..10), proptest::option::of(0_u64..6));
    let wait = proptest::option::of(prop_oneof![Just(0.0), Just(0.03), Just(0.5)]);
    let rate = proptest::option::of(prop_oneof![Just(2e4), Just(1e6)]);
    let incremental = proptest::option::of((0_u64..3, 1_u64..5, 1_u64..4));
    let sizes = (1_u64..60, 1_u64..60, lengths());
    (prop::sample::select(&MODES[..]), flags, windows, rtos(), (wait, rate), incremental, sizes).prop_map(
        |(mode, flags, (window, more, blocks), rto, (wait, rate), incremental, (segment_bytes, min_bytes, length))| {
            let [is_single, timestamps, nak, at_receiver, compatible] = flags;
            let is_selective = mode == Mode::SelectiveRepeat;
            let ack = if is_single { Acknowledgement::PerPacket } else { Acknowledgement::Cumulative };
            let incremental = incremental.map(|(first, part, increments)| Incremental {
                first_parity_bytes: whole(2 * first),
                parity_bytes: count(2 * part),
                increments: count(increments),
            });
            let has_blocks = is_selective && !is_single;
            let config = ArqConfig {
                mode,
                segment_bytes: count(segment_bytes),
                window_frames: (mode != Mode::StopAndWait).then(|| count(window)),
                buffer_frames: more.filter(|_| is_selective).map(|more| count(window + more)),
                rate_bps: rate.map(|rate| BitRate::new(rate).unwrap()),
                ack,
                piggyback_timeout_s: wait.map(|wait| Seconds::new(wait).unwrap()),
                sack_blocks: blocks
                    .filter(|_| has_blocks)
                    .map(|blocks| whole(blocks.min(if compatible { 3 } else { 9 }))),
                compatible,
                timestamps,
                nak,
                timer: if nak && at_receiver && !is_single { TimerSide::Receiver } else { TimerSide::Sender },
                incremental: incremental.filter(|_| nak),
                adaptive_length: length
                    .filter(|_| incremental.is_none() || !nak)
                    .map(|length| AdaptiveLength { min_bytes: count(min_bytes.min(segment_bytes)), ..length }),
                rto,
                ..ArqConfig::default()
            };
            config.check().unwrap();
            config
        },
    )
}

/// A network with a limited number of faults.
fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let fault = prop_oneof![
        6 => fault(),
        2 => proptest::collection::vec(0_u32..1_000, 1..8).prop_map(Fault::Flip),
    ];
    proptest::collection::vec(fault, 0..120)
}

proptest! {
    /// Both directions at once, with every option, over any network.
    #[test]
    fn the_stream_arrives_as_it_was_written(
        config in configs(), faults in faults(), bytes in [0_usize..2_000, 0_usize..1_500], piece in 1_usize..1_000,
    ) {
        let network = transfer::<Vec<u8>>(&config, &faults, bytes, piece);
        assert_done(&network, bytes);
        prop_assert_eq!(network.skipped, [0, 0]);
    }

    /// Data is delivered once and in order, and gaps are reported in their place.
    #[test]
    fn with_limited_retransmissions_gaps_are_reported(
        config in configs(), faults in faults(), bytes in [0_usize..2_000, 0_usize..1_500], most in 1_u64..4,
    ) {
        let config = ArqConfig { max_transmissions: Some(count(most)), ..config };
        let network = transfer::<Vec<u8>>(&config, &faults, bytes, 700);
        assert_done(&network, bytes);
    }

    /// The simulator carries lengths and the wire bytes; both give the same steps, and so does a repeated run.
    #[test]
    fn lengths_and_bytes_behave_alike(
        config in configs(), faults in faults(), bytes in [0_usize..2_000, 0_usize..1_500],
    ) {
        let real = transfer::<Vec<u8>>(&config, &faults, bytes, usize::MAX);
        let real_log: Vec<_> = real.log.iter().map(|(at, side, frame)| (*at, *side, frame.without_content())).collect();
        for _ in 0..2 {
            let lengths = transfer::<Virtual>(&config, &faults, bytes, usize::MAX);
            prop_assert_eq!(&real_log, &lengths.log);
            prop_assert_eq!(&real.events, &lengths.events);
        }
    }

    /// A driver may call `handle_timeout` at any time.
    #[test]
    fn early_and_repeated_timeouts_have_no_effect(
        config in configs(), faults in faults(), bytes in [0_usize..2_000, 0_usize..1_500],
    ) {
        let calm = transfer::<Virtual>(&config, &faults, bytes, 2_000);
        let mut impatient = stations::<Virtual>(&config, &faults);
        impatient.is_impatient = true;
        impatient.write_all(0, bytes[0], 2_000);
        impatient.write_all(1, bytes[1], 2_000);
        impatient.run_until(LONG);
        prop_assert_eq!(calm.log, impatient.log);
    }

    /// The fewest sequence numbers that the rules allow, on a network that keeps the order as a link does.
    #[test]
    fn few_numbers_are_enough_in_order(
        config in configs(), faults in faults(), bytes in [0_usize..2_000, 0_usize..1_500],
    ) {
        let fits = |bits: u64| {
            let config = ArqConfig { sequence_bits: Some(count(bits)), ..config.clone() };
            config.check().is_ok().then_some(config)
        };
        let config = (1..32).find_map(fits).unwrap();
        let mut network = stations::<Vec<u8>>(&config, &faults);
        network.keeps_order = true;
        network.write_all(0, bytes[0], 500);
        network.write_all(1, bytes[1], 500);
        network.run_until(LONG);
        assert_done(&network, bytes);
    }

    /// A reader that pauses makes the sender wait.
    #[test]
    fn a_paused_reader_loses_nothing(
        config in configs(), faults in faults(), bytes in 500_usize..2_000, asleep_s in 1_u64..100,
    ) {
        let mut network = stations::<Vec<u8>>(&config, &faults);
        network.is_reader_asleep[1] = true;
        // The whole window every second, with an answer to each frame.
        network.most_sent += 50 * asleep_s as usize;
        network.write_all(0, bytes, 500);
        network.write_all(1, 0, 1);
        network.run_until(Time::from_secs(asleep_s));
        prop_assert_eq!(network.received[1], 0);
        network.is_reader_asleep[1] = false;
        network.run_until(LONG);
        assert_done(&network, [bytes, 0]);
    }
}

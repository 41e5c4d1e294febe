//! Frame lengths that follow the bit error rate, observed in the frames that are sent.

use farlink_core::protocol::ProtocolConfig;
use farlink_core::protocol::arq::{AdaptiveLength, ArqConfig, Estimate, Flags, LengthRule, Mode};
use farlink_core::protocol::parts::rto::{RtoAlgorithm, RtoConfig};
use farlink_core::units::PositiveSeconds;
use farlink_core::{Endpoint, LinkHint, Packet, Time};

use super::network::{LONG, Network, stations};
use crate::pair::{Fault, count};

const MODES: [Mode; 3] = [Mode::StopAndWait, Mode::GoBackN, Mode::SelectiveRepeat];

/// Frames of 10 to 1000 bytes, two in a window, a fixed timeout of 100 ms.
fn config(mode: Mode, length: AdaptiveLength) -> ArqConfig {
    let config = ArqConfig {
        mode,
        segment_bytes: count(1000),
        window_frames: (mode != Mode::StopAndWait).then(|| count(2)),
        adaptive_length: Some(AdaptiveLength { min_bytes: count(10), ..length }),
        rto: RtoConfig {
            algorithm: RtoAlgorithm::Fixed,
            initial_s: PositiveSeconds::new(0.1).unwrap(),
            ..RtoConfig::default()
        },
        ..ArqConfig::default()
    };
    config.check().unwrap();
    config
}

fn genie() -> AdaptiveLength {
    AdaptiveLength { estimate: Estimate::Genie, rule: LengthRule::Optimal, ..AdaptiveLength::default() }
}

/// Time, stream position and length of each data frame.
fn frames(network: &Network<Vec<u8>>) -> Vec<(Time, u32, u32)> {
    let with_data = network.sent(0, Flags::DATA).into_iter().filter(|sent| sent.2.payload_bytes() > 0);
    with_data.map(|sent| (sent.0, sent.2.position, sent.2.payload_bytes())).collect()
}

#[test]
fn a_genie_sets_the_length_of_the_next_frame_but_selective_repeat_keeps_old_ones() {
    for mode in MODES {
        // The first frame is lost and retransmitted when the link is bad.
        let mut network = stations::<Vec<u8>>(&config(mode, genie()), &[Fault::Lose]);
        assert!(network.ends[0].wants_hints());
        network.write_all(0, 10_000, 10_000);
        network.pump(0);
        network.ends[0].handle_link(Time::ZERO, LinkHint::Ber(1e-4));
        network.run_until(LONG);
        assert_eq!(network.received[1], 10_000);
        let frames = frames(&network);
        let before = if mode == Mode::StopAndWait { 1 } else { 2 };
        assert!(frames[..before].iter().all(|frame| frame.2 == 1000), "{mode:?}");
        let repeated: Vec<_> = frames[before..].iter().filter(|frame| frame.1 < 1000 * before as u32).collect();
        let is_kept = mode == Mode::SelectiveRepeat;
        let bytes = if is_kept { 1000 } else { 148 };
        assert!(!repeated.is_empty() && repeated.iter().all(|frame| frame.2 == bytes), "{mode:?}: {repeated:?}");
        assert!(is_kept || repeated[0].1 == 0 && repeated[1].1 == 148, "{mode:?}: {repeated:?}");
        // Equation (11) for l' = 20 bytes gives 148 bytes, except for the last frame.
        let new: Vec<u32> =
            frames.iter().filter(|frame| frame.1 >= 1000 * before as u32).map(|frame| frame.2).collect();
        assert!(new.len() > 50 && new[..new.len() - 1].iter().all(|&bytes| bytes == 148), "{mode:?}: {new:?}");
    }
}

/// The receiver has the first frame with its first length. The sender does not know this and cuts the data again.
#[test]
fn frames_cut_again_that_overlap_delivered_data_are_delivered_once() {
    for mode in [Mode::StopAndWait, Mode::GoBackN] {
        for lost_acks in 1..5 {
            let mut network = stations::<Vec<u8>>(&config(mode, genie()), &[]);
            network.write_all(0, 5_000, 5_000);
            network.is_cut[1] = true; // acknowledgements are lost
            network.pump(0);
            let mut ber = 1e-5;
            for timeout in 1..=lost_acks {
                network.run_until(Time::from_millis(100 * timeout - 1));
                network.ends[0].handle_link(network.now, LinkHint::Ber(ber));
                ber *= 3.0;
            }
            network.run_until(Time::from_millis(100 * lost_acks));
            network.is_cut[1] = false;
            network.ends[0].handle_link(network.now, LinkHint::Ber(1e-7));
            network.run_until(LONG);
            assert_eq!(network.received[1], 5_000, "{mode:?}, {lost_acks}");
            assert!(
                frames(&network).iter().any(|frame| frame.1 > 0 && frame.1 < 1000),
                "{mode:?}: nothing was cut again"
            );
        }
    }
}

#[test]
fn only_a_genie_wants_hints() {
    for length in [genie_not(), AdaptiveLength { rule: LengthRule::TwoLengths, ..genie_not() }] {
        let mut network = stations::<Vec<u8>>(&config(Mode::GoBackN, length), &[]);
        assert!(!network.ends[0].wants_hints());
        network.ends[0].handle_link(Time::ZERO, LinkHint::Ber(0.3));
        network.write_all(0, 2000, 2000);
        network.run_until(LONG);
        assert_eq!(frames(&network)[0].2, 1000);
    }
}

fn genie_not() -> AdaptiveLength {
    AdaptiveLength { estimate: Estimate::Acknowledged, ..genie() }
}

/// A loss is detected by the timer or by a request; later new frames are shorter.
#[test]
fn losses_shorten_new_frames_until_they_are_forgotten() {
    for (mode, nak) in MODES.into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        let memory_s = PositiveSeconds::new(0.5).unwrap();
        let length = AdaptiveLength { rule: LengthRule::TwoLengths, memory_s, ..genie_not() };
        let mut network = stations::<Vec<u8>>(&ArqConfig { nak, ..config(mode, length) }, &[Fault::Lose]);
        network.write_all(0, 20_000, 20_000);
        network.run_until(LONG);
        assert_eq!(network.received[1], 20_000);
        let frames = frames(&network);
        let noticed = frames.iter().filter(|frame| frame.1 == 0).nth(1).unwrap().0;
        let mut end = 0;
        for &(at, position, bytes) in &frames {
            let is_new = position >= end;
            end = end.max(position + bytes);
            if is_new && at > noticed && end < 20_000 {
                let is_recent = at < noticed + Time::from_millis(500);
                assert_eq!(bytes, if is_recent { 10 } else { 1000 }, "{mode:?}, {nak}: at {at:?}");
            }
        }
        assert!(frames.iter().any(|frame| frame.2 == 10), "{mode:?}, {nak}");
    }
}

/// Each loss raises the estimate, and each later acknowledgement lowers it.
#[test]
fn the_estimate_counts_losses_and_acknowledged_frames() {
    for mode in MODES {
        let memory_s = PositiveSeconds::new(1e4).unwrap();
        let length = AdaptiveLength { rule: LengthRule::Optimal, memory_s, ..genie_not() };
        let mut network = stations::<Vec<u8>>(&config(mode, length), &vec![Fault::Lose; 8]);
        network.write_all(0, 400_000, 400_000);
        network.run_until(LONG);
        assert_eq!(network.received[1], 400_000);
        let mut end = 0;
        let mut new = Vec::new();
        for (_, position, bytes) in frames(&network) {
            if position >= end && position > 3000 {
                new.push(bytes);
            }
            end = end.max(position + bytes);
        }
        let (first, last) = (new[0], new[new.len() - 2]);
        assert!(first < 300, "{mode:?}: {first} after losses alone");
        assert!(last > 2 * first, "{mode:?}: {last} after {} frames that arrived", new.len());
    }
}

//! The extensions of SCPS-TP over a network that loses, duplicates, reorders and delays.

use crate::pair::{Content, Fault, ONE_WAY, Pair, Sent, WithoutContent, count, faults, scps_configs, small};
use farlink_core::protocol::Pairs;
use farlink_core::protocol::scps::ScpsConfig;
use farlink_core::protocol::tcp::variant::Variant;
use farlink_core::protocol::tcp::{CongestionControl, LossMeans, ScpsCapabilities, TcpConfig, TcpConnection};
use farlink_core::units::{BitRate, PositiveSeconds, Seconds};
use farlink_core::{Endpoint, Event, LinkHint, Stream, Time, Virtual};
use proptest::prelude::*;

const LONG: Time = Time::from_secs(100_000);

fn pair<D: Content>(config: &ScpsConfig, seed: u64, faults: &[Fault]) -> Pair<D> {
    let mut pair = Pair::of(Pairs::<D>::pair(config, seed), faults);
    pair.mark_every = seed % 5;
    pair
}

fn transfer<D: Content>(config: &ScpsConfig, seed: u64, faults: &[Fault], bytes: [usize; 2], piece: usize) -> Pair<D> {
    let mut pair = pair(config, seed, faults);
    pair.write_all(0, bytes[0], piece);
    pair.write_all(1, bytes[1], piece);
    pair.run_until(LONG);
    pair
}

proptest! {
    #[test]
    fn the_stream_arrives_as_it_was_written(
        config in scps_configs(false), seed: u64, faults in faults(), bytes in [0_usize..6_000, 0_usize..3_000],
        piece in 1_usize..4_000,
    ) {
        transfer::<Vec<u8>>(&config, seed, &faults, bytes, piece).assert_done(bytes);
    }

    /// Best-effort transport: data is delivered once and in order, and every missing byte is reported.
    #[test]
    fn skipped_data_is_reported(
        config in scps_configs(true), seed: u64, faults in faults(), bytes in [0_usize..6_000, 0_usize..3_000],
        piece in 1_usize..4_000,
    ) {
        transfer::<Vec<u8>>(&config, seed, &faults, bytes, piece).assert_done(bytes);
    }

    #[test]
    fn lengths_and_bytes_behave_alike(
        config in scps_configs(true), seed: u64, faults in faults(), bytes in [0_usize..6_000, 0_usize..3_000],
    ) {
        let real = transfer::<Vec<u8>>(&config, seed, &faults, bytes, usize::MAX);
        let lengths = transfer::<Virtual>(&config, seed, &faults, bytes, usize::MAX);
        let real_log: Vec<Sent> = log(&real);
        prop_assert_eq!(real_log, lengths.log);
        prop_assert_eq!(real.events, lengths.events);
    }

    #[test]
    fn early_and_repeated_timeouts_have_no_effect(
        config in scps_configs(true), seed: u64, faults in faults(), bytes in [0_usize..6_000, 0_usize..3_000],
    ) {
        let calm = transfer::<Virtual>(&config, seed, &faults, bytes, 2_000);
        let mut impatient = pair::<Virtual>(&config, seed, &faults);
        impatient.is_impatient = true;
        impatient.write_all(0, bytes[0], 2_000);
        impatient.write_all(1, bytes[1], 2_000);
        impatient.run_until(LONG);
        prop_assert_eq!(calm.log, impatient.log);
    }

    /// A reader that pauses delays a skip and loses no data before it.
    #[test]
    fn a_paused_reader_gets_the_data_before_a_skip_first(
        config in scps_configs(true), seed: u64, faults in faults(), bytes in 1_000_usize..8_000, asleep_s in 1_u64..300,
    ) {
        let mut pair = pair::<Vec<u8>>(&config, seed, &faults);
        pair.is_reader_asleep[1] = true;
        pair.write_all(0, bytes, 500);
        pair.write_all(1, 0, 1);
        pair.run_until(Time::from_secs(asleep_s));
        pair.is_reader_asleep[1] = false;
        pair.run_until(LONG);
        pair.assert_done([bytes, 0]);
    }
}

fn one_way() -> ScpsConfig {
    ScpsConfig {
        segment_bytes: count(100),
        initial_window_segments: Some(count(20)),
        max_window_segments: Some(count(200)),
        ack_every_segments: Some(count(1)),
        handshake: false,
        ..ScpsConfig::default()
    }
}

fn seconds(s: f64) -> PositiveSeconds {
    PositiveSeconds::new(s).unwrap()
}

/// Everything arrives except these packets, counted from the first one sent.
fn losing(packets: &[usize]) -> Vec<Fault> {
    let last = packets.iter().max().map_or(0, |last| last + 1);
    (0..last).map(|at| if packets.contains(&at) { Fault::Lose } else { Fault::Delay(20) }).collect()
}

/// Sent segments, without their content.
fn log<D: Content>(pair: &Pair<D>) -> Vec<Sent> {
    pair.log.iter().map(|(at, side, segment)| (*at, *side, segment.without_content())).collect()
}

/// Time and sequence number of each data segment of the opener.
fn data<D: Content>(pair: &Pair<D>) -> Vec<(Time, u32)> {
    log(pair).iter().filter(|sent| sent.1 == 0 && sent.2.payload.0 > 0).map(|sent| (sent.0, sent.2.seq)).collect()
}

/// The first report of a hole causes its repair, a round trip after the segment behind it was sent; later reports cause
/// no other.
#[test]
fn a_hole_is_repaired_once_within_a_round_trip() {
    let pair = transfer::<Virtual>(&one_way(), 0, &losing(&[3, 7, 8]), [5_000, 0], usize::MAX);
    pair.assert_done([5_000, 0]);
    let sent = data(&pair);
    for seq in [301, 701, 801] {
        let times: Vec<Time> = sent.iter().filter(|sent| sent.1 == seq).map(|sent| sent.0).collect();
        assert_eq!(times, [Time::ZERO, ONE_WAY + ONE_WAY], "{seq}");
    }
    assert_eq!(sent.len(), 50 + 3, "nothing else was sent twice");
    assert_eq!(pair.ends[0].counters().timeouts, 0);
}

/// With only two duplicate acknowledgements, SACK waits for a timeout; SNACK does not.
#[test]
fn a_hole_near_the_end_needs_no_timeout() {
    let timeouts = |variant| {
        let pair = transfer::<Virtual>(&ScpsConfig { variant, ..one_way() }, 0, &losing(&[18]), [2_000, 0], usize::MAX);
        pair.assert_done([2_000, 0]);
        pair.ends[0].counters().timeouts
    };
    assert_eq!((timeouts(Variant::Snack), timeouts(Variant::Sack)), (0, 1));
}

/// A lost retransmission is repeated after another round trip, not before.
#[test]
fn a_lost_retransmission_is_sent_again_a_round_trip_later() {
    // The round trip is known when the hole is reported; the retransmission is among the packets after the first
    // twenty.
    let free = transfer::<Virtual>(&one_way(), 0, &losing(&[3]), [5_000, 0], usize::MAX);
    let again = free.log.iter().enumerate().filter(|(_, sent)| sent.1 == 0 && sent.2.seq == 301).map(|(at, _)| at);
    let pair = transfer::<Virtual>(&one_way(), 0, &losing(&again.collect::<Vec<_>>()), [5_000, 0], usize::MAX);
    pair.assert_done([5_000, 0]);
    let times: Vec<u64> =
        data(&pair).iter().filter(|sent| sent.1 == 301).map(|sent| sent.0.as_ps() / 1_000_000_000).collect();
    assert_eq!(times.len(), 3);
    assert!(times[2] - times[1] >= 40, "{times:?}");
    assert_eq!(pair.ends[0].counters().timeouts, 0);
}

/// A report of many holes takes all of the 40 bytes that other options leave, in whole words.
#[test]
fn a_report_fills_the_space_left_by_other_options() {
    let lost: Vec<usize> = (0..200).step_by(2).collect();
    for (timestamps, is_damaged, vector, header) in
        [(false, false, 22, 48), (false, true, 22, 52), (true, false, 22, 60), (true, true, 18, 60)]
    {
        let config = ScpsConfig {
            initial_window_segments: Some(count(200)),
            loss_means: if is_damaged { LossMeans::Signalled } else { LossMeans::Congestion },
            corruption_hold_s: is_damaged.then(|| seconds(1e3)),
            header_bytes: count(20),
            snack_vector_bytes: Some(count(22)),
            timestamps,
            ..one_way()
        };
        let mut pair = pair::<Virtual>(&config, 0, &losing(&lost));
        if is_damaged {
            pair.ends[1].handle_link(Time::ZERO, LinkHint::Corrupted);
        }
        pair.ends[0].write(Time::ZERO, &mut Virtual(20_000));
        pair.run_until(Time::from_secs(1));
        let reports = pair.log.iter().filter(|sent| sent.1 == 1).filter_map(|sent| Some((sent.2.snack?, &sent.2)));
        let longest = reports.max_by_key(|(report, _)| report.vector().len()).expect("holes are reported");
        let place = format!("timestamps {timestamps}, damaged {is_damaged}");
        assert_eq!(longest.1.corruption_experienced, is_damaged, "{place}");
        assert_eq!((longest.0.vector().len(), longest.1.header_bytes), (vector, header), "{place}");
    }
}

/// One acknowledgement for every few segments, however many holes there are, and one at once for each new hole.
#[test]
fn acknowledgements_have_the_configured_rate() {
    let config = ScpsConfig {
        ack_every_segments: Some(count(10)),
        ack_interval_s: Some(seconds(5.0)),
        // A window of less than ten segments would wait for the interval.
        loss_means: LossMeans::Corruption,
        ..one_way()
    };
    let pair = transfer::<Virtual>(&config, 0, &losing(&[3]), [20_000, 0], usize::MAX);
    pair.assert_done([20_000, 0]);
    let acks = pair.log.iter().filter(|sent| sent.1 == 1).count();
    assert!((20..=26).contains(&acks), "{acks} acknowledgements of 200 segments");
    let config = ScpsConfig { ack_every_segments: None, ack_interval_s: Some(seconds(0.5)), ..config };
    let mut rarely = self::pair::<Virtual>(&config, 0, &[]);
    rarely.ends[0].write(Time::ZERO, &mut Virtual(2_000));
    rarely.run_until(Time::from_secs(1));
    let acks: Vec<Time> = rarely.log.iter().filter(|sent| sent.1 == 1).map(|sent| sent.0).collect();
    assert_eq!(acks, [ONE_WAY + Time::from_millis(500)], "of all twenty");
}

/// This holds for marks during the repair of bit errors as well.
#[test]
fn marks_reduce_the_window_and_bit_errors_do_not() {
    for &variant in Variant::ALL {
        let config = ScpsConfig {
            variant,
            loss_means: LossMeans::Corruption,
            ecn: true,
            max_window_segments: Some(count(20)),
            ..one_way()
        };
        let windows = |mark_every: u64, losses: &[usize]| {
            let mut pair = pair::<Virtual>(&config, 0, &losing(losses));
            pair.mark_every = mark_every;
            pair.write_all(0, 10_000, usize::MAX);
            pair.write_all(1, 0, 1);
            pair.run_until(LONG);
            pair.assert_done([10_000, 0]);
            pair.ends[0].probe().cwnd_bytes.expect("TCP has a window")
        };
        let losses = [3, 30, 31, 55, 90, 120];
        assert_eq!(windows(0, &losses), 2_000.0, "{variant:?}: only losses");
        for mark in 51..70 {
            // Half of it, and a segment more per round trip.
            let (alone, beside) = (windows(mark, &[]), windows(mark, &losses));
            assert!((1_000.0..1_500.0).contains(&alone), "{variant:?}: mark {mark} alone leaves {alone}");
            assert!((1_000.0..1_500.0).contains(&beside), "{variant:?}: mark {mark} and losses leave {beside}");
        }
    }
}

/// Without congestion control, there is no slow start either.
#[test]
fn a_fixed_rate_does_not_react_to_losses() {
    let config = ScpsConfig {
        congestion_control: CongestionControl::None,
        rate_bps: Some(BitRate::new(112_000.0).unwrap()), // 140 bytes take 10 ms
        initial_window_segments: None,
        ..one_way()
    };
    let pair = transfer::<Virtual>(&config, 0, &losing(&[3, 9, 30, 31, 32]), [10_000, 0], usize::MAX);
    pair.assert_done([10_000, 0]);
    let sent = data(&pair);
    assert!(sent.windows(2).all(|pair| pair[1].0.since(pair[0].0) == Time::from_millis(10)), "{sent:?}");
    let lost = [3, 9, 30, 31, 32].iter().filter(|&&at| pair.log[at].2.payload.0 > 0).count();
    assert!(lost >= 2);
    assert_eq!(sent.len(), 100 + lost, "each loss is one more packet at that rate");
}

/// Only a loss by congestion reduces the window.
#[test]
fn a_loss_by_corruption_leaves_the_window_alone() {
    for variant in [Variant::Snack, Variant::Sack, Variant::NewReno, Variant::Reno] {
        let cwnd = |loss_means| {
            let config = ScpsConfig { variant, loss_means, ..one_way() };
            let pair = transfer::<Virtual>(&config, 0, &losing(&[3]), [10_000, 0], usize::MAX);
            pair.assert_done([10_000, 0]);
            pair.ends[0].probe().cwnd_bytes.unwrap()
        };
        let (congestion, corruption) = (cwnd(LossMeans::Congestion), cwnd(LossMeans::Corruption));
        assert!(corruption >= 2.0 * congestion && corruption > 4_000.0, "{variant:?}: {corruption} and {congestion}");
    }
}

/// After the configured number of transmissions a segment is given up: the receiver stops waiting and reports how much
/// is missing.
#[test]
fn a_segment_is_skipped_after_its_last_transmission() {
    let config = ScpsConfig { max_transmissions: Some(count(2)), hold_time_s: Some(seconds(0.5)), ..one_way() };
    let free = transfer::<Virtual>(&config, 0, &losing(&[3]), [5_000, 0], usize::MAX);
    let again = free.log.iter().enumerate().filter(|(_, sent)| sent.1 == 0 && sent.2.seq == 301).map(|(at, _)| at);
    let pair = transfer::<Vec<u8>>(&config, 0, &losing(&again.collect::<Vec<_>>()), [5_000, 0], usize::MAX);
    pair.assert_done([5_000, 0]);
    assert_eq!((pair.received[1], pair.skipped[1]), (5_000, 100));
    assert!(pair.events[1].contains(&Event::Skipped(100)));
    assert_eq!(data(&pair).iter().filter(|sent| sent.1 == 301).count(), 2);
    assert_eq!(pair.ends[0].counters().timeouts, 0);
}

#[test]
fn with_one_transmission_nothing_is_retransmitted() {
    let config = ScpsConfig {
        max_transmissions: Some(count(1)),
        hold_time_s: Some(seconds(0.7)),
        congestion_control: CongestionControl::None,
        rate_bps: Some(BitRate::new(112_000.0).unwrap()),
        initial_window_segments: None,
        max_window_segments: Some(count(2_000)),
        ack_every_segments: Some(count(10)),
        handshake: true,
        ..one_way()
    };
    let lost: Vec<usize> = (0..150).filter(|at| at % 5 == 4).collect();
    let pair = transfer::<Vec<u8>>(&config, 0, &losing(&lost), [20_000, 0], usize::MAX);
    pair.assert_done([20_000, 0]);
    let sent = data(&pair);
    assert!(pair.skipped[1] >= 1_500, "{} skipped", pair.skipped[1]);
    assert_eq!(sent.len(), 200, "{sent:?}");
}

/// The end of the stream may be missing, too; the FIN is sent until it is acknowledged.
#[test]
fn a_missing_end_is_skipped() {
    let config = ScpsConfig { max_transmissions: Some(count(1)), hold_time_s: Some(seconds(0.5)), ..one_way() };
    let pair = transfer::<Vec<u8>>(&config, 0, &losing(&[18, 19]), [2_000, 0], usize::MAX);
    pair.assert_done([2_000, 0]);
    assert_eq!(pair.skipped[1], 200);
}

/// Every segment is sent that often, spaced apart, and acknowledged as if it had been sent once.
#[test]
fn copies_are_sent_without_request_and_cause_no_retransmission() {
    let config = ScpsConfig {
        copies: count(3),
        copy_spacing_s: Seconds::new(0.015).unwrap(),
        initial_window_segments: Some(count(5)),
        handshake: true, // so that the round trip is known
        ..one_way()
    };
    let free = transfer::<Virtual>(&config, 0, &[], [500, 0], usize::MAX);
    let first =
        |seq| free.log.iter().position(|sent| sent.1 == 0 && sent.2.seq == seq && sent.2.payload.0 > 0).unwrap();
    let pair = transfer::<Vec<u8>>(&config, 0, &losing(&[first(101), first(301)]), [500, 0], usize::MAX);
    pair.assert_done([500, 0]);
    let times = |seq| -> Vec<u64> {
        data(&pair).iter().filter(|sent| sent.1 == seq).map(|sent| sent.0.as_ps() / 1_000_000_000).collect()
    };
    assert_eq!(times(101), [40, 55, 70], "the second arrives");
    assert_eq!(times(1), [40, 55, 70]);
    assert_eq!(pair.ends[0].counters().fast_retransmits, 0, "a copy is no duplicate acknowledgement");
}

/// SCPS-TP connects to a TCP that does not know it.
#[test]
fn a_plain_tcp_interoperates() {
    let config = ScpsConfig { handshake: true, header_compression: true, ..one_way() };
    let (scps, _) = Pairs::<Vec<u8>>::pair(&config, 1 << 32);
    let (_, tcp) = TcpConnection::<Vec<u8>>::pair(&TcpConfig { handshake: true, ..small(Variant::NewReno) }, 1 << 32);
    let mut pair = Pair::of((scps, tcp), &losing(&[8, 12]));
    pair.write_all(0, 5_000, 5_000);
    pair.write_all(1, 1_000, 1_000);
    pair.run_until(LONG);
    pair.assert_done([5_000, 1_000]);
    let capabilities = pair.log[0].2.syn.scps.expect("it offers them");
    assert_eq!(capabilities.bits & ScpsCapabilities::COMPRESSION, ScpsCapabilities::COMPRESSION);
    assert!(pair.log.iter().all(|sent| sent.2.snack.is_none()));
    let headers = pair.log.iter().filter(|sent| !sent.2.flags.has(farlink_core::protocol::tcp::Flags::SYN));
    assert!(headers.clone().all(|sent| sent.2.header_bytes >= 40), "nothing is compressed");
    assert!(headers.count() > 0);
}

/// Compressed headers have only the changed fields, in every segment except the SYNs.
#[test]
fn compressed_headers_are_smaller_and_survive_losses() {
    let config = ScpsConfig { handshake: true, header_compression: true, ..one_way() };
    let pair = transfer::<Vec<u8>>(&config, 7, &losing(&[5, 9]), [5_000, 0], usize::MAX);
    pair.assert_done([5_000, 0]);
    let of = |side: usize, has_data: bool| {
        let sent =
            log(&pair).into_iter().skip(3).filter(move |sent| sent.1 == side && (sent.2.payload.0 > 0) == has_data);
        sent.map(|sent| sent.2.header_bytes).collect::<std::collections::BTreeSet<_>>()
    };
    // They have the acknowledgement number after the peer's FIN has arrived.
    assert_eq!(of(0, true), [28, 34].into());
    // They have the sequence number, which the FIN changes; some have a second octet of flags and the length and six
    // octets or more of a report.
    let acks = of(1, false);
    assert!(acks.contains(&34) && acks.iter().all(|&bytes| bytes <= 36 || (42..=46).contains(&bytes)), "{acks:?}");
    assert_eq!(pair.log[0].2.header_bytes, 44, "the SYN with its option");
}

/// A driver that polls after the end gets nothing.
#[test]
fn nothing_is_left_after_the_end() {
    let config = ScpsConfig { copies: count(2), hold_time_s: Some(seconds(1.0)), ..one_way() };
    let mut pair = transfer::<Virtual>(&config, 0, &[], [1_000, 0], usize::MAX);
    for end in &mut pair.ends {
        assert_eq!(end.poll_transmit(LONG), None);
        assert_eq!(end.poll_event(), None);
        assert_eq!(end.read(), None);
    }
}

/// After a timeout, the window ends within a segment. The part of it inside the window is retransmitted.
#[test]
fn a_retransmission_may_end_within_a_segment() {
    const ON_TIME: Fault = Fault::Delay(1);
    let mut faults = vec![ON_TIME; 40];
    for at in [3, 13, 14, 18, 23, 27, 29, 30, 33, 39] {
        faults[at] = Fault::Lose;
    }
    for (at, fault) in [
        (2, Fault::Delay(33)),
        (4, Fault::Delay(23)),
        (5, Fault::Twice(1, 1816)),
        (15, Fault::Twice(17, 1247)),
        (16, Fault::Twice(36, 36)),
        (20, Fault::Twice(1, 1365)),
        (34, Fault::Twice(1, 53)),
    ] {
        faults[at] = fault;
    }
    let config = ScpsConfig {
        snack_vector_bytes: Some(count(1)),
        rate_bps: Some(BitRate::new(2e4).unwrap()),
        loss_means: LossMeans::Corruption,
        hold_time_s: Some(seconds(2.863_835_624_564_516)),
        ack_interval_s: Some(seconds(0.281_145_034_895_015_66)),
        initial_window_segments: Some(count(6)),
        segment_bytes: count(63),
        max_window_segments: Some(count(14)),
        ..ScpsConfig::default()
    };
    let mut pair = pair::<Vec<u8>>(&config, 0, &faults);
    pair.is_reader_asleep[1] = true;
    pair.write_all(0, 1000, 500);
    pair.write_all(1, 0, 1);
    pair.run_until(Time::from_secs(4));
    pair.is_reader_asleep[1] = false;
    pair.run_until(LONG);
    pair.assert_done([1000, 0]);
}

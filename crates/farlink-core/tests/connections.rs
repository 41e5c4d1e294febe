//! Two TCP connections over a network that loses, duplicates, reorders and delays: the stream arrives, byte for byte.

use crate::pair;
use crate::pair::{Content, Pair, WithoutContent, configs, count, faults, small};
use farlink_core::protocol::parts::rto::RtoConfig;
use farlink_core::protocol::tcp::variant::Variant;
use farlink_core::protocol::tcp::{
    CongestionControl, Flags, Segment, TcpConfig, TcpConnection, TimestampEcho, Timestamps,
};
use farlink_core::units::Seconds;
use farlink_core::{Endpoint, Event, Rx, Stream, Time, Virtual};
use proptest::prelude::*;

/// Long enough for any number of timeouts that the faults can cause.
pub(crate) const LONG: Time = Time::from_secs(100_000);

pub(crate) fn transfer<D: Content>(
    config: &TcpConfig,
    seed: u64,
    faults: &[pair::Fault],
    bytes: [usize; 2],
    piece: usize,
) -> Pair<D> {
    let mut pair = Pair::new(config, seed, faults);
    pair.write_all(0, bytes[0], piece);
    pair.write_all(1, bytes[1], piece);
    pair.run_until(LONG);
    pair
}

proptest! {
    /// Both directions at once, with every option, over any network.
    #[test]
    fn the_stream_arrives_as_it_was_written(
        config in configs(), seed: u64, faults in faults(), bytes in [0_usize..6_000, 0_usize..3_000], piece in 1_usize..4_000,
    ) {
        transfer::<Vec<u8>>(&config, seed, &faults, bytes, piece).assert_done(bytes);
    }

    /// The simulator carries lengths and the wire bytes; both give the same steps.
    #[test]
    fn lengths_and_bytes_behave_alike(
        config in configs(), seed: u64, faults in faults(), bytes in [0_usize..6_000, 0_usize..3_000],
    ) {
        let whole = usize::MAX; // one write, since joined lengths know no boundary
        let real = transfer::<Vec<u8>>(&config, seed, &faults, bytes, whole);
        let lengths = transfer::<Virtual>(&config, seed, &faults, bytes, whole);
        let real_log: Vec<pair::Sent> =
            real.log.iter().map(|(at, side, segment)| (*at, *side, segment.without_content())).collect();
        prop_assert_eq!(real_log, lengths.log);
        prop_assert_eq!(real.events, lengths.events);
    }

    /// A driver may call `handle_timeout` at any time.
    #[test]
    fn early_and_repeated_timeouts_have_no_effect(
        config in configs(), seed: u64, faults in faults(), bytes in [0_usize..6_000, 0_usize..3_000],
    ) {
        let calm = transfer::<Virtual>(&config, seed, &faults, bytes, 2_000);
        let mut impatient = Pair::<Virtual>::new(&config, seed, &faults);
        impatient.is_impatient = true;
        impatient.write_all(0, bytes[0], 2_000);
        impatient.write_all(1, bytes[1], 2_000);
        impatient.run_until(LONG);
        prop_assert_eq!(calm.log, impatient.log);
    }

    /// A reader that pauses closes the window. When it continues, all data arrives, even if the window update is lost.
    #[test]
    fn a_closed_window_opens_again(
        config in configs(), seed: u64, faults in faults(), bytes in 1_000_usize..8_000, asleep_s in 1_u64..300,
        lost_after in 0_usize..4,
    ) {
        let config = TcpConfig { receive_window_segments: Some(count(4)), ..config };
        let mut pair = Pair::<Vec<u8>>::new(&config, seed, &faults);
        pair.is_reader_asleep[1] = true;
        pair.write_all(0, bytes, 500);
        pair.write_all(1, 0, 1);
        pair.run_until(Time::from_secs(asleep_s));
        prop_assert_eq!(pair.received[1], 0);
        pair.is_reader_asleep[1] = false;
        pair.faults = std::iter::repeat_n(pair::Fault::Lose, lost_after).collect();
        pair.run_until(LONG);
        pair.assert_done([bytes, 0]);
    }

    /// Any order of calls and deliveries; the fuzz target `connections` has the same body.
    #[test]
    fn any_operations_deliver_what_was_written(bytes in proptest::collection::vec(any::<u8>(), 3..600)) {
        pair::operations::operations(&bytes);
    }
}

/// A transfer in one direction that loses the first transmission of some segments, counted from 0.
pub(crate) fn losing(config: &TcpConfig, bytes: usize, segments: &[usize]) -> Pair<Virtual> {
    let mss = config.segment_bytes.whole() as usize;
    let mut faults = Vec::new();
    for segment in segments {
        // Index of the segment among all sent ones, given the losses before it.
        let pair = transfer::<Virtual>(config, 0, &faults, [bytes, 0], usize::MAX);
        let seq = 1 + (segment * mss) as u32;
        let is_it = |(_, side, sent): &pair::Sent| *side == 0 && sent.seq == seq && sent.payload.0 > 0;
        let at = pair.log.iter().position(is_it).expect("it is sent");
        faults.resize(faults.len().max(at + 1), pair::Fault::Delay(20));
        faults[at] = pair::Fault::Lose;
    }
    let pair = transfer::<Virtual>(config, 0, &faults, [bytes, 0], usize::MAX);
    pair.assert_done([bytes, 0]);
    pair
}

pub(crate) fn one_way() -> TcpConfig {
    TcpConfig {
        handshake: false,
        fin: false,
        delayed_ack: false,
        initial_window_segments: count(20),
        ..small(Variant::Sack)
    }
}

/// RFC 6675, section 5.1: a recovery may begin as soon as everything up to the last RecoveryPoint is acknowledged, so the
/// loss of the very segment at that point is repaired without a timeout.
#[test]
fn sack_recovers_from_a_loss_at_the_recovery_point() {
    let config = one_way();
    // The number of segments that limited transmit adds before the recovery does not matter here: one of these is
    // first.
    for second in 20..40 {
        let pair = losing(&config, 20_000, &[8, second]);
        assert_eq!(pair.ends[0].counters().timeouts, 0, "segments 8 and {second} lost");
    }
}

/// RFC 6675, section 4: the rescue retransmission does not change HighRxt, so holes below it are still repaired.
#[test]
fn sack_repairs_the_holes_below_a_rescue_retransmission() {
    let pair = losing(&one_way(), 2_000, &[9, 16, 17, 18, 19]);
    assert_eq!(pair.ends[0].counters().timeouts, 0);
}

/// RFC 9293, SHLD-31: a FIN that arrives before missing data is kept and need not be retransmitted.
#[test]
fn a_fin_after_a_gap_is_kept() {
    for &variant in Variant::ALL {
        let config = TcpConfig { variant, fin: true, initial_window_segments: count(10), ..one_way() };
        let pair = losing(&config, 1_000, &[2]);
        if variant == Variant::None {
            continue; // nothing but a timeout repairs anything
        }
        assert_eq!(pair.ends[0].counters().timeouts, 0, "{variant:?}");
        let is_fin = |sent: &&pair::Sent| sent.1 == 0 && sent.2.flags.has(Flags::FIN);
        // Tahoe returns to the loss and sends everything after it again; no SACK block reports a FIN.
        assert!(
            matches!(variant, Variant::Tahoe | Variant::Sack | Variant::Rack)
                || pair.log.iter().filter(is_fin).count() == 1,
            "{variant:?}"
        );
    }
}

/// RFC 793, section 3.7: only the timer repairs a loss, whatever is reported. Then everything after the loss is
/// retransmitted, even data that had arrived.
#[test]
fn without_fast_retransmit_the_timer_retransmits_everything_after_a_loss() {
    let config = TcpConfig {
        variant: Variant::None,
        congestion_control: CongestionControl::None,
        max_window_segments: Some(count(20)),
        ..one_way()
    };
    let pair = losing(&config, 2_000, &[5]);
    assert_eq!((pair.ends[0].counters().timeouts, pair.ends[0].counters().fast_retransmits), (1, 0));
    let sent: Vec<_> = pair.log.iter().filter(|sent| sent.1 == 0).collect();
    // All twenty at once; then, after the RTO of a second, all from the sixth on at once again.
    let again: Vec<u32> = sent[20..].iter().map(|sent| (sent.2.seq - 1) / 100).collect();
    assert_eq!(again, (5..20).collect::<Vec<u32>>());
    assert!(sent[20..].iter().all(|segment| segment.0 == sent[20].0 && segment.0 > Time::from_secs(1)));
}

/// RFC 7323, section 4.3: the echo is the timestamp of the oldest segment covered by the acknowledgement, so that the
/// round-trip time includes the delay of the acknowledgement. The latest one is echoed if the configuration says so.
#[test]
fn a_delayed_acknowledgement_echoes_the_first_timestamp_or_the_latest() {
    // The second segment completes the pair; or it arrives after a gap and is acknowledged at once, like the segment
    // that fills the gap.
    for (timestamp_echo, segments, expected) in [
        (TimestampEcho::Oldest, &[(1, 100), (101, 150)][..], &[100][..]),
        (TimestampEcho::Oldest, &[(1, 100), (201, 120), (101, 150)], &[100, 150]),
        (TimestampEcho::Latest, &[(1, 100), (101, 150)], &[150]),
        (TimestampEcho::Latest, &[(1, 100), (201, 120), (101, 150)], &[120, 150]),
    ] {
        let config = TcpConfig { timestamps: true, timestamp_echo, delayed_ack: true, ..one_way() };
        let mut pair = Pair::<Virtual>::new(&config, 0, &[]);
        for &(seq, value) in segments {
            let segment = Segment {
                seq,
                ack: 1,
                flags: Flags::ACK,
                header_bytes: 52,
                window: 3_000,
                timestamps: Some(Timestamps { value, echo: 0 }),
                payload: Virtual(100),
                ..Segment::default()
            };
            pair.insert(Time::from_millis(u64::from(value)), 1, segment);
        }
        pair.run_until(LONG);
        let echoes: Vec<_> = pair.log.iter().map(|sent| sent.2.timestamps.expect("agreed").echo).collect();
        assert_eq!(echoes, expected);
    }
}

/// RFC 5681, section 4.1.
#[test]
fn an_idle_period_resets_the_window_to_the_initial_one() {
    let config = TcpConfig { initial_window_segments: count(2), ..one_way() };
    let mut pair = Pair::<Virtual>::new(&config, 0, &[]);
    pair.ends[0].write(pair.now, &mut Virtual(10_000));
    pair.run_until(LONG);
    assert_eq!(pair.received[1], 10_000);
    pair.now = Time::from_secs(900_000);
    let before = pair.log.len();
    pair.ends[0].write(pair.now, &mut Virtual(10_000));
    pair.pump(0);
    assert_eq!(pair.log.len() - before, 2, "segments at once");
}

/// RFC 6298, section 5.7: the RTO of data is three seconds if the SYN was retransmitted.
#[test]
fn after_a_lost_syn_the_timeout_of_data_is_three_seconds() {
    for (is_lost, timeout_s) in [(true, 3), (false, 1)] {
        let config = TcpConfig { handshake: true, ..one_way() };
        let faults = if is_lost { vec![pair::Fault::Lose] } else { vec![] };
        let mut pair = Pair::<Virtual>::new(&config, 0, &faults);
        pair.ends[0].write(pair.now, &mut Virtual(100));
        pair.pump(0);
        let is_data = |sent: &pair::Sent| sent.2.payload.0 > 0;
        while !pair.log.iter().any(is_data) {
            assert!(pair.step(LONG));
        }
        assert_eq!(pair.ends[0].poll_timeout(), Some(pair.now + Time::from_secs(timeout_s)));
    }
}

/// RFC 6928, section 2, and Linux: one timeout of the SYN does not change the initial window, a second one does. The
/// older versions follow RFC 5681, section 3.1.
#[test]
fn the_initial_window_after_a_lost_syn() {
    for (variant, lost, expected) in [
        (Variant::Rack, 0, 10),
        (Variant::Rack, 1, 10),
        (Variant::Rack, 2, 1),
        (Variant::Sack, 0, 10),
        (Variant::Sack, 1, 1),
    ] {
        let config = TcpConfig { variant, handshake: true, initial_window_segments: count(10), ..one_way() };
        let mut pair = Pair::<Virtual>::new(&config, 0, &vec![pair::Fault::Lose; lost]);
        pair.ends[0].write(pair.now, &mut Virtual(100_000));
        pair.pump(0);
        let is_data = |sent: &&pair::Sent| sent.2.payload.0 > 0;
        while !pair.log.iter().any(|sent| is_data(&sent)) {
            assert!(pair.step(LONG));
        }
        assert_eq!(pair.log.iter().filter(is_data).count(), expected, "{variant:?}, {lost} lost");
    }
}

/// A second loss, detected while proportional rate reduction sends hardly anything, leaves Westwood a usable window.
#[test]
fn westwood_keeps_a_window_of_at_least_one_segment() {
    use pair::Fault::{Delay as D, Lose as L, Twice as T};
    let rto = RtoConfig {
        minimum_s: Some(Seconds::new(0.0).unwrap()),
        granularity_s: Seconds::new(0.0).unwrap(),
        ..RtoConfig::default()
    };
    let config = TcpConfig {
        variant: Variant::Rack,
        congestion_control: CongestionControl::Westwood,
        segment_bytes: count(147),
        initial_window_segments: count(1),
        max_window_segments: Some(count(3)),
        duplicate_ack_threshold: count(2),
        limited_transmit: false,
        delayed_ack: false,
        handshake: false,
        fin: false,
        restart_after_idle: false,
        recover_guard: false,
        window_scaling: true,
        rto,
        ..TcpConfig::default()
    };
    let faults = [
        L,
        T(1, 1368),
        L,
        D(9),
        D(1),
        D(8),
        D(29),
        D(3),
        D(39),
        D(39),
        D(12),
        L,
        L,
        D(1),
        L,
        L,
        D(5),
        D(1),
        D(3),
        D(3),
        D(3),
        L,
        T(1, 1),
        D(1),
        D(1),
        D(1),
        D(3),
        D(3),
        D(2),
        D(2),
        D(2),
        D(2),
    ]; // found at random
    transfer::<Vec<u8>>(&config, 0, &faults, [514, 658], 50).assert_done([514, 658]);
}

/// The persist timer never gives up (RFC 9293, section 3.8.6.1).
#[test]
fn a_closed_window_is_probed_with_one_byte_at_doubling_intervals() {
    let config = TcpConfig { receive_window_segments: Some(count(2)), ..small(Variant::Reno) };
    let mut pair = Pair::<Vec<u8>>::new(&config, 7, &[]);
    pair.is_reader_asleep[1] = true;
    pair.write_all(0, 1_000, 1_000);
    pair.write_all(1, 0, 1);
    pair.run_until(Time::from_secs(200));

    let probes: Vec<f64> = pair
        .log
        .iter()
        .filter(|sent| sent.1 == 0 && sent.2.payload.len() == 1)
        .map(|sent| sent.0.as_secs_f64())
        .collect();
    assert!(probes.len() >= 5, "{probes:?}");
    let gaps: Vec<f64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.windows(2).all(|pair| pair[1] >= 1.9 * pair[0] || pair[1] >= 59.0), "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= 60.1), "{gaps:?}");
    assert_eq!(pair.ends[0].counters().fast_retransmits, 0, "answers to probes are not duplicate acknowledgements");
}

/// A reset connection has nothing to send, although its window is open and data waits.
#[test]
fn a_reset_silences_an_open_window() {
    let mut pair = Pair::<Virtual>::new(&one_way(), 0, &[]);
    pair.ends[0].write(pair.now, &mut Virtual(10_000));
    let reset = Segment { seq: 1, flags: Flags::RST, ..Segment::default() };
    pair.ends[0].handle_packet(pair.now, &reset, Rx::default());
    assert_eq!(pair.ends[0].poll_transmit(pair.now), None);
    pair.ends[0].write(pair.now, &mut Virtual(10_000));
    pair.ends[0].close(pair.now);
    assert_eq!(pair.ends[0].poll_transmit(pair.now), None);
    assert_eq!(pair.ends[0].poll_timeout(), None);
}

/// A reset with the next sequence number ends a connection, and nothing more is sent; any other reset is ignored (RFC
/// 9293, section 3.10.7.4).
#[test]
fn only_a_reset_in_sequence_ends_a_connection() {
    for (offset, is_believed) in [(0_u32, true), (1, false), (50, false), (u32::MAX, false), (1 << 31, false)] {
        let seed = 0x0123_4567_89ab_cdef_u64;
        let config = small(Variant::NewReno);
        let mut pair = Pair::<Vec<u8>>::new(&config, seed, &[]);
        pair.write_all(0, 20_000, 20_000);
        pair.write_all(1, 0, 1);
        pair.run_until(Time::from_millis(100));
        // The server has sent its SYN and FIN but no data: the client expects the number after them.
        let next = pair.log.iter().rev().find(|sent| sent.1 == 0).expect("the client sends").2.ack;
        let reset = Segment { seq: next.wrapping_add(offset), flags: Flags::RST, ..Segment::default() };
        pair.insert(pair.now, 0, reset);
        let before = pair.log.len();
        pair.run_until(LONG);
        if is_believed {
            assert!(pair.events[0].contains(&Event::Aborted(farlink_core::event::Abort::Reset)));
            let after: Vec<_> = pair.log[before..].iter().filter(|sent| sent.1 == 0).collect();
            assert!(after.is_empty(), "{after:?}");
            assert_eq!(pair.ends[0].poll_timeout(), None);
        } else {
            pair.assert_done([20_000, 0]);
        }
    }
}

/// A restarted side answers segments of unknown connections with a reset that the peer accepts (RFC 9293, section
/// 3.10.7), and a new connection begins. Segments without an acknowledgement, and resets, are not answered.
#[test]
fn a_restarted_peer_resets_unknown_connections() {
    let config = TcpConfig { handshake: true, ..small(Variant::Sack) };
    let packets = |end: &mut TcpConnection<Virtual>, now: Time| -> Vec<Segment<Virtual>> {
        std::iter::from_fn(|| end.poll_transmit(now)).map(|sent| sent.packet).collect()
    };
    for restarted in [0, 1] {
        let (client, server) = TcpConnection::<Virtual>::pair(&config, 0x0123_4567_89ab_cdef);
        let mut ends = [client, server];
        let exchange = |ends: &mut [TcpConnection<Virtual>; 2], now: Time| loop {
            let there = packets(&mut ends[0], now);
            there.iter().for_each(|segment| ends[1].handle_packet(now, segment, Rx::default()));
            let back = packets(&mut ends[1], now);
            back.iter().for_each(|segment| ends[0].handle_packet(now, segment, Rx::default()));
            if there.is_empty() && back.is_empty() {
                break;
            }
        };
        exchange(&mut ends, Time::ZERO);
        ends[0].write(Time::ZERO, &mut Virtual(100));
        exchange(&mut ends, Time::ZERO);

        let (client, server) = TcpConnection::<Virtual>::pair(&config, 0xfedc_ba98_7654_3210);
        ends[restarted] = if restarted == 0 { client } else { server };
        ends[0].write(Time::ZERO, &mut Virtual(100));
        exchange(&mut ends, Time::ZERO);
        let events: Vec<Event> = std::iter::from_fn(|| ends[1 - restarted].poll_event()).collect();
        assert!(events.contains(&Event::Aborted(farlink_core::event::Abort::Reset)), "{restarted}: {events:?}");

        // The other side drops the connection, too, and a new one is established.
        let (client, server) = TcpConnection::<Virtual>::pair(&config, 0x1111_2222_3333_4444);
        ends[1 - restarted] = if restarted == 0 { server } else { client };
        let now = ends[0].poll_timeout().unwrap_or(Time::ZERO);
        ends[0].handle_timeout(now);
        exchange(&mut ends, now);
        let events: Vec<Event> = std::iter::from_fn(|| ends[1].poll_event()).collect();
        assert!(events.contains(&Event::Connected), "{restarted}: {events:?}");
    }

    let (_, mut listening) = TcpConnection::<Virtual>::pair(&config, 1);
    for flags in [Flags::FIN, Flags::RST, Flags::RST.with(Flags::ACK)] {
        listening.handle_packet(Time::ZERO, &Segment { ack: 7, flags, ..Segment::default() }, Rx::default());
        assert_eq!(packets(&mut listening, Time::ZERO), [], "{flags:?}");
    }
    let unknown = Segment { ack: 7, flags: Flags::ACK, ..Segment::default() };
    listening.handle_packet(Time::ZERO, &unknown, Rx::default());
    let answers = packets(&mut listening, Time::ZERO);
    assert_eq!(answers.iter().map(|answer| (answer.seq, answer.flags)).collect::<Vec<_>>(), [(7, Flags::RST)]);
}

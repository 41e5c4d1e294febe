//! STP connections over a network that loses, duplicates and reorders, in virtual time.

use farlink_core::event::Abort;
use farlink_core::payload::Virtual;
use farlink_core::protocol::stp::{Kind, Pdu, RateControl, StpConfig, StpConnection};
use farlink_core::units::{BitRate, PositiveSeconds};
use farlink_core::{Endpoint, Event, Packet, Rx, Stream, Time};
use proptest::prelude::*;

use crate::pair::{Content, Fault, Pair, count, faults};

type Net = Pair<Vec<u8>, StpConnection<Vec<u8>>>;

/// Delay of a network without faults.
const ONE_WAY: Time = Time::from_millis(50);

fn net(config: &StpConfig, faults: &[Fault]) -> Net {
    let mut net: Net = Pair::of(StpConnection::pair(config), faults);
    net.delay = Box::new(|_, _, _| ONE_WAY);
    net.most_sent = 100_000;
    net.takes_all_writes = true;
    net.alarms_lie_ahead = true;
    // Early and repeated timeouts have no effect.
    net.is_impatient = true;
    net
}

impl Net {
    /// The packets of a kind that a side sent, with their times.
    fn sent(&self, side: usize, kind: Kind) -> Vec<(Time, &Pdu<Vec<u8>>)> {
        let of_kind = self.log.iter().filter(|entry| entry.1 == side && entry.2.kind == kind);
        of_kind.map(|(at, _, pdu)| (*at, pdu)).collect()
    }
}

fn seconds(n: f64) -> PositiveSeconds {
    PositiveSeconds::new(n).unwrap()
}

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

/// Packets of 100 bytes.
fn small() -> StpConfig {
    StpConfig { segment_bytes: count(100), ..StpConfig::default() }
}

fn by_rate(rate_bps: f64) -> StpConfig {
    StpConfig { congestion: RateControl::Rate, rate_bps: Some(BitRate::new(rate_bps).unwrap()), ..small() }
}

#[test]
fn opens_sends_and_closes() {
    let mut pair = net(&small(), &[]);
    pair.write_all(0, 250, 1000);
    pair.ends[1].close(Time::ZERO);
    pair.run_until(Time::NEVER);
    pair.assert_done([250, 0]);
    let kinds: Vec<(u64, usize, Kind)> =
        pair.log.iter().map(|(at, side, pdu)| (at.as_ps() / 1_000_000_000, *side, pdu.kind)).collect();
    use Kind::*;
    assert_eq!(
        kinds,
        [
            (0, 0, Begin),
            (50, 1, BeginAck),
            (50, 1, End),
            (100, 0, Data),
            (100, 0, Data),
            (100, 0, Data),
            // The POLL after the last data, and the END after it.
            (100, 0, Poll),
            (100, 0, End),
            (100, 0, EndAck),
            (150, 1, Stat),
            (150, 1, EndAck),
        ]
    );
}

#[test]
fn without_a_handshake_nothing_but_data_polls_and_stats_is_sent() {
    let mut pair = net(&StpConfig { handshake: false, ..small() }, &[]);
    pair.write_all(0, 250, 1000);
    pair.run_until(Time::NEVER);
    assert_eq!(pair.received, [0, 250]);
    assert_eq!(pair.events[0], [Event::Connected, Event::Closed]);
    assert!(pair.log.iter().all(|(_, _, pdu)| matches!(pdu.kind, Kind::Data | Kind::Poll | Kind::Stat)));
}

/// Only STATs acknowledge data: there are as many POLLs as intervals, and as many STATs as POLLs.
#[test]
fn polls_at_its_interval() {
    let config = StpConfig { poll_interval_s: seconds(0.1), handshake: false, ..by_rate(80e3) }; // 7.6 packets each
    let mut pair = net(&config, &[]);
    pair.write_all(0, 100_000, 100_000);
    pair.run_until(ms(1050));
    let polls = pair.sent(0, Kind::Poll);
    assert_eq!(polls.iter().map(|poll| poll.0).collect::<Vec<_>>(), (1..=10).map(|n| ms(100 * n)).collect::<Vec<_>>());
    assert_eq!(polls.iter().map(|poll| poll.1.poll).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    assert_eq!(pair.sent(1, Kind::Stat).len(), 10);
    assert_eq!(pair.log.iter().filter(|entry| entry.1 == 1).count(), 10, "and nothing else is sent back");
}

/// A POLL takes 32 ms and is due every 20 ms; a data packet takes 105.6 ms.
#[test]
fn polls_that_alone_fill_the_rate_leave_room_for_data() {
    for handshake in [false, true] {
        let config = StpConfig { poll_interval_s: seconds(0.02), handshake, ..by_rate(10e3) };
        let mut pair = net(&config, &[Fault::Delay(50), Fault::Delay(50), Fault::Delay(50), Fault::Lose]);
        pair.write_all(0, 2000, 2000);
        pair.run_until(ms(6000));
        assert_eq!(pair.received[1], 2000);
        // One POLL per data packet while there is data to send, and as many as the rate allows until the last STAT is
        // back.
        let polls = pair.sent(0, Kind::Poll).len();
        assert!((20..35).contains(&polls), "{polls}");
        let sent: u32 =
            pair.sent(0, Kind::Data).iter().chain(&pair.sent(0, Kind::Poll)).map(|sent| sent.1.wire_bytes()).sum();
        let last = pair.log.iter().rfind(|sent| sent.1 == 0).expect("something was sent").0;
        // A byte takes 0.8 ms; at the end a data packet and the POLL after it may be ahead of the rate.
        assert!(Time::from_ps(800_000_000).times(u64::from(sent - 132 - 40)) <= last, "{sent} bytes by {last:?}");
        assert!(last < ms(5000), "no POLL follows once everything has arrived");
    }
}

/// A burst contains POLLs: its front is acknowledged, and followed by new data, before its end has arrived.
#[test]
fn polls_within_a_burst() {
    let config = StpConfig { initial_window_segments: count(50), handshake: false, ..small() };
    let mut pair = net(&config, &[]);
    pair.write_all(0, 100_000, 100_000);
    pair.run_until(ms(1));
    let places: Vec<usize> =
        pair.log.iter().enumerate().filter(|(_, entry)| entry.2.kind == Kind::Poll).map(|(place, _)| place).collect();
    assert_eq!(places, [25, 51]);
}

#[test]
fn sends_at_its_rate_and_retransmissions_first() {
    // 132 bytes at 105.6 kbit/s are 10 ms.
    let config = StpConfig {
        poll_interval_s: seconds(10.0),
        poll_every_segments: Some(count(100)),
        handshake: false,
        ..by_rate(105.6e3)
    };
    let mut pair = net(&config, &[Fault::Delay(50), Fault::Lose]);
    pair.write_all(0, 10_000, 10_000);
    pair.run_until(ms(200));
    let data = pair.sent(0, Kind::Data);
    assert!(data.iter().enumerate().all(|(n, packet)| packet.0 == ms(10 * n as u64)), "one every 10 ms");
    let positions: Vec<u32> = data.iter().map(|packet| packet.1.position / 100).collect();
    // Packet 1 is missed when 2, sent at 20 ms, arrives at 70 ms; the USTAT is back at 120 ms, when 12 was due.
    assert_eq!(positions[..16], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 12, 13, 14]);
    assert_eq!(pair.sent(1, Kind::Ustat).len(), 1, "one report for one gap");
}

#[test]
fn without_ustat_a_gap_is_found_with_the_next_poll() {
    let config = StpConfig { poll_interval_s: seconds(0.15), handshake: false, ustat: false, ..by_rate(105.6e3) };
    let mut pair = net(&config, &[Fault::Lose]);
    pair.write_all(0, 10_000, 10_000);
    pair.run_until(ms(400));
    assert_eq!(pair.sent(1, Kind::Ustat).len(), 0);
    let again: Vec<Time> =
        pair.sent(0, Kind::Data).iter().filter(|packet| packet.1.position == 0).map(|packet| packet.0).collect();
    // POLL at 150 ms, its STAT back at 250 ms; the POLL took 3 ms of the rate.
    assert_eq!(again.len(), 2);
    assert!(again[1] >= ms(250) && again[1] < ms(265), "{:?}", again[1]);
}

#[test]
fn a_lost_tail_costs_one_poll() {
    let config = StpConfig { handshake: false, ..small() };
    let mut pair = net(&config, &[Fault::Delay(50), Fault::Delay(50), Fault::Lose]);
    pair.write_all(0, 300, 300);
    pair.run_until(Time::NEVER);
    // The POLL after the last data shows the gap; another one follows the retransmission.
    assert_eq!(pair.now, ms(200));
    assert_eq!(pair.sent(0, Kind::Poll).len(), 2);
    assert_eq!(pair.ends[0].counters().timeouts, 0);
}

#[test]
fn slow_start_follows_the_stats() {
    let config = StpConfig { initial_window_segments: count(1), handshake: false, ..small() };
    let mut pair = net(&config, &[]);
    pair.write_all(0, 100_000, 100_000);
    pair.run_until(ms(350));
    let at = |time| pair.sent(0, Kind::Data).iter().filter(|packet| packet.0 == ms(time)).count();
    assert_eq!([at(0), at(100), at(200), at(300)], [1, 2, 4, 8]);
    assert_eq!(pair.ends[0].probe().cwnd_bytes, Some(800.0));
    assert_eq!(pair.ends[0].probe().in_flight_bytes, Some(800));
}

#[test]
fn polls_back_off_during_an_outage_and_resume_after_it() {
    let config = StpConfig { handshake: false, max_window_segments: Some(count(50)), ..by_rate(105.6e3) };
    let mut pair = net(&config, &[]);
    pair.write_all(0, 100_000, 100_000);
    pair.wait_until(ms(1000));
    pair.is_cut = [true; 2];
    pair.wait_until(ms(40_000));
    let asked: Vec<f64> =
        pair.sent(0, Kind::Poll).iter().map(|poll| poll.0.as_secs_f64()).filter(|&at| at > 1.8).collect();
    assert!(asked.len() >= 4, "{asked:?}");
    for gap in asked.windows(3) {
        assert!((gap[2] - gap[1]) / (gap[1] - gap[0]) > 1.5, "the distance doubles: {asked:?}");
    }
    let in_silence = pair.sent(0, Kind::Data).iter().filter(|packet| packet.0 > ms(3000)).count();
    assert_eq!(in_silence, 0, "the window is full");
    pair.is_cut = [false; 2];
    pair.run_until(ms(110_000));
    assert_eq!(pair.received, [0, 100_000]);
    let resumed: Vec<Time> = pair.sent(0, Kind::Poll).iter().map(|poll| poll.0).filter(|&at| at > ms(40_000)).collect();
    assert!(resumed.windows(2).all(|polls| polls[1].since(polls[0]) <= ms(250)), "at the interval again");
    assert!(pair.ends[0].counters().timeouts >= 4);
}

#[test]
fn a_timeout_leaves_a_window_of_one_packet() {
    let config = StpConfig { handshake: false, ..small() };
    let mut pair = net(&config, &[]);
    pair.write_all(0, 100_000, 100_000);
    pair.wait_until(ms(120));
    pair.is_cut = [true; 2];
    pair.wait_until(ms(5_000));
    assert_eq!(pair.ends[0].probe().cwnd_bytes, Some(100.0));
    pair.is_cut = [false; 2];
    pair.run_until(Time::NEVER);
    assert_eq!(pair.received, [0, 100_000]);
}

#[test]
fn gives_up_only_if_configured() {
    for (handshake, kind) in [(true, Kind::Begin), (false, Kind::Poll)] {
        let config = StpConfig { handshake, give_up_s: Some(seconds(10.0)), ..small() };
        let mut pair = net(&config, &[]);
        pair.is_cut = [true; 2];
        pair.write_all(0, 1000, 1000);
        pair.run_until(Time::NEVER);
        assert_eq!(pair.now, Time::from_secs(10), "{kind:?}");
        assert_eq!(pair.events[0].last(), Some(&Event::Aborted(Abort::TooManyRetries)));
        assert_eq!(pair.ends[0].poll_timeout(), None);
        assert!(pair.sent(0, kind).len() > 2);

        let mut patient = net(&StpConfig { give_up_s: None, ..config }, &[]);
        patient.is_cut = [true; 2];
        patient.write_all(0, 1000, 1000);
        patient.run_until(Time::from_secs(1000));
        assert!(patient.ends[0].poll_timeout().is_some());
    }
}

/// Also when only the END is unanswered.
#[test]
fn gives_up_on_an_end() {
    let config = StpConfig { give_up_s: Some(seconds(10.0)), ..small() };
    let mut pair = net(&config, &[]);
    pair.wait_until(ms(500));
    pair.is_cut = [true; 2];
    pair.ends[0].close(pair.now);
    pair.run_until(Time::NEVER);
    assert_eq!(pair.now, ms(10_500));
    assert_eq!(pair.events[0].last(), Some(&Event::Aborted(Abort::TooManyRetries)));
    assert!(pair.sent(0, Kind::End).len() > 2);
}

#[test]
fn a_paused_reader_closes_the_window_and_polls_detect_its_opening() {
    let config = StpConfig { handshake: false, receive_window_segments: Some(count(10)), ..small() };
    let mut pair = net(&config, &[]);
    pair.is_reader_asleep[1] = true;
    pair.write_all(0, 5000, 5000);
    pair.wait_until(ms(3000));
    assert_eq!(pair.sent(0, Kind::Data).len(), 10);
    let polls = pair.sent(0, Kind::Poll).len();
    assert!((8..=14).contains(&polls), "{polls}: one per interval");
    pair.is_reader_asleep[1] = false;
    pair.run_until(Time::NEVER);
    assert_eq!(pair.received, [0, 5000]);
    assert_eq!(pair.ends[0].counters().timeouts, 0, "every POLL was answered");
}

/// An application that writes a packet at a time does not cause a POLL per packet.
#[test]
fn a_thin_stream_is_polled_about_once_per_round_trip() {
    let mut pair = net(&StpConfig { handshake: false, ..small() }, &[]);
    for n in 0..100 {
        pair.wait_until(ms(10 * n));
        pair.ends[0].write(pair.now, &mut Content::of_stream(0, 100 * n as usize, 100));
    }
    pair.run_until(Time::NEVER);
    assert_eq!(pair.received[1], 10_000);
    let polls = pair.sent(0, Kind::Poll).len();
    assert!((10..=14).contains(&polls), "{polls} in ten round trips");
}

/// More than 4 GiB: positions wrap.
#[test]
fn a_stream_may_be_longer_than_its_sequence_numbers() {
    let config = StpConfig {
        segment_bytes: count(60_000),
        max_window_segments: Some(count(1000)),
        initial_window_segments: count(1000),
        handshake: false,
        ..StpConfig::default()
    };
    let (mut tx, mut rx) = StpConnection::<Virtual>::pair(&config);
    let mut now = Time::ZERO;
    let (mut got, mut sent) = (0_u64, 0_u64);
    for _ in 0..3 {
        tx.write(now, &mut Virtual(2_000_000_000));
    }
    while got < 6_000_000_000 {
        now += ms(100);
        tx.handle_timeout(now);
        while let Some(out) = tx.poll_transmit(now) {
            sent += 1;
            if sent % 97 != 0 {
                rx.handle_packet(now, &out.packet, Rx::default());
            }
            got += std::iter::from_fn(|| rx.read()).map(|data| u64::from(data.0)).sum::<u64>();
            while let Some(back) = rx.poll_transmit(now) {
                tx.handle_packet(now, &back.packet, Rx::default());
            }
        }
        assert!(now < Time::from_secs(1000), "this does not end: {got}");
    }
    assert_eq!(got, 6_000_000_000);
}

/// All options, and windows down to one packet.
fn configs() -> impl Strategy<Value = StpConfig> {
    let windows = (1_u64..12, proptest::option::of(1_u64..12), 1_u64..25, proptest::option::of(1_u64..10));
    let rate = proptest::option::of(50e3..5e6_f64);
    let polls = (0.01..1.0_f64, 1_u64..30);
    (windows, rate, any::<[bool; 2]>(), 1_u64..150, 1_u64..5, polls).prop_map(
        |((initial, ssthresh, most, receive), rate, [ustat, handshake], segment, ranges, (interval_s, every))| {
            StpConfig {
                poll_every_segments: Some(count(every)),
                segment_bytes: count(segment),
                stat_ranges: count(ranges),
                poll_interval_s: seconds(interval_s),
                ustat,
                handshake,
                congestion: if rate.is_some() { RateControl::Rate } else { RateControl::Tcp },
                rate_bps: rate.map(|rate| BitRate::new(rate).unwrap()),
                initial_window_segments: count(initial),
                initial_ssthresh_segments: ssthresh.map(count),
                max_window_segments: Some(count(most)),
                receive_window_segments: receive.map(count),
                ..StpConfig::default()
            }
        },
    )
}

proptest! {
    /// Loss, duplication and reordering: both streams arrive complete, in order and once, and both sides become idle.
    #[test]
    fn everything_arrives_once_and_in_order(
        config in configs(), faults in faults(), bytes in (0_usize..3000, 0_usize..3000), piece in 1_usize..1000,
    ) {
        let run = |is_impatient| {
            let mut pair = net(&config, &faults);
            pair.is_impatient = is_impatient;
            pair.write_all(0, bytes.0, piece);
            pair.write_all(1, bytes.1, piece);
            pair.run_until(Time::NEVER);
            pair
        };
        let pair = run(true);
        pair.assert_done([bytes.0, bytes.1]);
        for (side, end) in pair.ends.iter().enumerate() {
            let most = config.max_window_segments.unwrap().whole() * config.segment_bytes.whole();
            prop_assert!(end.counters().peak_send_buffer_bytes <= most);
            prop_assert_eq!(end.probe().in_flight_bytes, Some(0), "side {}", side);
        }
        prop_assert!(pair.log == run(false).log, "the same again, without early and repeated timeouts");
    }

    /// If packets arrive in order, no packet is retransmitted that has arrived or whose retransmission may still
    /// arrive.
    #[test]
    fn without_reordering_nothing_is_retransmitted_needlessly(config in configs(), lost in proptest::collection::vec(any::<bool>(), 0..80)) {
        let faults: Vec<Fault> =
            lost.iter().map(|&is_lost| if is_lost { Fault::Lose } else { Fault::Delay(50) }).collect();
        let mut pair = net(&config, &faults);
        pair.write_all(0, 3000, 3000);
        pair.ends[1].close(Time::ZERO);
        pair.run_until(Time::NEVER);
        let is_lost = |number: usize| lost.get(number).copied().unwrap_or(false);
        let mut arrived = std::collections::BTreeSet::new();
        for (number, (_, side, pdu)) in pair.log.iter().enumerate() {
            if *side == 0 && pdu.payload_bytes() > 0 {
                prop_assert!(!arrived.contains(&pdu.position), "{} again", pdu.position);
                if !is_lost(number) {
                    arrived.insert(pdu.position);
                }
            }
        }
    }

    /// Any packets in any state: no panic, and data read is what some packet carried.
    #[test]
    fn noise_does_not_panic(
        config in configs(),
        packets in proptest::collection::vec((0_usize..8, any::<[u32; 4]>(), 0_u32..2, 0_usize..3, 0_u64..5000), 0..60),
    ) {
        let (mut active, mut passive) = StpConnection::<Virtual>::pair(&config);
        let mut now = Time::ZERO;
        active.write(now, &mut Virtual(2000));
        for (kind, [position, poll, from, to], small, ranges, wait_ms) in packets {
            now += ms(wait_ms);
            let narrow = |n: u32| if small == 1 { n % 4096 } else { n };
            let range = farlink_core::protocol::stp::Range { from: narrow(from), to: narrow(to) };
            let report = farlink_core::protocol::stp::Report { covers: range, missing: vec![range; ranges] };
            let pdu = Pdu {
                kind: Kind::ALL[kind],
                position: narrow(position),
                poll: poll % 16,
                clock: position,
                window: narrow(to),
                report,
                payload: Virtual(ranges as u32 * 50),
                ..Pdu::default()
            };
            for end in [&mut active, &mut passive] {
                end.handle_timeout(now);
                end.handle_packet(now, &pdu, Rx::default());
                for _ in 0..50 {
                    let _ = end.poll_transmit(now);
                    let _ = end.read();
                }
                while end.poll_event().is_some() {}
            }
        }
    }
}

//! Limits of a connection: retries, and the size of its window field.

use crate::pair::{Fault, Pair, count, small};
use farlink_core::event::Abort;
use farlink_core::protocol::tcp::variant::Variant;
use farlink_core::protocol::tcp::{Flags, TcpConfig};
use farlink_core::{Endpoint, Event, Time, Virtual};

const LONG: Time = Time::from_secs(100_000);

fn patient(most: u64) -> TcpConfig {
    TcpConfig { max_retransmissions: Some(count(most)), ..small(Variant::Sack) }
}

#[test]
fn an_unanswered_syn_is_given_up() {
    for most in [1, 3, 12] {
        let mut pair = Pair::<Virtual>::new(&patient(most), 1, &vec![Fault::Lose; 100]);
        pair.write_all(0, 1000, 1000);
        pair.run_until(LONG);
        assert_eq!(pair.log.len() as u64, 1 + most);
        assert_eq!(pair.events[0], [Event::Aborted(Abort::TooManyRetries)]);
        assert_eq!(pair.ends[0].poll_timeout(), None, "nothing more will happen");
        // Doubling from a second on, up to 60: the last wait is as long as all others together.
        let waits: u64 = (0..=most).map(|n| (1 << n.min(20)).min(60)).sum();
        assert_eq!(pair.now, Time::from_secs(waits));
    }
}

/// The network fails from the first data on.
#[test]
fn unanswered_data_is_given_up() {
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack] {
        let config = TcpConfig { variant, ..patient(4) };
        let mut faults = vec![Fault::Delay(20); 3];
        faults.extend(vec![Fault::Lose; 200]);
        let mut pair = Pair::<Virtual>::new(&config, 1, &faults);
        pair.write_all(0, 10_000, 10_000);
        pair.run_until(LONG);
        assert_eq!(pair.events[0], [Event::Connected, Event::Aborted(Abort::TooManyRetries)], "{variant:?}");
        assert_eq!(pair.ends[0].counters().timeouts, 4);
        let first = pair.log.iter().find(|(_, _, segment)| segment.payload.0 > 0).unwrap().2.seq;
        let attempts = pair.log.iter().filter(|(_, side, segment)| *side == 0 && segment.seq == first);
        assert_eq!(attempts.filter(|(_, _, segment)| segment.payload.0 > 0).count(), 5);
    }
}

/// As many timeouts as are allowed, and then the losses end; each acknowledgement resets the count.
#[test]
fn an_answer_in_time_keeps_the_connection() {
    let mut faults = vec![Fault::Delay(20); 3];
    // After a timeout one segment at a time is sent: it is lost three times, the fourth copy arrives, and so on.
    for _ in 0..5 {
        faults.extend(vec![Fault::Lose; 3]);
        faults.extend(vec![Fault::Delay(20); 2]);
    }
    let one = count(1);
    let config = TcpConfig {
        initial_window_segments: one,
        max_window_segments: Some(one),
        fin: false,
        delayed_ack: false,
        ..patient(3)
    };
    let mut pair = Pair::<Virtual>::new(&config, 1, &faults);
    pair.write_all(0, 1_000, 1_000);
    pair.write_all(1, 0, 1);
    pair.run_until(LONG);
    pair.assert_done([1_000, 0]);
    assert!(pair.ends[0].counters().timeouts > 9);
}

/// The receiver's application pauses; probes are answered, so the connection stays.
#[test]
fn a_closed_window_does_not_abort_the_connection() {
    let config = TcpConfig { receive_window_segments: Some(count(4)), ..patient(2) };
    let mut pair = Pair::<Virtual>::new(&config, 1, &[]);
    pair.is_reader_asleep[1] = true;
    pair.write_all(0, 2_000, 2_000);
    pair.write_all(1, 0, 1);
    pair.run_until(Time::from_secs(10_000));
    assert!(pair.log.len() > 100, "{}", pair.log.len());
    pair.is_reader_asleep[1] = false;
    pair.run_until(LONG);
    pair.assert_done([2_000, 0]);
}

#[test]
fn without_window_scaling_the_window_fits_its_field() {
    for (window_scaling, shift, in_flight) in [(true, Some(5), 1_400_000), (false, None, 65_000)] {
        let config = TcpConfig {
            window_scaling,
            segment_bytes: count(1000),
            initial_window_segments: count(1400),
            receive_window_segments: window_scaling.then(|| count(1400)),
            ..TcpConfig::default()
        };
        let mut pair = Pair::<Virtual>::new(&config, 1, &[]);
        pair.write_all(0, 5_000_000, usize::MAX);
        pair.write_all(1, 0, 1);
        pair.run_until(LONG);
        pair.assert_done([5_000_000, 0]);
        let peak = pair.ends[0].counters().peak_send_buffer_bytes;
        assert!(peak == in_flight || peak == in_flight + 1, "{peak}: whole segments, and perhaps the FIN");
        let syns = pair.log.iter().filter(|(_, _, segment)| segment.flags.has(Flags::SYN));
        assert!(syns.clone().count() == 2 && syns.clone().all(|(_, _, segment)| segment.syn.window_shift == shift));
    }
}

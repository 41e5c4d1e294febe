//! Delivery rates as in draft-ietf-ccwg-bbr, section 4.1, and the data in flight.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn span(start: u64) -> Span {
    Span { start, len: 100 }
}

/// Ten segments sent at once and acknowledged 10 ms apart: the rate is that of the acknowledgements.
#[test]
fn the_rate_is_the_delivery_rate() {
    let mut flight = Flight::new(true);
    flight.base = 1;
    for n in 0..10 {
        flight.on_sent(Time::ZERO, span(1 + n * 100));
    }
    for n in 1..=10 {
        let now = Time::from_millis(500 + n * 10);
        flight.on_acknowledged(now, 1 + n * 100);
        let sample = flight.take_sample(now);
        assert_eq!((sample.newly_delivered, sample.rtt), (100, Some(now)));
    }
    // 100 bytes every 10 ms, each acknowledged 490 ms later.
    let mut flight = Flight { base: 1, ..Flight::new(true) };
    for n in 0..150 {
        let now = Time::from_millis(n * 10);
        flight.on_sent(now, span(1 + n * 100));
        if n >= 50 {
            flight.on_acknowledged(now, 1 + (n - 49) * 100);
            let rate = flight.take_sample(now).rate.expect("there is an interval");
            // Before, the interval holds the round trip in which nothing came back.
            assert!(n <= 100 || (rate - 1e4).abs() < 1.0, "{rate}");
        }
    }
}

#[test]
fn reported_segments_count_once_and_retransmitted_ones_give_no_round_trip() {
    let mut flight = Flight { base: 1, ..Flight::new(true) };
    for n in 0..4 {
        flight.on_sent(Time::ZERO, span(1 + n * 100));
    }
    flight.on_sacked(Time::from_millis(500), 101, 301);
    assert_eq!(flight.take_sample(Time::from_millis(500)).newly_delivered, 200);
    flight.on_sent(Time::from_millis(510), span(1));
    flight.on_acknowledged(Time::from_millis(1010), 301);
    let sample = flight.take_sample(Time::from_millis(1010));
    assert_eq!((sample.newly_delivered, sample.rtt, sample.delivered), (100, None, 300));
}

#[test]
fn the_rate_never_exceeds_the_sending_rate() {
    // Sent 10 ms apart, acknowledged at once: acknowledgements were held together.
    let mut flight = Flight { base: 1, ..Flight::new(true) };
    for n in 0..101 {
        flight.on_sent(Time::from_millis(n * 10), span(1 + n * 100));
    }
    let now = Time::from_millis(1000);
    flight.on_acknowledged(now, 101);
    flight.take_sample(now);
    flight.on_acknowledged(now, 10_101);
    let sample = flight.take_sample(now);
    // The last was sent a second after the first, and everything but the first has been delivered since then.
    assert_eq!((sample.delivered_since, sample.rate), (10_100, Some(10_100.0)));
}

#[test]
fn an_interval_shorter_than_any_round_trip_gives_no_rate() {
    let mut flight = Flight { base: 1, ..Flight::new(true) };
    flight.on_sent(Time::ZERO, span(1));
    flight.on_acknowledged(Time::from_millis(500), 101);
    assert!(flight.take_sample(Time::from_millis(500)).rate.is_some());
    flight.on_sent(Time::from_millis(600), span(101));
    // Thought lost, sent again, and acknowledged a millisecond later: that was the first transmission's.
    flight.note_all_lost();
    assert_eq!(flight.next_lost().map(|lost| (lost.start, lost.len)), Some((101, 100)));
    flight.on_sent(Time::from_millis(1099), span(101));
    flight.on_acknowledged(Time::from_millis(1100), 201);
    let sample = flight.take_sample(Time::from_millis(1100));
    assert_eq!((sample.rate, sample.rtt, sample.newly_delivered), (None, None, 100));
}

#[test]
fn segments_sent_while_application_limited_are_marked_until_delivered() {
    let mut flight = Flight { base: 1, ..Flight::new(true) };
    let ms = Time::from_millis;
    flight.on_sent(ms(0), span(1));
    flight.check_app_limited(true, 1000.0);
    assert!(!flight.is_app_limited(), "there is more to send");
    flight.check_app_limited(false, 100.0);
    assert!(!flight.is_app_limited(), "the window is full");
    flight.check_app_limited(false, 1000.0);
    assert!(flight.is_app_limited());
    flight.on_sent(ms(10), span(101));
    flight.on_sent(ms(20), span(201));
    // The first was sent before the data ran out.
    for (at, una, expected) in [(500, 101, false), (510, 201, true), (520, 301, true)] {
        flight.on_acknowledged(ms(at), una);
        assert_eq!(flight.take_sample(ms(at)).is_app_limited, expected, "{at}");
    }
    assert!(!flight.is_app_limited(), "all data in flight when the application ran out of data is delivered");
    flight.on_sent(ms(530), span(301));
    flight.on_acknowledged(ms(1030), 401);
    assert!(!flight.take_sample(ms(1030)).is_app_limited);
}

#[test]
fn a_pending_retransmission_is_data_to_send() {
    let mut flight = Flight { base: 1, ..Flight::new(true) };
    for n in 0..5 {
        flight.on_sent(Time::ZERO, span(1 + n * 100));
    }
    flight.on_sacked(Time::from_millis(500), 101, 501);
    flight.note_lost_below(101);
    let lost = flight.next_lost().unwrap();
    assert_eq!((lost.start, lost.sent_in_flight, lost.lost_since, lost.delivered), (1, 100, 100, 400));
    assert!(flight.next_lost().is_none());
    flight.check_app_limited(false, 1000.0);
    assert!(!flight.is_app_limited());
    assert_eq!((flight.in_flight, flight.lost_out), (0, 100));
    flight.on_sent(Time::from_millis(510), span(1));
    assert_eq!((flight.in_flight, flight.lost_out), (100, 0));
    flight.check_app_limited(false, 1000.0);
    assert!(flight.is_app_limited());
    // The retransmission is lost; only the timer detects that.
    flight.note_lost_below(501);
    assert!(flight.next_lost().is_none());
    flight.note_all_lost();
    assert_eq!(flight.next_lost().map(|lost| lost.lost_since), Some(100));
}

#[test]
fn a_segment_acknowledged_in_part_counts_in_part() {
    let mut flight = Flight { base: 1, ..Flight::new(true) };
    for n in 0..3 {
        flight.on_sent(Time::ZERO, span(1 + n * 100));
    }
    let now = Time::from_millis(500);
    flight.on_acknowledged(now, 41);
    assert_eq!(flight.take_sample(now).newly_delivered, 40);
    flight.on_sacked(now, 151, 221);
    assert_eq!(flight.take_sample(now).newly_delivered, 70);
    flight.on_acknowledged(now, 301);
    let sample = flight.take_sample(now);
    assert_eq!((sample.newly_delivered, sample.delivered, sample.in_flight), (190, 300, 0));
}

/// An operation on a flight.
#[derive(Clone, Debug)]
enum Step {
    Send(u64),
    Resend(u64, u64),
    Acknowledge(u64),
    Report(u64, u64),
    LoseBelow(u64),
    TimeOut,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..30).prop_map(Step::Send),
        1 => (0_u64..200, 1_u64..30).prop_map(|(start, len)| Step::Resend(start, len)),
        2 => (0_u64..60).prop_map(Step::Acknowledge),
        2 => (0_u64..200, 1_u64..50).prop_map(|(left, len)| Step::Report(left, len)),
        1 => (0_u64..200).prop_map(Step::LoseBelow),
        1 => Just(Step::TimeOut),
    ]
}

proptest! {
    /// Every byte is delivered once, and is in flight or considered lost before that, as in a model with one entry per
    /// byte.
    #[test]
    fn bytes_are_conserved(steps in proptest::collection::vec(steps(), 1..100)) {
        let mut flight = Flight { base: 0, ..Flight::new(true) };
        // State of each byte that was sent and not acknowledged: in flight, delivered or lost.
        let (mut bytes, mut una, mut end, mut delivered) = (BTreeMap::<u64, char>::new(), 0_u64, 0_u64, 0_u64);
        for (n, step) in steps.into_iter().enumerate() {
            let now = Time::from_millis(n as u64);
            match step {
                Step::Send(len) => {
                    flight.on_sent(now, Span { start: end, len: len as u32 });
                    bytes.extend((end..end + len).map(|at| (at, 'f')));
                    end += len;
                }
                Step::Resend(start, len) => {
                    let (start, stop) = (una + start.min(end - una), (una + start + len).min(end));
                    if start < stop {
                        flight.on_sent(now, Span { start, len: (stop - start) as u32 });
                        bytes.range_mut(start..stop).filter(|byte| *byte.1 == 'l').for_each(|byte| *byte.1 = 'f');
                    }
                }
                Step::Acknowledge(len) => {
                    una = (una + len).min(end);
                    flight.on_acknowledged(now, una);
                    delivered += bytes.range(..una).filter(|byte| *byte.1 != 'd').count() as u64;
                    bytes = bytes.split_off(&una);
                }
                Step::Report(left, len) => {
                    let (left, right) = (una + left, (una + left + len).min(end));
                    if left < right {
                        flight.on_sacked(now, left, right);
                        delivered += bytes.range(left..right).filter(|byte| *byte.1 != 'd').count() as u64;
                        bytes.range_mut(left..right).for_each(|byte| *byte.1 = 'd');
                    }
                }
                Step::LoseBelow(_) | Step::TimeOut => {
                    match step {
                        Step::LoseBelow(below) => flight.note_lost_below((una + below).min(end)),
                        _ => flight.note_all_lost(),
                    }
                    while let Some(lost) = flight.next_lost() {
                        for byte in bytes.range_mut(lost.start..lost.start + lost.len) {
                            prop_assert_eq!(*byte.1, 'f', "lost once until it is sent again");
                            *byte.1 = 'l';
                        }
                    }
                    if matches!(step, Step::TimeOut) {
                        prop_assert_eq!(flight.in_flight, 0);
                    }
                }
            }
            flight.take_sample(now);
            let count = |state| bytes.values().filter(|byte| **byte == state).count() as u64;
            prop_assert_eq!((flight.in_flight, flight.lost_out), (count('f'), count('l')));
            prop_assert_eq!(flight.delivered, delivered);
        }
    }
}

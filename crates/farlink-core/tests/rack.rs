//! RACK-TLP (RFC 8985), F-RTO (RFC 5682) and duplicate SACK (RFC 2883), between two connections.

use crate::connections::{LONG, losing, one_way, transfer};
use crate::pair;
use crate::pair::{Pair, count};
use farlink_core::protocol::parts::rto::{RtoAlgorithm, RtoConfig};
use farlink_core::protocol::tcp::variant::Variant;
use farlink_core::protocol::tcp::{Flags, Segment, TcpConfig};
use farlink_core::{Endpoint, Stream, Time, Virtual};

fn rack() -> TcpConfig {
    TcpConfig {
        variant: Variant::Rack,
        initial_ssthresh_segments: Some(count(10)),
        receive_window_segments: Some(count(300)),
        ..one_way()
    }
}

fn sent_again(pair: &Pair<Virtual>) -> Vec<(Time, u32)> {
    let mut highest = 0;
    let mut again = Vec::new();
    for (at, side, segment) in &pair.log {
        if *side == 0 && segment.payload.0 > 0 {
            if segment.seq < highest {
                again.push((*at, (segment.seq - 1) / 100));
            }
            highest = highest.max(segment.seq + segment.payload.0);
        }
    }
    again
}

/// RFC 8985, section 7: the loss of the last segments is detected two round trips after the last acknowledgement, by a
/// probe that repeats the last of them. Without it, the timer of a second detects the loss.
#[test]
fn a_probe_finds_a_lost_tail() {
    for (lost, timeouts) in [(vec![9], 0), (vec![7, 8, 9], 0)] {
        let pair = losing(&rack(), 1_000, &lost);
        assert_eq!(pair.ends[0].counters().timeouts, timeouts, "{lost:?}");
        let again = sent_again(&pair);
        // All ten were sent at once; the acknowledgements of the others arrived 40 ms later, and the probe follows 80
        // ms after that.
        assert_eq!(again[0], (Time::from_millis(120), 9), "{lost:?}");
        assert_eq!(again.len(), lost.len(), "nothing in vain: {again:?}");
        let without = TcpConfig { tail_loss_probe: Some(false), ..rack() };
        assert_eq!(losing(&without, 1_000, &lost).ends[0].counters().timeouts, 1, "{lost:?}");
    }
}

/// Linux (`tcp_schedule_loss_probe`): after new data, a probe comes no later than the retransmission timeout counted from when the
/// oldest segment was sent, although acknowledgements have restarted the timer since. By RFC 8985 it comes two round trips later.
#[test]
fn a_probe_of_linux_counts_the_age_of_the_oldest_segment() {
    for (algorithm, expected_ms) in [(RtoAlgorithm::Linux, 40_900_u64), (RtoAlgorithm::Rfc6298, 41_200)] {
        let config = TcpConfig { rto: RtoConfig { algorithm, ..RtoConfig::default() }, ..rack() };
        let mut pair = Pair::<Virtual>::new(&config, 0, &[]);
        // The last two segments get lost, as good as.
        pair.delay = Box::new(|now, side, _| {
            let is_late = side == 0 && now > Time::from_millis(40_250);
            if is_late { Time::from_secs(1_000) } else { Time::from_millis(200) }
        });
        let times_ms = (0..40).map(|second| 1_000 * second).chain([40_000, 40_300, 40_400]);
        for at_ms in times_ms {
            pair.wait_until(Time::from_millis(at_ms));
            pair.ends[0].write(pair.now, &mut Virtual(100));
        }
        pair.run_until(Time::from_secs(45));
        let (at, _) = sent_again(&pair)[0];
        let off_ms = at.since(Time::from_millis(expected_ms)).max(Time::from_millis(expected_ms).since(at));
        assert!(off_ms < Time::from_millis(15), "{algorithm:?}: {at:?}");
    }
}

/// RFC 8985, section 7.3.
#[test]
fn a_probe_is_new_data_if_there_is_any() {
    // A first segment and its acknowledgement give a round-trip time. Then the window of ten is full and all of it is
    // lost; the data waiting behind it is sent as the probe.
    let mut faults = vec![pair::Fault::Delay(20); 2];
    faults.resize(12, pair::Fault::Lose);
    let config = TcpConfig { initial_window_segments: count(10), max_window_segments: Some(count(20)), ..rack() };
    let mut pair = Pair::<Virtual>::new(&config, 0, &faults);
    pair.ends[0].write(pair.now, &mut Virtual(100));
    pair.wait_until(Time::from_millis(500));
    pair.write_all(0, 1_500, usize::MAX);
    pair.write_all(1, 0, 1);
    pair.run_until(LONG);
    pair.assert_done([1_600, 0]);
    let probe = pair.log.iter().filter(|sent| sent.1 == 0).nth(11).expect("it is sent");
    assert_eq!((probe.0, probe.2.seq), (Time::from_millis(580), 1_101));
    assert_eq!(pair.ends[0].counters().timeouts, 0);
}

/// RFC 8985, section 7.4: a probe that repaired a loss indicates congestion; a needless probe does not.
#[test]
fn a_loss_that_a_probe_repaired_reduces_the_window() {
    let ssthresh = |is_lost: bool| {
        let late = pair::Fault::Delay(20);
        let mut faults = vec![late; 10];
        // Either the last segment or the acknowledgements are lost; in the second case the probe arrives as a
        // duplicate.
        faults[9] = if is_lost { pair::Fault::Lose } else { pair::Fault::Delay(150) };
        let mut pair = Pair::<Virtual>::new(&rack(), 0, &faults);
        pair.ends[0].write(pair.now, &mut Virtual(1_000));
        pair.run_until(Time::from_secs(10));
        pair.ends[0].write(pair.now, &mut Virtual(1_000));
        pair.run_until(Time::from_secs(20));
        assert_eq!((pair.received[1], pair.ends[0].counters().timeouts), (2_000, 0));
        pair.ends[0].probe().ssthresh_bytes.expect("it is known")
    };
    assert!(ssthresh(true) < 1_000.0, "{}", ssthresh(true));
    assert!((ssthresh(false) - 1_000.0).abs() < 1e-9, "{}", ssthresh(false));
}

/// RFC 8985: a lost retransmission is detected a round trip later, and so is a second one. SACK of RFC 6675 waits for
/// the timer.
#[test]
fn lost_retransmissions_are_found_without_a_timeout() {
    for (variant, timeouts) in [(Variant::Rack, 0), (Variant::Sack, 1)] {
        let config = TcpConfig { variant, max_window_segments: Some(count(20)), ..rack() };
        let mut faults: Vec<pair::Fault> = Vec::new();
        for _ in 0..3 {
            // The third segment and each of its retransmissions are lost.
            let pair = transfer::<Virtual>(&config, 0, &faults, [10_000, 0], usize::MAX);
            let is_it =
                |(index, sent): &(usize, &pair::Sent)| *index >= faults.len() && sent.1 == 0 && sent.2.seq == 201;
            let Some((at, _)) = pair.log.iter().enumerate().find(is_it) else { break };
            faults.resize(at + 1, pair::Fault::Delay(20));
            faults[at] = pair::Fault::Lose;
        }
        let pair = transfer::<Virtual>(&config, 0, &faults, [10_000, 0], usize::MAX);
        pair.assert_done([10_000, 0]);
        assert!(
            pair.ends[0].counters().timeouts.min(1) == timeouts,
            "{variant:?}: {}",
            pair.ends[0].counters().timeouts
        );
    }
}

/// RFC 5681, section 4.3: the loss of a retransmission counts as a second sign of congestion.
#[test]
fn a_lost_retransmission_reduces_the_window_again() {
    let config =
        TcpConfig { max_window_segments: Some(count(20)), initial_ssthresh_segments: Some(count(20)), ..rack() };
    let least = |faults: &[pair::Fault]| {
        let mut pair = Pair::<Virtual>::new(&config, 0, faults);
        pair.write_all(0, 10_000, usize::MAX);
        pair.write_all(1, 0, 1);
        pair.pump(0);
        let mut least = f64::INFINITY;
        while pair.step(LONG) {
            least = least.min(pair.ends[0].probe().ssthresh_bytes.expect("it is known"));
        }
        assert_eq!(pair.ends[0].counters().timeouts, 0);
        (least, pair.log)
    };
    let mut faults = vec![pair::Fault::Delay(20); 3];
    faults[2] = pair::Fault::Lose;
    let (once, log) = least(&faults);
    let again = log.iter().rposition(|sent| sent.1 == 0 && sent.2.seq == 201).expect("it is sent again");
    faults.resize(again + 1, pair::Fault::Delay(20));
    faults[again] = pair::Fault::Lose;
    let (twice, _) = least(&faults);
    assert!((900.0..=1_000.0).contains(&once) && (0.4..=0.6).contains(&(twice / once)), "{once} {twice}");
}

/// RFC 8985, section 6.2, step 4: each round with reported duplicates makes the sender wait a quarter of a round trip
/// longer, until reordering on the path is no longer mistaken for loss.
#[test]
fn duplicate_reports_lengthen_the_reordering_window() {
    // Every eighth segment arrives 25 ms late, more than a quarter of the 40 ms round trip.
    let again = |dsack: bool| {
        let config = TcpConfig { dsack: Some(dsack), max_window_segments: Some(count(8)), ..rack() };
        let mut pair = Pair::<Virtual>::new(&config, 0, &[]);
        let mut count = 0_u32;
        pair.write_all(0, 80_000, usize::MAX);
        pair.write_all(1, 0, 1);
        pair.delay = Box::new(move |_, side, _| {
            count += u32::from(side == 0);
            Time::from_millis(if side == 0 && count % 8 == 3 { 45 } else { 20 })
        });
        pair.run_until(LONG);
        pair.assert_done([80_000, 0]);
        sent_again(&pair)
    };
    let (with, without) = (again(true), again(false));
    assert!(!with.is_empty() && with.len() <= 8, "{with:?}");
    assert!(without.len() > 10 * with.len(), "{} {}", without.len(), with.len());
}

/// RFC 5682: the path's delay jumps beyond the timeout. Only the first segment is retransmitted needlessly, and the
/// window is restored. Without F-RTO, everything is retransmitted.
#[test]
fn a_spurious_timeout_is_undone() {
    for &variant in Variant::ALL {
        let run = |f_rto: bool| {
            let config = TcpConfig {
                variant,
                f_rto: Some(f_rto),
                tail_loss_probe: (variant == Variant::Rack).then_some(false),
                max_window_segments: Some(count(10)),
                ..rack()
            };
            let mut pair = Pair::<Virtual>::new(&config, 0, &[]);
            pair.write_all(0, 30_000, usize::MAX);
            pair.write_all(1, 0, 1);
            // Segments sent from 0.4 s on are held until 2 s after the start and then arrive one after another.
            let mut waiting = 0;
            pair.delay = Box::new(move |now, side, _| {
                if side == 1 || now < Time::from_millis(400) || now > Time::from_secs(2) {
                    return pair::ONE_WAY;
                }
                waiting += 1;
                Time::from_millis(2_000 + waiting).since(now)
            });
            pair.run_until(LONG);
            pair.assert_done([30_000, 0]);
            let again = sent_again(&pair).len();
            (pair.ends[0].counters().timeouts, again, pair.ends[0].probe().ssthresh_bytes.expect("it is known"))
        };
        let (timeouts, again, ssthresh) = run(true);
        assert!(timeouts >= 1, "{variant:?}");
        assert_eq!((again as u64, ssthresh), (timeouts, 1_000.0), "{variant:?}");
        let (_, again, ssthresh) = run(false);
        assert!(again > 5 && ssthresh < 1_000.0, "{variant:?}: {again} {ssthresh}");
    }
}

/// Linux (tcp_process_loss, FLAG_ORIG_SACK_ACKED): a segment sent once before the timeout arrives after it, and its report ends the
/// test of the timeout. What was sent before it and is missing is lost by RACK, and a fast recovery repairs it within few round trips.
/// By RFC 5682 the window grows from one segment again.
#[test]
fn a_late_original_ends_the_timeout_of_linux() {
    let repaired_at = |algorithm| {
        let config = TcpConfig {
            rto: RtoConfig { algorithm, ..RtoConfig::default() },
            tail_loss_probe: Some(false),
            max_window_segments: Some(count(20)),
            initial_ssthresh_segments: None,
            ..rack()
        };
        let mut pair = Pair::<Virtual>::new(&config, 0, &[]);
        // Of the second window all is lost but its last segment, which comes 3 s later.
        let mut sent = 0;
        pair.delay = Box::new(move |now, side, _| {
            if side == 0 && now >= Time::from_millis(40) && now < Time::from_millis(500) {
                sent += 1;
                return Time::from_secs(if sent < 20 { 1_000 } else { 3 });
            }
            pair::ONE_WAY
        });
        pair.write_all(0, 4_000, usize::MAX);
        pair.run_until(Time::from_secs(60));
        assert!(pair.ends[0].counters().timeouts >= 1, "{algorithm:?}");
        let again = sent_again(&pair);
        again.last().expect("all were lost").0
    };
    let (linux, rfc) = (repaired_at(RtoAlgorithm::Linux), repaired_at(RtoAlgorithm::Rfc6298));
    assert!(linux < rfc, "{linux:?} {rfc:?}");
}

/// RFC 5682: after a timeout for a loss the second acknowledgement is a duplicate, so F-RTO has no lasting effect.
#[test]
fn a_timeout_for_a_loss_is_not_undone() {
    for &variant in Variant::ALL {
        let config = TcpConfig {
            variant,
            f_rto: Some(true),
            tail_loss_probe: (variant == Variant::Rack).then_some(false),
            max_window_segments: Some(count(10)),
            ..rack()
        };
        // All but two segments of a window are lost, and so are the two that these release: nothing arrives until the
        // timer expires. Two new segments follow the first retransmission and cause duplicates.
        let lost: Vec<usize> = (2..12).collect();
        let pair = losing(&config, 3_000, &lost);
        let again = sent_again(&pair);
        assert_eq!(again[0].1, 2, "{variant:?}");
        assert!(pair.ends[0].counters().timeouts >= 1, "{variant:?}");
        assert!(pair.ends[0].probe().ssthresh_bytes.expect("it is known") < 1_000.0, "{variant:?}");
    }
}

/// RFC 2883, section 4: a duplicate is reported first, below the cumulative acknowledgement or inside a block.
#[test]
fn duplicates_are_reported_once() {
    let mut pair = Pair::<Virtual>::new(&rack(), 0, &[]);
    for (ms, seq) in [(1, 1), (2, 1), (3, 201), (4, 301), (5, 201), (6, 101)] {
        let segment = Segment {
            seq,
            ack: 1,
            flags: Flags::ACK,
            header_bytes: 40,
            window: 3_000,
            payload: Virtual(100),
            ..Segment::default()
        };
        pair.insert(Time::from_millis(ms), 1, segment);
    }
    pair.run_until(LONG);
    let blocks = |sent: &pair::Sent| -> Vec<(u32, u32)> {
        sent.2.sack.as_slice().iter().map(|block| (block.left, block.right)).collect()
    };
    let reports: Vec<_> = pair.log.iter().map(blocks).collect();
    let expected = [vec![], vec![(1, 101)], vec![(201, 301)], vec![(201, 401)], vec![(201, 301), (201, 401)], vec![]];
    assert_eq!(reports, expected);
    assert_eq!(pair.log[1].2.header_bytes, 52);
}

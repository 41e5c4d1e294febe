//! Explicit congestion notification between two connections, rule by rule (RFC 3168, section 6.1).

use crate::pair::{Fault, ONE_WAY, Pair, count, small};
use farlink_core::protocol::tcp::variant::Variant;
use farlink_core::protocol::tcp::{Flags, TcpConfig, TcpConnection};
use farlink_core::{Ecn, Endpoint, Stream, Time, Virtual};

const LONG: Time = Time::from_secs(10_000);
const ROUND_TRIP: Time = Time::from_millis(40);

fn config(variant: Variant) -> TcpConfig {
    TcpConfig { ecn: true, delayed_ack: false, ..small(variant) }
}

/// A transfer of 100-byte segments of which every `mark_every`-th is marked.
fn transfer(config: &TcpConfig, bytes: usize, mark_every: u64, faults: &[Fault]) -> Pair<Virtual> {
    let mut pair = Pair::<Virtual>::new(config, 7, faults);
    pair.mark_every = mark_every;
    pair.write_all(0, bytes, usize::MAX);
    pair.ends[1].close(Time::ZERO);
    pair.run_until(LONG);
    pair.assert_done([bytes, 0]);
    pair
}

/// Flags of the segments of one side, with their codepoints.
fn sent(pair: &Pair<Virtual>, side: usize) -> Vec<(u32, usize, Flags, Ecn)> {
    let of_side = pair.log.iter().zip(&pair.codepoints).filter(|((_, from, _), _)| *from == side);
    of_side.map(|((_, _, segment), ecn)| (segment.seq, segment.payload.0 as usize, segment.flags, *ecn)).collect()
}

#[test]
fn ecn_is_negotiated_with_the_syns() {
    for (wants, agrees) in [([true, true], true), ([true, false], false), ([false, true], false)] {
        let of = |wants| TcpConfig { ecn: wants, ..config(Variant::Sack) };
        let mut pair = Pair::<Virtual>::new(&of(wants[0]), 7, &[]);
        pair.ends[1] = TcpConnection::pair(&of(wants[1]), 7).1;
        pair.write_all(0, 1000, 1000);
        pair.run_until(LONG);
        let (syn, syn_ack) = (sent(&pair, 0)[0], sent(&pair, 1)[0]);
        let both = Flags::ECE.with(Flags::CWR);
        assert_eq!(syn.2, if wants[0] { Flags::SYN.with(both) } else { Flags::SYN });
        let plain = Flags::SYN.with(Flags::ACK);
        assert_eq!(syn_ack.2, if agrees { plain.with(Flags::ECE) } else { plain });
        assert_eq!((syn.3, syn_ack.3), (Ecn::NotCapable, Ecn::NotCapable));
        let is_capable = sent(&pair, 0).iter().any(|(.., ecn)| *ecn == Ecn::Capable0);
        assert_eq!(is_capable, agrees, "{wants:?}");
    }
}

/// Hosts that echo unknown bits answer a SYN with both bits set.
#[test]
fn a_syn_ack_that_echoes_both_bits_does_not_enable_ecn() {
    let mut pair = Pair::<Virtual>::new(&config(Variant::Sack), 7, &[]);
    pair.write_all(0, 1000, 1000);
    pair.pump(0);
    let mut answer = Pair::<Virtual>::new(&config(Variant::Sack), 7, &[]);
    answer.write_all(0, 1000, 1000);
    answer.run_until(LONG);
    let mut syn_ack = answer.log.iter().find(|(_, side, _)| *side == 1).unwrap().2;
    syn_ack.flags = syn_ack.flags.with(Flags::CWR);
    pair.insert(Time::from_millis(1), 0, syn_ack);
    assert!(pair.step(LONG));
    assert!(pair.codepoints.len() > 2 && pair.codepoints.iter().all(|ecn| *ecn == Ecn::NotCapable));
}

#[test]
fn only_new_data_is_ecn_capable() {
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack] {
        // The SYNs and the acknowledgement; then two segments of the first window are lost, one of them twice.
        let mut faults = vec![Fault::Delay(20); 5];
        faults.extend([Fault::Lose, Fault::Delay(20), Fault::Lose]);
        faults.extend(vec![Fault::Delay(20); 12]);
        faults.extend([Fault::Lose, Fault::Lose]);
        let pair = transfer(&config(variant), 20_000, 0, &faults);
        let mut highest = None;
        for (seq, payload, flags, ecn) in sent(&pair, 0) {
            let is_new = payload > 0 && highest.is_none_or(|highest: u32| seq.wrapping_sub(highest) as i32 >= 0);
            assert_eq!(ecn == Ecn::Capable0, is_new, "{variant:?}: {seq} {payload} {flags:?}");
            if is_new {
                highest = Some(seq.wrapping_add(payload as u32));
            }
        }
        let again =
            sent(&pair, 0).iter().filter(|(_, payload, _, ecn)| *payload > 0 && *ecn == Ecn::NotCapable).count();
        assert!(again >= 2, "{again}");
        assert!(sent(&pair, 1).iter().all(|(.., ecn)| *ecn == Ecn::NotCapable), "acknowledgements are not");
    }
}

/// Segment 60 is marked: the window is halved once, nothing is retransmitted, and the receiver echoes the mark until
/// the sender confirms it.
#[test]
fn a_mark_halves_the_window_once_without_retransmission() {
    let config =
        TcpConfig { initial_window_segments: count(20), max_window_segments: Some(count(20)), ..config(Variant::Sack) };
    let mut pair = Pair::<Virtual>::new(&config, 7, &[]);
    pair.mark_every = 60;
    pair.write_all(0, 9_000, usize::MAX);
    let mut windows = vec![];
    pair.pump(0);
    while pair.step(LONG) {
        windows.push(pair.ends[0].probe().cwnd_bytes.unwrap());
    }
    windows.dedup();
    // 2000 bytes, half of that, and a segment more per round trip.
    assert_eq!(windows[..2], [2000.0, 1000.0]);
    assert!(windows[2..].is_sorted() && windows[2..].iter().all(|cwnd| (1000.0..1400.0).contains(cwnd)), "{windows:?}");
    let data: Vec<_> = sent(&pair, 0).into_iter().filter(|(_, payload, ..)| *payload > 0).collect();
    assert_eq!(data.len(), 90, "nothing is sent again");
    let answers: Vec<usize> = (0..90).filter(|&n| data[n].2.has(Flags::CWR)).collect();
    assert_eq!(answers.len(), 1, "one answer, with the first new data after it");
    let echoes: Vec<_> = sent(&pair, 1).iter().skip(1).map(|(_, _, flags, _)| flags.has(Flags::ECE)).collect();
    // From the acknowledgement of the marked segment to the last one before the sender's CWR arrived.
    let expected: Vec<bool> = (0..echoes.len()).map(|n| (59..answers[0]).contains(&n)).collect();
    assert_eq!(echoes, expected);
    assert_eq!(pair.ends[0].counters().fast_retransmits + pair.ends[0].counters().timeouts, 0);
}

#[test]
fn marks_within_one_window_count_once() {
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack] {
        let config =
            TcpConfig { initial_window_segments: count(20), max_window_segments: Some(count(20)), ..config(variant) };
        let mut pair = Pair::<Virtual>::new(&config, 7, &[]);
        pair.write_all(0, 100_000, usize::MAX);
        pair.mark_every = 1;
        pair.run_until(ROUND_TRIP + Time::from_millis(50)); // SYNs, and the first window's acknowledgements
        assert_eq!(pair.ends[0].probe().cwnd_bytes, Some(1000.0), "{variant:?}");
    }
}

/// Every segment is marked: the window never grows and shrinks to the minimum that a loss leaves.
#[test]
fn permanent_marks_leave_the_minimum_window() {
    let pair = transfer(&config(Variant::Sack), 50_000, 1, &[]);
    assert_eq!(pair.ends[0].probe().cwnd_bytes, Some(200.0));
    assert_eq!(pair.ends[0].counters().timeouts, 0);
}

#[test]
fn a_loss_in_the_window_of_a_mark_does_not_reduce_it_again() {
    let of = |lost: Option<usize>, mark_every: u64| {
        let config = TcpConfig {
            initial_window_segments: count(20),
            max_window_segments: Some(count(20)),
            ..config(Variant::Sack)
        };
        // SYN, SYN-ACK, acknowledgement; then the first window.
        let mut faults = vec![Fault::Delay(20); 23];
        if let Some(lost) = lost {
            faults[3 + lost] = Fault::Lose;
        }
        let mut pair = Pair::<Virtual>::new(&config, 7, &faults);
        pair.mark_every = mark_every;
        pair.write_all(0, 2_000, usize::MAX); // one window
        pair.ends[1].close(Time::ZERO);
        let mut thresholds = vec![];
        pair.pump(0);
        while pair.step(LONG) {
            thresholds.push(pair.ends[0].probe().ssthresh_bytes.unwrap());
        }
        thresholds.dedup();
        (thresholds, pair.ends[0].counters().fast_retransmits)
    };
    // 18 segments and the FIN were in flight when the first echo arrived.
    assert_eq!(of(None, 2).0, [f64::INFINITY, 950.5]);
    assert_eq!(of(Some(10), 2), (vec![f64::INFINITY, 950.5], 1));
    assert_eq!(of(Some(10), 0).0.len(), 2, "a loss alone reduces it, too");
}

/// CWR follows a reduction of the window for any reason.
#[test]
fn a_reduction_after_a_loss_also_sets_cwr() {
    for (variant, lost) in [(Variant::Sack, 1), (Variant::Tahoe, 1), (Variant::Reno, 6)] {
        let mut faults = vec![Fault::Delay(20); 5];
        faults.extend(vec![Fault::Lose; lost]);
        let pair = transfer(&config(variant), 20_000, 0, &faults);
        let counters = pair.ends[0].counters();
        assert!(counters.fast_retransmits + counters.timeouts > 0, "{variant:?}");
        let answers: Vec<_> =
            sent(&pair, 0).into_iter().skip(1).filter(|(.., flags, _)| flags.has(Flags::CWR)).collect();
        assert!(
            !answers.is_empty() && answers.iter().all(|(_, payload, _, ecn)| *payload > 0 && *ecn == Ecn::Capable0)
        );
    }
}

/// A window of one segment cannot be halved: each mark costs a retransmission timeout.
#[test]
fn with_a_window_of_one_the_timer_paces_the_sender() {
    let config =
        TcpConfig { max_window_segments: Some(count(1)), initial_window_segments: count(1), ..config(Variant::Sack) };
    let pair = transfer(&config, 1_000, 1, &[]);
    let data: Vec<Time> =
        pair.log.iter().filter(|(_, side, segment)| *side == 0 && segment.payload.0 > 0).map(|(at, ..)| *at).collect();
    assert_eq!((data.len(), pair.ends[0].counters().timeouts), (10, 0));
    for gap in data.windows(2).skip(1) {
        assert!(gap[1].since(gap[0]) >= Time::from_secs(1), "the least RTO: {gap:?}");
    }
    let free = transfer(&config, 1_000, 0, &[]);
    assert!(free.now < Time::from_millis(15 * 40) && ONE_WAY.times(2) == ROUND_TRIP);
}

#[test]
fn window_probes_are_not_ecn_capable() {
    let config = TcpConfig { receive_window_segments: Some(count(4)), ..config(Variant::Sack) };
    let mut pair = Pair::<Virtual>::new(&config, 7, &[]);
    pair.is_reader_asleep[1] = true;
    pair.write_all(0, 2_000, usize::MAX);
    pair.run_until(Time::from_secs(30));
    let probes: Vec<_> = sent(&pair, 0).into_iter().filter(|(_, payload, ..)| (1..100).contains(payload)).collect();
    assert!(!probes.is_empty());
    assert!(probes.iter().all(|(.., ecn)| *ecn == Ecn::NotCapable), "{probes:?}");
}

#[test]
fn without_ecn_marks_are_ignored() {
    let deaf = TcpConfig { ecn: false, ..config(Variant::Sack) };
    let (marked, free) = (transfer(&deaf, 20_000, 1, &[]), transfer(&deaf, 20_000, 0, &[]));
    assert_eq!(marked.log, free.log);
    assert!(sent(&marked, 0).iter().all(|(_, _, flags, ecn)| *ecn == Ecn::NotCapable && flags.0 & 0xc0 == 0));
}

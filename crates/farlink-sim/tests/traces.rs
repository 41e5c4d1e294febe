//! Reactions of each TCP version to given losses, event by event, at the sender's interface.
//!
//! One segment takes 10 ms on the link and the round trip 100.4 ms. Numbers are those of segments, counted from 0. Each
//! trace was checked by hand against RFC 5681, 6582, 6675 and 6298 and against the figures of Fall and Floyd,
//! "Simulation-based comparisons of Tahoe, Reno, and SACK TCP" (Computer Communication Review 26, 1996); the comment of
//! each test says what it shows.

use crate::common;
use std::any::Any;
use std::fmt::Write;

use crate::common::{losses, real, scenario, series, set, setup, text};
use farlink_core::endpoint::Probe;
use farlink_core::protocol::tcp::Segment;
use farlink_core::wire::Codec;
use farlink_core::{Ecn, Time, Virtual};
use farlink_sim::engine::{Tracer, simulate};
use serde_json::{Value, json};

const SEGMENT: u32 = 1000;

/// Writes a line per segment, and one where the congestion window deviates from slow start and congestion avoidance.
#[derive(Default)]
struct Log {
    text: String,
    /// Sequence number of the first byte.
    first: Option<u32>,
    highest: u32,
}

impl Tracer for Log {
    fn packet<P: Codec + 'static>(&mut self, now: Time, direction: usize, _flow: u32, packet: &P, _ecn: Ecn) {
        let packet: &dyn Any = packet;
        let segment = packet.downcast_ref::<Segment<Virtual>>().expect("there is only TCP");
        let first = *self.first.get_or_insert(segment.seq);
        let number = |number: u32| f64::from(number.wrapping_sub(first)) / f64::from(SEGMENT);
        let now = now.as_secs_f64();
        if direction == 1 {
            let seq = segment.seq.wrapping_sub(first);
            let again = if seq < self.highest { " again" } else { "" };
            self.highest = self.highest.max(seq + segment.payload.0);
            write!(self.text, "{now:9.6}  send {:<4}{again}", number(segment.seq)).unwrap();
        } else {
            write!(self.text, "{now:9.6}                    ack {:<3}", number(segment.ack)).unwrap();
            for block in segment.sack.as_slice() {
                write!(self.text, " {}-{}", number(block.left), number(block.right)).unwrap();
            }
        }
        let trimmed = self.text.trim_end().len();
        self.text.truncate(trimmed);
        self.text.push('\n');
    }

    fn probe(&mut self, _now: Time, _flow: u32, probe: impl FnOnce() -> Probe) {
        let state = probe();
        let segments = |bytes: Option<f64>| bytes.unwrap_or(f64::NAN) / f64::from(SEGMENT);
        let (cwnd, ssthresh) = (segments(state.cwnd_bytes), segments(state.ssthresh_bytes));
        writeln!(self.text, "{:>60}", format!("cwnd {cwnd:.2} ssthresh {ssthresh:.2}")).unwrap();
    }
}

/// A file of this many segments. The given frames are lost on the forward path, counted from 0 in the order of
/// transmission.
fn trace(variant: &str, segments: u32, lost: &[usize]) -> String {
    trace_with(&[("transport.tcp.variant", variant.into())], segments, lost)
}

/// The same, with other keys.
fn trace_with(changes: &[(&str, Value)], segments: u32, lost: &[usize]) -> String {
    trace_and_timeouts(changes, segments, lost).0
}

/// The same, with the number of timeouts.
fn trace_and_timeouts(changes: &[(&str, Value)], segments: u32, lost: &[usize]) -> (String, u64) {
    let frames: Vec<bool> = (0..1000).map(|frame| lost.contains(&frame)).collect();
    let name = lost.iter().map(ToString::to_string).collect::<Vec<_>>().join("-");
    let file = losses(&format!("frames-{name}"), &frames);
    let mut scenario = scenario(&[
        ("link", json!({ "rate_bps": 832e3, "delay_s": 0.05 })),
        ("link.channel", json!({ "kind": "packet-trace", "file": file, "offset": 0 })),
        (
            "transport.tcp",
            json!({
                "kind": "tcp", "segment_bytes": SEGMENT, "header_bytes": 40, "handshake": false, "fin": false,
                "delayed_ack": false, "initial_window_segments": 8, "initial_ssthresh_segments": 8, "limited_transmit": false,
                "max_window_segments": 100, "rto": { "minimum_s": 0.5, "granularity_s": 0 },
            }),
        ),
        ("flow", json!({ "file": { "transport": "tcp", "traffic": { "kind": "file", "bytes": SEGMENT * segments } } })),
    ]);
    changes.iter().for_each(|(path, value)| set(&mut scenario, path, value.clone()));
    let mut log = Log::default();
    let run = simulate(&setup(&scenario), 1, 0, &mut log, &|| false).unwrap();
    assert_eq!(run.flows[0].delivered_bytes, u64::from(SEGMENT * segments));
    (collapse(&log.text), run.flows[0].timeouts)
}

/// A state follows the segments that caused it, and only where it changed.
fn collapse(log: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut last = "";
    for line in log.lines() {
        match line.trim_start() {
            state if !state.starts_with("cwnd") => lines.push(line.to_owned()),
            state if state != last => {
                last = state;
                if let Some(line) = lines.last_mut() {
                    *line = format!("{line:<62}{state}");
                }
            }
            _ => {}
        }
    }
    lines.join("\n")
}

/// Segment 2 of 18 is lost. All retransmit it at the third duplicate acknowledgement, at 0.1604 s, with ssthresh = 4, half of
/// the 8 in flight (RFC 5681, section 3.2; figure 1 of Fall and Floyd has the same for them).
///
/// - Tahoe: cwnd = 1, the send pointer falls back to 2; acknowledgement 10 covers all that had arrived, and slow start goes on
///   from 10.
/// - Reno, NewReno: cwnd = 4 + 3; the fifth duplicate makes it 9, one more than is in flight, so 10 goes out; acknowledgement
///   10 deflates it to 4. The same trace for both, since one loss has no partial acknowledgement.
/// - SACK: pipe falls below cwnd = 4 at the fifth duplicate too (8, 9 and the retransmission are under way), so the times are
///   those of Reno but for the 12 bytes of a SACK block on the way back.
#[test]
fn one_loss() {
    let [tahoe, reno, newreno, sack] = ["tahoe", "reno", "newreno", "sack"].map(|variant| trace(variant, 18, &[2]));
    insta::assert_snapshot!("one_loss_tahoe", tahoe);
    insta::assert_snapshot!("one_loss_reno", reno);
    insta::assert_snapshot!("one_loss_sack", sack);
    assert_eq!(reno, newreno);
}

/// Segments 1, 3 and 5 of one window are lost: what tells the versions apart (Fall and Floyd, figures 3 to 6).
///
/// - Tahoe: slow start from 1 repairs one hole per round trip and repeats 4, 6 and 7, which had arrived.
/// - Reno: acknowledgement 3 ends the recovery with cwnd = 4 below the 7 in flight; one duplicate is not three; the timer
///   expires 0.5 s after acknowledgement 3, with ssthresh = 3.5.
/// - NewReno: each partial acknowledgement (3, 5) repeats the next hole at once, cwnd = 9 - 2 + 1 (RFC 6582, section 3.2, step
///   5); a round trip each, no timeout, nothing sent twice needlessly.
/// - SACK: 3 is repeated when a fourth report makes 3 segments lie above it, 5 at the fifth (IsLost of RFC 6675, section 4); all
///   three holes are repaired within a round trip, and the recovery ends with acknowledgement 9, its RecoveryPoint.
#[test]
fn three_losses_in_one_window() {
    for variant in ["tahoe", "reno", "newreno", "sack"] {
        insta::assert_snapshot!(format!("three_losses_{variant}"), trace(variant, 18, &[1, 3, 5]));
    }
}

/// The last six segments are lost, so nothing causes duplicates. The timer expires 0.5 s, its minimum, after the last
/// acknowledgement; cwnd = 1, ssthresh = 3, half of the 6 in flight; then go-back-N in slow start. The same for all
/// versions.
#[test]
fn a_lost_tail() {
    let [tahoe, others @ ..] =
        ["tahoe", "reno", "newreno", "sack"].map(|variant| trace(variant, 12, &[6, 7, 8, 9, 10, 11]));
    insta::assert_snapshot!("a_lost_tail", tahoe);
    assert!(others.iter().all(|other| *other == tahoe));
}

/// A retransmission is lost as well: back-off doubles the timer, and ssthresh is not halved again (RFC 5681, section 3.1;
/// RFC 6298, section 5.5). The acknowledgement of a repeated segment is no sample: the last RTO stays (Karn's algorithm).
#[test]
fn a_lost_retransmission() {
    insta::assert_snapshot!("a_lost_retransmission", trace("newreno", 6, &[3, 4, 5, 6, 7]));
}

fn rack(changes: &[(&'static str, Value)], segments: u32, lost: &[usize]) -> (String, u64) {
    let mut all = vec![("transport.tcp.variant", "rack".into())];
    all.extend_from_slice(changes);
    trace_and_timeouts(&all, segments, lost)
}

/// Times of data segments, and whether each was a retransmission.
fn sendings(trace: &str) -> Vec<(f64, bool)> {
    let sent = |line: &str| {
        let mut words = line.split_whitespace();
        let at = words.next()?.parse().ok()?;
        (words.next()? == "send").then(|| (at, line.contains("again")))
    };
    trace.lines().filter_map(sent).collect()
}

/// Segment 2 of 18 is lost, as in [`one_loss`]. RACK detects the loss at the third report, when the others see the
/// third duplicate (DupThresh segments reported: it does not wait for reordering), and retransmits 2 at 0.1604 s. PRR
/// sends a segment for every two delivered, so 8 follows before the others send it.
#[test]
fn one_loss_found_by_time() {
    insta::assert_snapshot!("one_loss_rack", rack(&[], 18, &[2]).0);
}

/// The last six segments are lost, as in [`a_lost_tail`]. Two smoothed round trips after the last acknowledgement the
/// last segment is sent again as a probe; its report shows that the five before it are lost, and they follow. No
/// timeout.
#[test]
fn a_lost_tail_is_probed() {
    let tail = [6, 7, 8, 9, 10, 11];
    let (probed, timeouts) = rack(&[], 12, &tail);
    insta::assert_snapshot!("a_lost_tail_rack", probed);
    assert_eq!((timeouts, rack(&[("transport.tcp.tail_loss_probe", false.into())], 12, &tail).1), (0, 1));
}

/// Segment 2 is lost, and so is its retransmission, the thirteenth frame. Segments sent after it are reported a round
/// trip later, so it is sent a third time; the threshold falls a second time. SACK waits for its timer.
#[test]
fn a_lost_retransmission_found_by_time() {
    let (rack, timeouts) = rack(&[], 40, &[2, 12]);
    insta::assert_snapshot!("a_lost_retransmission_rack", rack);
    let sack = trace_and_timeouts(&[("transport.tcp.variant", "sack".into())], 40, &[2, 10]);
    assert_eq!((timeouts, sack.1), (0, 1));
}

/// Nothing is lost, but the path repeatedly becomes shorter by more than a quarter of the round trip, so that segments
/// overtake each other. They are retransmitted needlessly once; the report of the duplicate makes RACK wait longer, and
/// then nothing is retransmitted again. Without such reports it happens every time.
#[test]
fn known_reordering_causes_no_retransmissions() {
    let steps: Vec<(f64, f64)> =
        (0..60).flat_map(|n| [(f64::from(n) * 0.4, 0.08), (f64::from(n) * 0.4 + 0.2, 0.045)]).collect();
    let changing = series("up-and-down", "delay", "delay_s", &steps, 24.0);
    let overtaking = |dsack: bool| {
        let changes = [
            ("link.delay_s", json!({ "kind": "delay-trace", "file": changing })),
            ("link.ordering", "overtake".into()),
            ("link.return.delay_s", 0.05.into()),
            ("link.rate_bps", 8.32e6.into()),
            ("duration_s", 60.into()),
            ("transport.tcp.max_window_segments", 40.into()),
            ("transport.tcp.dsack", dsack.into()),
        ];
        sendings(&rack(&changes, 1500, &[]).0)
    };
    let again = |sent: &[(f64, bool)]| -> Vec<f64> { sent.iter().filter(|one| one.1).map(|one| one.0).collect() };
    let (with, without) = (again(&overtaking(true)), again(&overtaking(false)));
    assert!(!with.is_empty() && with.last() < Some(&3.0), "{with:?}");
    assert!(without.len() > 2 * with.len(), "{} {}", without.len(), with.len());
}

/// The path's delay jumps from 50 ms to 1 s: the timer expires, one segment is retransmitted, two new ones follow its
/// acknowledgement, and the next one shows that nothing was lost: the window is restored, and nothing else is
/// retransmitted.
#[test]
fn a_spurious_timeout_is_undone() {
    let jump = series("jump", "delay", "delay_s", &[(0.0, 0.05), (0.3, 1.0), (2.0, 0.05)], 100.0);
    let changes = |f_rto: bool| {
        [
            ("link.delay_s", json!({ "kind": "delay-trace", "file": jump })),
            ("link.return.delay_s", 0.05.into()),
            ("transport.tcp.tail_loss_probe", false.into()),
            ("transport.tcp.f_rto", f_rto.into()),
        ]
    };
    let undone = rack(&changes(true), 60, &[]).0;
    insta::assert_snapshot!("a_spurious_timeout_rack", undone);
    assert_eq!(sendings(&undone).iter().filter(|sent| sent.1).count(), 1);
    assert!(sendings(&rack(&changes(false), 60, &[]).0).iter().filter(|sent| sent.1).count() > 5);
}

/// One of 50 in flight is lost: SACK alone is silent until half of them have left the network; with PRR it sends a segment for
/// every two reported. 40 of 50 are lost: SACK alone sends the rest of its window in one burst, PRR two for each report.
#[test]
fn proportional_rate_reduction_smooths_transmission() {
    let sent = |variant: &str, prr: bool, lost: &[usize]| {
        let changes = [
            ("transport.tcp.variant", variant.into()),
            ("transport.tcp.prr", prr.into()),
            ("transport.tcp.initial_window_segments", 50.into()),
            ("transport.tcp.initial_ssthresh_segments", 50.into()),
        ];
        sendings(&trace_with(&changes, 200, lost))
    };
    for variant in ["sack", "rack"] {
        // The 50 are sent at once, and one takes 10 ms on the link: reports are 10 ms apart from 0.11 s on.
        let pause = |prr: bool| {
            let times: Vec<f64> =
                sent(variant, prr, &[2]).iter().map(|sent| sent.0).filter(|at| *at > 0.15 && *at < 0.6).collect();
            times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
        };
        assert!(pause(true) < 0.035 && pause(false) > 0.2, "{variant}: {} {}", pause(true), pause(false));
        let burst = |prr: bool| {
            let lost: Vec<usize> = (2..42).collect();
            let sent = sent(variant, prr, &lost);
            let at_once = |(at, _): &(f64, bool)| sent.iter().filter(|other| (other.0 - at).abs() < 1e-6).count();
            sent.iter().filter(|one| one.0 > 0.0).map(at_once).max().unwrap()
        };
        assert!(burst(true) <= 3 && burst(false) > 10, "{variant}: {} {}", burst(true), burst(false));
    }
}

/// Goodput in bit/s of every version over three bit error rates: any change of behaviour shows here.
#[test]
fn goodput_of_every_version() {
    let mut study = scenario(&[
        ("runs", 5.into()),
        ("duration_s", 100.into()),
        ("link.delay_s", 0.25.into()),
        ("transport.tcp.max_window_segments", 70.into()),
        ("link.channel", json!({ "kind": "ber", "ber": 1e-6 })),
    ]);
    let grid = json!({
        "link.channel.ber": [1e-7, 1e-6, 1e-5], "transport.tcp.variant": ["tahoe", "reno", "newreno", "sack", "rack"],
    });
    set(&mut study, "grid", grid);
    let points = common::expanded(&study).points;
    let summary = common::run(&study, 2).summary;
    let mut table = String::new();
    for (row, point) in
        common::integer(&summary, "point").iter().enumerate().filter(|(row, _)| text(&summary, "flow")[*row] == "all")
    {
        let settings: Vec<String> =
            points[*point as usize].settings.iter().map(|(_, value)| value.to_string()).collect();
        let value = |name| real(&summary, name)[row];
        writeln!(
            table,
            "{:<22} {:>9.0} ± {:>6.0}   timeouts {:>4.1}   delay {:.4} s",
            settings.join(" "),
            value("goodput_bps"),
            value("goodput_bps_ci95"),
            value("timeouts"),
            value("delay_mean_s"),
        )
        .unwrap();
    }
    insta::assert_snapshot!("goodput_of_every_version", table);
}

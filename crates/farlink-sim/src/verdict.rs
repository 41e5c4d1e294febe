//! Whether flows reached their end in a run, and if not, why.
//!
//! A flow is *stalled* if it had started, had not ended, and nothing of it arrived for longer than a round trip and a timeout
//! when the run ended; or if nothing more can arrive. Otherwise, traffic that has an end and did not reach it is *unfinished*.
//!
//! The round trip is the largest of three values: that of the path's delays and rates (for packets of the flow's mean length),
//! the sender's latest measurement, and the mean delay until arrival plus the delay of the way back. The timeout is the first of
//! the flow's retransmission timer, but at least the one of RFC 6298 after one measurement: three round trips (rule 2.2), at
//! least 1 s (rule 2.4). It counts twice, as after one back-off (rule 5.5), so that a lost retransmission is no stall. Traffic at
//! a constant rate may pause for another interval.

use farlink_core::Time;
use farlink_core::event::Abort;
use farlink_core::hop::HopSetup;

use crate::engine::{FlowResult, FlowSetup, RunResult, Setup, TrafficSetup};

/// Factor of a timer's first back-off: RFC 6298, rule 5.5.
const BACKED_OFF: f64 = 2.0;

/// The result of the flows of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    #[default]
    Ok,
    /// The run ended before they did; the reason.
    Unfinished(String),
    /// Nothing of them arrived any more; since when, and why.
    Stalled(String),
}

impl Verdict {
    /// The text of the column `status`.
    pub(crate) fn status(&self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Unfinished(_) => "unfinished",
            Verdict::Stalled(_) => "stalled",
        }
    }

    /// The text of the column `reason`.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Verdict::Ok => "",
            Verdict::Unfinished(reason) | Verdict::Stalled(reason) => reason,
        }
    }

    /// The verdict of all flows together: the worst of any row, with the row's name before its reason.
    pub(crate) fn worst<'a>(rows: impl Iterator<Item = (&'a str, &'a Verdict)> + Clone) -> Self {
        let stalled = rows.clone().find_map(|(flow, verdict)| match verdict {
            Verdict::Stalled(reason) => Some(Verdict::Stalled(format!("{flow}: {reason}"))),
            _ => None,
        });
        let mut unfinished = rows.filter_map(|(flow, verdict)| match verdict {
            Verdict::Unfinished(reason) => Some(Verdict::Unfinished(format!("{flow}: {reason}"))),
            _ => None,
        });
        stalled.or_else(|| unfinished.next()).unwrap_or_default()
    }
}

/// The verdict of the flows of one name.
pub(crate) fn verdict(setup: &Setup, spec: &FlowSetup, flows: &[&FlowResult], run: &RunResult) -> Verdict {
    let end = seconds(run.end);
    let ended = if run.was_given_up { "was given up" } else { "ended" };
    if !spec.is_finite()
        && let Some((at, why)) = flows.iter().filter_map(|flow| flow.aborted).min_by_key(|&(at, _)| at)
    {
        return Verdict::Stalled(format!("given up at {} s: {}", seconds(at), words(why)));
    }
    let mut open = flows.iter().copied().filter(|flow| flow.finished.is_none()).peekable();
    if open.peek().is_none() {
        return Verdict::Ok;
    }
    let first_timeout = spec.transport.as_dyn().longest_timeout().map_or(Time::ZERO, |longest| longest.first);
    let is_stalled = |flow: &FlowResult| is_over(flow, run) || is_silent(setup, spec, first_timeout, flow, run);
    let open: Vec<&FlowResult> = open.collect();
    let stalled: Vec<&FlowResult> = open.iter().copied().filter(|flow| is_stalled(flow)).collect();
    let since = stalled.iter().map(|flow| flow.last_progress).min().map(seconds);
    match since {
        // Endless traffic is ended by the end of the run.
        None if !spec.is_finite() => Verdict::Ok,
        None => {
            let latest = open.iter().filter(|flow| flow.last_arrival > flow.start).map(|flow| flow.last_arrival).max();
            let latest = latest.map_or_else(String::new, |at| format!("; the last that came did at {} s", seconds(at)));
            Verdict::Unfinished(format!("{} when the run {ended} at {end} s{latest}", missing(&open)))
        }
        Some(since) if !stalled[0].is_finite => {
            let more = if stalled.iter().all(|flow| flow.delivered_bytes == 0) { "nothing" } else { "nothing more" };
            Verdict::Stalled(format!("stalled since {since} s: {more} was delivered when the run {ended} at {end} s"))
        }
        Some(since) => {
            let what = missing(if spec.is_finite() { &open } else { &stalled });
            let first = |flow: &&FlowResult| flow.aborted.map_or(Time::NEVER, |(at, _)| at);
            Verdict::Stalled(match open.iter().min_by_key(|flow| first(flow)).and_then(|flow| flow.aborted) {
                Some((at, why)) => {
                    format!("stalled since {since} s, given up at {} s: {}; {what}", seconds(at), words(why))
                }
                None => format!("stalled since {since} s: {what} when the run {ended} at {end} s"),
            })
        }
    }
}

/// Whether nothing more can arrive of a flow, however long the run.
fn is_over(flow: &FlowResult, run: &RunResult) -> bool {
    flow.aborted.is_some() || flow.is_finite && (flow.lost_in_custody_bytes > 0 || run.was_given_up || run.ran_dry)
}

/// Whether nothing of a flow arrived for longer than a round trip and a timeout.
fn is_silent(setup: &Setup, spec: &FlowSetup, first_timeout: Time, flow: &FlowResult, run: &RunResult) -> bool {
    let latest = flow.start.max(flow.last_arrival);
    if run.end <= latest || !flow.is_finite && flow.sent_packets == 0 {
        return false;
    }
    let packet_bits = if flow.sent_packets > 0 { flow.sent_bytes as f64 * 8.0 / flow.sent_packets as f64 } else { 0.0 };
    let one_way_s = |hops: &[HopSetup], bits: f64| -> f64 {
        let hop_s = |hop: &HopSetup| {
            let lines = hop.bundle.as_ref().map_or(1, |bundle| bundle.lines.len());
            let rate_bps = hop.rate.mean_bps() / lines as f64;
            let sending_s = if rate_bps > 0.0 { bits / rate_bps } else { 0.0 };
            hop.delay.constant().map_or(0.0, Time::as_secs_f64) + sending_s
        };
        hops.iter().map(hop_s).sum()
    };
    let forward_s = one_way_s(&setup.forward, packet_bits).max(flow.arrival_delay.mean().unwrap_or(0.0));
    let measured_s = flow.round_trip.map_or(0.0, Time::as_secs_f64);
    let round_trip_s = (forward_s + one_way_s(&setup.back, packet_bits)).max(measured_s);
    let timeout_s = (3.0 * round_trip_s).max(1.0).max(first_timeout.as_secs_f64());
    let pause_s = match spec.traffic {
        TrafficSetup::Cbr { interval, .. } => interval.as_secs_f64(),
        _ => 0.0,
    };
    run.end.since(latest).as_secs_f64() > round_trip_s + BACKED_OFF * timeout_s + pause_s
}

/// Describes the missing data of transfers.
fn missing(transfers: &[&FlowResult]) -> String {
    let left: u64 = transfers.iter().map(|flow| flow.undelivered_bytes).sum();
    let lost: u64 = transfers.iter().map(|flow| flow.lost_in_custody_bytes).sum();
    let what = format!("{left} bytes of {} transfers were not delivered", transfers.len());
    let in_custody = format!("{lost} bytes were lost in the custody of a gateway");
    match (left, lost) {
        (_, 0) => what,
        (0, _) => in_custody,
        _ => format!("{what}, and {in_custody}"),
    }
}

fn words(why: Abort) -> &'static str {
    match why {
        Abort::Reset => "the peer reset the connection",
        Abort::TooManyRetries => "too many retransmissions went unanswered",
        Abort::NoAnswer => "the peer did not answer for too long",
        Abort::NotClosed => "the connection was not closed in the time set for that",
        Abort::PeerRestarted => "the peer restarted",
        Abort::OtherVersion => "the peer has another version of the protocol",
        _ => "the connection was aborted",
    }
}

/// Seconds, rounded to milliseconds.
fn seconds(time: Time) -> f64 {
    (time.as_secs_f64() * 1e3).round() / 1e3
}

//! Segments that were sent and not reported, where the sender learns its rate. `[U10]`

use std::collections::VecDeque;

use crate::origin::instants;
use crate::time::Time;

use super::super::clock::{span, ticks};
use super::super::config::AerotpConfig;
use super::super::mack_fields::MackFields;
use super::super::rate::{Outcomes, ReportTimes};
use super::super::reordering::Reordering;
use super::super::round_trip::RoundTrip;

/// Segments with payload that were sent at one instant, in ticks.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    sent: u64,
    segments: u32,
}

instants! { Transmission: ; ticks: sent; fixed: segments }

/// Largest number of instants that are kept; with more, neighbours are merged.
const MOST_INSTANTS: usize = 1 << 16;
/// Timeouts after which the lack of a report tells nothing of what was sent. `[K10]`
const FORGOTTEN_TIMEOUTS: u64 = 2;
/// Count beyond which a number of segments has gone back.
const BACK: u32 = 1 << 31;

/// Segments in flight, and what the reports tell of them: how many have arrived, not which. `[K6]`
#[derive(Clone, Debug)]
pub(super) struct Flight {
    by_time: VecDeque<Transmission>,
    /// Number of segments that had arrived by the last report.
    arrived: u32,
    latest_echo: u64,
    /// Arrivals that are not assigned to a segment yet.
    early: u64,
    /// Segments that were declared lost of late, and may have been overtaken only.
    perhaps_late: u64,
    reordering: Reordering,
    round_trip: RoundTrip,
    first_timeout: Time,
    /// Smoothed time between the segments that two reports echo.
    spacing: Time,
    pub(super) outcomes: Outcomes,
}

instants! {
    Flight: by_time, reordering, outcomes;
    ticks: latest_echo;
    fixed: arrived, early, perhaps_late, round_trip, first_timeout, spacing
}

impl Flight {
    /// Where the mode learns its rate.
    pub(super) fn new(config: &AerotpConfig) -> Option<Box<Self>> {
        config.has_rate_reports().then(|| {
            Box::new(Flight {
                by_time: VecDeque::new(),
                arrived: 0,
                latest_echo: 0,
                early: 0,
                perhaps_late: 0,
                reordering: Reordering::default(),
                round_trip: RoundTrip::new(config.mack_timeout_s.time()),
                first_timeout: config.initial_rto_s.time(),
                spacing: Time::ZERO,
                outcomes: Outcomes::default(),
            })
        })
    }

    /// A segment with payload is sent.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time) {
        let sent = ticks(now);
        let is_full = self.by_time.len() == MOST_INSTANTS;
        match self.by_time.back_mut() {
            Some(last) if last.sent == sent || is_full => {
                (last.sent, last.segments) = (sent, last.segments.saturating_add(1));
            }
            _ => self.by_time.push_back(Transmission { sent, segments: 1 }),
        }
    }

    /// When a report is overdue after a segment.
    fn timeout(&self) -> Time {
        self.round_trip.timeout().unwrap_or(self.first_timeout)
    }

    /// Takes a report: segments sent before the one that it echoes have arrived or are lost.
    pub(super) fn on_report(&mut self, now: Time, mack: &MackFields) {
        let arrived = mack.arrived.wrapping_sub(self.arrived);
        if !mack.counts_segments || mack.echo <= self.latest_echo || arrived >= BACK {
            return; // nothing new
        }
        // After a pause of the application the spacing of its data tells nothing.
        let spacing = span(mack.echo - self.latest_echo).min(self.timeout());
        self.spacing = Time::from_ps((self.spacing.as_ps() * 7 + spacing.as_ps()) / 8);
        (self.arrived, self.latest_echo) = (mack.arrived, mack.echo);
        // If segments await a report for so long, reports were lost or segments met an outage: the count starts again.
        let is_late = self.round_trip.smoothed().is_some() && {
            let forgotten = ticks(now).saturating_sub(ticks(self.timeout().times(FORGOTTEN_TIMEOUTS)));
            self.by_time.front().is_some_and(|oldest| oldest.sent < forgotten)
        };
        self.round_trip.sample(mack.round_trip);
        if let Some(oldest) = self.by_time.front().filter(|oldest| oldest.sent <= mack.echo) {
            let answered = if is_late { mack.round_trip } else { span(ticks(now).saturating_sub(oldest.sent)) };
            self.round_trip.answered_after(answered);
        }
        self.reordering.on_mack(now, mack.overtaken_by, self.timeout());
        let answered = self.by_time.partition_point(|it| self.reordering.is_decided(it.sent, mack.echo));
        let segments = self.by_time.range(..answered).map(|it| u64::from(it.segments)).sum::<u64>();
        let arrived = if is_late { 0 } else { self.early + u64::from(arrived) };
        let known = arrived.min(segments);
        // Which of them were lost is not known, only how many: each is taken to have arrived in part.
        let share = known as f32 / segments.max(1) as f32;
        for Transmission { sent, segments } in self.by_time.drain(..answered) {
            for _ in 0..if is_late { 0 } else { segments } {
                self.outcomes.add(sent, share);
            }
        }
        // No more segments are early than have no verdict yet or had one too soon: the rest are copies that the network made.
        let open = self.by_time.iter().take_while(|it| it.sent <= mack.echo).map(|it| u64::from(it.segments));
        self.early = (arrived - known).min(open.sum::<u64>() + self.perhaps_late);
        self.perhaps_late = if is_late { 0 } else { self.perhaps_late / 2 + segments - known };
        self.outcomes.on_report(ReportTimes { timeout: self.timeout(), spacing: self.spacing });
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::segment::MOST_EDGES;
    use super::*;

    fn flight() -> Box<Flight> {
        let keys = serde_json::json!({ "mode": "unreliable", "rate_control": "learnt" });
        let mut flight = Flight::new(&serde_json::from_value(keys).unwrap()).unwrap();
        flight.outcomes.is_wanted = true;
        flight
    }

    /// A report of `arrived` segments that comes 200 ms after the one was sent that it echoes.
    fn report(flight: &mut Flight, echo_ms: u64, arrived: u32) {
        let mack = MackFields {
            ack: 0,
            echo: 1000 * echo_ms,
            round_trip: Time::from_millis(200),
            window_end: 0,
            blocks: [(0, 0); MOST_EDGES / 2],
            block_count: 0,
            is_from_start: false,
            is_to_end: false,
            window: 0,
            damaged: 0,
            deficits: [(0, 0); MOST_EDGES / 2],
            deficit_count: 0,
            counts_segments: true,
            arrived,
            skipped: None,
            overtaken_by: None,
        };
        flight.on_report(Time::from_millis(echo_ms + 200), &mack);
    }

    /// Sends a segment each millisecond.
    fn send(flight: &mut Flight, from_ms: u64, to_ms: u64) {
        (from_ms..to_ms).for_each(|ms| flight.on_sent(Time::from_millis(ms)));
    }

    /// Segments with a verdict since the last call, and how many of them arrived.
    fn known(flight: &mut Flight) -> (usize, f32) {
        let shares: Vec<f32> = flight.outcomes.take_shares();
        (shares.len(), shares.iter().sum::<f32>().round())
    }

    #[test]
    fn reports_tell_how_many_segments_arrived_of_those_since_the_last_one() {
        let mut flight = flight();
        send(&mut flight, 1, 101);
        report(&mut flight, 20, 15);
        assert_eq!(known(&mut flight), (20, 15.0));
        report(&mut flight, 10, 8); // overtaken on the way back
        report(&mut flight, 60, 45); // one between them was lost
        assert_eq!(known(&mut flight), (40, 30.0));
        report(&mut flight, 70, 44);
        assert_eq!(known(&mut flight), (0, 0.0), "a count does not go back");
        report(&mut flight, 100, u32::MAX);
        assert_eq!(known(&mut flight), (0, 0.0), "nor does it jump");
    }

    /// Duplicates made by the network do not hide later losses for long.
    #[test]
    fn copies_count_for_no_more_than_what_may_be_late() {
        let mut flight = flight();
        send(&mut flight, 1, 201);
        report(&mut flight, 100, 200);
        assert_eq!(known(&mut flight), (100, 100.0));
        report(&mut flight, 200, 250);
        assert_eq!(known(&mut flight), (100, 50.0));
    }

    #[test]
    fn the_first_report_after_an_outage_only_sets_the_count() {
        let mut flight = flight();
        send(&mut flight, 1, 101);
        report(&mut flight, 100, 100);
        known(&mut flight);
        let timeout = flight.timeout();
        send(&mut flight, 101, 3001);
        report(&mut flight, 3000, 150);
        assert_eq!(known(&mut flight), (0, 0.0));
        assert!(flight.timeout() < timeout.times(2), "the outage is no round trip");
        send(&mut flight, 3001, 3101);
        report(&mut flight, 3100, 240);
        assert_eq!(known(&mut flight), (100, 90.0));
    }
}

//! The rate of the bottleneck, estimated from the spacing at which the first packets arrive.

use crate::origin::instants;
use crate::time::Time;

use super::super::clock::{span, ticks};
use super::Answer;

/// Least number of packets for an estimate.
pub(super) const LEAST_PACKETS: f64 = 4.0;
/// If the arrival rate is below this fraction of the sending rate, it is that of the bottleneck.
pub(super) const SLOWER: f64 = 0.9;

/// Packets that are sent back to back arrive with the spacing of the slowest link on the path: packet-train dispersion (Dovrolis,
/// Ramanathan and Moore, "What do packet dispersion techniques measure?", INFOCOM 2001). `[P11]`
///
/// It estimates the capacity of that link, not the share that other flows leave of it. A token bucket lets the whole burst
/// through at its peak rate, and delays of the answers on the way back affect it as well. Therefore it is only a starting point
/// for the rate.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstBurst {
    /// When it began, in ticks, until its estimate is known; `latest` is when its latest packet was sent, also in ticks.
    began: Option<u64>,
    latest: u64,
    has_ended: bool,
    packets: u32,
    wire_bytes: u64,
    asked: usize,
    /// The first answer to it; `last` is the last one so far.
    first: Option<BurstAnswer>,
    last: Option<BurstAnswer>,
}

instants! { FirstBurst: first, last; ticks: began, latest; fixed: has_ended, packets, wire_bytes, asked }

/// The content of an answer to the burst.
#[derive(Clone, Copy, Debug)]
struct BurstAnswer {
    echo: u64,
    /// When the echoed segment arrived at the receiver.
    echoed: Time,
    told: Time,
    arrived_bytes: u64,
    has_gaps: bool,
}

instants! { BurstAnswer: echoed, told; ticks: echo; fixed: arrived_bytes, has_gaps }

/// The arrival rate of the burst, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dispersion {
    pub(super) speed: f64,
    /// Whether this is the rate of the slowest link; if not, that link is at least as fast.
    pub(super) is_exact: bool,
}

/// Number of packets sent back to back at the start. `[P3]`
pub(super) const FIRST_BURST: u32 = 16;
/// An answer is requested after the first packet, in the middle and at the end; any two answers give an estimate.
const QUESTIONS: [u32; 3] = [1, FIRST_BURST / 2, FIRST_BURST];
/// Spacing of the packets, so that their timestamps differ.
pub(super) const SPACING: Time = Time::from_ps(1_000_000);
/// Shorter times are distorted by clocks and interrupts: a burst that arrives within this time counts as if it had taken this
/// long.
const LEAST_SPREAD: Time = Time::from_millis(5);

impl FirstBurst {
    /// Whether the whole burst was sent, or as much of it as there was, which was answered.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Data was sent.
    pub(super) fn on_sent(&mut self, now: Time, wire_bytes: u32) {
        if !self.has_ended {
            self.latest = ticks(now);
            self.began = self.began.or(Some(self.latest));
            self.packets += 1;
            self.wire_bytes += u64::from(wire_bytes);
            self.has_ended = self.packets == FIRST_BURST;
        }
    }

    /// Whether a question follows the last packet sent; it has another timestamp.
    pub(super) fn is_question_due(&self) -> bool {
        QUESTIONS.get(self.asked).is_some_and(|&after| self.packets >= after)
    }

    /// Whether an answer should be requested now; `true` once per request.
    pub(super) fn ask(&mut self) -> bool {
        let is_due = self.is_question_due();
        self.asked += usize::from(is_due);
        is_due
    }

    /// Takes an answer; `wire_share` is the number of bytes on the wire per byte of data. Returns the estimate once no further
    /// answer is expected: all that was sent of the burst was answered.
    pub(super) fn on_answer(&mut self, now: Time, answer: &Answer, wire_share: f64) -> Option<Dispersion> {
        self.began.filter(|&began| answer.echo >= began)?;
        if answer.echo <= self.latest {
            let Answer { echo, held, arrived_bytes, has_gaps, .. } = *answer;
            let answered = BurstAnswer { echo, echoed: before(now, held), told: now, arrived_bytes, has_gaps };
            self.first.get_or_insert(answered);
            // An answer that was overtaken on the way back has less information.
            self.last = Some(self.last.filter(|last| last.echo > echo).unwrap_or(answered));
        }
        if answer.echo < self.latest {
            return None;
        }
        let (first, last) = self.first.take().zip(self.last.take())?;
        let bytes = last.arrived_bytes.saturating_sub(first.arrived_bytes) as f64 * wire_share;
        if bytes * f64::from(self.packets) < LEAST_PACKETS * self.wire_bytes as f64 {
            return None;
        }
        let took = last.told.since(first.echoed);
        (self.began, self.has_ended) = (None, true);
        let is_slower = took.as_secs_f64() * SLOWER >= span(last.echo - first.echo).as_secs_f64();
        let is_prompt = last.told.since(last.echoed).times(16) <= took;
        let is_exact = is_slower && took >= LEAST_SPREAD && is_prompt && !first.has_gaps && !last.has_gaps;
        let speed = bytes.min(self.wire_bytes as f64) / took.max(LEAST_SPREAD).as_secs_f64();
        Some(Dispersion { speed, is_exact })
    }
}

/// The instant a span before another.
pub(super) fn before(now: Time, span: Time) -> Time {
    Time::from_ps(now.as_ps().saturating_sub(span.as_ps()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u32 = 1500;
    const DATA: u64 = 1450;
    const WAY: Time = Time::from_secs(10);

    /// Sixteen packets at this spacing in microseconds: their sending times, and the number sent at each request for an
    /// answer.
    fn burst(apart: u64) -> (FirstBurst, Vec<Time>, Vec<usize>) {
        let (mut burst, mut sent, mut asked) = (FirstBurst::default(), Vec::new(), Vec::new());
        for n in 0..u64::from(FIRST_BURST) {
            let now = Time::from_secs(1) + SPACING.times(n * apart);
            burst.on_sent(now, PACKET);
            sent.push(now);
            if burst.ask() {
                asked.push(sent.len());
            }
            assert!(!burst.ask(), "once");
        }
        assert!(burst.has_ended());
        (burst, sent, asked)
    }

    /// The answer after `packets` packets have arrived, the last of them `after` the first one.
    fn answer(sent: &[Time], packets: usize, after: Time) -> (Time, Answer) {
        let now = Time::from_secs(1) + WAY.times(2) + after;
        let round_trip = now.since(sent[packets - 1]);
        let (echo, arrived_bytes) = (ticks(sent[packets - 1]), packets as u64 * DATA);
        (
            now,
            Answer {
                echo,
                round_trip,
                waited: Time::ZERO,
                held: Time::ZERO,
                marked: 0,
                arrived_bytes,
                has_gaps: false,
            },
        )
    }

    fn tell(burst: &mut FirstBurst, (now, answer): (Time, Answer)) -> Option<Dispersion> {
        burst.on_answer(now, &answer, f64::from(PACKET) / DATA as f64)
    }

    #[test]
    fn a_burst_measures_the_rate_of_the_slowest_link() {
        let (mut burst, sent, asked) = burst(1);
        assert_eq!(asked, [1, 8, 16]);
        for (packets, after) in [(1, 0), (8, 7)] {
            assert_eq!(tell(&mut burst, answer(&sent, packets, Time::from_millis(after))), None, "more is to come");
        }
        let shown = tell(&mut burst, answer(&sent, 16, Time::from_millis(15))).unwrap();
        assert!(shown.is_exact && (shown.speed / 1.5e6 - 1.0).abs() < 1e-9, "{shown:?}");
        assert_eq!(tell(&mut burst, answer(&sent, 16, Time::from_millis(20))), None, "it is reported once");
    }

    #[test]
    fn two_answers_give_an_estimate_and_one_does_not() {
        let (whole, sent, _) = burst(1);
        let mut burst = whole.clone();
        tell(&mut burst, answer(&sent, 8, Time::from_millis(7)));
        let shown = tell(&mut burst, answer(&sent, 16, Time::from_millis(15))).unwrap();
        assert!((shown.speed / 1.5e6 - 1.0).abs() < 1e-9, "{shown:?}");
        assert_eq!(tell(&mut whole.clone(), answer(&sent, 16, Time::from_millis(15))), None);
        // A segment after the burst ends the wait for the last answer.
        let mut burst = whole.clone();
        tell(&mut burst, answer(&sent, 1, Time::ZERO));
        tell(&mut burst, answer(&sent, 8, Time::from_millis(7)));
        let (now, later) = answer(&sent, 16, Time::from_secs(1));
        let shown = tell(&mut burst, (now, Answer { echo: later.echo + 1_000_000, ..later })).unwrap();
        assert!((shown.speed / 1.5e6 - 1.0).abs() < 1e-9, "{shown:?}");
    }

    /// The estimate never exceeds the bytes that arrived over the time that they took at most.
    #[test]
    fn losses_reordering_and_late_answers_only_lower_the_estimate() {
        let (whole, sent, _) = burst(1);
        let end = |change: fn(Answer) -> Answer, late: u64| {
            let mut burst = whole.clone();
            tell(&mut burst, answer(&sent, 1, Time::ZERO));
            let (now, last) = answer(&sent, 16, Time::from_millis(15 + late));
            tell(&mut burst, (now, change(last))).map(|shown| (shown.is_exact, (shown.speed / 1e5).round()))
        };
        let third_lost = |answer: Answer| Answer { arrived_bytes: 11 * DATA, has_gaps: true, ..answer };
        assert_eq!(end(third_lost, 0), Some((false, 10.0)), "10 of 15");
        let overtook = |answer: Answer| Answer { arrived_bytes: 2 * DATA, has_gaps: true, ..answer };
        assert_eq!(end(overtook, 0), None, "the last packet arrived second: there is no estimate");
        let held = |answer: Answer| Answer { held: Time::from_millis(30), ..answer };
        assert_eq!(end(held, 30), Some((false, 5.0)), "15 packets in 45 ms at the latest");
    }

    #[test]
    fn bursts_too_fast_for_the_clock_and_bursts_that_arrive_as_they_were_sent_give_a_lower_bound() {
        let (mut fast, sent, _) = burst(1);
        tell(&mut fast, answer(&sent, 1, Time::ZERO));
        let shown = tell(&mut fast, answer(&sent, 16, SPACING.times(20))).unwrap();
        assert_eq!((shown.is_exact, shown.speed.round()), (false, 22_500.0 / 0.005), "as if in 5 ms");
        let (mut slow, sent, _) = burst(1000);
        tell(&mut slow, answer(&sent, 1, Time::ZERO));
        let shown = tell(&mut slow, answer(&sent, 16, Time::from_millis(15))).unwrap();
        assert_eq!((shown.is_exact, shown.speed.round()), (false, 1.5e6));
    }
}

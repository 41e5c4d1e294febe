//! A learnt rate while the reports that it is learnt from do not come. `[U11]`

use crate::origin::instants;
use crate::time::Time;

use super::super::config::AerotpConfig;

/// Timeouts without a report after which the rate is halved (RFC 5348, section 4.4, takes four round trips).
const SILENT_TIMEOUTS: u64 = 4;
/// Packets that must have had the time to be sent before the lack of a report tells anything.
const SILENT_PACKETS: f64 = 2.0;
/// Growth of a limit in a timeout in which a report came.
const GROWTH: f64 = 2.0;

/// A limit of a rate that falls while data goes out and no report comes. Without acknowledgements nothing else would stop a sender whose
/// data fill a queue that drops all reports, or reach nobody.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    /// Bytes per second.
    limit: f64,
    packet_bytes: f64,
    /// When an answer is overdue after a packet was sent.
    timeout: Time,
    /// When the first packet was sent of those since the latest report or reduction.
    awaited_since: Time,
    /// When the limit last changed.
    changed: Time,
    /// For how long packets have awaited a report, all reductions since the latest one together, and for how long they may.
    unanswered: Time,
    patience: Time,
}

instants! { Silence: awaited_since, changed; fixed: limit, packet_bytes, timeout, unanswered, patience }

impl Silence {
    pub(super) fn new(config: &AerotpConfig) -> Self {
        Silence {
            limit: f64::INFINITY,
            packet_bytes: config.packet_bytes.get(),
            timeout: config.initial_rto_s.time(),
            awaited_since: Time::NEVER,
            changed: Time::ZERO,
            unanswered: Time::ZERO,
            patience: config.give_up_after_s.time(),
        }
    }

    /// A packet is sent on which a report is due; `rate` is the present rate in bytes per second.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, rate: f64) {
        if self.awaited_since == Time::NEVER {
            self.awaited_since = now;
            return;
        }
        let spacing = Time::from_secs_f64(SILENT_PACKETS * self.packet_bytes / rate.max(1.0));
        if now < self.awaited_since + self.timeout.times(SILENT_TIMEOUTS).max(spacing) {
            return;
        }
        self.halve(rate);
        self.unanswered += now.since(self.awaited_since);
        (self.awaited_since, self.changed) = (now, now);
    }

    /// A report has come. `timeout` is when the next one is overdue, and `rate` what was learnt.
    pub(super) fn on_report(&mut self, now: Time, timeout: Time, rate: f64) {
        (self.awaited_since, self.unanswered, self.timeout) = (Time::NEVER, Time::ZERO, timeout);
        if now.since(self.changed) >= timeout && self.limit < f64::INFINITY {
            self.limit *= GROWTH;
            self.changed = now;
        }
        if self.limit >= rate {
            self.limit = f64::INFINITY;
        }
    }

    /// Half of the rate, but a packet in a timeout at least.
    fn halve(&mut self, rate: f64) {
        let least = self.packet_bytes / self.timeout.as_secs_f64().max(1e-6);
        self.limit = (rate.min(self.limit) / 2.0).max(least);
    }

    /// The limit, in bytes per second.
    #[inline]
    pub(super) fn limit(&self) -> f64 {
        self.limit
    }

    /// Whether the peer counts as gone. `[C16]`
    pub(super) fn is_too_long(&self) -> bool {
        self.unanswered >= self.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Timeouts of 1 s, and packets of 1500 bytes.
    fn silence() -> Silence {
        Silence::new(&AerotpConfig::default())
    }

    fn rate(silence: &Silence) -> f64 {
        silence.limit().min(1.5e6)
    }

    /// Sends a packet every millisecond.
    fn send(silence: &mut Silence, from_s: u64, to_s: u64) {
        for ms in from_s * 1000..to_s * 1000 {
            silence.on_sent(Time::from_millis(ms), rate(silence));
        }
    }

    #[test]
    fn a_rate_without_reports_is_halved_down_to_a_packet_in_a_timeout() {
        let mut silence = silence();
        send(&mut silence, 0, 4);
        assert_eq!(silence.limit(), f64::INFINITY);
        send(&mut silence, 4, 9);
        assert_eq!(silence.limit(), 1.5e6 / 4.0);
        send(&mut silence, 9, 100);
        assert_eq!(silence.limit(), 1500.0);
        assert!(!silence.is_too_long());
        send(&mut silence, 100, 3700);
        assert!(silence.is_too_long(), "an hour");
    }

    #[test]
    fn reports_double_it_once_in_a_timeout() {
        let mut silence = silence();
        send(&mut silence, 0, 100);
        for (ms, limit) in [(100_000, 3000.0), (100_500, 3000.0), (101_000, 6000.0), (102_100, 12_000.0)] {
            silence.on_report(Time::from_millis(ms), Time::from_secs(1), 1.5e6);
            assert_eq!(silence.limit(), limit, "{ms} ms");
        }
        silence.on_report(Time::from_secs(110), Time::from_secs(1), 20_000.0);
        assert_eq!(silence.limit(), f64::INFINITY, "what was learnt is reached");
    }

    /// Data that are written once in an hour, and not one report on them.
    #[test]
    fn pauses_of_the_application_are_no_silence() {
        let mut silence = silence();
        for hour in 0..100 {
            silence.on_report(Time::from_secs(3600 * hour), Time::from_secs(1), 1.5e6);
            silence.on_sent(Time::from_secs(3600 * hour + 1), rate(&silence));
        }
        assert_eq!(silence.limit(), f64::INFINITY);
    }
}

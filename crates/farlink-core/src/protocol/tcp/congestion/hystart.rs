//! HyStart++ (RFC 9406): the first slow start ends when round trips grow longer, before the queue overflows.

use super::standard;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::flight::Sample;
use crate::protocol::tcp::window::{Window, least};
use crate::time::Time;

//= https://www.rfc-editor.org/rfc/rfc9406#section-4.3
//# It is RECOMMENDED that a HyStart++ implementation use the following constants:
//# MIN_RTT_THRESH = 4 msec
//# MAX_RTT_THRESH = 16 msec
//# MIN_RTT_DIVISOR = 8
//# N_RTT_SAMPLE = 8
//# CSS_GROWTH_DIVISOR = 4
//# CSS_ROUNDS = 5
//# L = infinity if paced, L = 8 if non-paced
const MIN_RTT_THRESH: Time = Time::from_millis(4);
const MAX_RTT_THRESH: Time = Time::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
const L_NOT_PACED: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    /// Conservative slow start (CSS): the delay has grown, and it is checked whether a queue is the cause.
    Conservative,
    /// HyStart++ has ended: from now on slow start has a threshold.
    Over,
}

/// The first slow start of a connection.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    phase: Phase,
    /// Largest number of bytes that count per acknowledgement.
    most_acked: f64,
    /// The round ends when this offset is acknowledged; 0 before the first round.
    window_end: u64,
    last_round_min: Time,
    round_min: Time,
    samples: u32,
    /// Least round trip of the round in which conservative slow start began.
    baseline: Time,
    conservative_rounds: u32,
}

impl HyStart {
    /// HyStart++ as configured; `usual` is the default of the congestion control.
    pub(super) fn new(config: &TcpConfig, usual: bool) -> Self {
        //= https://www.rfc-editor.org/rfc/rfc9406#section-4.3
        //# An implementation SHOULD use HyStart++ only for the initial slow start (when the ssthresh is at its initial
        //# value of arbitrarily high per [RFC5681]) and fall back to using standard slow start for the remainder of the
        //# connection lifetime.
        let is_on = config.hystart.unwrap_or(usual) && config.initial_ssthresh_segments.is_none();
        let limit = if config.paces() { f64::INFINITY } else { L_NOT_PACED };
        HyStart {
            phase: if is_on { Phase::SlowStart } else { Phase::Over },
            most_acked: limit * config.segment_bytes.get(),
            window_end: 0,
            last_round_min: Time::NEVER,
            round_min: Time::NEVER,
            samples: 0,
            baseline: Time::NEVER,
            conservative_rounds: 0,
        }
    }

    #[inline]
    pub(super) fn is_running(&self) -> bool {
        self.phase != Phase::Over
    }

    /// Ends HyStart++ after a loss, or when the first slow start ended otherwise.
    pub(super) fn stop(&mut self) {
        self.phase = Phase::Over;
    }

    /// Growth of the window in slow start, bytes.
    #[cold]
    pub(super) fn increase(&self, window: &Window, acked: u64) -> f64 {
        let counted = least(acked as f64, self.most_acked);
        match self.phase {
            //= https://www.rfc-editor.org/rfc/rfc9406#section-4.2
            //# cwnd = cwnd + min(N, L * SMSS)
            Phase::SlowStart => counted,
            //= https://www.rfc-editor.org/rfc/rfc9406#section-4.2
            //# cwnd = cwnd + (min(N, L * SMSS) / CSS_GROWTH_DIVISOR)
            Phase::Conservative => counted / CSS_GROWTH_DIVISOR,
            Phase::Over => standard::slow_start(window, acked),
        }
    }

    /// Takes the round-trip time of an acknowledgement.
    pub(super) fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        if !self.is_running() || window.una <= 1 {
            return; // the SYN is smaller than any segment, so its round trip does not represent theirs
        }
        if window.cwnd >= window.cwnd_cap {
            self.stop();
            return;
        }
        if self.window_end == 0 {
            self.window_end = window.nxt;
        }
        if let Some(rtt) = sample.rtt {
            self.round_min = self.round_min.min(rtt);
            self.samples += 1;
            self.judge();
        }
        if window.una >= self.window_end {
            self.end_round(window);
        }
    }

    /// Decides whether the delay has grown, or decreased again.
    fn judge(&mut self) {
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.phase {
            Phase::SlowStart if self.last_round_min != Time::NEVER => {
                //= https://www.rfc-editor.org/rfc/rfc9406#section-4.2
                //# RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH))
                //# if (currentRoundMinRTT >= (lastRoundMinRTT + RttThresh))
                //#   cssBaselineMinRtt = currentRoundMinRTT
                //#   exit slow start and enter CSS
                let eighth = Time::from_ps(self.last_round_min.as_ps() / MIN_RTT_DIVISOR);
                let threshold = eighth.min(MAX_RTT_THRESH).max(MIN_RTT_THRESH);
                if self.round_min >= self.last_round_min + threshold {
                    self.baseline = self.round_min;
                    self.conservative_rounds = 0;
                    self.phase = Phase::Conservative;
                }
            }
            //= https://www.rfc-editor.org/rfc/rfc9406#section-4.2
            //# if (currentRoundMinRTT < cssBaselineMinRtt)
            //#   cssBaselineMinRtt = infinity
            //#   resume slow start including HyStart++
            Phase::Conservative if self.round_min < self.baseline => {
                self.baseline = Time::NEVER;
                self.phase = Phase::SlowStart;
            }
            _ => {}
        }
    }

    /// Ends a round: all data in flight at its start is acknowledged.
    fn end_round(&mut self, window: &mut Window) {
        if self.phase == Phase::Conservative {
            //= https://www.rfc-editor.org/rfc/rfc9406#section-4.2
            //# If the transition into CSS happens in the middle of a round, that partial round counts towards the limit.
            self.conservative_rounds += 1;
            if self.conservative_rounds >= CSS_ROUNDS {
                //= https://www.rfc-editor.org/rfc/rfc9406#section-4.2
                //# If CSS_ROUNDS rounds are complete, enter congestion avoidance by setting the ssthresh to the current
                //# cwnd.
                window.ssthresh = window.cwnd;
                self.stop();
            }
        }
        //= https://www.rfc-editor.org/rfc/rfc9406#section-4.2
        //# lastRoundMinRTT = currentRoundMinRTT
        //# currentRoundMinRTT = infinity
        //# rttSampleCount = 0
        self.last_round_min = self.round_min;
        self.round_min = Time::NEVER;
        self.samples = 0;
        self.window_end = window.nxt;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Control;
    use super::super::cubic::Cubic;
    use super::super::path::Path;
    use super::super::reno::Reno;
    use super::*;

    const MS: u64 = 1_000_000_000;

    fn start(config: &TcpConfig) -> (Path, Cubic) {
        (Path::new(config, Time::from_millis(100)), Cubic::new(config))
    }

    fn hystart(cubic: &Cubic) -> &HyStart {
        cubic.hystart()
    }

    /// Eight samples, not seven, of a round trip that is longer by an eighth, by at least 4 ms and at most 16 ms.
    #[test]
    fn a_longer_round_trip_ends_slow_start() {
        for (base_ms, threshold_ms) in [(10, 4), (80, 10), (500, 16)] {
            for (more_ps, is_found) in [(threshold_ms * MS - 1, false), (threshold_ms * MS, true)] {
                let (mut path, mut cubic) = start(&TcpConfig::default());
                path.round_trip = Time::from_millis(base_ms);
                path.round(&mut cubic);
                path.round_trip = Time::from_ps(base_ms * MS + more_ps);
                for _ in 0..7 {
                    path.acknowledge(&mut cubic);
                    assert_eq!(hystart(&cubic).phase, Phase::SlowStart);
                }
                path.acknowledge(&mut cubic);
                assert_eq!(hystart(&cubic).phase == Phase::Conservative, is_found, "{base_ms} ms and {more_ps} ps");
            }
        }
    }

    /// A quarter of slow start's growth for five rounds, including the one it began in; then congestion avoidance.
    #[test]
    fn conservative_slow_start_lasts_five_rounds() {
        let (mut path, mut cubic) = start(&TcpConfig::default());
        path.round(&mut cubic);
        assert!((path.cwnd() - 20.0).abs() < 1e-9);
        path.round_trip = Time::from_millis(120);
        path.round(&mut cubic);
        assert!((path.cwnd() - (20.0 + 8.0 + 12.0 / 4.0)).abs() < 1e-9, "{}", path.cwnd());
        for _ in 0..4 {
            assert!(cubic.wants_samples() && path.window.ssthresh == f64::INFINITY);
            let before = path.cwnd();
            path.round(&mut cubic);
            // The path's rounds end a few segments after the algorithm's, which end before the segments for their last
            // acknowledgement are sent.
            assert!((1.2..1.27).contains(&(path.cwnd() / before)), "{before} {}", path.cwnd());
        }
        assert!(!cubic.wants_samples());
        // The rest of the path's round is congestion avoidance.
        let beyond = path.window.cwnd - path.window.ssthresh;
        assert!((0.0..1460.0).contains(&beyond), "{beyond}");
    }

    #[test]
    fn slow_start_goes_on_if_the_delay_falls_again() {
        let (mut path, mut cubic) = start(&TcpConfig::default());
        path.round(&mut cubic);
        path.round_trip = Time::from_millis(120);
        path.round(&mut cubic);
        assert_eq!(hystart(&cubic).phase, Phase::Conservative);
        path.round_trip = Time::from_millis(119);
        path.round(&mut cubic);
        assert_eq!(hystart(&cubic).phase, Phase::SlowStart);
        let before = path.cwnd();
        path.round(&mut cubic);
        assert!((path.cwnd() / before - 2.0).abs() < 0.05);
        assert!(path.window.ssthresh == f64::INFINITY);
    }

    /// HyStart++ applies only to the first slow start, and only while there is no threshold.
    #[test]
    fn a_loss_a_threshold_or_the_setting_disable_it() {
        let (mut path, mut cubic) = start(&TcpConfig::default());
        assert!(cubic.wants_samples());
        path.lose(&mut cubic);
        assert!(!cubic.wants_samples());
        let off = TcpConfig { hystart: Some(false), ..TcpConfig::default() };
        assert!(!Cubic::new(&off).wants_samples());
        let capped =
            TcpConfig { max_window_segments: Some(crate::units::Count::new(30.0).unwrap()), ..TcpConfig::default() };
        let (mut path, mut cubic) = start(&capped);
        path.round(&mut cubic);
        path.round(&mut cubic);
        assert!(!cubic.wants_samples() && path.window.ssthresh == f64::INFINITY);
    }

    /// 8 of 20 segments in an acknowledgement count; with pacing, all count.
    #[test]
    fn bursts_of_growth_are_bounded_unless_paced() {
        for (pacing, expected) in [(false, 18.0), (true, 30.0)] {
            let config = TcpConfig { pacing: Some(pacing), ..TcpConfig::default() };
            let (mut path, mut cubic) = start(&config);
            path.per_ack = 20;
            path.acknowledge(&mut cubic);
            assert!((path.cwnd() - expected).abs() < 1e-9, "{}", path.cwnd());
        }
    }

    #[test]
    fn it_works_with_reno() {
        assert!(!Reno::new(&TcpConfig::default()).wants_samples());
        let config = TcpConfig { hystart: Some(true), ..TcpConfig::default() };
        let mut path = Path::new(&config, Time::from_millis(100));
        let mut reno = Reno::new(&config);
        for _ in 0..8 {
            path.round(&mut reno);
            path.round_trip = Time::from_millis(120);
        }
        assert!(!reno.wants_samples() && path.window.ssthresh < f64::INFINITY);
    }
}

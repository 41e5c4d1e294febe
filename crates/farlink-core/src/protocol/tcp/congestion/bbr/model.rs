//! Parts shared by both versions of BBR: the round-trip time, the pacing rate and the aggregation of acknowledgements.

use super::Rounds;
use crate::protocol::parts::pacer::quantum;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::flight::Sample;
use crate::protocol::tcp::window::Window;
use crate::time::Time;

/// The round-trip time that is assumed before one was measured.
const NOMINAL_RTT_S: f64 = 1e-3;

/// The least round-trip time, the pacing rate, and the constants that a scenario sets.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The least recent round-trip time; `Time::NEVER` before the first.
    pub(super) min_rtt: Time,
    /// When it was measured, or ProbeRTT ended.
    pub(super) min_rtt_at: Time,
    min_rtt_window: Time,
    /// How long ProbeRTT lasts at least.
    pub(super) probe_rtt: Time,
    /// Pacing rate as a share of the bandwidth.
    margin: f64,
    /// Bytes per second.
    pub(super) pacing_rate: f64,
}

impl Model {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let config = config.bbr.unwrap_or_default();
        Model {
            min_rtt: Time::NEVER,
            min_rtt_at: Time::ZERO,
            min_rtt_window: config.min_rtt_window_s.time(),
            probe_rtt: config.probe_rtt_s.time(),
            margin: 1.0 - config.pacing_margin.get(),
            pacing_rate: 0.0,
        }
    }

    /// The connection is established: the round trip of the handshake is the first sample.
    pub(super) fn begin(&mut self, window: &Window) {
        (self.min_rtt, self.min_rtt_at) = (window.rtt.least, window.now);
    }

    /// Whether the least round-trip time needs to be measured again.
    pub(super) fn is_min_rtt_old(&self, now: Time) -> bool {
        now > self.min_rtt_at + self.min_rtt_window
    }

    /// Sets the initial pacing rate: the initial window per round trip, times a gain.
    pub(super) fn begin_pacing(&mut self, window: &Window, gain: f64) {
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.6.2
        //# nominal_bandwidth = C.InitialCwnd / (C.srtt ? C.srtt : 1ms)
        let smoothed = window.rtt.smoothed.as_secs_f64();
        let rtt_s = if smoothed > 0.0 { smoothed } else { NOMINAL_RTT_S };
        self.pacing_rate = self.margin * gain * window.cwnd / rtt_s;
    }

    /// Sets the pacing rate in bytes per second; until the pipe is full, only increases it.
    pub(super) fn pace(&mut self, rate: f64, is_pipe_full: bool) {
        let rate = self.margin * rate;
        if is_pipe_full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Bytes that are sent in one burst.
    pub(super) fn quantum(&self, window: &Window) -> f64 {
        f64::from(quantum(self.pacing_rate, window.mss))
    }
}

/// Rounds that each of the two slots below covers.
const SLOT_ROUNDS: u32 = 5;

/// The number of bytes acknowledged at once beyond what the bandwidth explains (`bbr_update_ack_aggregation` of Linux): the
/// largest of the last five to ten rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// Start of the epoch, and bytes acknowledged since.
    since: Time,
    acked: f64,
    slots: [f64; 2],
    slot: usize,
    rounds: u32,
}

impl Aggregation {
    /// An aggregation of `bytes` bytes.
    #[cfg(test)]
    pub(super) fn of(bytes: f64) -> Self {
        Aggregation { slots: [bytes, 0.0], ..Aggregation::default() }
    }

    /// The largest recent value, bytes.
    pub(super) fn get(&self) -> f64 {
        self.slots[0].max(self.slots[1])
    }

    /// Begins a new epoch.
    pub(super) fn restart(&mut self, now: Time) {
        (self.since, self.acked) = (now, 0.0);
    }

    pub(super) fn update(&mut self, rounds: &Rounds, sample: &Sample, rate: f64, cwnd: f64) {
        if sample.newly_delivered == 0 || sample.rate.is_none() {
            return;
        }
        if rounds.is_start {
            self.rounds += 1;
            if self.rounds >= SLOT_ROUNDS {
                self.rounds = 0;
                self.slot ^= 1;
                self.slots[self.slot] = 0.0;
            }
        }
        let mut expected = rate * sample.now.since(self.since).as_secs_f64();
        if self.acked <= expected {
            self.restart(sample.now); // slower than expected: there is no aggregation
            expected = 0.0;
        }
        self.acked += sample.newly_delivered as f64;
        let extra = (self.acked - expected).min(cwnd);
        self.slots[self.slot] = self.slots[self.slot].max(extra);
    }
}

//! An ideal path for the tests of congestion controls: every segment is acknowledged one round trip after it was sent.

use super::Control;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::flight::Sample;
use crate::protocol::tcp::window::{RoundTrips, Window};
use crate::time::Time;

pub(super) struct Path {
    pub(super) window: Window,
    pub(super) round_trip: Time,
    /// Segments per acknowledgement.
    pub(super) per_ack: u32,
}

impl Path {
    /// A path for a connection with endless data.
    pub(super) fn new(config: &TcpConfig, round_trip: Time) -> Self {
        let mut window = Window::new(config, 1, u64::MAX / 4, false);
        window.is_cwnd_limited = true;
        window.now = Time::from_secs(1);
        window.nxt = 1 + window.cwnd as u64;
        Path { window, round_trip, per_ack: 1 }
    }

    /// The congestion window in segments.
    pub(super) fn cwnd(&self) -> f64 {
        self.window.cwnd / self.window.mss_f64()
    }

    /// Puts the connection into congestion avoidance with a window of `segments` segments.
    pub(super) fn set_cwnd(&mut self, segments: f64) {
        self.window.cwnd = segments * self.window.mss_f64();
        self.window.ssthresh = self.window.cwnd;
        self.window.nxt = self.window.una + self.window.cwnd as u64;
    }

    /// Delivers the next acknowledgement, as the connection passes it on.
    pub(super) fn acknowledge(&mut self, control: &mut impl Control) {
        let window = &mut self.window;
        let acked = u64::from(window.mss) * u64::from(self.per_ack);
        window.now += Time::from_secs_f64(self.round_trip.as_secs_f64() * acked as f64 / window.cwnd);
        window.una += acked;
        window.rtt = RoundTrips {
            latest: Some(self.round_trip),
            smoothed: self.round_trip,
            least: window.rtt.least.min(self.round_trip),
            count: window.rtt.count + 1,
            limit_of_probes: None,
        };
        control.on_acknowledged(window, acked);
        let sample =
            Sample { now: window.now, rtt: Some(self.round_trip), newly_delivered: acked, ..Sample::default() };
        control.on_sample(window, &sample);
        window.nxt = window.nxt.max(window.una + window.cwnd as u64);
    }

    /// Delivers acknowledgements for all data in flight.
    pub(super) fn round(&mut self, control: &mut impl Control) {
        let end = self.window.nxt;
        while self.window.una < end {
            self.acknowledge(control);
        }
    }

    /// Delivers acknowledgements for the duration `span`.
    pub(super) fn run(&mut self, control: &mut impl Control, span: Time) {
        let end = self.window.now + span;
        while self.window.now < end {
            self.acknowledge(control);
        }
    }

    /// Causes a loss that fast recovery repairs at once.
    pub(super) fn lose(&mut self, control: &mut impl Control) {
        let flight = self.window.cwnd as u64;
        self.window.ssthresh = control.on_loss(&self.window, flight);
        control.begin_recovery(&mut self.window);
        control.end_recovery(&mut self.window);
    }
}

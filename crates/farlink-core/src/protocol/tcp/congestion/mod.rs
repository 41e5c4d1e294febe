//! Congestion control: the growth of the window, and its reduction after a loss. Each control has one file and one line here.
//!
//! A congestion control has no access to sequence numbers. The [`variant`](super::variant) decides which segments are lost and
//! sent again, and asks the congestion control for the size of the window.

mod bbr;
mod cubic;
mod hybla;
mod hystart;
mod names;
mod none;
#[cfg(test)]
mod path;
mod reno;
mod standard;
mod vegas;
mod westwood;

use super::config::TcpConfig;
use super::flight::{Lost, Sample};
use super::window::Window;
use crate::rng::Rng;
use crate::time::Time;

pub use bbr::BbrConfig;
pub use cubic::CubicConfig;
pub use hybla::HyblaConfig;
pub use names::CongestionControl;
pub use vegas::VegasConfig;

/// Sets [`Window::cwnd`] and [`Window::ssthresh`]. The inputs are in the window: the time ([`Window::now`]) and the measured
/// round trips ([`Window::rtt`]).
pub(super) trait Control {
    /// New data was acknowledged and no loss is being repaired, so the window may grow.
    fn on_acknowledged(&mut self, window: &mut Window, acked: u64);

    /// A loss was found while `flight` bytes were in flight. Returns the new slow-start threshold, bytes.
    fn on_loss(&mut self, window: &Window, flight: u64) -> f64;

    /// The retransmission timer expired, for the first time on this segment. Returns the new slow-start threshold, bytes.
    fn on_timeout(&mut self, window: &Window, flight: u64) -> f64 {
        self.on_loss(window, flight)
    }

    /// A packet was marked with congestion (RFC 3168) while `flight` bytes were in flight, for the first time in this window of
    /// data. Returns the new slow-start threshold in bytes, to which the window is limited as well.
    fn on_mark(&mut self, window: &Window, flight: u64) -> f64 {
        //= https://www.rfc-editor.org/rfc/rfc3168#section-5
        //# the congestion control algorithms followed at the end-systems MUST be essentially the same as the congestion
        //# control response to a *single* dropped packet
        self.on_loss(window, flight)
    }

    /// The window after a retransmission timeout, bytes.
    fn loss_window(&self, window: &Window) -> f64 {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# upon a timeout [...] cwnd MUST be set to no more than the loss window, LW, which equals 1 full-sized segment
        window.mss_f64()
    }

    /// Fast recovery begins; the threshold is set.
    fn begin_recovery(&mut self, window: &mut Window) {
        window.cwnd = window.ssthresh;
    }

    /// Fast recovery is over.
    fn end_recovery(&mut self, window: &mut Window) {
        window.cwnd = window.ssthresh.min(window.cwnd_cap);
    }

    /// Whether the congestion control sets the window itself during fast recovery; then nothing else sets it.
    fn rules_recovery(&self) -> bool {
        false
    }

    /// The latest loss or timeout was spurious: restores the congestion control's own state. The caller restores the window and
    /// its threshold.
    fn on_spurious_loss(&mut self, _window: &Window) {}

    /// Nothing is in flight. Called any number of times until something is, the last time when it is sent.
    fn on_idle(&mut self, _now: Time) {}

    /// Whether [`on_sample`](Control::on_sample) is needed; then the connection records every segment in flight from its start.
    /// Once `false`, it stays `false`.
    fn wants_samples(&self) -> bool {
        false
    }

    /// Takes the sample of an acknowledgement, whether or not it acknowledges new data or a recovery is in progress. Called last
    /// for each acknowledgement.
    fn on_sample(&mut self, _window: &mut Window, _sample: &Sample) {}

    /// Gives the congestion control its own stream of random numbers; called once, before anything else.
    fn seed(&mut self, _random: Rng) {}

    /// The connection is established. If there was a handshake, its round trip is known.
    fn on_established(&mut self, _window: &mut Window) {}

    /// A segment is declared lost. Called for each such segment before the sample, or after [`on_timeout`](Control::on_timeout);
    /// only with samples.
    fn on_lost(&mut self, _window: &mut Window, _lost: &Lost) {}

    /// The first segment after an idle period is sent: nothing was in flight and there was nothing to send. Only with samples.
    fn on_restart(&mut self, _window: &mut Window) {}

    /// Whether an idle period reduces the window if the scenario says so (RFC 5681, section 4.1).
    fn restarts_after_idle(&self) -> bool {
        true
    }

    /// The sending rate in bytes per second, if the congestion control sets one.
    fn pacing_rate(&self, _window: &Window) -> Option<f64> {
        None
    }

    /// The estimated bandwidth of the path, bytes per second.
    fn bandwidth(&self) -> Option<f64> {
        None
    }
}

/// Declares the running state of each congestion control.
macro_rules! running_states {
    ($($(#[$doc:meta])* $name:ident = $text:literal => $state:path,)+) => {
        /// The running state of a congestion control.
        // A separate tag, not one hidden in a state, because every acknowledgement reads it.
        #[derive(Clone, Debug)]
        #[repr(u8)]
        pub(super) enum Congestion {
            $($name($state),)+
        }

        impl Congestion {
            pub(super) fn new(config: &TcpConfig) -> Self {
                match config.congestion_control {
                    $(CongestionControl::$name => Congestion::$name(<$state>::new(config)),)+
                }
            }
        }

        impl Control for Congestion {
            #[inline(always)]
            fn on_acknowledged(&mut self, window: &mut Window, acked: u64) {
                match self { $(Congestion::$name(state) => state.on_acknowledged(window, acked),)+ }
            }
            fn on_loss(&mut self, window: &Window, flight: u64) -> f64 {
                match self { $(Congestion::$name(state) => state.on_loss(window, flight),)+ }
            }
            fn on_timeout(&mut self, window: &Window, flight: u64) -> f64 {
                match self { $(Congestion::$name(state) => state.on_timeout(window, flight),)+ }
            }
            fn on_mark(&mut self, window: &Window, flight: u64) -> f64 {
                match self { $(Congestion::$name(state) => state.on_mark(window, flight),)+ }
            }
            fn loss_window(&self, window: &Window) -> f64 {
                match self { $(Congestion::$name(state) => state.loss_window(window),)+ }
            }
            fn begin_recovery(&mut self, window: &mut Window) {
                match self { $(Congestion::$name(state) => state.begin_recovery(window),)+ }
            }
            fn end_recovery(&mut self, window: &mut Window) {
                match self { $(Congestion::$name(state) => state.end_recovery(window),)+ }
            }
            fn rules_recovery(&self) -> bool {
                match self { $(Congestion::$name(state) => state.rules_recovery(),)+ }
            }
            fn on_idle(&mut self, now: Time) {
                match self { $(Congestion::$name(state) => state.on_idle(now),)+ }
            }
            fn wants_samples(&self) -> bool {
                match self { $(Congestion::$name(state) => state.wants_samples(),)+ }
            }
            fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
                match self { $(Congestion::$name(state) => state.on_sample(window, sample),)+ }
            }
            fn seed(&mut self, random: Rng) {
                match self { $(Congestion::$name(state) => state.seed(random),)+ }
            }
            fn on_established(&mut self, window: &mut Window) {
                match self { $(Congestion::$name(state) => state.on_established(window),)+ }
            }
            fn on_lost(&mut self, window: &mut Window, lost: &Lost) {
                match self { $(Congestion::$name(state) => state.on_lost(window, lost),)+ }
            }
            fn on_restart(&mut self, window: &mut Window) {
                match self { $(Congestion::$name(state) => state.on_restart(window),)+ }
            }
            fn restarts_after_idle(&self) -> bool {
                match self { $(Congestion::$name(state) => state.restarts_after_idle(),)+ }
            }
            fn bandwidth(&self) -> Option<f64> {
                match self { $(Congestion::$name(state) => state.bandwidth(),)+ }
            }
            fn pacing_rate(&self, window: &Window) -> Option<f64> {
                match self { $(Congestion::$name(state) => state.pacing_rate(window),)+ }
            }
        }
    };
}

names::congestion_controls!(running_states);

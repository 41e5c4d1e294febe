//! Congestion control: how the window grows, and what is left of it after a loss. One file, one line each.
//!
//! A congestion control knows nothing of sequence numbers: which segments were lost and are sent again is the business of
//! the [`variant`](super::variant), which asks it how large the window is to be.

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

/// Sets [`Window::cwnd`] and [`Window::ssthresh`]. What it may want to know stands in the window: the time
/// ([`Window::now`]), the round trips measured ([`Window::rtt`]).
pub(super) trait Control {
    /// New data was acknowledged and no loss is being repaired: the window may grow.
    fn on_acknowledged(&mut self, window: &mut Window, acked: u64);

    /// A loss was found while `flight` bytes were under way: the new slow-start threshold, bytes.
    fn on_loss(&mut self, window: &Window, flight: u64) -> f64;

    /// The retransmission timer expired, for the first time on this segment: the new slow-start threshold, bytes.
    fn on_timeout(&mut self, window: &Window, flight: u64) -> f64 {
        self.on_loss(window, flight)
    }

    /// A packet was marked with congestion (RFC 3168) while `flight` bytes were under way, for the first time in this window
    /// of data: the new slow-start threshold, bytes, which the window does not exceed either.
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

    /// Whether it sets the window itself during fast recovery: then nothing else does.
    fn rules_recovery(&self) -> bool {
        false
    }

    /// The latest loss or timeout was none: what the congestion control itself remembers is as it was before. The window
    /// and its threshold are the caller's to put back.
    fn on_spurious_loss(&mut self, _window: &Window) {}

    /// Nothing is under way; said any number of times until something is, the last time when it is sent.
    fn on_idle(&mut self, _now: Time) {}

    /// Whether [`on_sample`](Control::on_sample) is of use: then the connection keeps a record of every segment under way,
    /// from its beginning. Once it is of no use, it stays so.
    fn wants_samples(&self) -> bool {
        false
    }

    /// What an acknowledgement says about the path, new data or not, in recovery or not; the last thing that is done with
    /// it.
    fn on_sample(&mut self, _window: &mut Window, _sample: &Sample) {}

    /// A stream of random numbers of its own; given once, before anything else.
    fn seed(&mut self, _random: Rng) {}

    /// The connection stands; the handshake's round trip, if there was one, is known.
    fn on_established(&mut self, _window: &mut Window) {}

    /// A segment is thought lost. Told one by one before the sample, or after [`on_timeout`](Control::on_timeout); only
    /// with samples.
    fn on_lost(&mut self, _window: &mut Window, _lost: &Lost) {}

    /// The first segment after a silence goes out: nothing was in flight and there was nothing to send. Only with samples.
    fn on_restart(&mut self, _window: &mut Window) {}

    /// Whether a pause makes the window small again if the scenario says so (RFC 5681, section 4.1).
    fn restarts_after_idle(&self) -> bool {
        true
    }

    /// The rate at which to send, bytes per second, if it has an opinion.
    fn pacing_rate(&self, _window: &Window) -> Option<f64> {
        None
    }

    /// The bandwidth of the path as far as it knows, bytes per second.
    fn bandwidth(&self) -> Option<f64> {
        None
    }
}

/// Declares the running state of each congestion control.
macro_rules! running_states {
    ($($(#[$doc:meta])* $name:ident = $text:literal => $state:path,)+) => {
        /// The running state of a congestion control.
        // A tag of its own, not one hidden in a state: every acknowledgement reads it.
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

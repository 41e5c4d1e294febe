//! TCP variants: how each detects and repairs losses. Each variant has one file and one line here.

mod names;
mod newreno;
mod none;
mod rack;
mod reno;
mod sack;
mod scoreboard;
mod snack;
mod tahoe;

pub use names::Variant;

use super::config::TcpConfig;
use super::congestion::Congestion;
use super::span::Span;
use super::window::{Acked, Window};

/// The reaction of a TCP variant to acknowledgements and losses. The window's pointers are updated before it is called.
pub(super) trait Reaction: Sized {
    fn new(config: &TcpConfig) -> Self;

    /// Whether it needs segments in the order in which they were sent. Then the connection keeps a record of each segment, and
    /// calls it after every acknowledgement and when its alarm expires.
    fn wants_order(&self) -> bool {
        false
    }

    /// Whether it still knows after a timeout which data was reported before.
    fn keeps_scoreboard(&self) -> bool {
        false
    }

    /// Handles an acknowledgement of `acked` new bytes.
    fn on_acknowledged(&mut self, window: &mut Window, control: &mut Congestion, acked: u64);

    /// Whether an acknowledgement of new data outside recovery ends a series of duplicates, and otherwise only concerns the congestion
    /// control.
    #[cfg(feature = "trains")]
    fn only_grows(&self) -> bool {
        false
    }

    /// Handles a duplicate acknowledgement; `has_new_sack` says whether it reported something new.
    fn on_duplicate(&mut self, window: &mut Window, control: &mut Congestion, has_new_sack: bool);

    /// Takes a block of the SACK option, as offsets; returns `true` if it reported something new.
    fn on_sack_block(&mut self, _window: &mut Window, _left: u64, _right: u64) -> bool {
        false
    }

    /// The receiver has reported a duplicate that ends at `right` (RFC 2883).
    fn on_duplicate_report(&mut self, _right: u64) {}

    /// Called last for every acknowledgement, whether or not it acknowledged new data.
    fn on_processed(&mut self, _window: &mut Window, _control: &mut Congestion, _acked: Acked) {}

    /// Its alarm expired, or the retransmission timer that a probe replaces. Returns `true` if the timer is to be restarted.
    fn on_alarm(&mut self, _window: &mut Window, _control: &mut Congestion) -> bool {
        false
    }

    /// The retransmission timeout was spurious: what it found lost may still arrive. With `looks_again`, losses are looked for
    /// at once by what has been delivered.
    fn on_spurious(&mut self, _window: &mut Window, _control: &mut Congestion, _looks_again: bool) {}

    /// The retransmission timeout was not spurious: the lost data is sent again.
    fn on_loss_confirmed(&mut self, window: &mut Window) {
        window.nxt = window.una;
    }

    /// The retransmission timer expired; the window has been reset.
    fn on_timeout(&mut self, _window: &mut Window, _control: &mut Congestion) {}

    /// The next segment to send.
    #[inline]
    fn next_segment(&mut self, window: &mut Window) -> Option<Span> {
        window.next_in_window()
    }

    /// Unreported offsets below this one are lost.
    fn lost_below(&self, _window: &Window) -> u64 {
        0
    }

    /// A segment is sent.
    #[inline]
    fn on_sent(&mut self, window: &mut Window, span: Span) {
        window.on_sent(span);
    }
}

/// Declares the running state of each variant.
macro_rules! running_states {
    ($($(#[$doc:meta])* $variant:ident = $name:literal => $state:path { sack: $uses_sack:literal },)+) => {
        /// The running state of a variant.
        #[derive(Clone, Debug)]
        pub(super) enum Running {
            $($variant($state),)+
        }

        impl Reaction for Running {
            fn new(config: &TcpConfig) -> Self {
                match config.variant { $(Variant::$variant => Running::$variant(<$state>::new(config)),)+ }
            }
            fn wants_order(&self) -> bool {
                match self { $(Running::$variant(state) => state.wants_order(),)+ }
            }
            fn keeps_scoreboard(&self) -> bool {
                match self { $(Running::$variant(state) => state.keeps_scoreboard(),)+ }
            }
            fn on_duplicate_report(&mut self, right: u64) {
                match self { $(Running::$variant(state) => state.on_duplicate_report(right),)+ }
            }
            fn on_processed(&mut self, window: &mut Window, control: &mut Congestion, acked: Acked) {
                match self { $(Running::$variant(state) => state.on_processed(window, control, acked),)+ }
            }
            fn on_alarm(&mut self, window: &mut Window, control: &mut Congestion) -> bool {
                match self { $(Running::$variant(state) => state.on_alarm(window, control),)+ }
            }
            fn on_spurious(&mut self, window: &mut Window, control: &mut Congestion, looks_again: bool) {
                match self { $(Running::$variant(state) => state.on_spurious(window, control, looks_again),)+ }
            }
            fn on_loss_confirmed(&mut self, window: &mut Window) {
                match self { $(Running::$variant(state) => state.on_loss_confirmed(window),)+ }
            }
            #[cfg(feature = "trains")]
            #[inline]
            fn only_grows(&self) -> bool {
                match self { $(Running::$variant(state) => state.only_grows(),)+ }
            }
            #[inline(always)]
            fn on_acknowledged(&mut self, window: &mut Window, control: &mut Congestion, acked: u64) {
                match self { $(Running::$variant(state) => state.on_acknowledged(window, control, acked),)+ }
            }
            #[inline]
            fn on_duplicate(&mut self, window: &mut Window, control: &mut Congestion, has_new_sack: bool) {
                match self { $(Running::$variant(state) => state.on_duplicate(window, control, has_new_sack),)+ }
            }
            #[inline]
            fn on_sack_block(&mut self, window: &mut Window, left: u64, right: u64) -> bool {
                match self { $(Running::$variant(state) => state.on_sack_block(window, left, right),)+ }
            }
            fn on_timeout(&mut self, window: &mut Window, control: &mut Congestion) {
                match self { $(Running::$variant(state) => state.on_timeout(window, control),)+ }
            }
            #[inline(always)]
            fn next_segment(&mut self, window: &mut Window) -> Option<Span> {
                match self { $(Running::$variant(state) => state.next_segment(window),)+ }
            }
            fn lost_below(&self, window: &Window) -> u64 {
                match self { $(Running::$variant(state) => state.lost_below(window),)+ }
            }
            #[inline(always)]
            fn on_sent(&mut self, window: &mut Window, span: Span) {
                match self { $(Running::$variant(state) => state.on_sent(window, span),)+ }
            }
        }
    };
}

names::variants!(running_states);

//! Tahoe: fast retransmit, then slow start from one segment (Jacobson 1988; Fall and Floyd 1996, section 2).

use super::Reaction;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::congestion::{Congestion, Control};
use crate::protocol::tcp::window::Window;

/// Handles every loss like a timeout, only earlier.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol::tcp) struct Tahoe;

impl Reaction for Tahoe {
    fn new(_config: &TcpConfig) -> Self {
        Tahoe
    }

    #[cfg(feature = "trains")]
    fn only_grows(&self) -> bool {
        true
    }

    #[inline]
    fn on_acknowledged(&mut self, window: &mut Window, control: &mut Congestion, acked: u64) {
        window.dup_acks = 0;
        control.on_acknowledged(window, acked);
    }

    fn on_duplicate(&mut self, window: &mut Window, control: &mut Congestion, _has_new_sack: bool) {
        if window.is_loss_found() {
            window.begin_reaction(control);
            if !window.is_corruption {
                window.cwnd = control.loss_window(window);
            }
            window.nxt = window.una;
        }
    }
}

//! No congestion control: only the receiver's window limits the sender (RFC 793).

use super::Control;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::window::Window;

/// The window is always the largest.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct None;

impl None {
    pub(super) fn new(_config: &TcpConfig) -> Self {
        None
    }
}

impl Control for None {
    #[inline]
    fn on_acknowledged(&mut self, window: &mut Window, _acked: u64) {
        window.cwnd = window.cwnd_cap;
    }

    fn on_loss(&mut self, window: &Window, _flight: u64) -> f64 {
        window.cwnd_cap
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn loss_window(&self, window: &Window) -> f64 {
        window.cwnd_cap
    }
}

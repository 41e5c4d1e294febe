//! No fast retransmit: only the retransmission timer finds losses, and then all data is sent again (RFC 793).

use super::Reaction;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::congestion::{Congestion, Control};
use crate::protocol::tcp::window::Window;

/// Go-back-N on timeout. Together with the [congestion control](crate::protocol::tcp::congestion) of the same name, this is TCP
/// as it was before 1988.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol::tcp) struct None;

impl Reaction for None {
    fn new(_config: &TcpConfig) -> Self {
        None
    }

    #[cfg(feature = "trains")]
    fn only_grows(&self) -> bool {
        true
    }

    #[inline]
    fn on_acknowledged(&mut self, window: &mut Window, control: &mut Congestion, acked: u64) {
        control.on_acknowledged(window, acked);
    }

    /// Duplicates have no effect.
    fn on_duplicate(&mut self, _window: &mut Window, _control: &mut Congestion, _has_new_sack: bool) {}
}

//! Tahoe: fast retransmit, then slow start from one segment (Jacobson 1988; Fall and Floyd 1996, section 2).

use super::Reaction;
use crate::protocol::tcp::window::Window;

/// Every loss looks like a timeout, only sooner.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol::tcp) struct Tahoe;

impl Reaction for Tahoe {
    #[inline]
    fn on_acknowledged(&mut self, window: &mut Window, acked: u64) {
        window.dup_acks = 0;
        window.grow(acked);
    }

    fn on_duplicate(&mut self, window: &mut Window, _has_new_sack: bool) {
        if window.is_loss_found() {
            window.begin_reaction();
            window.cwnd = window.mss_f64();
            window.nxt = window.una;
        }
    }
}

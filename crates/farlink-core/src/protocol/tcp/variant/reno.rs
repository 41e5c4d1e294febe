//! Reno: fast recovery that ends with the first acknowledgement of new data (RFC 5681, section 3.2).

use super::Reaction;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::congestion::{Congestion, Control};
use crate::protocol::tcp::window::{Phase, Window};

/// Repairs one loss per window well; several losses usually end in a timeout.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol::tcp) struct Reno;

impl Reaction for Reno {
    fn new(_config: &TcpConfig) -> Self {
        Reno
    }

    #[cfg(feature = "trains")]
    fn only_grows(&self) -> bool {
        true
    }

    #[inline]
    fn on_acknowledged(&mut self, window: &mut Window, control: &mut Congestion, acked: u64) {
        window.dup_acks = 0;
        if window.phase == Phase::Recovery {
            //= https://www.rfc-editor.org/rfc/rfc5681#section-3.2
            //# When the next ACK arrives that acknowledges previously unacknowledged data, a TCP MUST set cwnd to
            //# ssthresh
            control.end_recovery(window);
            window.phase = Phase::Open;
        } else {
            control.on_acknowledged(window, acked);
        }
    }

    fn on_duplicate(&mut self, window: &mut Window, control: &mut Congestion, _has_new_sack: bool) {
        if window.phase == Phase::Recovery {
            inflate(window);
        } else if window.is_loss_found() {
            enter_fast_recovery(window, control);
        }
    }
}

/// Enters fast recovery by a fast retransmit (also for NewReno).
pub(super) fn enter_fast_recovery(window: &mut Window, control: &mut Congestion) {
    window.begin_reaction(control);
    window.phase = Phase::Recovery;
    //= https://www.rfc-editor.org/rfc/rfc5681#section-3.2
    //# The lost segment starting at SND.UNA MUST be retransmitted and cwnd set to ssthresh plus 3*SMSS.
    control.begin_recovery(window);
    window.cwnd += f64::from(window.dup_ack_threshold) * window.mss_f64();
    window.retransmit_first = true;
}

/// Inflates the window because a segment has left the network (also for NewReno).
pub(super) fn inflate(window: &mut Window) {
    //= https://www.rfc-editor.org/rfc/rfc5681#section-3.2
    //# For each additional duplicate ACK received (after the third), cwnd MUST be incremented by SMSS.
    window.cwnd += window.mss_f64();
}

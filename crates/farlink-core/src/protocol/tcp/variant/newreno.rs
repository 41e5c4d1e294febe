//! NewReno: fast recovery that continues through partial acknowledgements (RFC 6582).

use super::Reaction;
use super::reno::{enter_fast_recovery, inflate};
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::congestion::{Congestion, Control};
use crate::protocol::tcp::window::{Phase, Window};

/// Repairs one loss per round trip.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol::tcp) struct NewReno {
    /// Whether a partial acknowledgement has arrived in this recovery.
    had_partial: bool,
}

impl Reaction for NewReno {
    fn new(_config: &TcpConfig) -> Self {
        NewReno::default()
    }

    #[cfg(feature = "trains")]
    fn only_grows(&self) -> bool {
        true
    }

    #[inline]
    fn on_acknowledged(&mut self, window: &mut Window, control: &mut Congestion, acked: u64) {
        window.dup_acks = 0;
        if window.phase != Phase::Recovery {
            control.on_acknowledged(window, acked);
        } else if window.una >= window.recover {
            //= https://www.rfc-editor.org/rfc/rfc6582#section-3.2
            //# If this ACK acknowledges all of the data up to and including recover [...] Set cwnd to [...] ssthresh
            control.end_recovery(window);
            window.phase = Phase::Open;
        } else {
            //= https://www.rfc-editor.org/rfc/rfc6582#section-3.2
            //# For the first partial ACK that arrives during fast recovery, also reset the retransmit timer.
            window.keeps_timer = self.had_partial;
            self.had_partial = true;
            on_partial_acknowledgement(window, acked);
        }
    }

    fn on_duplicate(&mut self, window: &mut Window, control: &mut Congestion, _has_new_sack: bool) {
        if window.phase == Phase::Recovery {
            inflate(window);
        } else if window.is_loss_found() {
            self.had_partial = false;
            enter_fast_recovery(window, control);
        }
    }
}

fn on_partial_acknowledgement(window: &mut Window, acked: u64) {
    //= https://www.rfc-editor.org/rfc/rfc6582#section-3.2
    //# retransmit the first unacknowledged segment. Deflate the congestion window by the amount of new data
    //# acknowledged by the Cumulative Acknowledgment field. If the partial ACK acknowledges at least one SMSS of new
    //# data, then add back SMSS bytes to the congestion window.
    window.retransmit_first = true;
    let mss = window.mss_f64();
    let add_back = if acked >= u64::from(window.mss) { mss } else { 0.0 };
    window.cwnd = (window.cwnd - acked as f64 + add_back).max(mss);
}

//! Proportional rate reduction (RFC 9937, which obsoletes RFC 6937): during fast recovery it keeps sending, at a rate that falls
//! to the new window within a round trip, instead of waiting until half a window has left the network.

use super::congestion::{Congestion, Control};
use super::window::Window;

/// The bytes that may be sent for delivered bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    pub(super) is_on: bool,
    /// Whether it sets the window in this recovery.
    rules: bool,
    /// Bytes in flight when the recovery began (RecoverFS).
    recover_fs: u64,
    /// Bytes delivered and sent in this recovery (prr_delivered, prr_out).
    delivered: u64,
    out: u64,
    /// Acknowledged offset plus bytes reported above it, as of the latest acknowledgement.
    known: u64,
}

impl Prr {
    pub(super) fn new(is_on: bool) -> Self {
        Prr { is_on, ..Prr::default() }
    }

    /// Notes an acknowledgement outside recovery; `known` is the acknowledged offset plus the bytes reported above it.
    #[inline]
    pub(super) fn note(&mut self, known: u64) {
        self.known = known;
    }

    /// The value noted with the latest acknowledgement.
    pub(super) fn known(&self) -> u64 {
        self.known
    }

    /// Recovery begins. The threshold is set, and the latest acknowledgement will be passed to
    /// [`on_acknowledged`](Self::on_acknowledged). PRR does nothing if the congestion control sets the window itself.
    pub(super) fn begin(&mut self, window: &Window, control: &Congestion) {
        self.rules = self.is_on && !control.rules_recovery();
        //= https://www.rfc-editor.org/rfc/rfc9937#section-6
        //# RecoverFS = SND.NXT - SND.UNA
        //# RecoverFS -= (bytes SACKed in scoreboard) - (bytes newly SACKed)
        //# RecoverFS += (bytes newly cumulatively acknowledged)
        self.recover_fs = window.nxt.saturating_sub(self.known).max(1);
        (self.delivered, self.out) = (0, 0);
    }

    /// Handles an acknowledgement during recovery, or a timer that found a loss. `known` is as for [`note`](Self::note),
    /// `in_flight` the bytes that may still be in the network. The acknowledgement is safe if it advances the cumulative
    /// acknowledgement and no further loss was found.
    pub(super) fn on_acknowledged(&mut self, window: &mut Window, known: u64, in_flight: u64, is_safe: bool) {
        let delivered = known.saturating_sub(self.known);
        self.known = known;
        if !self.rules {
            return;
        }
        self.delivered += delivered;
        let (ssthresh, mss) = (window.ssthresh as u64, u64::from(window.mss));
        let mut allowed = if in_flight > ssthresh {
            //= https://www.rfc-editor.org/rfc/rfc9937#section-6
            //# SndCnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            (share.div_ceil(u128::from(self.recover_fs)) as u64).saturating_sub(self.out)
        } else {
            //= https://www.rfc-editor.org/rfc/rfc9937#section-6
            //# PRR-CRB by default: SndCnt = MAX(prr_delivered - prr_out, DeliveredData)
            //# if (safeACK) PRR-SSRB when recovery is in good progress: SndCnt += SMSS
            //# Attempt to catch up, as permitted: SndCnt = MIN(ssthresh - inflight, SndCnt)
            let bound = self.delivered.saturating_sub(self.out).max(delivered) + if is_safe { mss } else { 0 };
            bound.min(ssthresh - in_flight)
        };
        //= https://www.rfc-editor.org/rfc/rfc9937#section-6
        //# If (prr_out is 0 AND SndCnt is 0): Force a fast retransmit upon entering recovery: SndCnt = MSS
        if self.out == 0 && allowed == 0 {
            allowed = mss;
        }
        window.cwnd = (in_flight + allowed) as f64;
    }

    /// `bytes` bytes were sent during recovery, new or again.
    #[inline]
    pub(super) fn on_sent(&mut self, bytes: u32) {
        self.out += u64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tcp::TcpConfig;
    use crate::units::Count;

    const MSS: u64 = 1000;

    fn window(config: &TcpConfig) -> Window {
        let mut window = Window::new(config, 1, 1 << 30, false);
        window.nxt = 1 + 20 * MSS;
        window.ssthresh = (10 * MSS) as f64;
        window
    }

    fn config(congestion_control: super::super::CongestionControl) -> TcpConfig {
        TcpConfig { congestion_control, segment_bytes: Count::new(MSS as f64).unwrap(), ..TcpConfig::default() }
    }

    /// 20 segments in flight, the first lost, the threshold half: every second acknowledgement releases a segment, and at the end
    /// the data in flight equals the threshold.
    #[test]
    fn sends_one_segment_for_every_two_delivered_when_the_window_is_halved() {
        let config = config(super::super::CongestionControl::Reno);
        let (mut window, control) = (window(&config), Congestion::new(&config));
        let mut prr = Prr::new(true);
        prr.note(1);
        prr.begin(&window, &control);
        let (mut in_flight, mut released) = (19 * MSS, Vec::new());
        for sacked in 1..=19 {
            in_flight -= MSS;
            prr.on_acknowledged(&mut window, 1 + sacked * MSS, in_flight, false);
            let mut count = 0;
            while in_flight + MSS <= window.cwnd as u64 {
                prr.on_sent(MSS as u32);
                in_flight += MSS;
                count += 1;
            }
            released.push(count);
        }
        assert!(released.iter().all(|&count| count <= 1), "{released:?}");
        assert_eq!((released.iter().sum::<u32>(), in_flight), (10, 10 * MSS), "{released:?}");
    }

    /// Most of a window was lost, so that less than the threshold is in flight. Unsafe acknowledgements conserve packets (CRB),
    /// safe ones add a segment each (SSRB), never above the threshold.
    #[test]
    fn below_the_threshold_only_safe_acknowledgements_send_more_than_was_delivered() {
        let config = config(super::super::CongestionControl::Reno);
        for (is_safe, expected) in [(false, 3), (true, 4)] {
            let (mut window, control) = (window(&config), Congestion::new(&config));
            let mut prr = Prr::new(true);
            prr.note(1);
            prr.begin(&window, &control);
            prr.on_acknowledged(&mut window, 1 + MSS, 2 * MSS, is_safe);
            assert_eq!(window.cwnd as u64, expected * MSS);
            prr.on_acknowledged(&mut window, 1 + 19 * MSS, 9 * MSS, is_safe);
            assert_eq!(window.cwnd as u64, 10 * MSS);
        }
    }

    #[test]
    fn is_inactive_where_the_congestion_control_sets_the_window() {
        let config = config(super::super::CongestionControl::None);
        let (mut window, control) = (window(&config), Congestion::new(&config));
        let mut prr = Prr::new(true);
        prr.begin(&window, &control);
        let before = window.cwnd;
        prr.on_acknowledged(&mut window, 1 + MSS, 2 * MSS, true);
        assert!((window.cwnd - before).abs() < 1e-9);
    }
}

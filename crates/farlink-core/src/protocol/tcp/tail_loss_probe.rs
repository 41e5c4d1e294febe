//! Tail loss probes (RFC 8985, section 7): if nothing is received for two round trips, one segment is sent that causes an
//! acknowledgement, so that a loss at the end of a flight is found without a retransmission timeout.

use crate::time::Time;

use super::config::TcpConfig;
use super::span::Span;
use super::window::{Acked, Phase, Window};

/// The probe in flight, if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailLossProbe {
    is_on: bool,
    /// Longest delay of an acknowledgement by the receiver (TLP.max_ack_delay).
    max_ack_delay: Time,
    /// Whether a probe is to be sent as soon as possible.
    pub(super) is_due: bool,
    /// SND.NXT when the probe was sent (TLP.end_seq); `None` while no probe is in flight.
    end: Option<u64>,
    /// Whether it repeats a segment (TLP.is_retrans).
    is_retransmission: bool,
    /// Whether the receiver has reported that the repeated segment had arrived before.
    was_in_vain: bool,
    /// Number of round-trip times measured before the latest probe.
    samples_before: u64,
}

impl TailLossProbe {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let max_ack_delay = if config.delayed_ack { config.delayed_ack_timeout_s.longest() } else { Time::ZERO };
        TailLossProbe { is_on: config.probes_tails(), max_ack_delay, ..TailLossProbe::default() }
    }

    /// When to send a probe if nothing happens until then; `Time::NEVER` if none is to be sent.
    pub(super) fn deadline(&self, window: &Window) -> Time {
        //= https://www.rfc-editor.org/rfc/rfc8985#section-7.2
        //# 1. The connection is using SACK. 2. The connection has no SACKed sequences in the SACK scoreboard.
        //# 3. The connection is not in loss recovery.
        //= https://www.rfc-editor.org/rfc/rfc8985#section-7.3
        //# Second, the sender has obtained an RTT measurement since the last loss probe transmission or, if the sender has
        //# not yet sent a loss probe on this connection, since the start of the connection.
        let may_probe = self.is_on
            && window.rtt.count > self.samples_before
            && self.end.is_none()
            && !self.is_due
            && window.una > 0
            && window.una < window.max
            && window.phase == Phase::Open
            && !window.is_probing
            && window.records.sacked().0 == 0;
        if !may_probe {
            return Time::NEVER;
        }
        //= https://www.rfc-editor.org/rfc/rfc8985#section-7.2
        //# PTO = 2 * SRTT
        //# If FlightSize is one segment: PTO += TLP.max_ack_delay
        let mut timeout = window.rtt.smoothed.times(2);
        if window.max - window.una <= u64::from(window.mss) {
            timeout += self.max_ack_delay;
        }
        window.now + timeout
    }

    /// The probe to send: new data if there is any and the receiver's window has room, otherwise the last segment again.
    pub(super) fn segment(&mut self, window: &mut Window) -> Option<Span> {
        self.is_due = false;
        //= https://www.rfc-editor.org/rfc/rfc8985#section-7.3
        //# If an unsent segment exists and the receive window allows new data to be sent: Transmit the
        //# lowest-sequence unsent segment of up to SMSS [...] TLP.is_retrans = FALSE
        //# Else: TLP.is_retrans = TRUE. Retransmit the highest-sequence segment sent so far
        //# TLP.end_seq = SND.NXT
        let len = window.segment_len(window.nxt);
        let after = window.nxt + u64::from(len);
        self.is_retransmission = len == 0 || after > window.peer_end;
        let span =
            if self.is_retransmission { window.records.last(window.una)? } else { Span { start: window.nxt, len } };
        self.end = Some(window.nxt.max(span.start + u64::from(span.len)));
        self.was_in_vain = false;
        self.samples_before = window.rtt.count;
        window.expects_echo = self.is_retransmission;
        Some(span)
    }

    /// Handles a report of a duplicate that ends at `right`; returns `true` if it is the probe.
    pub(super) fn on_duplicate_report(&mut self, right: u64) -> bool {
        let is_it = self.end == Some(right);
        self.was_in_vain |= is_it;
        is_it
    }

    /// Handles an acknowledgement; returns `true` if it shows that the probe has repaired a loss.
    pub(super) fn on_acknowledged(&mut self, window: &mut Window, acked: Acked) -> bool {
        let Some(end) = self.end.filter(|&end| window.una >= end) else { return false };
        //= https://www.rfc-editor.org/rfc/rfc8985#section-7.4.2
        //# If not TLP.is_retrans: TLP.end_seq = None
        //# Else if ACK has a DSACK option matching TLP.end_seq: TLP.end_seq = None
        //# Else if SEG.ACK > TLP.end_seq: TLP.end_seq = None [...] Invoke the congestion control response equivalent to a
        //# fast recovery
        //# Else if ACK is a DUPACK without any SACK option: TLP.end_seq = None
        let is_repeated = acked.is_pure && !acked.is_new && window.records.sacked().0 == 0;
        let has_repaired = self.is_retransmission && !self.was_in_vain && window.una > end;
        if !self.is_retransmission || self.was_in_vain || window.una > end || is_repeated {
            self.end = None;
            window.expects_echo = false;
        }
        has_repaired
    }

    /// Cancels the probe, because fast recovery or a timeout repairs the loss.
    pub(super) fn cancel(&mut self, window: &mut Window) {
        (self.end, self.is_due) = (None, false);
        window.expects_echo = false;
    }
}

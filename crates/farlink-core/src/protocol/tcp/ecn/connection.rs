//! How a connection sends and handles ECN flags and codepoints.

use crate::endpoint::Ecn;
use crate::payload::Payload;
use crate::protocol::tcp::connection::TcpConnection;
use crate::protocol::tcp::segment::{Flags, Segment};
use crate::time::Time;

use super::Stamp;

impl<D: Payload> TcpConnection<D> {
    /// The flags and the codepoint of a segment without data.
    #[inline(always)]
    pub(in crate::protocol::tcp) fn stamp(&self) -> Stamp {
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.4
        //# For the current generation of TCP congestion control algorithms, pure acknowledgement packets (e.g., packets
        //# that do not contain any accompanying data) MUST be sent with the not-ECT codepoint.
        let flags = if self.notification.is_echoing { Flags::ECE } else { Flags::default() };
        Stamp { flags, ecn: Ecn::NotCapable }
    }

    /// The flags and the codepoint of a segment with data that starts at offset `start`; to be called before the segment is
    /// recorded as sent.
    #[inline(always)]
    pub(in crate::protocol::tcp) fn data_stamp(&mut self, start: u64) -> Stamp {
        if self.notification.is_agreed { self.agreed_stamp(start) } else { Stamp::default() }
    }

    #[inline]
    fn agreed_stamp(&mut self, start: u64) -> Stamp {
        let mut stamp = self.stamp();
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.5
        //# This document specifies ECN-capable TCP implementations MUST NOT set either ECT codepoint (ECT(0) or ECT(1)) in
        //# the IP header for retransmitted data packets
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.6
        //# the TCP data sender MUST NOT set either an ECT codepoint or the CWR bit on window probe packets.
        if start < self.window.max || self.window.is_probing {
            return stamp;
        }
        stamp.ecn = Ecn::Capable0;
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.2
        //# When an ECN-Capable TCP sender reduces its congestion window for any reason (because of a retransmit timeout, a
        //# Fast Retransmit, or in response to an ECN Notification), the TCP sender sets the CWR flag in the TCP header of
        //# the first new data packet sent after the window reduction.
        if std::mem::take(&mut self.window.has_reduced) {
            stamp.flags = stamp.flags.with(Flags::CWR);
        }
        stamp
    }

    /// Handles a segment that arrives on a connection with ECN: notes marks and the peer's CWR flag.
    pub(in crate::protocol::tcp) fn note_congestion(&mut self, segment: &Segment<D>, ecn: Ecn) {
        if segment.payload.is_empty() {
            return;
        }
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.3
        //# After the receipt of the CWR packet, acknowledgments for subsequent non-CE data packets do not have the
        //# ECN-Echo flag set. If another CE packet is received by the data receiver, the receiver would once again send
        //# ACK packets with the ECN-Echo flag set.
        if segment.flags.has(Flags::CWR) {
            self.notification.is_echoing = false;
        }
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.5
        //# the TCP data receiver SHOULD ignore the ECN field on arriving data packets that are outside of the receiver's
        //# current window.
        let next = self.rx.stream.next;
        let start = Self::unwrap(segment.seq, self.peer_initial_seq, next);
        let is_old = (start as i64) < 0 || start + segment.payload.len() as u64 <= next;
        let is_in_window = !is_old && start < next + self.rx.window();
        self.notification.is_echoing |= ecn == Ecn::Congestion && is_in_window;
    }

    /// Handles an acknowledgement of all data below offset `ack` with the ECN-Echo flag.
    #[cold]
    pub(in crate::protocol::tcp) fn on_echo(&mut self, now: Time, ack: u64) {
        if self.window.una == 0 {
            return; // in a SYN-ACK the flag negotiates ECN and is no echo
        }
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.2
        //# The sending TCP MUST NOT increase the congestion window in response to the receipt of an ECN-Echo ACK packet.
        self.window.is_cwnd_limited = false;
        if !self.window.reacts_to_mark(ack) {
            return;
        }
        let window = &mut self.window;
        if window.cwnd <= window.mss_f64() {
            //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.2
            //# the sending TCP MUST reset the retransmit timer on receiving the ECN-Echo packet when the congestion window
            //# is one. The sending TCP will then be able to send a new packet only when the retransmit timer expires.
            self.pacer.hold_until(now + self.timer.rto());
        }
        window.on_mark(&mut self.control);
    }
}

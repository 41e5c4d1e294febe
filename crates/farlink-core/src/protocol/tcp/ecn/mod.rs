//! Explicit congestion notification (RFC 3168, section 6.1): negotiation, echoes of marks, and the reaction to them.

mod connection;

use crate::endpoint::Ecn;

use super::segment::Flags;

/// The state of one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notification {
    is_wanted: bool,
    /// Whether both sides want it.
    is_agreed: bool,
    /// Whether a mark has arrived that the sender has not answered yet; until then every acknowledgement echoes it.
    is_echoing: bool,
}

/// The ECN content of a segment: control bits, and the codepoint of its packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) flags: Flags,
    pub(super) ecn: Ecn,
}

impl Notification {
    /// Without a handshake both sides have agreed from the start.
    pub(super) fn new(is_wanted: bool, has_handshake: bool) -> Self {
        Notification { is_wanted, is_agreed: is_wanted && !has_handshake, is_echoing: false }
    }

    #[inline(always)]
    pub(super) fn is_agreed(&self) -> bool {
        self.is_agreed
    }

    /// The ECN flags of this side's SYN, or of its SYN-ACK.
    pub(super) fn syn_flags(&self, is_first: bool) -> Flags {
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.1
        //# Before a TCP connection can use ECN, Host A sends an ECN-setup SYN
        //# packet, and Host B sends an ECN-setup SYN-ACK packet.
        match (is_first, self.is_wanted, self.is_agreed) {
            (true, true, _) => Flags::ECE.with(Flags::CWR),
            (false, _, true) => Flags::ECE,
            _ => Flags::default(),
        }
    }

    /// Handles the flags of the peer's SYN.
    pub(super) fn on_syn(&mut self, flags: Flags) {
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.1
        //# we call a SYN packet with the ECE and CWR flags set an "ECN-setup SYN packet", and we call a SYN packet with at
        //# least one of the ECE and CWR flags not set a "non-ECN-setup SYN packet"
        self.is_agreed = self.is_wanted && flags.has(Flags::ECE.with(Flags::CWR));
    }

    /// Handles the flags of the peer's SYN-ACK.
    pub(super) fn on_syn_ack(&mut self, flags: Flags) {
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.1
        //# we call a SYN-ACK packet with only the ECE flag set but the CWR flag not set an "ECN-setup SYN-ACK packet"
        self.is_agreed = self.is_wanted && flags.has(Flags::ECE) && !flags.has(Flags::CWR);
    }
}

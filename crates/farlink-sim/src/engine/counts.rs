//! Counts of a flow's packets.

use farlink_core::Time;

/// Traffic counted at the path's ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) sent_packets: u64,
    pub(super) sent_bytes: u64,
    pub(super) sent_payload_bytes: u64,
    pub(super) retransmitted_bytes: u64,
    pub(super) lost_packets: u64,
    /// Packets among them that full queues and policers dropped.
    pub(super) dropped_packets: u64,
    pub(super) mended_packets: u64,
    pub(super) marked_packets: u64,
    pub(super) skipped_bytes: u64,
    pub(super) discarded_bytes: u64,
    pub(super) return_bytes: u64,
    /// Wire bytes that the measured hop of the way back has sent.
    pub(super) carried_back_bytes: u64,
    pub(super) delivered_bytes: u64,
    pub(super) delivered_packets: u64,
    /// When the measurement began. Losses and marks of packets that were sent before do not count.
    pub(super) since: Time,
}

impl Counts {
    /// A packet that was sent at `sent` was lost or dropped.
    #[cold]
    pub(super) fn note_loss(&mut self, is_forward: bool, sent: Time) {
        self.lost_packets += u64::from(is_forward && sent >= self.since);
    }

    /// A full queue or a policer dropped a packet that was sent at `sent`.
    #[cold]
    pub(super) fn note_drop(&mut self, is_forward: bool, sent: Time) {
        self.dropped_packets += u64::from(is_forward && sent >= self.since);
        self.note_loss(is_forward, sent);
    }

    /// A queue marked a packet with congestion.
    #[cold]
    pub(super) fn note_marked(&mut self, is_forward: bool, sent: Time) {
        self.marked_packets += u64::from(is_forward && sent >= self.since);
    }

    /// A packet was corrected by its code.
    #[cold]
    pub(super) fn note_mended(&mut self, is_forward: bool, sent: Time) {
        self.mended_packets += u64::from(is_forward && sent >= self.since);
    }
}

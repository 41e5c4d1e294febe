//! The result of a flow.

use farlink_core::event::Abort;
use farlink_core::{Stream, Time, Virtual};

use super::super::delays::{DelaySum, Histogram};
use super::super::path::OnLink;
use super::Flow;

impl<E: Stream<Virtual>> Flow<E>
where
    E::Packet: OnLink,
{
    /// The result from the end of the warm-up until `end`.
    pub(in super::super) fn result(self, end: Time, warmup: Time) -> FlowResult {
        let [client, server] = [self.ends[0].counters(), self.ends[1].counters()];
        let former = self.former;
        let counts = self.counts;
        let (delay, histogram) = self.delay.finish();
        FlowResult {
            spec: self.spec,
            number: self.number,
            start: self.start,
            measured: self.finished.unwrap_or(end).since(self.start.max(warmup)),
            is_finite: self.undelivered.is_some(),
            finished: self.finished,
            undelivered_bytes: self.undelivered.unwrap_or(0),
            delivered_bytes: counts.delivered_bytes,
            delivered_packets: counts.delivered_packets,
            skipped_bytes: counts.skipped_bytes,
            discarded_bytes: counts.discarded_bytes,
            lost_in_custody_bytes: 0,
            peak_custody_bytes: 0,
            last_progress: self.last_progress,
            last_arrival: self.last_progress.max(self.last_early),
            round_trip: self.ends[0].probe().rtt,
            aborted: self.aborted,
            lowered: self.lowered,
            sent_packets: counts.sent_packets,
            sent_bytes: counts.sent_bytes,
            overhead_bytes: counts.sent_bytes - counts.sent_payload_bytes,
            retransmitted_bytes: counts.retransmitted_bytes,
            lost_packets: counts.lost_packets,
            mended_packets: counts.mended_packets,
            marked_packets: counts.marked_packets,
            return_bytes: counts.return_bytes,
            carried_back_bytes: counts.carried_back_bytes,
            timeouts: former.timeouts + client.timeouts - self.counted_before.timeouts,
            peak_reorder_bytes: server.peak_reorder_bytes.max(former.peak_reorder_bytes),
            peak_send_buffer_bytes: client.peak_send_buffer_bytes.max(former.peak_send_buffer_bytes),
            delay,
            arrival_delay: self.arrival_delay.finish().0,
            histogram,
        }
    }
}

/// The result of one flow in one run.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// Index of its [`super::super::FlowSetup`].
    pub spec: usize,
    /// Its number among the flows of the same name.
    pub number: u64,
    /// When it started.
    pub start: Time,
    /// Duration of the measurement.
    pub measured: Time,
    /// Whether it carries a finite amount of data.
    pub is_finite: bool,
    /// When the last byte was delivered.
    pub finished: Option<Time>,
    /// Bytes of a finite flow that were not delivered.
    pub undelivered_bytes: u64,
    /// Payload delivered in order.
    pub delivered_bytes: u64,
    /// First transmissions that were delivered.
    pub delivered_packets: u64,
    /// Payload that the transport gave up.
    pub skipped_bytes: u64,
    /// Payload delivered to a transfer that was started again later.
    pub discarded_bytes: u64,
    /// Payload that gateways acknowledged to the source and lost.
    pub lost_in_custody_bytes: u64,
    /// Largest payload that one gateway held.
    pub peak_custody_bytes: u64,
    /// When the last byte was delivered or given up; when the flow started if none was.
    pub last_progress: Time,
    /// When data last arrived for the first time, in order or not; when the flow started if none did.
    pub last_arrival: Time,
    /// The sender's latest round-trip time, if it measures it.
    pub round_trip: Option<Time>,
    /// When and why the sender gave the connection up, if it did.
    pub aborted: Option<(Time, Abort)>,
    /// When the sender's set rate was lowered first, as the path carries less, and to how many bit/s.
    pub lowered: Option<(Time, u64)>,
    /// Packets sent.
    pub sent_packets: u64,
    /// Wire bytes sent.
    pub sent_bytes: u64,
    /// Headers and control packets among them.
    pub overhead_bytes: u64,
    /// Payload sent again.
    pub retransmitted_bytes: u64,
    /// Packets lost or dropped on the forward path.
    pub lost_packets: u64,
    /// Packets on the forward path that had wrong bits and were mended.
    pub mended_packets: u64,
    /// Packets that a queue on the forward path marked with congestion.
    pub marked_packets: u64,
    /// Wire bytes on the way back.
    pub return_bytes: u64,
    /// Wire bytes that the measured hop back has sent; see [`RunResult::back`](super::super::RunResult::back).
    pub carried_back_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Largest reorder buffer.
    pub peak_reorder_bytes: u64,
    /// Largest amount sent and not acknowledged.
    pub peak_send_buffer_bytes: u64,
    /// First transmission to in-order delivery.
    pub delay: DelaySum,
    /// First transmission to first arrival.
    pub arrival_delay: DelaySum,
    /// Distribution of the in-order delay, if it was kept.
    pub histogram: Option<Histogram>,
}

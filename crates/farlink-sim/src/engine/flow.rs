//! Flows: two endpoints, a traffic source, and what is measured of them.

use farlink_core::endpoint::Counters;
use farlink_core::event::Abort;
use farlink_core::{Event, Express, Packet, Payload, PlainPacket, Stream, Time, Train, Virtual};

use super::carried::Load;
use super::delays::{DelaySum, Delays, Histogram, Shared};
use super::fifo::Fifo;
use super::path::OnLink;
use super::timers::{Alarm, Kind, Timers};

/// All flows of one protocol.
pub(super) struct Population<E: Express> {
    pub(super) flows: Vec<Flow<E>>,
    /// What an endpoint sends in answer to a train: filled and emptied at once.
    pub(super) trains: Vec<Train<E::Plain>>,
}

impl<E: Express> Default for Population<E> {
    fn default() -> Self {
        Population { flows: Vec::new(), trains: Vec::new() }
    }
}

/// What a flow's application does.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Always has more to send.
    Bulk,
    /// Writes a file and closes.
    File { left: u64 },
    /// Writes at a constant rate.
    Cbr { interval: Time, payload_bytes: u32, left: u64 },
}

/// Amount that a bulk source writes at a time: large enough to be rare, small enough that it joins what is left.
const BULK_WRITE_BYTES: u32 = 1 << 31;

/// Which flow it is, and what it does.
pub(super) struct Birth {
    /// Its number among all flows of the run.
    pub(super) id: u32,
    pub(super) spec: usize,
    /// Which of the flows of that name.
    pub(super) number: u64,
    pub(super) start: Time,
    pub(super) source: Source,
}

/// A first transmission that is not yet delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Position behind its last byte, wrapping.
    end: u32,
    has_arrived: bool,
    sent: Time,
}

/// Traffic counted at the path's ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    sent_packets: u64,
    sent_bytes: u64,
    sent_payload_bytes: u64,
    retransmitted_bytes: u64,
    lost_packets: u64,
    mended_packets: u64,
    marked_packets: u64,
    skipped_bytes: u64,
    pub(super) return_bytes: u64,
    delivered_bytes: u64,
    delivered_packets: u64,
}

impl Counts {
    /// A packet was lost or dropped.
    #[cold]
    pub(super) fn note_loss(&mut self, is_forward: bool) {
        self.lost_packets += u64::from(is_forward);
    }

    /// A queue marked a packet with congestion.
    #[cold]
    pub(super) fn note_marked(&mut self, is_forward: bool) {
        self.marked_packets += u64::from(is_forward);
    }

    /// A packet's code mended it.
    #[cold]
    pub(super) fn note_mended(&mut self, is_forward: bool) {
        self.mended_packets += u64::from(is_forward);
    }
}

/// Two endpoints and their account. Side 0 sends, side 1 receives.
pub(super) struct Flow<E> {
    pub(super) ends: [E; 2],
    /// When the entry in the heap that counts is due, per side.
    pub(super) armed: [Time; 2],
    pub(super) counts: Counts,
    /// Position behind the last byte sent for the first time, once there is one.
    sent_end: Option<u32>,
    /// Bytes that were read, and the position that this makes.
    delivered_position: u32,
    pending: Fifo<Pending>,
    delay: Delays,
    arrival_delay: Delays,
    source: Source,
    has_ended: bool,
    start: Time,
    finished: Option<Time>,
    /// When the source last began or wrote.
    last_write: Time,
    /// When the stream last came further; when it began if it never did.
    last_progress: Time,
    /// When and why the sender gave up.
    aborted: Option<(Time, Abort)>,
    pub(super) id: u32,
    pub(super) spec: usize,
    number: u64,
    /// What the endpoints had counted when the measurement began.
    counted_before: Counters,
    /// Bytes of a file that are not yet delivered; `None` if the flow is endless.
    undelivered: Option<u64>,
}

impl<E: Stream<Virtual> + Express> Population<E>
where
    E::Packet: OnLink,
{
    /// Adds a flow that starts later.
    pub(super) fn add(
        &mut self,
        kind: u8,
        (client, server): (E, E),
        Birth { id, spec, number, start, source }: Birth,
        timers: &mut Timers,
    ) {
        let flow = self.flows.len() as u32;
        timers.push(start, Alarm { event: Kind::Source, kind, side: 0, flow });
        let undelivered = match source {
            Source::Bulk => None,
            Source::File { left } | Source::Cbr { left, .. } => (left != u64::MAX).then_some(left),
        };
        self.flows.push(Flow {
            ends: [client, server],
            armed: [Time::NEVER; 2],
            counts: Counts::default(),
            sent_end: None,
            delivered_position: 0,
            pending: Fifo::default(),
            delay: Delays::default(),
            arrival_delay: Delays::default(),
            source,
            has_ended: false,
            start,
            finished: None,
            last_write: start,
            last_progress: start,
            aborted: None,
            id,
            spec,
            number,
            counted_before: Counters::default(),
            undelivered,
        });
    }
}

impl<E: Stream<Virtual>> Flow<E>
where
    E::Packet: OnLink,
{
    pub(super) fn keep_histogram(&mut self, histogram: Shared) {
        self.delay.keep_histogram(histogram);
    }

    /// The source's alarm: it starts, or writes again.
    pub(super) fn on_source(&mut self, now: Time, flow: u32, kind: u8, timers: &mut Timers) {
        self.last_write = now;
        match &mut self.source {
            Source::Bulk => {
                self.on_writable(now);
            }
            Source::File { left } => {
                while *left > 0 {
                    let mut piece = Virtual(u32::try_from(*left).unwrap_or(BULK_WRITE_BYTES).min(BULK_WRITE_BYTES));
                    *left -= u64::from(piece.0);
                    self.ends[0].write(now, &mut piece);
                }
                self.ends[0].close(now);
            }
            Source::Cbr { interval, payload_bytes, left } => {
                let n = u64::from(*payload_bytes).min(*left) as u32;
                self.ends[0].write(now, &mut Virtual(n));
                if *left != u64::MAX {
                    *left -= u64::from(n);
                }
                if *left > 0 {
                    timers.push(now + *interval, Alarm { event: Kind::Source, kind, side: 0, flow });
                } else {
                    self.ends[0].close(now);
                }
            }
        }
    }

    /// The transport takes more; `true` if more was written.
    pub(super) fn on_writable(&mut self, now: Time) -> bool {
        matches!(self.source, Source::Bulk) && self.ends[0].write(now, &mut Virtual(BULK_WRITE_BYTES)) > 0
    }

    /// The sender sends a packet.
    #[inline(always)]
    pub(super) fn on_transmit(&mut self, now: Time, packet: &impl Packet) {
        let payload = packet.payload_bytes();
        self.counts.sent_packets += 1;
        self.counts.sent_bytes += u64::from(packet.wire_bytes());
        self.counts.sent_payload_bytes += u64::from(payload);
        let Some(position) = packet.stream_position() else { return };
        let sent_end = *self.sent_end.get_or_insert_with(|| {
            let start = packet.stream_start().unwrap_or(position);
            self.delivered_position = start;
            start
        });
        let end = position.wrapping_add(payload);
        let new = end.wrapping_sub(sent_end) as i32;
        if new > 0 {
            self.sent_end = Some(end);
            let pending = self.pending.push_slot();
            pending.end = end;
            pending.has_arrived = false;
            pending.sent = now;
        }
        if (new as i64) < i64::from(payload) {
            self.counts.retransmitted_bytes += (i64::from(payload) - i64::from(new.max(0))) as u64;
        }
    }

    /// The sender sends a train.
    #[inline]
    pub(super) fn on_transmit_train<P: PlainPacket>(&mut self, train: &Train<P>) {
        let &Train { ref first, count, at, gap, .. } = train;
        let payload = first.payload_bytes();
        if first.stream_position() != self.sent_end || train.step != payload {
            for n in 0..count {
                self.on_transmit(train.time(n), &first.ahead(train.step, n));
            }
            return;
        }
        // New data throughout.
        self.counts.sent_packets += u64::from(count);
        self.counts.sent_bytes += u64::from(count) * u64::from(first.wire_bytes());
        self.counts.sent_payload_bytes += u64::from(count) * u64::from(payload);
        let (mut end, mut sent) = (self.sent_end.unwrap_or_default(), at);
        for _ in 0..count {
            end = end.wrapping_add(payload);
            *self.pending.push_slot() = Pending { end, has_arrived: false, sent };
            sent += gap;
        }
        self.sent_end = Some(end);
    }

    /// The first packets of a train have arrived and were handled; what was in order has been read.
    #[inline]
    pub(super) fn on_train<P: PlainPacket>(&mut self, train: &Train<P>, count: u32) {
        let payload = train.first.payload_bytes();
        let mut now = train.at;
        if train.first.stream_position() == Some(self.delivered_position) {
            for _ in 0..count {
                self.on_read(now, u64::from(payload));
                now += train.gap;
            }
        } else if let Some(mut position) = train.first.stream_position() {
            let mut index = self.pending_index(position);
            for _ in 0..count {
                if self.pending.get(index).is_none_or(|pending| pending.end.wrapping_sub(payload) != position) {
                    index = self.pending_index(position); // not the next one after all
                }
                self.on_early(now, position, index);
                index += 1;
                position = position.wrapping_add(payload);
                now += train.gap;
            }
        }
    }

    /// A packet from the sender has arrived and was handled.
    #[inline(always)]
    pub(super) fn on_arrival<P: OnLink>(&mut self, now: Time, packet: &impl Load<P>, sent: Time) {
        let Some(position) = packet.stream_position() else {
            if packet.is_datagram() && packet.payload_bytes() > 0 {
                self.note_delay(now, sent);
                self.arrival_delay.add(now.since(sent));
            }
            return;
        };
        // In order: `read` accounts for it in the same step.
        if position == self.delivered_position {
            return;
        }
        self.on_early(now, position, self.pending_index(position));
    }

    /// Where the first transmission of a position is among those not delivered.
    fn pending_index(&self, position: u32) -> usize {
        self.pending.partition_point(|pending| pending.end.wrapping_sub(position) as i32 <= 0)
    }

    /// Something arrived that is not next in order.
    #[inline(always)]
    fn on_early(&mut self, now: Time, position: u32, index: usize) {
        if let Some(pending) = self.pending.get_mut(index)
            && !pending.has_arrived
            && position.wrapping_sub(self.delivered_position) as i32 > 0
        {
            pending.has_arrived = true;
            self.arrival_delay.add(now.since(pending.sent));
        }
    }

    #[inline(always)]
    fn note_delay(&mut self, now: Time, sent: Time) {
        self.delay.add(now.since(sent));
        self.counts.delivered_packets += 1;
    }

    /// The receiving application reads everything there is.
    #[inline]
    pub(super) fn read(&mut self, now: Time) {
        let mut bytes = 0;
        while let Some(data) = self.ends[1].read() {
            bytes += data.len() as u64;
        }
        if bytes > 0 {
            self.on_read(now, bytes);
        }
    }

    /// The receiving application has read so many bytes.
    #[inline(always)]
    pub(super) fn on_read(&mut self, now: Time, bytes: u64) {
        self.counts.delivered_bytes += bytes;
        self.move_on(now, bytes, true);
    }

    /// The transport has given up so many bytes; what it held back behind them can be read.
    #[cold]
    fn on_skipped(&mut self, now: Time, bytes: u64) {
        self.counts.skipped_bytes += bytes;
        self.move_on(now, bytes, false);
        self.read(now);
    }

    /// The stream has come so much further: data, or what was given up.
    #[inline(always)]
    fn move_on(&mut self, now: Time, bytes: u64, is_data: bool) {
        self.last_progress = now;
        self.delivered_position = self.delivered_position.wrapping_add(bytes as u32);
        while let Some(&pending) = self.pending.front()
            && self.delivered_position.wrapping_sub(pending.end) as i32 >= 0
        {
            self.pending.drop_front();
            if !is_data {
                continue;
            }
            self.note_delay(now, pending.sent);
            if !pending.has_arrived {
                self.arrival_delay.add(now.since(pending.sent));
            }
        }
        if let Some(left) = &mut self.undelivered {
            *left = left.saturating_sub(bytes);
            if *left == 0 && self.finished.is_none() {
                self.finished = Some(now);
            }
        }
    }

    /// The application acts on an event; `true` if the endpoint may have more to send now.
    pub(super) fn on_event(&mut self, side: usize, event: Event, now: Time, open_flows: &mut u64) -> bool {
        match event {
            Event::Writable if side == 0 => self.on_writable(now),
            Event::Skipped(bytes) if side == 1 => {
                self.on_skipped(now, bytes);
                true
            }
            Event::Finished if side == 1 => {
                self.ends[1].close(now);
                true
            }
            Event::Closed | Event::Aborted(_) if side == 0 => {
                if let Event::Aborted(why) = event {
                    self.aborted = Some((now, why));
                }
                *open_flows -= u64::from(!std::mem::replace(&mut self.has_ended, true));
                false
            }
            _ => false,
        }
    }

    /// Sets the endpoint's alarm, if it must ring sooner than the one that is set.
    #[inline]
    pub(super) fn arm(&mut self, side: usize, flow: u32, kind: u8, timers: &mut Timers) {
        if let Some(at) = self.ends[side].poll_timeout()
            && at < self.armed[side]
        {
            self.armed[side] = at;
            timers.push(at, Alarm { event: Kind::Endpoint, kind, side: side as u8, flow });
        }
    }

    /// When the source or the receiver last had to do with it.
    pub(super) fn last_sign_of_life(&self) -> Time {
        self.last_write.max(self.last_progress)
    }

    /// The warm-up is over: counts start anew.
    pub(super) fn begin_measurement(&mut self) {
        self.counts = Counts::default();
        self.delay.clear();
        self.arrival_delay.clear();
        self.counted_before = self.ends[0].counters();
    }

    pub(super) fn result(self, end: Time, warmup: Time) -> FlowResult {
        let [client, server] = [self.ends[0].counters(), self.ends[1].counters()];
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
            last_progress: self.last_progress,
            aborted: self.aborted,
            sent_packets: counts.sent_packets,
            sent_bytes: counts.sent_bytes,
            overhead_bytes: counts.sent_bytes - counts.sent_payload_bytes,
            retransmitted_bytes: counts.retransmitted_bytes,
            lost_packets: counts.lost_packets,
            mended_packets: counts.mended_packets,
            marked_packets: counts.marked_packets,
            return_bytes: counts.return_bytes,
            timeouts: client.timeouts - self.counted_before.timeouts,
            peak_reorder_bytes: server.peak_reorder_bytes,
            peak_send_buffer_bytes: client.peak_send_buffer_bytes,
            delay,
            arrival_delay: self.arrival_delay.finish().0,
            histogram,
        }
    }
}

/// What one flow achieved in one run.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// Index of its [`super::FlowSetup`].
    pub spec: usize,
    /// Which of the flows of that name.
    pub number: u64,
    /// When it started.
    pub start: Time,
    /// For how long it was measured.
    pub measured: Time,
    /// Whether it had an end to reach.
    pub is_finite: bool,
    /// When the last byte was delivered.
    pub finished: Option<Time>,
    /// What was left of it.
    pub undelivered_bytes: u64,
    /// Payload delivered in order.
    pub delivered_bytes: u64,
    /// First transmissions that were delivered.
    pub delivered_packets: u64,
    /// Payload that the transport gave up.
    pub skipped_bytes: u64,
    /// When the last byte was delivered or given up; when the flow started if none was.
    pub last_progress: Time,
    /// When and why the sender gave the connection up, if it did.
    pub aborted: Option<(Time, Abort)>,
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

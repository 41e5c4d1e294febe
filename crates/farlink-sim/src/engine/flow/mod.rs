//! Flows: two endpoints, a traffic source, and their measurements.

mod numbered;
mod relayed;
mod restart;
mod result;

pub use result::FlowResult;

use farlink_core::endpoint::Counters;
use farlink_core::event::Abort;
use farlink_core::protocol::tcp::trains::Train;
use farlink_core::{Event, Packet, Payload, Stream, Time, Virtual};

use numbered::Numbered;

use super::carried::Load;
use super::counts::Counts;
use super::delays::{Delays, Shared};
use super::fifo::Fifo;
use super::path::OnLink;
use super::relay::Relay;
use super::route::Route;
use super::source::{BULK_WRITE_BYTES, Source};
use super::timers::{Alarm, Kind, Timers};

/// The parameters of a new flow.
pub(super) struct NewFlow {
    /// Its number among all flows of the run.
    pub(super) id: u32,
    pub(super) spec: usize,
    /// Its number among the flows of the same name.
    pub(super) number: u64,
    pub(super) start: Time,
    pub(super) source: Source,
    pub(super) route: Route,
    /// Set if it is one connection of a flow that gateways split.
    pub(super) relay: Option<Box<Relay>>,
    /// Whether one of its ends restarts during the run.
    pub(super) restarts: bool,
}

/// A first transmission that is not yet delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Position after its last byte, wrapping.
    end: u32,
    has_arrived: bool,
    sent: Time,
}

/// Two endpoints and their measurements. Side 0 sends, side 1 receives.
pub(super) struct Flow<E> {
    pub(super) ends: [E; 2],
    /// When the valid timer entry in the heap is due, per side.
    pub(super) armed: [Time; 2],
    pub(super) counts: Counts,
    pub(super) route: Route,
    pub(super) relay: Option<Box<Relay>>,
    /// Position after the last byte sent for the first time, once there is one.
    sent_end: Option<u32>,
    /// Where the sender's stream begins.
    begin: u32,
    /// Position after the bytes that were read.
    delivered_position: u32,
    pending: Fifo<Pending>,
    /// Whether the sender has left out positions, as it does with data that it gives up; pending ones may be any distance apart then.
    has_left_out: bool,
    /// Datagrams that are sent several times.
    numbered: Option<Box<Numbered>>,
    delay: Delays,
    arrival_delay: Delays,
    source: Source,
    /// When the source writes next.
    source_due: Time,
    has_ended: bool,
    pub(super) start: Time,
    finished: Option<Time>,
    /// When the source last started or wrote.
    last_write: Time,
    /// When the stream last advanced; when it began if it never did.
    last_progress: Time,
    /// When data last arrived out of order; when the flow started if none did.
    last_early: Time,
    /// When and why the sender gave up.
    aborted: Option<(Time, Abort)>,
    /// When its set rate was lowered first, and to how many bit/s.
    lowered: Option<(Time, u64)>,
    pub(super) id: u32,
    pub(super) spec: usize,
    pub(super) number: u64,
    /// Counts of the endpoints when the measurement began.
    counted_before: Counters,
    /// Bytes of a file that are not yet delivered; `None` if the flow is endless.
    undelivered: Option<u64>,
    restarts: bool,
    /// When the sender restarted; `None` once data that it sent since has arrived. Until then deliveries belong to the
    /// old transfer.
    restarted_at: Option<Time>,
    /// Sides whose connection was reset by a restarted peer.
    was_reset: [bool; 2],
    /// Counts of replaced endpoints.
    former: Counters,
}

impl<E: Stream<Virtual>> Flow<E>
where
    E::Packet: OnLink,
{
    /// A flow that starts later.
    pub(super) fn new(
        (client, server): (E, E),
        NewFlow { id, spec, number, start, source, route, relay, restarts }: NewFlow,
    ) -> Self {
        let undelivered = source.asked_bytes();
        Flow {
            ends: [client, server],
            armed: [Time::NEVER; 2],
            counts: Counts::default(),
            route,
            relay,
            sent_end: None,
            begin: 0,
            delivered_position: 0,
            pending: Fifo::default(),
            has_left_out: false,
            numbered: None,
            delay: Delays::default(),
            arrival_delay: Delays::default(),
            source,
            source_due: start,
            has_ended: false,
            start,
            finished: None,
            last_write: start,
            last_progress: start,
            last_early: start,
            aborted: None,
            lowered: None,
            id,
            spec,
            number,
            counted_before: Counters::default(),
            undelivered,
            restarts,
            restarted_at: None,
            was_reset: [false; 2],
            former: Counters::default(),
        }
    }

    pub(super) fn keep_histogram(&mut self, histogram: Shared) {
        self.delay.keep_histogram(histogram);
    }

    /// The source starts or writes again; `false` if the alarm is outdated or the endpoint is down.
    pub(super) fn on_source(&mut self, now: Time, flow: u32, kind: u8, timers: &mut Timers) -> bool {
        if self.source_due != now || !self.route.is_up(0) {
            return false;
        }
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
                    self.source_due = now + *interval;
                    timers.push(self.source_due, Alarm { event: Kind::Source, kind, side: 0, flow });
                } else {
                    self.ends[0].close(now);
                }
            }
            Source::Relay => {}
        }
        true
    }

    /// The transport accepts more data; `true` if more was written.
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
        let Some(position) = packet.stream_position() else {
            if let Some(number) = packet.datagram_number()
                && self.numbered.get_or_insert_default().on_transmit(now, number)
            {
                self.counts.retransmitted_bytes += u64::from(payload);
            }
            return;
        };
        let sent_end = *self.sent_end.get_or_insert_with(|| {
            let start = packet.stream_start().unwrap_or(position);
            (self.begin, self.delivered_position) = (start, start);
            start
        });
        let end = position.wrapping_add(payload);
        let new = end.wrapping_sub(sent_end) as i32;
        if new > 0 {
            self.has_left_out |= new as u32 > payload;
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
    pub(super) fn on_transmit_train<P: OnLink>(&mut self, train: &Train<P::Common>) {
        let &Train { ref first, count, at, gap, .. } = train;
        let payload = first.payload_bytes();
        if first.stream_position() != self.sent_end || train.step != payload {
            for n in 0..count {
                self.on_transmit(train.time(n), &P::ahead(first, train.step, n));
            }
            return;
        }
        // The train is all new data.
        self.counts.sent_packets += u64::from(count);
        self.counts.sent_bytes += u64::from(count) * u64::from(first.wire_bytes());
        self.counts.sent_payload_bytes += u64::from(count) * u64::from(payload);
        let (mut end, mut sent) = (self.sent_end.unwrap_or_default(), at);
        self.pending.extend(count as usize, || {
            end = end.wrapping_add(payload);
            let pending = Pending { end, has_arrived: false, sent };
            sent += gap;
            pending
        });
        self.sent_end = Some(end);
    }

    /// The first `count` packets of a train have arrived and were handled; data in order has been read.
    #[inline]
    pub(super) fn on_train<P: OnLink>(&mut self, train: &Train<P::Common>, count: u32) {
        let payload = train.first.payload_bytes();
        let mut now = train.at;
        if train.first.stream_position() == Some(self.delivered_position) {
            self.on_read_train(now, train.gap, payload, count);
        } else if let Some(mut position) = train.first.stream_position() {
            let mut index = self.pending_index(position);
            for _ in 0..count {
                if self.pending.get(index).is_none_or(|pending| pending.end.wrapping_sub(payload) != position) {
                    index = self.pending_index(position); // the positions are not consecutive
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
        if let Some(since) = self.restarted_at {
            if sent < since {
                return;
            }
            self.restarted_at = None;
        }
        let Some(position) = packet.stream_position() else {
            let first_sent = match (packet.datagram_number(), &mut self.numbered) {
                (Some(number), Some(numbered)) => numbered.on_arrival(number),
                _ => Some(sent),
            };
            if packet.is_datagram()
                && packet.payload_bytes() > 0
                && let Some(sent) = first_sent
            {
                self.note_delay(now, sent);
                self.arrival_delay.add(now.since(sent));
            }
            return;
        };
        // Data in order is accounted for by `read` in the same step.
        if position == self.delivered_position {
            return;
        }
        self.on_early(now, position, self.pending_index(position));
    }

    /// Index of the first transmission of a position among those not delivered.
    ///
    /// Most are of one length, so that its number is likely known.
    fn pending_index(&self, position: u32) -> usize {
        if let Some(&Pending { end, .. }) = self.pending.front()
            && !self.has_left_out
        {
            let (first, ahead) =
                (end.wrapping_sub(self.delivered_position), position.wrapping_sub(self.delivered_position));
            let likely = (ahead / first.max(1)) as usize;
            let is_before = |pending: &Pending| pending.end.wrapping_sub(position) as i32 <= 0;
            let is_right = self.pending.get(likely).is_some_and(|pending| !is_before(pending))
                && likely.checked_sub(1).and_then(|before| self.pending.get(before)).is_none_or(is_before);
            if is_right {
                return likely;
            }
        }
        self.pending.partition_point(|pending| pending.end.wrapping_sub(position) as i32 <= 0)
    }

    /// Data arrived out of order.
    #[inline(always)]
    fn on_early(&mut self, now: Time, position: u32, index: usize) {
        if let Some(pending) = self.pending.get_mut(index)
            && !pending.has_arrived
            && position.wrapping_sub(self.delivered_position) as i32 > 0
        {
            pending.has_arrived = true;
            self.last_early = now;
            self.arrival_delay.add(now.since(pending.sent));
        }
    }

    #[inline(always)]
    fn note_delay(&mut self, now: Time, sent: Time) {
        self.delay.add(now.since(sent));
        self.counts.delivered_packets += 1;
    }

    /// The receiving application reads all available data.
    #[inline]
    pub(super) fn read(&mut self, now: Time) {
        if self.relay.is_some() {
            return self.read_for_relay(now);
        }
        let mut bytes = 0;
        while let Some(data) = self.ends[1].read() {
            bytes += data.len() as u64;
        }
        if bytes > 0 {
            self.on_read(now, bytes);
        }
    }

    /// The receiving application has read this many bytes.
    #[inline(always)]
    pub(super) fn on_read(&mut self, now: Time, bytes: u64) {
        if self.restarted_at.is_some() {
            self.counts.discarded_bytes += bytes;
            return;
        }
        self.counts.delivered_bytes += bytes;
        self.move_on(now, bytes, true);
    }

    /// The receiving application has read `count` packets of `payload` bytes each, `gap` apart.
    #[inline(always)]
    fn on_read_train(&mut self, mut now: Time, gap: Time, payload: u32, count: u32) {
        let bytes = u64::from(payload) * u64::from(count);
        // A file ends with one of its packets.
        let may_end = self.undelivered.is_some_and(|left| left <= bytes);
        if may_end || self.restarted_at.is_some() {
            for _ in 0..count {
                self.on_read(now, u64::from(payload));
                now += gap;
            }
            return;
        }
        self.counts.delivered_bytes += bytes;
        self.undelivered = self.undelivered.map(|left| left - bytes);
        for _ in 0..count {
            self.delivered_position = self.delivered_position.wrapping_add(payload);
            self.take_pending(now, true);
            self.last_progress = now;
            now += gap;
        }
    }

    /// The transport has given up this many bytes, so data after them can be read.
    #[cold]
    pub(super) fn on_skipped(&mut self, now: Time, bytes: u64) {
        if self.restarted_at.is_none() {
            self.counts.skipped_bytes += bytes;
            self.move_on(now, bytes, false);
        }
        self.read(now);
    }

    /// Advances the stream by delivered data or by bytes that were given up.
    #[inline(always)]
    fn move_on(&mut self, now: Time, bytes: u64, is_data: bool) {
        self.last_progress = now;
        self.delivered_position = self.delivered_position.wrapping_add(bytes as u32);
        self.take_pending(now, is_data);
        if let Some(left) = &mut self.undelivered {
            *left = left.saturating_sub(bytes);
            if *left == 0 && self.finished.is_none() {
                self.finished = Some(now);
            }
        }
    }

    /// Removes what is no longer pending; notes the delays of what was delivered.
    #[inline(always)]
    fn take_pending(&mut self, now: Time, is_data: bool) {
        while let Some(&Pending { end, has_arrived, sent }) = self.pending.front()
            && self.delivered_position.wrapping_sub(end) as i32 >= 0
        {
            self.pending.drop_front();
            if is_data {
                self.note_delay(now, sent);
                if !has_arrived {
                    self.arrival_delay.add(now.since(sent));
                }
            }
            if end == self.delivered_position {
                break; // all others end later
            }
        }
    }

    /// The application acts on an event; `true` if the endpoint may have more to send now.
    pub(super) fn on_event(&mut self, side: usize, event: Event, now: Time, open_flows: &mut u64) -> bool {
        if let Event::RateLowered(rate_bps) = event {
            self.lowered = self.lowered.or(Some((now, rate_bps)));
            return false;
        }
        if self.relay.is_some() {
            return self.on_event_for_relay(side, event, now);
        }
        match event {
            Event::Aborted(Abort::Reset) if self.restarts && !self.has_ended => {
                self.was_reset[side] = true;
                false
            }
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

    /// Sets the endpoint's alarm, if it is due before the one that is set.
    #[inline]
    pub(super) fn arm(&mut self, side: usize, now: Time, flow: u32, kind: u8, timers: &mut Timers) {
        if let Some(at) = self.ends[side].poll_timeout()
            && at < self.armed[side]
        {
            let at = at.max(now); // an overdue timeout is handled now
            self.armed[side] = at;
            timers.push(at, Alarm { event: Kind::Endpoint, kind, side: side as u8, flow });
        }
    }

    /// When the source last wrote or the stream last advanced.
    pub(super) fn last_sign_of_life(&self) -> Time {
        self.last_write.max(self.last_progress)
    }

    /// Resets all counts at the end of the warm-up.
    pub(super) fn begin_measurement(&mut self, since: Time) {
        self.counts = Counts { since, ..Counts::default() };
        self.delay.clear();
        self.arrival_delay.clear();
        self.counted_before = self.ends[0].counters();
        self.former = Counters::default();
    }
}

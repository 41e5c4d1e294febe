//! One side of an ARQ connection: combines the sending and the receiving half as an [`Endpoint`].

use crate::correction::Correction;
use crate::endpoint::{Counters, Endpoint, Integrity, LinkHint, Probe, Rx, Stream, Transmit};
use crate::event::{Abort, Event};
use crate::payload::Payload;
use crate::protocol::Pairs;
use crate::protocol::parts::length::Length;
use crate::protocol::parts::pacer::Pacer;
use crate::time::Time;

use super::config::ArqConfig;
use super::frame::{Blocks, Flags, Frame};
use super::receiver::Receiver;
use super::sender::{AckFields, Sender};

/// A timestamp counts units of 2^16 ps (65.5 ns), so that it wraps after 281 s only.
const TIMESTAMP_SHIFT: u32 = 16;

/// One side of an ARQ connection.
#[derive(Clone, Debug)]
pub struct Station<D> {
    sender: Sender<D>,
    receiver: Receiver<D>,
    pacer: Pacer,
    sizes: Sizes,
    has_timestamps: bool,
    has_told_connected: bool,
    has_told_finished: bool,
    has_told_closed: bool,
    aborted: Option<Abort>,
    has_told_aborted: bool,
    is_reset_due: bool,
}

/// Bytes on the wire in addition to the data.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Headers of a frame with a number, and of one without, including timestamps.
    header_bytes: u16,
    ack_bytes: u16,
    correction: Option<Correction>,
    full_bytes: u32,
    /// Parity of the code around a full frame, and around the shortest frame without data.
    full_parity_bytes: u16,
    ack_parity_bytes: u16,
}

impl Sizes {
    fn new(config: &ArqConfig) -> Self {
        let header = config.header_bytes.whole() + config.timestamps_bytes();
        let ack = config.ack_bytes.unwrap_or(config.header_bytes).whole() + config.timestamps_bytes();
        let whole = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let full_bytes = whole(header + config.segment_bytes.whole());
        let parity = |bytes: u32| config.correction.map_or(0, |correction| short(correction.parity_bytes(bytes)));
        Sizes {
            header_bytes: short(whole(header)),
            ack_bytes: short(whole(ack)),
            correction: config.correction,
            full_bytes,
            full_parity_bytes: parity(full_bytes),
            ack_parity_bytes: parity(whole(ack)),
        }
    }

    /// Fills in the lengths of a frame that is otherwise complete.
    #[inline]
    fn measure<D: Payload>(&self, frame: &mut Frame<D>) {
        let base = if frame.flags.has(Flags::DATA) { self.header_bytes } else { self.ack_bytes };
        frame.header_bytes = base.saturating_add(short(Blocks::option_bytes(frame.blocks.len() as u64) as u32));
        let Some(correction) = self.correction else { return };
        let bytes = u32::from(frame.header_bytes) + frame.payload.len() as u32;
        frame.parity_bytes = if bytes == self.full_bytes {
            self.full_parity_bytes
        } else if bytes == u32::from(self.ack_bytes) {
            self.ack_parity_bytes
        } else {
            short(correction.parity_bytes(bytes))
        };
    }
}

impl<D: Payload> Station<D> {
    /// A station that is connected from the start.
    pub(super) fn new(config: &ArqConfig) -> Self {
        Station {
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            pacer: Pacer::new(config.rate_bps),
            sizes: Sizes::new(config),
            has_timestamps: config.timestamps,
            has_told_connected: false,
            has_told_finished: false,
            has_told_closed: false,
            aborted: None,
            has_told_aborted: false,
            is_reset_due: false,
        }
    }

    /// Bytes of its stream that were given up after `max_transmissions` losses.
    pub fn given_up_bytes(&self) -> u64 {
        self.sender.given_up_bytes
    }

    /// The next frame to be sent, without lengths and timestamp.
    #[inline]
    fn next_frame(&mut self, now: Time) -> Option<Frame<D>> {
        if let Some(missing) = self.receiver.next_nak() {
            let mut frame = Frame { flags: Flags::NAK, ..Frame::default() };
            if missing.is_held {
                frame.flags = frame.flags.with(Flags::HELD);
            }
            frame.nak = self.receiver.numbers.on_wire(missing.first);
            frame.nak_count = missing.count;
            self.receiver.write_ack(&mut frame);
            return Some(frame);
        }
        let has_ack = self.receiver.has_ack();
        if has_ack && !self.receiver.rides() {
            return Some(self.acknowledgement());
        }
        if !self.pacer.is_holding(now)
            && let Some(mut frame) = self.sender.transmit(now)
        {
            if self.receiver.rides() {
                self.receiver.write_ack(&mut frame);
            }
            return Some(frame);
        }
        if has_ack && now >= self.receiver.ack_deadline {
            return Some(self.acknowledgement());
        }
        self.sender.enquire(now)
    }

    #[inline]
    fn acknowledgement(&mut self) -> Frame<D> {
        let mut frame = Frame::default();
        self.receiver.write_ack(&mut frame);
        frame
    }

    fn abort(&mut self, why: Abort) {
        if self.aborted.is_none() {
            self.aborted = Some(why);
            self.is_reset_due = why != Abort::Reset;
        }
    }

    /// Whether both directions are done.
    fn is_closed(&self) -> bool {
        self.sender.is_done() && self.receiver.is_finished
    }
}

impl<D: Payload> Endpoint for Station<D> {
    type Packet = Frame<D>;

    #[inline]
    fn handle_packet(&mut self, now: Time, frame: &Frame<D>, rx: Rx) {
        if self.aborted.is_some() {
            return;
        }
        let flags = frame.flags;
        if flags.has(Flags::RESET) {
            if !self.is_closed() {
                self.abort(Abort::Reset);
            }
            return;
        }
        // These fields are valid even if the payload is damaged.
        if flags.has(Flags::ACK) {
            let echoed = flags.has(Flags::ECHO).then(|| {
                let ticks = timestamp(now).wrapping_sub(frame.echo);
                Time::from_ps(u64::from(ticks) << TIMESTAMP_SHIFT)
            });
            let is_single = flags.has(Flags::SINGLE);
            self.sender.handle_ack(now, &AckFields { number: frame.ack, is_single, blocks: &frame.blocks, echoed });
        }
        if flags.has(Flags::NAK) {
            self.sender.handle_nak(now, frame.nak, frame.nak_count, flags.has(Flags::HELD));
        }
        if flags.has(Flags::DATA) {
            // A frame without data or parity of its own consists of its header only.
            let is_header = frame.payload.is_empty() && frame.increment == 0;
            let integrity = if is_header { Integrity::Intact } else { rx.integrity };
            self.receiver.handle_frame(now, frame, integrity);
        } else if flags.has(Flags::ENQUIRY) {
            self.receiver.handle_enquiry(now, frame.number);
        }
    }

    fn wants_hints(&self) -> bool {
        self.sender.length.as_ref().is_some_and(Length::wants_hints)
    }

    fn handle_link(&mut self, now: Time, hint: LinkHint) {
        if let (LinkHint::Ber(ber), Some(length)) = (hint, &mut self.sender.length) {
            length.set_link_ber(now, ber);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.aborted.is_some() {
            return;
        }
        self.sender.handle_timeout(now);
        self.receiver.handle_timeout(now);
        if self.sender.has_reached_limit() || self.receiver.has_reached_limit() {
            self.abort(Abort::TooManyRetries);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Frame<D>>> {
        let mut frame = if self.aborted.is_none() {
            self.next_frame(now)?
        } else if std::mem::take(&mut self.is_reset_due) {
            Frame { flags: Flags::RESET, ..Frame::default() }
        } else {
            return None;
        };
        if self.has_timestamps {
            frame.flags = frame.flags.with(Flags::TIMESTAMP);
            frame.timestamp = timestamp(now);
        }
        self.sizes.measure(&mut frame);
        if self.pacer.is_on() {
            self.pacer.on_sent(now, crate::endpoint::Packet::wire_bytes(&frame));
        }
        Some(Transmit::plain(frame))
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        if !self.has_told_connected {
            self.has_told_connected = true;
            return Some(Event::Connected);
        }
        if let Some(bytes) = self.receiver.poll_gap() {
            return Some(Event::Skipped(bytes));
        }
        if !self.has_told_finished && self.receiver.is_read_to_the_end() {
            self.has_told_finished = true;
            return Some(Event::Finished);
        }
        if let Some(why) = self.aborted {
            return (!std::mem::replace(&mut self.has_told_aborted, true)).then_some(Event::Aborted(why));
        }
        if std::mem::take(&mut self.sender.is_writable) {
            return Some(Event::Writable);
        }
        if !self.has_told_closed && self.is_closed() {
            self.has_told_closed = true;
            return Some(Event::Closed);
        }
        None
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        if self.aborted.is_some() {
            return None;
        }
        let mut next = self.sender.deadline().min(self.receiver.nak_deadline()).min(self.receiver.ack_deadline);
        if self.pacer.is_on() && self.sender.wants_to_send() {
            next = next.min(self.pacer.next());
        }
        (next != Time::NEVER).then_some(next)
    }

    fn counters(&self) -> Counters {
        Counters {
            timeouts: self.sender.timeouts,
            fast_retransmits: self.sender.asked_again,
            peak_reorder_bytes: self.receiver.peak_bytes,
            peak_send_buffer_bytes: self.sender.peak_bytes,
        }
    }

    fn probe(&self) -> Probe {
        let (in_flight, first) = self.sender.in_flight();
        Probe {
            rtt: self.sender.rto.latest,
            in_flight_bytes: Some(in_flight),
            acknowledged_bytes: Some(first),
            ..Probe::default()
        }
    }
}

impl<D: Payload> Stream<D> for Station<D> {
    fn write(&mut self, _now: Time, data: &mut D) -> usize {
        if self.aborted.is_some() {
            return 0;
        }
        let n = self.sender.write(data.clone());
        if n > 0 {
            std::mem::take(data);
        }
        n
    }

    #[inline]
    fn read(&mut self) -> Option<D> {
        self.receiver.read()
    }

    fn close(&mut self, _now: Time) {
        self.sender.close();
    }

    fn settled_bytes(&self) -> u64 {
        self.sender.in_flight().1
    }
}

#[inline(always)]
fn timestamp(now: Time) -> u32 {
    (now.as_ps() >> TIMESTAMP_SHIFT) as u32
}

fn short(bytes: u32) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

impl<D: Payload> Pairs<D> for ArqConfig {
    type End = Station<D>;

    fn pair(&self, _seed: u64) -> (Station<D>, Station<D>) {
        (Station::new(self), Station::new(self))
    }
}

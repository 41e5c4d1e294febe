//! The receiving half of a station: it reorders frames, acknowledges those that have arrived and requests missing ones.

use std::collections::VecDeque;

use crate::endpoint::Integrity;
use crate::payload::Payload;
use crate::protocol::parts::chunks::Chunks;
use crate::protocol::parts::rto::RetransmissionTimer;
use crate::time::Time;

use super::combine::Partial;
use super::config::{Acknowledgement, ArqConfig, Mode, TimerSide};
use super::frame::{Block, Flags, Frame};
use super::number::Numbers;
use super::ranges::Ranges;

/// A frame from the first missing one on.
#[derive(Clone, Debug, Default)]
struct Slot<D> {
    is_held: bool,
    is_fin: bool,
    skipped_bytes: u32,
    data: D,
    partial: Partial,
    /// When it was last requested; `times_asked` says how often.
    asked: Time,
    times_asked: u32,
}

/// Frames that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) first: u64,
    pub(super) count: u16,
    /// Whether the receiver holds a damaged copy (for a single frame).
    pub(super) is_held: bool,
}

/// Data that was given up, with its position in the stream.
#[derive(Clone, Copy, Debug)]
struct Gap {
    at: u64,
    bytes: u64,
}

/// The receiving half.
#[derive(Clone, Debug)]
pub(super) struct Receiver<D> {
    ack: Acknowledgement,
    has_naks: bool,
    timer_side: TimerSide,
    keeps_order_itself: bool,
    pub(super) numbers: Numbers,
    /// Receive buffer: frames from the first missing one on that are kept.
    window: u64,
    /// Frames from the first missing one on that the sender may have sent.
    span: u64,
    most_blocks: usize,
    /// Limit of data in order that the application has not read.
    most_unread_bytes: u64,
    piggyback: Option<Time>,
    rto: RetransmissionTimer,

    /// The first missing frame.
    next: u64,
    slots: VecDeque<Slot<D>>,
    /// One more than the last frame that is known to have been sent.
    seen_end: u64,
    held: Ranges,
    held_bytes: u64,
    ready: Chunks<D>,
    ready_end: u64,
    read_end: u64,
    gaps: VecDeque<Gap>,
    pub(super) is_finished: bool,

    has_heard: bool,
    is_ack_due: bool,
    /// Single acknowledgements that are due, with the timestamps that they echo.
    single_acks: VecDeque<(u64, Option<u32>)>,
    pub(super) ack_deadline: Time,
    echo: Option<u32>,
    naks: VecDeque<Missing>,
    /// Requested frames and the time of each request, for repeated requests.
    awaited: VecDeque<(u64, u16, Time)>,
    timeouts_in_a_row: u32,
    max_timeouts: u32,
    pub(super) peak_bytes: u64,
}

impl<D: Payload> Receiver<D> {
    pub(super) fn new(config: &ArqConfig) -> Self {
        let bits = config.sequence_bits.map_or(32, |bits| u32::try_from(bits.whole()).unwrap_or(32));
        let keeps_order_itself = config.mode == Mode::SelectiveRepeat;
        Receiver {
            ack: config.ack,
            has_naks: config.nak,
            timer_side: config.timer,
            keeps_order_itself,
            numbers: Numbers::new(bits),
            window: if keeps_order_itself { config.span() } else { 1 },
            span: config.span(),
            most_blocks: if config.has_blocks() {
                usize::try_from(config.most_blocks()).unwrap_or(usize::MAX)
            } else {
                usize::MAX
            },
            most_unread_bytes: config.span().saturating_mul(config.segment_bytes.whole()),
            piggyback: config.piggyback_timeout_s.map(crate::units::Seconds::time),
            rto: RetransmissionTimer::new(&config.rto),
            next: 0,
            slots: VecDeque::new(),
            seen_end: 0,
            held: Ranges::default(),
            held_bytes: 0,
            ready: Chunks::default(),
            ready_end: 0,
            read_end: 0,
            gaps: VecDeque::new(),
            is_finished: false,
            has_heard: false,
            is_ack_due: false,
            single_acks: VecDeque::new(),
            ack_deadline: Time::NEVER,
            echo: None,
            naks: VecDeque::new(),
            awaited: VecDeque::new(),
            timeouts_in_a_row: 0,
            max_timeouts: config
                .give_up_after_timeouts
                .map_or(u32::MAX, |n| u32::try_from(n.whole()).unwrap_or(u32::MAX)),
            peak_bytes: 0,
        }
    }

    /// A frame with a number has arrived.
    #[inline]
    pub(super) fn handle_frame(&mut self, now: Time, frame: &Frame<D>, integrity: Integrity) {
        let Some(number) = self.numbers.near(frame.number, self.next) else { return };
        let echo = frame.flags.has(Flags::TIMESTAMP).then_some(frame.timestamp);
        self.has_heard = true;
        if number < self.next {
            self.acknowledge(now, number, echo);
            return;
        }
        let seen_end = self.seen_end.max(self.next);
        self.seen_end = seen_end.max(number + 1);
        if self.has_naks && number > seen_end.min(self.next_if_strict()) {
            self.note_gap(now, seen_end, number);
        }
        if number - self.next >= self.window || self.ready_end - self.read_end >= self.most_unread_bytes {
            self.repeat_ack(now, echo);
            return;
        }
        self.accept(now, number, frame, integrity, echo);
    }

    /// In go-back-N any frame but the next expected one counts as a gap.
    fn next_if_strict(&self) -> u64 {
        if self.keeps_order_itself { u64::MAX } else { self.next }
    }

    #[inline]
    fn accept(&mut self, now: Time, number: u64, frame: &Frame<D>, integrity: Integrity, echo: Option<u32>) {
        let is_next = number == self.next;
        if !is_next
            && self.timer_side == TimerSide::Sender
            && self.held.is_apart(number)
            && self.held.as_slice().len() >= self.most_blocks
        {
            // The frame could not be reported, so the sender would retransmit it anyway. But a sender without a timer retransmits
            // only on request, and requesting a frame only to drop it again would never end; therefore it is kept and
            // acknowledged together with those before it.
            self.repeat_ack(now, echo);
            return;
        }
        // A frame that was cut again may begin with data that has already arrived. An older copy may begin after the
        // missing data.
        let known = (self.ready_end as u32).wrapping_sub(frame.position);
        let is_cut_again = is_next && known != 0;
        if is_cut_again && known > u32::MAX / 2 {
            self.repeat_ack(now, echo);
            return;
        }
        if is_next && !is_cut_again && self.slots.is_empty() && integrity == Integrity::Intact && frame.increment == 0 {
            self.deliver_at_once(frame);
            self.acknowledge(now, number, echo);
            return;
        }
        let has_naks = self.has_naks;
        let slot = self.slot(number);
        if slot.is_held {
            self.acknowledge(now, number, echo);
            return;
        }
        if !slot.take(frame, integrity) {
            // The frame is not acknowledged; it is requested by number, or times out.
            let is_held = slot.partial.has_data();
            if has_naks {
                self.ask(now, Missing { first: number, count: 1, is_held });
            }
            return;
        }
        if is_cut_again {
            let known = (known as usize).min(slot.data.len());
            slot.data.split_to(known);
        }
        let (times_asked, asked, bytes) = (slot.times_asked, slot.asked, slot.data.len() as u64);
        self.timeouts_in_a_row = 0;
        if times_asked == 1 && self.timer_side == TimerSide::Receiver {
            // Karn's rule applied to requests: take a sample only if the frame was requested once.
            self.rto.sample(now, now.since(asked));
        }
        if is_next {
            self.deliver();
        } else {
            self.held.insert(number, number + 1);
            self.held_bytes += bytes;
            self.peak_bytes = self.peak_bytes.max(self.held_bytes);
        }
        self.acknowledge(now, number, echo);
    }

    /// Hands the next frame to the application, while nothing is known of it or of later ones.
    #[inline]
    fn deliver_at_once(&mut self, frame: &Frame<D>) {
        self.timeouts_in_a_row = 0;
        self.next += 1;
        self.is_finished |= frame.flags.has(Flags::FIN);
        let bytes = frame.payload.len() as u64;
        if bytes > 0 {
            self.ready_end += bytes;
            self.ready.push(frame.payload.clone());
        }
        if frame.flags.has(Flags::SKIP) {
            self.add_gap(u64::from(frame.skipped_bytes));
        }
        self.held.remove_before(self.next);
    }

    /// The next bytes in order were given up.
    #[inline]
    fn add_gap(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        match self.gaps.back_mut().filter(|gap| gap.at + gap.bytes == self.ready_end) {
            Some(gap) => gap.bytes += bytes,
            None => self.gaps.push_back(Gap { at: self.ready_end, bytes }),
        }
        self.ready_end += bytes;
    }

    /// The slot of a frame in the window.
    #[inline]
    fn slot(&mut self, number: u64) -> &mut Slot<D> {
        let index = (number - self.next) as usize;
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, Slot::default);
        }
        &mut self.slots[index]
    }

    /// Hands data in order to the application.
    #[inline]
    fn deliver(&mut self) {
        let first = self.next;
        while self.slots.front().is_some_and(|slot| slot.is_held) {
            let Some(slot) = self.slots.pop_front() else { break };
            let bytes = slot.data.len() as u64;
            if self.next > first {
                self.held_bytes -= bytes;
            }
            self.next += 1;
            self.is_finished |= slot.is_fin;
            if bytes > 0 {
                self.ready_end += bytes;
                self.ready.push(slot.data);
            }
            self.add_gap(u64::from(slot.skipped_bytes));
        }
        self.held.remove_before(self.next);
    }

    /// The next data in order, up to the next gap of data that was given up.
    #[inline]
    pub(super) fn read(&mut self) -> Option<D> {
        if self.read_end == self.ready_end {
            return None;
        }
        let Some(gap) = self.gaps.front() else {
            let data = self.ready.pop()?;
            self.read_end += data.len() as u64;
            return Some(data);
        };
        let n = usize::try_from(gap.at - self.read_end).unwrap_or(usize::MAX).min(self.ready.front_len());
        if n == 0 {
            return None;
        }
        let data = self.ready.slice(0, n);
        self.ready.advance(n);
        self.read_end += n as u64;
        Some(data)
    }

    /// Length of the data that was given up at the position that the application has reached.
    pub(super) fn poll_gap(&mut self) -> Option<u64> {
        let gap = *self.gaps.front().filter(|gap| gap.at == self.read_end)?;
        self.gaps.pop_front();
        self.read_end += gap.bytes;
        Some(gap.bytes)
    }

    /// Whether the peer's stream has ended and was read completely.
    pub(super) fn is_read_to_the_end(&self) -> bool {
        self.is_finished && self.read_end == self.ready_end
    }

    /// Schedules the acknowledgement of a frame that arrived now or before.
    #[inline]
    fn acknowledge(&mut self, now: Time, number: u64, echo: Option<u32>) {
        if self.ack == Acknowledgement::PerPacket {
            self.single_acks.push_back((number, echo));
        } else {
            //= https://www.rfc-editor.org/rfc/rfc7323#section-4.3
            //# (A)  Delayed ACKs. Many TCP's acknowledge only every second segment out of a group of segments arriving
            //# within a short time interval; this policy is known generally as "delayed ACKs".  The data-sender TCP must
            //# measure the effective RTT, including the additional time due to delayed ACKs, or else it will retransmit
            //# unnecessarily.  Thus, when delayed ACKs are in use, the receiver SHOULD reply with the TSval field from the
            //# earliest unacknowledged segment.
            if !self.is_ack_due {
                self.echo = echo;
            }
            self.is_ack_due = true;
        }
        self.wait_for_a_ride(now);
    }

    /// Repeats the acknowledgement after a frame was dropped, if acknowledgements are cumulative.
    fn repeat_ack(&mut self, now: Time, echo: Option<u32>) {
        if self.ack == Acknowledgement::Cumulative {
            self.acknowledge(now, self.next, echo);
        }
    }

    #[inline]
    fn wait_for_a_ride(&mut self, now: Time) {
        if self.ack_deadline == Time::NEVER {
            self.ack_deadline = now + self.piggyback.unwrap_or(Time::ZERO);
        }
    }

    /// Whether an acknowledgement is due, now or when data goes out.
    #[inline]
    pub(super) fn has_ack(&self) -> bool {
        self.is_ack_due || !self.single_acks.is_empty()
    }

    /// Whether acknowledgements are piggybacked on data.
    #[inline]
    pub(super) fn rides(&self) -> bool {
        self.piggyback.is_some()
    }

    /// Writes an acknowledgement into a frame, with blocks if it has any.
    #[inline]
    pub(super) fn write_ack(&mut self, frame: &mut Frame<D>) {
        if self.ack == Acknowledgement::PerPacket {
            let Some((number, echo)) = self.single_acks.pop_front() else { return };
            frame.flags = frame.flags.with(Flags::ACK).with(Flags::SINGLE);
            frame.ack = self.numbers.on_wire(number);
            set_echo(frame, echo);
            if self.single_acks.is_empty() {
                self.ack_deadline = Time::NEVER;
            }
            return;
        }
        if !self.has_heard {
            return;
        }
        frame.flags = frame.flags.with(Flags::ACK);
        frame.ack = self.numbers.on_wire(self.next);
        if std::mem::take(&mut self.is_ack_due) {
            let echo = self.echo.take();
            set_echo(frame, echo);
            let held = self.held.as_slice();
            if self.most_blocks != usize::MAX && !held.is_empty() {
                frame.blocks.reserve(held.len().min(self.most_blocks));
                for &(left, right) in held.iter().take(self.most_blocks) {
                    frame.blocks.push(Block { left: self.numbers.on_wire(left), right: self.numbers.on_wire(right) });
                }
            }
        }
        self.ack_deadline = Time::NEVER;
    }

    /// Notes that the frames from `from` to before `to` are missing.
    #[cold]
    fn note_gap(&mut self, now: Time, from: u64, to: u64) {
        if self.keeps_order_itself {
            let to = to.min(self.next + self.window);
            self.ask_range(now, from, to);
        } else if self.slot(self.next).times_asked == 0 {
            self.ask(now, Missing { first: self.next, count: 1, is_held: false });
        }
    }

    fn ask_range(&mut self, now: Time, mut first: u64, end: u64) {
        while first < end {
            let count = u16::try_from(end - first).unwrap_or(u16::MAX);
            self.ask(now, Missing { first, count, is_held: false });
            first += u64::from(count);
        }
    }

    fn ask(&mut self, now: Time, missing: Missing) {
        for number in missing.first..missing.first + u64::from(missing.count) {
            let slot = self.slot(number);
            slot.asked = now;
            slot.times_asked = slot.times_asked.saturating_add(1);
        }
        self.naks.push_back(missing);
        if self.timer_side == TimerSide::Receiver {
            self.awaited.push_back((missing.first, missing.count, now));
        }
    }

    /// The next negative acknowledgement.
    #[inline]
    pub(super) fn next_nak(&mut self) -> Option<Missing> {
        if self.naks.is_empty() {
            return None;
        }
        while let Some(missing) = self.naks.pop_front() {
            if missing.first >= self.next {
                return Some(missing);
            }
        }
        None
    }

    /// Whether too many requests in a row were unsuccessful.
    pub(super) fn has_reached_limit(&self) -> bool {
        self.timeouts_in_a_row >= self.max_timeouts
    }

    /// When requests are repeated next.
    #[inline]
    pub(super) fn nak_deadline(&self) -> Time {
        self.awaited.front().map_or(Time::NEVER, |&(_, _, asked)| asked + self.rto.rto())
    }

    /// Repeats requests for frames that have not arrived in time.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        let mut is_late = false;
        while now >= self.nak_deadline() {
            let Some((first, count, asked)) = self.awaited.pop_front() else { break };
            let end = first + u64::from(count);
            let mut number = first.max(self.next);
            while number < end {
                let from = number;
                while number < end && self.is_awaited(number, asked) {
                    number += 1;
                }
                if number > from {
                    is_late = true;
                    let has_data = number - from == 1 && self.slot(from).partial.has_data();
                    self.ask(now, Missing { first: from, count: (number - from) as u16, is_held: has_data });
                }
                number += 1;
            }
        }
        if is_late {
            self.timeouts_in_a_row += 1;
            self.rto.back_off();
        }
    }

    /// Whether a frame is still missing and was not requested again after `asked`.
    fn is_awaited(&mut self, number: u64, asked: Time) -> bool {
        let slot = self.slot(number);
        !slot.is_held && slot.asked == asked
    }

    /// Answers an enquiry of the sender about the frames before `end`.
    pub(super) fn handle_enquiry(&mut self, now: Time, end: u32) {
        self.has_heard = true;
        self.is_ack_due = self.ack == Acknowledgement::Cumulative;
        self.ack_deadline = now;
        let ahead = self.numbers.ahead(end, self.next);
        if ahead > self.span || !self.has_naks {
            return;
        }
        self.seen_end = self.seen_end.max(self.next + ahead);
        let end = self.next + ahead.min(self.window);
        let rto = self.rto.rto();
        for number in self.next..end {
            let slot = self.slot(number);
            let is_waited_for = slot.times_asked > 0 && now < slot.asked + rto;
            if !slot.is_held && !is_waited_for {
                let is_held = slot.partial.has_data();
                self.ask(now, Missing { first: number, count: 1, is_held });
            }
        }
    }
}

impl<D: Payload> Slot<D> {
    /// Takes the parts of a frame that arrived; returns whether the frame is complete now.
    #[inline]
    fn take(&mut self, frame: &Frame<D>, integrity: Integrity) -> bool {
        let is_intact = matches!(integrity, Integrity::Intact | Integrity::Mended { .. });
        if !is_intact || frame.increment > 0 {
            return self.take_part(frame, integrity, is_intact);
        }
        self.is_held = true;
        self.is_fin = frame.flags.has(Flags::FIN);
        self.skipped_bytes = if frame.flags.has(Flags::SKIP) { frame.skipped_bytes } else { 0 };
        self.data = frame.payload.clone();
        true
    }

    /// Takes a damaged copy, or parity.
    #[cold]
    fn take_part(&mut self, frame: &Frame<D>, integrity: Integrity, is_intact: bool) -> bool {
        let wrong = match integrity {
            Integrity::PayloadErrors { symbols } => u32::from(symbols),
            _ if is_intact => 0,
            _ => return false, // the number of wrong symbols is unknown
        };
        let parity_symbols = u32::from(frame.parity_bytes / 2);
        if frame.increment == 0 {
            self.partial.add_data(wrong, parity_symbols);
            self.data = frame.payload.clone();
        } else {
            self.partial.add_parity(frame.increment, wrong, parity_symbols);
        }
        self.is_held = self.partial.is_decodable();
        self.is_held
    }
}

#[inline]
fn set_echo<D>(frame: &mut Frame<D>, echo: Option<u32>) {
    if let Some(echo) = echo {
        frame.flags = frame.flags.with(Flags::ECHO);
        frame.echo = echo;
    }
}

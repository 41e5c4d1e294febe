//! The sending half of a station: which frame goes out next, and which are sent again.

use std::collections::VecDeque;

use crate::payload::Payload;
use crate::protocol::parts::chunks::Chunks;
use crate::protocol::parts::rto::RetransmissionTimer;
use crate::time::Time;
use crate::units::{Count, Whole};

use super::config::{ArqConfig, Mode, TimerSide};
use super::frame::{Blocks, Flags, Frame};
use super::length::Length;
use super::number::Numbers;
use super::ranges::Ranges;

/// What stands in a frame's place in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    /// The end.
    Fin,
    /// Data that was given up: the receiver is told where, as reliably as of anything else.
    Skip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be sent again.
    Waiting,
    UnderWay,
    Acknowledged,
}

/// A frame that was sent at least once, from the first one on that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Offset of its data in the stream.
    start: u64,
    /// When it was sent last.
    sent: Time,
    len: u32,
    transmissions: u32,
    /// How often its loss was noticed.
    losses: u32,
    /// Parts of the parity that have been sent.
    increments: u8,
    wants_parity: bool,
    kind: Kind,
    state: State,
}

/// The sending half.
#[derive(Clone, Debug)]
pub(super) struct Sender<D> {
    mode: Mode,
    timer_side: TimerSide,
    numbers: Numbers,
    window: u64,
    span: u64,
    segment_bytes: usize,
    /// Chooses the length of new frames, if it varies.
    pub(super) length: Option<Length>,
    /// Frames that go out again are cut again: without blocks, the receiver holds none of those that follow.
    cuts_again: bool,
    max_losses: u32,
    max_timeouts: u32,
    /// Bytes of first parity and of each increment, and how many of these there are.
    parity: Option<(u16, u16, u8)>,
    pub(super) rto: RetransmissionTimer,

    buffer: Chunks<D>,
    buffer_start: u64,
    written_end: u64,
    /// Offset behind the last byte that was put into a frame.
    cut_end: u64,
    is_closing: bool,
    has_fin: bool,
    /// The application has been asked for more, or has not written yet.
    was_asked: bool,
    pub(super) is_writable: bool,

    slots: VecDeque<Slot>,
    /// Number of the first slot.
    una: u64,
    /// Where the frames before it end, as they were sent last: the receiver has all before.
    acknowledged_end: u64,
    unacknowledged: u64,
    /// Go-back-N: the next frame to be sent again; behind the last if none.
    cursor: u64,
    /// Selective repeat: frames to be sent again, in the order in which they were lost.
    repeats: VecDeque<u64>,
    /// Those of them that are too long for the moment, where the length varies: others go first.
    held_back: VecDeque<u64>,
    /// Selective repeat: transmissions in order, to find the one that times out next.
    transmissions: VecDeque<(u64, Time)>,
    /// Frames known from blocks, so that each is looked at once.
    reported: Ranges,
    /// When the timer was backed off last: frames sent before say nothing new about it.
    backed_off: Option<Time>,
    /// Latest sending or progress, for a sender that only asks.
    last_heard: Time,
    is_enquiry_due: bool,
    timeouts_in_a_row: u32,
    pub(super) timeouts: u64,
    pub(super) asked_again: u64,
    pub(super) given_up_bytes: u64,
    pub(super) peak_bytes: u64,
}

/// More data than this waits unsent: no need to ask the application.
const LOW_WATER_BYTES: u64 = 1 << 30;

/// What an acknowledgement says.
pub(super) struct Heard<'a> {
    pub(super) number: u32,
    pub(super) is_single: bool,
    pub(super) blocks: &'a Blocks,
    /// How long ago the frame was sent that it answers, if the peer echoed that.
    pub(super) echoed: Option<Time>,
}

impl<D: Payload> Sender<D> {
    pub(super) fn new(config: &ArqConfig) -> Self {
        let whole = |n: Option<Count>| n.map_or(u32::MAX, |n| u32::try_from(n.whole()).unwrap_or(u32::MAX));
        let bits = config.sequence_bits.map_or(32, |bits| u32::try_from(bits.whole()).unwrap_or(32));
        let short = |bytes: u64| u16::try_from(bytes).unwrap_or(u16::MAX);
        Sender {
            mode: config.mode,
            timer_side: config.timer,
            numbers: Numbers::new(bits),
            window: config.window(),
            span: config.span(),
            segment_bytes: usize::try_from(config.segment_bytes.whole()).unwrap_or(usize::MAX),
            length: config.length(),
            cuts_again: config.cuts_again(),
            max_losses: whole(config.max_transmissions),
            max_timeouts: whole(config.give_up_after_timeouts),
            parity: config.incremental.map(|parts| {
                let (first, part) = (Whole::whole(parts.first_parity_bytes), parts.parity_bytes.whole());
                (short(first), short(part), parts.increments.whole() as u8)
            }),
            rto: RetransmissionTimer::new(&config.rto),
            buffer: Chunks::default(),
            buffer_start: 0,
            written_end: 0,
            cut_end: 0,
            is_closing: false,
            has_fin: false,
            was_asked: true,
            is_writable: false,
            slots: VecDeque::new(),
            una: 0,
            acknowledged_end: 0,
            unacknowledged: 0,
            cursor: 0,
            repeats: VecDeque::new(),
            held_back: VecDeque::new(),
            transmissions: VecDeque::new(),
            reported: Ranges::default(),
            backed_off: None,
            last_heard: Time::ZERO,
            is_enquiry_due: false,
            timeouts_in_a_row: 0,
            timeouts: 0,
            asked_again: 0,
            given_up_bytes: 0,
            peak_bytes: 0,
        }
    }

    pub(super) fn write(&mut self, data: D) -> usize {
        let n = data.len();
        if n == 0 || self.is_closing {
            return 0;
        }
        self.written_end += n as u64;
        self.buffer.push(data);
        self.was_asked = false;
        n
    }

    pub(super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// Whether the end of the stream has been acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.has_fin && self.slots.is_empty()
    }

    /// Whether timeouts in a row have used up the patience.
    pub(super) fn is_hopeless(&self) -> bool {
        self.timeouts_in_a_row >= self.max_timeouts
    }

    /// Bytes sent and not acknowledged, and the offset of the first of them.
    pub(super) fn in_flight(&self) -> (u64, u64) {
        (self.cut_end - self.acknowledged_end, self.acknowledged_end)
    }

    #[inline]
    fn next(&self) -> u64 {
        self.una + self.slots.len() as u64
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(number.checked_sub(self.una)?).ok()?)
    }

    fn state(&self, number: u64) -> Option<State> {
        let index = usize::try_from(number.checked_sub(self.una)?).ok()?;
        self.slots.get(index).map(|slot| slot.state)
    }

    /// Whether a frame may go out, if nothing holds it back.
    #[inline]
    pub(super) fn wants_to_send(&self) -> bool {
        self.cursor < self.next() || !self.repeats.is_empty() || !self.held_back.is_empty() || self.has_room()
    }

    /// Whether a new frame may go out.
    #[inline]
    fn has_room(&self) -> bool {
        let has_more = self.cut_end < self.written_end || (self.is_closing && !self.has_fin);
        has_more && self.unacknowledged < self.window && (self.slots.len() as u64) < self.span
    }

    /// The next frame: one that is sent again, or a new one.
    #[inline]
    pub(super) fn transmit(&mut self, now: Time) -> Option<Frame<D>> {
        if !self.wants_to_send() {
            return None;
        }
        let number = if self.cursor < self.next() {
            let number = self.cursor;
            self.cursor += 1;
            if self.cuts_again {
                self.cut_again(now, number);
            }
            number
        } else if let Some(number) = self.next_repeat(now) {
            self.drop_stale_repeats();
            number
        } else if self.has_room() {
            self.open_slot(now);
            self.next() - 1
        } else {
            return None;
        };
        Some(self.send(now, number))
    }

    /// The frame that is to be sent again next: before new ones, but for those that would be lost again.
    #[inline]
    fn next_repeat(&mut self, now: Time) -> Option<u64> {
        if self.length.is_none() {
            return self.repeats.pop_front();
        }
        if let Some(&number) = self.held_back.front()
            && !self.is_too_long(now, number)
        {
            return self.held_back.pop_front();
        }
        while let Some(number) = self.repeats.pop_front() {
            if self.state(number) != Some(State::Waiting) {
                continue; // acknowledged meanwhile
            }
            if !self.is_too_long(now, number) {
                return Some(number);
            }
            self.held_back.push_back(number);
        }
        if self.has_room() { None } else { self.held_back.pop_front() }
    }

    fn is_too_long(&mut self, now: Time, number: u64) -> bool {
        let bytes = self.slot(number).map_or(0, |slot| slot.len);
        self.length.as_mut().is_some_and(|length| length.is_too_long(now, bytes))
    }

    /// Cuts the next frame from what was written.
    #[inline]
    fn open_slot(&mut self, now: Time) {
        let left = self.written_end - self.cut_end;
        let (kind, len) = if left == 0 {
            self.has_fin = true;
            (Kind::Fin, 0)
        } else {
            // A frame ends where a chunk ends, so that it can be cut again in the same way.
            let offset = (self.cut_end - self.buffer_start) as usize;
            let bytes = self.length.as_mut().map_or(self.segment_bytes, |length| length.next_bytes(now) as usize);
            (Kind::Data, self.buffer.slice(offset, bytes).len() as u32)
        };
        let start = self.cut_end;
        self.slots.push_back(Slot {
            start,
            sent: now,
            len,
            transmissions: 0,
            losses: 0,
            increments: 0,
            wants_parity: false,
            kind,
            state: State::Waiting,
        });
        self.unacknowledged += 1;
        self.cut_end += u64::from(len);
        self.cursor = self.next();
        self.peak_bytes = self.peak_bytes.max(self.in_flight().0);
        if !self.was_asked && !self.is_closing && self.written_end - self.cut_end < LOW_WATER_BYTES {
            self.was_asked = true;
            self.is_writable = true;
        }
    }

    /// Cuts a frame that goes out again to the length of the moment, with what those before it have left.
    ///
    /// It never ends behind where it ended before, so that it begins nowhere behind the data that the receiver has: a receiver
    /// that took an earlier copy of a frame before it knows the beginning of this one, and no byte is missing in between.
    fn cut_again(&mut self, now: Time, number: u64) {
        let index = (number - self.una) as usize;
        let before = index.checked_sub(1).and_then(|before| self.slots.get(before));
        let start = before.map_or(self.acknowledged_end, |slot| slot.start + u64::from(slot.len));
        let (Some(length), Some(slot)) = (&mut self.length, self.slots.get_mut(index)) else { return };
        let end = slot.start + u64::from(slot.len);
        if start < end {
            let bytes = (end - start).min(u64::from(length.next_bytes(now))) as usize;
            let offset = (start - self.buffer_start) as usize;
            slot.start = start;
            slot.len = self.buffer.slice(offset, bytes).len() as u32;
            // The end of the stream, if this was it, comes later now.
            self.has_fin &= slot.kind != Kind::Fin;
            slot.kind = Kind::Data;
        }
        let end = slot.start + u64::from(slot.len);
        if index + 1 == self.slots.len() {
            self.cut_end = end;
        }
    }

    /// A frame as it goes out now.
    #[inline]
    fn send(&mut self, now: Time, number: u64) -> Frame<D> {
        let (numbers, parity, buffer_start) = (self.numbers, self.parity, self.buffer_start);
        let mut frame = Frame { flags: Flags::DATA, number: numbers.on_wire(number), ..Frame::default() };
        if self.mode == Mode::SelectiveRepeat && self.timer_side == TimerSide::Sender {
            self.transmissions.push_back((number, now));
        }
        self.last_heard = now;
        let Some(slot) = self.slots.get_mut((number - self.una) as usize) else { return frame };
        if slot.state == State::Waiting {
            slot.state = State::UnderWay;
        }
        slot.sent = now;
        slot.transmissions = slot.transmissions.saturating_add(1);
        frame.position = slot.start as u32;
        match slot.kind {
            Kind::Fin => frame.flags = frame.flags.with(Flags::FIN),
            Kind::Skip => {
                frame.flags = frame.flags.with(Flags::SKIP);
                frame.skipped_bytes = slot.len;
            }
            Kind::Data => {
                let mut is_parity = false;
                if let Some((first, part, increments)) = parity {
                    frame.flags = frame.flags.with(Flags::INCREMENTAL);
                    is_parity = slot.wants_parity && slot.increments < increments;
                    if slot.wants_parity && !is_parity {
                        slot.increments = 0; // the code is used up: the data again, then its parity
                    }
                    slot.wants_parity = false;
                    frame.parity_bytes = if is_parity { part } else { first };
                }
                if is_parity {
                    slot.increments += 1;
                    frame.increment = slot.increments;
                } else {
                    frame.payload = self.buffer.slice((slot.start - buffer_start) as usize, slot.len as usize);
                }
            }
        }
        frame
    }

    /// An enquiry, if one is due.
    pub(super) fn enquire(&mut self, now: Time) -> Option<Frame<D>> {
        if !std::mem::take(&mut self.is_enquiry_due) || self.slots.is_empty() {
            return None;
        }
        self.last_heard = now;
        Some(Frame { flags: Flags::ENQUIRY, number: self.numbers.on_wire(self.next()), ..Frame::default() })
    }

    /// When the timer expires.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        let rto = self.rto.rto();
        if self.timer_side == TimerSide::Receiver {
            let is_silent = self.unacknowledged > 0 && !self.is_enquiry_due && !self.wants_to_send();
            return if is_silent { self.last_heard + rto } else { Time::NEVER };
        }
        if self.mode == Mode::SelectiveRepeat {
            return self.transmissions.front().map_or(Time::NEVER, |&(_, sent)| sent + rto);
        }
        let first = self.slots.front().filter(|_| self.cursor > self.una);
        first.map_or(Time::NEVER, |slot| slot.sent + rto)
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if now < self.deadline() {
            return;
        }
        if self.timer_side == TimerSide::Receiver {
            self.is_enquiry_due = true;
            self.note_timeout(now, now);
            return;
        }
        if self.mode != Mode::SelectiveRepeat {
            let sent = self.slots.front().map_or(now, |slot| slot.sent);
            self.lose(now, self.una, false);
            self.note_timeout(now, sent);
            return;
        }
        let rto = self.rto.rto();
        while let Some(&(number, sent)) = self.transmissions.front()
            && sent + rto <= now
        {
            self.transmissions.pop_front();
            if self.is_current(number, sent) {
                self.lose(now, number, false);
                self.note_timeout(now, sent);
            }
        }
        self.drop_stale_transmissions();
    }

    fn note_timeout(&mut self, now: Time, sent: Time) {
        self.timeouts += 1;
        // Frames that were lost together are one event: the timer is backed off once for all of them.
        if self.backed_off.is_none_or(|at| sent >= at) {
            self.timeouts_in_a_row += 1;
            self.rto.back_off();
            self.backed_off = Some(now);
        }
    }

    /// A frame is taken for lost: it goes out again, in go-back-N with all that follow.
    fn lose(&mut self, now: Time, number: u64, wants_parity: bool) {
        let max_losses = self.max_losses;
        let Some(slot) = self.slot(number) else { return };
        slot.losses = slot.losses.saturating_add(1);
        slot.wants_parity = wants_parity;
        let lost_bytes = (slot.kind == Kind::Data).then_some(slot.len);
        let mut given_up = 0;
        if slot.kind == Kind::Data && slot.losses >= max_losses {
            slot.kind = Kind::Skip;
            given_up = u64::from(slot.len);
        }
        slot.state = State::Waiting;
        self.given_up_bytes += given_up;
        if let (Some(length), Some(bytes)) = (&mut self.length, lost_bytes) {
            length.on_lost(now, bytes);
        }
        if self.mode == Mode::SelectiveRepeat {
            self.repeats.push_back(number);
        } else {
            self.cursor = self.cursor.min(number);
        }
    }

    /// Whether this was the latest transmission of a frame that is not acknowledged.
    fn is_current(&self, number: u64, sent: Time) -> bool {
        let index = number.checked_sub(self.una).and_then(|index| usize::try_from(index).ok());
        let slot = index.and_then(|index| self.slots.get(index));
        slot.is_some_and(|slot| slot.state == State::UnderWay && slot.sent == sent)
    }

    #[inline]
    fn drop_stale_transmissions(&mut self) {
        while let Some(&(number, sent)) = self.transmissions.front()
            && !self.is_current(number, sent)
        {
            self.transmissions.pop_front();
        }
    }

    #[inline]
    fn drop_stale_repeats(&mut self) {
        while let Some(&number) = self.repeats.front()
            && self.state(number) != Some(State::Waiting)
        {
            self.repeats.pop_front();
        }
        while let Some(&number) = self.held_back.front()
            && self.state(number) != Some(State::Waiting)
        {
            self.held_back.pop_front();
        }
    }

    /// An acknowledgement arrived.
    #[inline]
    pub(super) fn handle_ack(&mut self, now: Time, heard: &Heard<'_>) {
        let mut news = News::default();
        let ahead = self.numbers.ahead(heard.number, self.una);
        if heard.is_single {
            if ahead < self.slots.len() as u64 {
                self.mark(ahead as usize, &mut news);
            }
        } else if ahead <= self.slots.len() as u64 {
            for index in 0..ahead as usize {
                self.mark(index, &mut news);
            }
        }
        if !heard.blocks.is_empty() {
            self.mark_blocks(heard.blocks, &mut news);
        }
        if news.frames == 0 {
            return;
        }
        if let Some(length) = &mut self.length {
            length.on_acknowledged(now, news.frames, news.bytes);
        }
        self.advance();
        self.timeouts_in_a_row = 0;
        self.last_heard = now;
        self.is_enquiry_due = false;
        //= https://www.rfc-editor.org/rfc/rfc7323#section-4.1
        //# A TSecr value received in a segment MAY be used to update the averaged RTT measurement only if the segment
        //# advances the left edge of the send window, i.e., SND.UNA is increased.
        // With blocks and single acknowledgements: only if it acknowledges something new.
        if let Some(round_trip) = heard.echoed.or(news.sent.map(|sent| now.since(sent))) {
            self.rto.sample(now, round_trip);
        }
    }

    #[inline]
    fn mark(&mut self, index: usize, news: &mut News) {
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.state != State::Acknowledged) else { return };
        slot.state = State::Acknowledged;
        self.unacknowledged -= 1;
        news.frames += 1;
        news.bytes += if slot.kind == Kind::Data { u64::from(slot.len) } else { 0 };
        //= https://www.rfc-editor.org/rfc/rfc6298#section-3
        //# RTT samples MUST NOT be made using segments that were retransmitted (and thus for which it is ambiguous whether
        //# the reply was for the first instance of the packet or a later instance).
        if slot.transmissions == 1 {
            news.sent = news.sent.max(Some(slot.sent));
        }
    }

    fn mark_blocks(&mut self, blocks: &Blocks, news: &mut News) {
        let frames = self.slots.len() as u64;
        for block in blocks.iter() {
            let (left, right) = (self.numbers.ahead(block.left, self.una), self.numbers.ahead(block.right, self.una));
            if left >= right || right > frames {
                continue; // old, or never sent
            }
            let (left, right) = (self.una + left, self.una + right);
            let mut number = self.reported.end_of_run(left);
            if number >= right {
                continue;
            }
            while number < right {
                self.mark((number - self.una) as usize, news);
                number = self.reported.end_of_run(number + 1);
            }
            self.reported.insert(left, right);
        }
    }

    /// Lets go of what was acknowledged.
    #[inline]
    fn advance(&mut self) {
        while let Some(slot) = self.slots.front().filter(|slot| slot.state == State::Acknowledged) {
            self.acknowledged_end = slot.start + u64::from(slot.len);
            self.slots.pop_front();
            self.una += 1;
        }
        self.cursor = self.cursor.max(self.una);
        self.buffer.advance((self.acknowledged_end - self.buffer_start) as usize);
        self.buffer_start = self.acknowledged_end;
        self.reported.remove_before(self.una);
        self.drop_stale_transmissions();
        self.drop_stale_repeats();
    }

    /// The receiver asks for frames.
    pub(super) fn handle_nak(&mut self, now: Time, first: u32, count: u16, is_held: bool) {
        let first = self.una + self.numbers.ahead(first, self.una);
        let end = (first + u64::from(count)).min(self.next());
        // A frame sent less than a round trip ago is not what the receiver had in mind.
        let recent = self.rto.smoothed().map_or(Time::ZERO, |rtt| Time::from_ps(rtt.as_ps() / 8 * 7));
        for number in first..end {
            if self.mode != Mode::SelectiveRepeat && self.cursor <= number {
                return; // on its way again
            }
            let Some(slot) = self.slot(number) else { return };
            let is_answered = slot.transmissions > 1 && now.since(slot.sent) < recent;
            if slot.state != State::UnderWay || is_answered {
                continue;
            }
            self.lose(now, number, is_held);
            self.asked_again += 1;
            if self.mode != Mode::SelectiveRepeat {
                return; // all that follow go out again with it
            }
        }
        self.last_heard = now;
        self.drop_stale_transmissions();
    }
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    frames: u64,
    /// Data in them.
    bytes: u64,
    /// When the latest of them was sent that was sent once.
    sent: Option<Time>,
}

//! The sending half of a station: which frame goes out next, and which are sent again.

use std::collections::VecDeque;

use crate::payload::Payload;
use crate::protocol::parts::chunks::Chunks;
use crate::protocol::parts::length::Length;
use crate::protocol::parts::rto::RetransmissionTimer;
use crate::time::Time;
use crate::units::{Count, Whole};

use super::config::{ArqConfig, Mode, TimerSide};
use super::frame::{Flags, Frame};
use super::number::Numbers;
use super::ranges::Ranges;

mod hearing;
mod losses;

pub(super) use hearing::Heard;

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
}

//! The sending half of a station: it decides which frame is sent next and which are retransmitted.

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

mod acknowledgements;
mod losses;

pub(super) use acknowledgements::AckFields;

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    /// The end of the stream.
    Fin,
    /// Data that was given up. The receiver gets its position, as reliably as the rest of the stream.
    Skip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits to be retransmitted.
    Waiting,
    UnderWay,
    Acknowledged,
}

/// A frame that was sent at least once and that is not before the first unacknowledged one.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Position of its data in the stream.
    start: u64,
    /// When it was last sent.
    sent: Time,
    len: u32,
    transmissions: u32,
    /// How many times it was declared lost.
    losses: u32,
    /// Number of increments of parity that have been sent.
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
    /// The rule for the length of new frames, if it varies.
    pub(super) length: Option<Length>,
    /// Whether retransmitted data is cut again. This is possible without blocks, because the receiver then holds no
    /// later frames.
    cuts_again: bool,
    max_losses: u32,
    max_timeouts: u32,
    /// Bytes of the first parity and of each increment, and the number of increments.
    parity: Option<(u16, u16, u8)>,
    pub(super) rto: RetransmissionTimer,

    buffer: Chunks<D>,
    buffer_start: u64,
    written_end: u64,
    /// Position after the last byte that was put into a frame.
    cut_end: u64,
    is_closing: bool,
    has_fin: bool,
    /// Whether the application was asked for more data, or has not written yet.
    was_asked: bool,
    pub(super) is_writable: bool,

    slots: VecDeque<Slot>,
    /// Number of the first slot.
    una: u64,
    /// Position up to which the receiver has all data: the end of the frames before `una`, as they were last sent.
    acknowledged_end: u64,
    unacknowledged: u64,
    /// Go-back-N: the next frame to be retransmitted; after the last frame if there is none.
    cursor: u64,
    /// Selective repeat: frames to be retransmitted, in the order in which they were lost.
    repeats: VecDeque<u64>,
    /// Frames to be retransmitted that are too long at present, where the length varies; others go first.
    held_back: VecDeque<u64>,
    /// Selective repeat: transmissions in order, to find the one that times out next.
    transmissions: VecDeque<(u64, Time)>,
    /// Frames that blocks have reported, so that each is handled once.
    reported: Ranges,
    /// When the timer was last backed off; losses of frames sent before do not back it off again.
    backed_off: Option<Time>,
    /// Time of the latest transmission or progress, for a sender without a timer for frames.
    last_activity: Time,
    is_enquiry_due: bool,
    timeouts_in_a_row: u32,
    pub(super) timeouts: u64,
    pub(super) asked_again: u64,
    pub(super) given_up_bytes: u64,
    pub(super) peak_bytes: u64,
}

/// The application is not asked for more data while more than this waits unsent.
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
            last_activity: Time::ZERO,
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

    /// Whether the limit of timeouts in a row is reached.
    pub(super) fn has_reached_limit(&self) -> bool {
        self.timeouts_in_a_row >= self.max_timeouts
    }

    /// Bytes in flight (sent and not acknowledged), and the position of the first of them.
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

    /// Whether there is a frame to send, regardless of the rate.
    #[inline]
    pub(super) fn wants_to_send(&self) -> bool {
        self.cursor < self.next() || !self.repeats.is_empty() || !self.held_back.is_empty() || self.has_room()
    }

    /// Whether the window has room for a new frame.
    #[inline]
    fn has_room(&self) -> bool {
        let has_more = self.cut_end < self.written_end || (self.is_closing && !self.has_fin);
        has_more && self.unacknowledged < self.window && (self.slots.len() as u64) < self.span
    }

    /// The next frame: a retransmission, or a new frame.
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

    /// Cuts the next frame from the data that was written.
    #[inline]
    fn open_slot(&mut self, now: Time) {
        let left = self.written_end - self.cut_end;
        let (kind, len) = if left == 0 {
            self.has_fin = true;
            (Kind::Fin, 0)
        } else {
            // A frame does not extend past the end of a chunk, so that a retransmission can be cut in the same way.
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

    /// Cuts the data of a retransmitted frame to the present length, together with the data left over from earlier frames.
    ///
    /// A frame never ends later than it did before, so that no frame begins after the data that the receiver has. A receiver that
    /// took an earlier copy of the frame before this one therefore already has the beginning of this one, and no byte is missing
    /// in between.
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
            // If this frame was the end of the stream, the end is sent later now.
            self.has_fin &= slot.kind != Kind::Fin;
            slot.kind = Kind::Data;
        }
        let end = slot.start + u64::from(slot.len);
        if index + 1 == self.slots.len() {
            self.cut_end = end;
        }
    }

    /// Builds the frame that is sent now.
    #[inline]
    fn send(&mut self, now: Time, number: u64) -> Frame<D> {
        let (numbers, parity, buffer_start) = (self.numbers, self.parity, self.buffer_start);
        let mut frame = Frame { flags: Flags::DATA, number: numbers.on_wire(number), ..Frame::default() };
        if self.mode == Mode::SelectiveRepeat && self.timer_side == TimerSide::Sender {
            self.transmissions.push_back((number, now));
        }
        self.last_activity = now;
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
                        slot.increments = 0; // all parity was sent: begin again with the data
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

    /// The next enquiry, if one is due.
    pub(super) fn enquire(&mut self, now: Time) -> Option<Frame<D>> {
        if !std::mem::take(&mut self.is_enquiry_due) || self.slots.is_empty() {
            return None;
        }
        self.last_activity = now;
        Some(Frame { flags: Flags::ENQUIRY, number: self.numbers.on_wire(self.next()), ..Frame::default() })
    }
}

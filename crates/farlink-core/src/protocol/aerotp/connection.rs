//! One side of an AeroTP connection: ties the states, the sending and the receiving half together behind [`Endpoint`].

#[cfg(test)]
mod model;

use farlink_fec::awgn::split_mix64;

use crate::endpoint::{Class, Counters, Ecn, Endpoint, Integrity, LinkHint, PathId, Probe, Rx, Stream, Transmit};
use crate::event::{Abort, Event};
use crate::express::Express;
use crate::payload::{Payload, Virtual};
use crate::time::Time;

use super::clock::{instant, span, stamp, ticks};
use super::config::{AerotpConfig, LARGEST_BUFFER, Opens, parity_bytes};
use super::fec::Fec;
use super::lifecycle::{Lifecycle, State};
use super::mode::Mode;
use super::open_loop::{CLASSES, Estimate, Outbox, Service};
use super::peer::{Marks, Peer};
use super::rate::{Answer, Rate};
use super::receiving::{Incoming, Receiving};
use super::segment::{
    CLASS_BYTES, CRC_BYTES, FEC_BYTES, Flags, MOST_EDGES, Mack, OPENING_BYTES, PlainSegment, REPAIR_BYTES, Repair,
    Segment,
};
use super::sending::{Heard, Outgoing, Sending};

/// One side of an AeroTP connection.
#[derive(Clone, Debug)]
pub struct Connection<D> {
    config: AerotpConfig,
    mode: Mode,
    /// Parity in each segment with data, 32-bit words.
    fec_words: u16,
    /// What is known of the errors that it is against, if it follows them.
    errors: Option<Estimate>,
    lifecycle: Lifecycle,
    /// It awaits another peer when a connection is over.
    is_listener: bool,
    sending: Sending<D>,
    receiving: Receiving<D>,
    rate: Rate,
    /// Segments that arrived with a congestion mark, and damaged; both wrap.
    marked: u16,
    damaged: u16,
    /// Tells this connection from those that this side had before. `[L10]`
    tag: u16,
    /// The number of the first byte of the own stream.
    initial: u32,
    peer: Option<Peer>,
    /// A peer that is gone: what bears its tag, or is no newer than what it sent last, is of the past.
    past: Option<Peer>,
    reset: Option<Reset>,
    /// When the first segment went out, and when the own stream had come so far, in ticks: no answer is to anything older.
    first_sent: Option<u64>,
    marks: Marks<u64>,
    /// When something was heard or sent last.
    last_sign: Time,
    last_heard: Time,
    is_question_due: bool,
    /// Since when a question is unanswered.
    asked: Option<Time>,
    /// When the end of the own stream went out first.
    end_sent: Option<Time>,
    is_link_down: bool,
    news: News,
    dropped: Dropped,
    /// What the model checker takes away to see that it is needed.
    #[cfg(test)]
    without: Option<model::Without>,
}

/// An answer to a segment of no connection.
#[derive(Clone, Copy, Debug)]
struct Reset {
    tag: u16,
    sequence: u32,
    timestamp: u32,
}

/// What the application has yet to be told, and what it was told.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    has_told_connected: bool,
    has_told_finished: bool,
    has_told_closed: bool,
    aborted: Option<Abort>,
    has_told_aborted: bool,
    /// An earlier connection of a listener ended so.
    earlier: Option<Abort>,
}

/// Segments that were dropped, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Header fine, payload damaged beyond what its code mends.
    pub damaged: u64,
    /// Of no connection, or of one that is past, or of a past round of the sequence numbers.
    pub stray: u64,
    /// Acknowledgements of what was never sent, or that echo what was never sent.
    pub forged: u64,
    /// Data outside the window, or beyond the end of its stream.
    pub outside: u64,
    /// Flags and content that contradict each other.
    pub malformed: u64,
}

/// What may not be changed while a connection lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// A mode with acknowledgements keeps what it sent, and datagrams have no stream: neither becomes anything else.
    #[error("{from:?} cannot become {to:?}; only quasi-reliable and unreliable may be exchanged")]
    Mode {
        /// The mode of the connection.
        from: Mode,
        /// The mode that was asked for.
        to: Mode,
    },
    /// Parity stands in the quasi-reliable mode only.
    #[error("{0:?} has no parity; only quasi-reliable has")]
    NoParity(Mode),
    /// Messages have classes; a stream is of one.
    #[error("{0:?} has no classes; only datagrams have")]
    NoClasses(Mode),
    /// There is no such class.
    #[error("class {0}; allowed: 0 to 7")]
    NoSuchClass(u8),
    /// So much parity does not go into a packet.
    #[error("{words} words of parity; allowed: 0 to {most}")]
    TooMuchParity {
        /// The words that were asked for.
        words: u16,
        /// The most that leave room for data.
        most: u16,
    },
}

impl<D: Payload> Connection<D> {
    /// A side that opens the connection with its first data.
    pub(super) fn connecting(config: &AerotpConfig, seed: u64) -> Self {
        let mut side = Self::new(config, seed);
        if side.has_states() {
            side.lifecycle.connect();
        }
        side
    }

    /// A side that waits for a peer.
    pub(super) fn listening(config: &AerotpConfig, seed: u64) -> Self {
        let mut side = Self::new(config, seed);
        side.is_listener = side.has_states();
        if side.is_listener {
            side.lifecycle.listen();
        }
        side
    }

    fn new(config: &AerotpConfig, seed: u64) -> Self {
        let random = split_mix64(seed);
        Connection {
            config: config.clone(),
            mode: config.mode,
            fec_words: if config.mode == Mode::QuasiReliable { config.fec_words.whole() as u16 } else { 0 },
            errors: config.adaptive_fec.filter(|_| config.mode == Mode::QuasiReliable).map(|fec| Estimate::new(&fec)),
            lifecycle: Lifecycle::default(),
            is_listener: false,
            sending: Sending::new(config),
            receiving: Receiving::new(config),
            rate: Rate::new(config),
            marked: 0,
            damaged: 0,
            tag: random as u16,
            initial: (random >> 16) as u32,
            peer: None,
            past: None,
            reset: None,
            first_sent: None,
            marks: Marks::of_own_stream(),
            last_sign: Time::ZERO,
            last_heard: Time::ZERO,
            is_question_due: false,
            asked: None,
            end_sent: None,
            is_link_down: false,
            news: News::default(),
            dropped: Dropped::default(),
            #[cfg(test)]
            without: None,
        }
    }

    /// Its state (`docs/aerotp.md`, section 4).
    pub fn state(&self) -> State {
        self.lifecycle.state()
    }

    /// What it dropped so far.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// The mode of what it sends.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Parity in each segment with data, 32-bit words.
    pub fn fec_words(&self) -> u16 {
        self.fec_words
    }

    /// Sends in another mode from the next segment on: quasi-reliable, with the parity of the configuration, instead of
    /// unreliable, or the other way round. The peer needs not be told: each segment says what it is. `[U7]`
    ///
    /// # Errors
    /// If either is another mode; nothing has changed then.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), SwitchError> {
        let is_stream = |mode| matches!(mode, Mode::QuasiReliable | Mode::Unreliable);
        if mode == self.mode {
            return Ok(());
        }
        if !is_stream(self.mode) || !is_stream(mode) {
            return Err(SwitchError::Mode { from: self.mode, to: mode });
        }
        self.mode = mode;
        self.fec_words = if mode == Mode::QuasiReliable { self.config.fec_words.whole() as u16 } else { 0 };
        self.sending.set_coded(mode == Mode::QuasiReliable);
        Ok(())
    }

    /// Sends so many 32-bit words of parity in each segment from the next one on. `[U7]`
    ///
    /// # Errors
    /// If the mode has no parity, or so much of it leaves no room for data; nothing has changed then.
    pub fn set_fec_words(&mut self, words: u16) -> Result<(), SwitchError> {
        let most = self.config.most_fec_words();
        if self.mode != Mode::QuasiReliable {
            Err(SwitchError::NoParity(self.mode))
        } else if words > most {
            Err(SwitchError::TooMuchParity { words, most })
        } else {
            self.fec_words = words;
            Ok(())
        }
    }

    /// How messages of a class are served from now on. Until something else is said, classes are served strictly by number,
    /// with the deadline of the configuration. `[V4]`
    ///
    /// # Errors
    /// If there are no classes, or not this one; nothing has changed then.
    pub fn set_service(&mut self, class: u8, service: Service) -> Result<(), SwitchError> {
        self.outbox(class)?.set_service(usize::from(class), service);
        Ok(())
    }

    /// As [`write`](Stream::write), for messages of a class.
    ///
    /// # Errors
    /// If there are no classes, or not this one; nothing is taken then.
    pub fn write_class(&mut self, now: Time, class: u8, data: &mut D) -> Result<usize, SwitchError> {
        Ok(self.outbox(class)?.write_class(now, usize::from(class), data))
    }

    fn outbox(&mut self, class: u8) -> Result<&mut Outbox<D>, SwitchError> {
        match &mut self.sending {
            Sending::Datagrams(_) if usize::from(class) >= CLASSES => Err(SwitchError::NoSuchClass(class)),
            Sending::Datagrams(outbox) => Ok(outbox),
            _ => Err(SwitchError::NoClasses(self.mode)),
        }
    }

    /// Whether there are connections at all: datagrams go by themselves.
    #[inline]
    fn has_states(&self) -> bool {
        self.mode != Mode::Datagram
    }

    /// Whether it still answers and is answered.
    fn is_alive(&self) -> bool {
        self.news.aborted.is_none()
    }

    /// Whether there is a connection that is not over, or none is needed.
    #[inline]
    fn may_send(&self) -> bool {
        !self.has_states() || (self.lifecycle.is_open() && !self.lifecycle.is_over())
    }

    /// Whether nothing is left to be done, and all was read.
    fn is_over(&self) -> bool {
        if self.has_states() { self.lifecycle.is_over() && self.receiving.is_read() } else { self.sending.is_done() }
    }

    /// Whether there is no connection, nor is one awaited: what comes is answered by a reset.
    fn is_closed(&self) -> bool {
        !self.is_alive() || self.lifecycle.state() == State::Closed
    }

    /// Starts over as a listener that never heard of the peer; what that has sent so far is of the past. `[C12]`
    fn listen_again(&mut self) {
        let past = self.peer.or(self.past);
        let seed = (u64::from(self.tag) << 32) | u64::from(self.initial);
        let (dropped, news, is_link_down) = (self.dropped, self.news, self.is_link_down);
        #[cfg(test)]
        let without = self.without;
        *self = Self::listening(&self.config, seed);
        #[cfg(test)]
        (self.without = without);
        self.past = past;
        self.dropped = dropped;
        if is_link_down {
            self.is_link_down = true;
            self.sending.on_link(Time::ZERO, false);
        }
        let is_unfinished = !news.has_told_closed && news.has_told_connected;
        self.news.earlier = is_unfinished.then_some(Abort::PeerRestarted);
    }

    /// Whether a segment of an unknown tag is newer than all that its sender sent before.
    fn is_newer(&self, now: Time, timestamp: u32) -> bool {
        self.peer.or(self.past).is_none_or(|peer| peer.latest.is_before(now, timestamp))
    }

    /// Whether a segment belongs to this connection, once it has opened it where it may.
    fn admit(&mut self, now: Time, segment: &Segment<D>) -> bool {
        let is_asyn = segment.flags.has(Flags::ASYN);
        #[cfg(test)]
        if self.peer.is_some() && self.without == Some(model::Without::Tags) {
            self.lifecycle.on_known();
            return true;
        }
        if let Some(peer) = self.peer.as_mut().filter(|peer| peer.has_sent(segment)) {
            peer.latest.hear(now, segment.timestamp);
            if is_asyn {
                self.lifecycle.on_asyn();
            } else {
                self.lifecycle.on_known();
            }
            return true;
        }
        if !self.is_newer(now, segment.timestamp) {
            return false; // of the past `[C11]`
        }
        if self.peer.is_some() {
            // Only who begins anew sends ASYN under another tag; who acknowledges does not begin.
            if !is_asyn || segment.mack.is_some() || !self.is_listener {
                if is_asyn && segment.mack.is_none() && self.may_send() {
                    self.abort(Abort::PeerRestarted);
                }
                self.answer_with_reset(segment);
                return false;
            }
            self.listen_again();
        }
        let is_of_past = self.past.is_some_and(|past| past.has_tag(segment.tag));
        if is_of_past || !self.is_opened_by(now, segment) {
            self.answer_with_reset(segment);
            return false;
        }
        if is_asyn {
            self.lifecycle.on_asyn();
            if self.is_listener {
                // Both streams of a connection begin at the number that who opened it chose. `[C3]`
                self.initial = segment.opening;
            } else if self.config.opens == Opens::Sender {
                self.lifecycle.on_known(); // it took over this side's number
            }
        }
        let initial = if is_asyn { segment.opening } else { self.initial };
        self.peer = Some(Peer::new(now, segment.tag, initial, segment.timestamp));
        true
    }

    /// Whether a segment of a side of which nothing is known opens the connection or answers its opening.
    fn is_opened_by(&self, now: Time, segment: &Segment<D>) -> bool {
        match &segment.mack {
            // Any MACK establishes, if it is of something that was sent. `[C5]`
            Some(mack) => self.lifecycle.state() == State::AsynSent && self.hear(now, segment, mack).is_some(),
            None if !segment.flags.has(Flags::ASYN) => false,
            None if self.is_listener => true,
            // What does not begin at this side's number has not been opened by it: unless both open, it is of the past. `[C6]`
            None => self.config.opens == Opens::Both || segment.opening == self.initial,
        }
    }

    /// There is no such connection: who sent this is told, unless it only acknowledges. `[C13]`
    fn answer_with_reset(&mut self, segment: &Segment<D>) {
        if segment.mack.is_none() {
            self.reset = Some(Reset::of(segment));
        }
    }

    /// The number of a position in the own stream. `[L9]`, `[R7]`
    fn number(&self, position: u64) -> u32 {
        self.initial.wrapping_add(position as u32)
    }

    fn on_mack(&mut self, now: Time, segment: &Segment<D>, mack: &Mack) {
        match self.hear(now, segment, mack) {
            Some(heard) => {
                self.adapt_to(&heard);
                self.sending.on_mack(now, &heard);
                let Heard { echo, round_trip, .. } = heard;
                self.rate
                    .on_answer(now, &Answer { echo, round_trip, held: span(mack.held.into()), marked: mack.marked });
                self.lifecycle.on_mack(self.sending.is_done());
            }
            None => self.dropped.forged += 1,
        }
    }

    /// A report of errors may ask for another strength.
    fn adapt_to(&mut self, heard: &Heard) {
        let fec = Fec::new(self.config.payload_bytes() as u32, self.fec_words);
        if let Some(errors) = &mut self.errors
            && errors.on_report(heard.ack, heard.window, heard.damaged, fec.mends_of_each() + 1)
        {
            self.adapt();
        }
    }

    /// The parity that is enough by what is known of the errors. `[U8]`
    fn adapt(&mut self) {
        // Without its field and with no opening: what parity and payload have together.
        let room = (self.config.payload_bytes() as u32).saturating_sub(u32::from(FEC_BYTES));
        let words = self.errors.and_then(|errors| errors.words(room, self.config.most_fec_words()));
        if let Some(words) = words.filter(|_| self.mode == Mode::QuasiReliable) {
            self.fec_words = words;
        }
    }

    /// What an acknowledgement says, if it speaks of what was sent, and echoes something that was. `[A8]`
    fn hear(&self, now: Time, segment: &Segment<D>, mack: &Mack) -> Option<Heard> {
        let (first, next) = self.sending.limits();
        let base = self.number(first);
        let position = |number: u32| {
            let ahead = i64::from(number.wrapping_sub(base) as i32);
            first.checked_add_signed(ahead).filter(|&position| position <= next)
        };
        let ack = position(segment.sequence)?;
        let echo = instant(now, mack.echo).filter(|&echo| self.first_sent.is_some_and(|first| echo >= first))?;
        if self.marks.oldest().is_some_and(|mark| echo < mark) {
            return None; // of a past round of the numbers `[R8]`
        }
        let mut heard = Heard {
            ack: ack.max(first),
            echo,
            round_trip: span((ticks(now) - echo).checked_sub(u64::from(mack.held))?),
            window_end: ack + u64::from(mack.window).min(LARGEST_BUFFER),
            blocks: [(0, 0); MOST_EDGES / 2],
            block_count: 0,
            is_from_start: mack.is_from_start,
            is_to_end: mack.is_to_end,
            window: mack.window,
            damaged: mack.damaged,
            deficits: [(0, 0); MOST_EDGES / 2],
            deficit_count: 0,
            arrived: 0,
        };
        if mack.counts_symbols {
            let mut pairs = mack.edges.blocks();
            heard.arrived = pairs.next()?.0;
            for (start, missing) in pairs {
                heard.deficits[heard.deficit_count] = (position(start)?, u64::from(missing));
                heard.deficit_count += 1;
            }
            return Some(heard);
        }
        let mut last = ack;
        for (start, end) in mack.edges.blocks() {
            let (start, end) = (position(start)?, position(end)?);
            if start < last || end < start {
                return None;
            }
            last = end;
            heard.blocks[heard.block_count] = (start, end);
            heard.block_count += 1;
        }
        Some(heard)
    }

    fn on_data(&mut self, now: Time, segment: &Segment<D>) {
        let Some(peer) = self.peer else { return };
        if peer.is_of_past_round(now, segment.timestamp) {
            self.dropped.stray += 1;
            return;
        }
        let base = self.receiving.next_position();
        let is_end = segment.flags.has(Flags::AFIN);
        let is_question = segment.payload.is_empty() && !is_end;
        let ahead = segment.sequence.wrapping_sub(peer.initial.wrapping_add(base as u32)) as i32;
        // A question is about what has arrived; where it stands says nothing. `[C9]`
        let position = if is_question { Some(base) } else { base.checked_add_signed(i64::from(ahead)) };
        #[cfg(test)]
        let position = match self.without {
            Some(model::Without::DuplicateFilter) => position.map(|position| position.max(base)),
            _ => position,
        };
        let Some(position) = position.filter(|position| position + segment.payload.len() as u64 <= self.most_unknown())
        else {
            self.dropped.outside += 1;
            return;
        };
        let incoming = Incoming {
            position,
            payload: segment.payload.clone(),
            is_end,
            repair: segment.repair.map(|repair| Repair { start: repair.start.wrapping_sub(peer.initial), ..repair }),
            timestamp: segment.timestamp,
            is_opening: segment.flags.has(Flags::ASYN),
        };
        if !self.receiving.on_segment(now, incoming) {
            self.dropped.outside += 1;
        }
        if let Some(peer) = &mut self.peer {
            peer.on_progress(self.receiving.next_position());
        }
        if self.receiving.is_complete() {
            self.lifecycle.on_peer_ended();
        }
    }

    /// A message by itself. `[D1]`
    fn on_datagram(&mut self, now: Time, segment: &Segment<D>) {
        let incoming = Incoming {
            position: 0,
            payload: segment.payload.clone(),
            is_end: false,
            repair: None,
            timestamp: segment.timestamp,
            is_opening: false,
        };
        if !self.receiving.on_segment(now, incoming) {
            self.dropped.outside += 1;
        }
    }

    /// How much is taken of a peer that has not shown that it hears this side: anybody can send in its name. `[B7]`
    fn most_unknown(&self) -> u64 {
        let is_half_open = self.is_listener && self.lifecycle.is_opening();
        // Without acknowledgements a stream goes on and on, and a bound is on what of it is kept.
        if is_half_open && self.mode.is_acknowledged() { self.config.half_open() } else { u64::MAX }
    }

    fn abort(&mut self, why: Abort) {
        if self.is_alive() {
            self.news.aborted = Some(why);
            self.lifecycle.end();
        }
    }

    /// The peer knows nothing of this connection. `[C14]`
    fn on_reset(&mut self, now: Time, segment: &Segment<D>) {
        let sent = instant(now, segment.timestamp).zip(self.first_sent).is_some_and(|(sent, first)| sent >= first);
        let is_mine = segment.tag == self.tag && sent && self.may_send();
        let (first, next) = self.sending.limits();
        let ahead = segment.sequence.wrapping_sub(self.number(first)) as i32;
        let is_recent = first.checked_add_signed(i64::from(ahead)).is_some_and(|position| position <= next);
        if !is_mine || !is_recent {
            self.dropped.stray += 1;
        } else if self.lifecycle.is_peer_ended() && self.sending.is_all_acknowledged() {
            // All that is missing is the acknowledgement of the end, and who would send it is gone.
            self.lifecycle.on_mack(true);
            self.last_heard = now;
        } else {
            self.abort(Abort::Reset);
        }
    }

    /// The next segment, but for its headers.
    fn next_segment(&mut self, now: Time) -> Option<Segment<D>> {
        if let Some(Reset { tag, sequence, timestamp }) = self.reset.take() {
            return Some(Segment { tag, sequence, timestamp, flags: Flags::RESET, ..Segment::default() });
        }
        if !self.is_alive() {
            return None;
        }
        if let Some(peer) = self.peer
            && let Some((ack, mack)) =
                self.receiving.next_mack(now, |position| peer.initial.wrapping_add(position as u32))
        {
            let sequence = peer.initial.wrapping_add(ack as u32);
            let most = self.most_unknown().saturating_sub(ack);
            let window = mack.window.min(u32::try_from(most).unwrap_or(u32::MAX));
            let mack = Mack { window, marked: self.marked, damaged: self.damaged, ..mack };
            return Some(Segment { sequence, flags: Flags::MACK, mack: Some(mack), ..self.blank(now) });
        }
        if !self.may_send() || self.rate.pacer.is_holding(now) {
            return None;
        }
        let most = self.most_bytes();
        if let Some(Outgoing { position, payload, is_end, repair }) = self.sending.next(now, most) {
            let mut flags = Flags::default();
            if is_end {
                flags = flags.with(Flags::AFIN);
                self.lifecycle.on_end_sent();
                self.end_sent = self.end_sent.or(Some(now));
            }
            if repair.is_some() {
                flags = flags.with(Flags::REPAIR);
            }
            let sequence = self.number(position);
            let repair = repair.map(|repair| Repair { start: self.initial.wrapping_add(repair.start), ..repair });
            let class = self.sending.class();
            return Some(Segment { sequence, class, flags, repair, payload, ..self.blank(now) });
        }
        if std::mem::take(&mut self.is_question_due) {
            let sequence = self.number(self.sending.limits().1);
            self.asked = self.asked.or(Some(now));
            return Some(Segment { sequence, ..self.blank(now) });
        }
        None
    }

    /// A segment of this connection without content.
    fn blank(&self, now: Time) -> Segment<D> {
        Segment { tag: self.tag, mode: self.mode, timestamp: stamp(now), ..Segment::default() }
    }

    /// Payload of the next segment, at most.
    fn most_bytes(&self) -> u32 {
        let opening = if self.lifecycle.is_opening() { u32::from(OPENING_BYTES) } else { 0 };
        let overhead = self.config.header_bytes.whole() as u32 + opening + parity_bytes(self.fec_words) + CRC_BYTES;
        (self.config.packet_bytes.whole() as u32).saturating_sub(overhead)
    }

    /// Fills in what depends on all the rest.
    fn finish(&self, segment: &mut Segment<D>) {
        segment.header_bytes = self.config.header_bytes.whole() as u16;
        if self.lifecycle.is_opening() && !segment.flags.has(Flags::RESET) {
            segment.flags = segment.flags.with(Flags::ASYN);
            segment.opening = self.initial;
            segment.header_bytes += OPENING_BYTES;
        }
        if segment.mack.is_some() || !segment.payload.is_empty() {
            segment.flags = segment.flags.with(Flags::CRC);
        }
        if segment.class > 0 {
            segment.flags = segment.flags.with(Flags::EXTENDED);
            segment.header_bytes += CLASS_BYTES;
        }
        if segment.repair.is_some() {
            segment.header_bytes += REPAIR_BYTES;
        }
        if self.fec_words > 0 && !segment.payload.is_empty() {
            segment.flags = segment.flags.with(Flags::FEC);
            segment.fec_words = self.fec_words;
            segment.header_bytes += FEC_BYTES;
        }
    }

    /// When the sender finds out what is overdue; the end of the stream like all else. `[R5]`
    #[inline]
    fn sending_deadline(&self) -> Time {
        #[cfg(test)]
        if self.without == Some(model::Without::AfinTimer) && self.end_sent.is_some() {
            return Time::NEVER;
        }
        self.sending.deadline()
    }

    /// When the connection is given up unless something is heard. `[C16]`
    fn give_up_at(&self) -> Time {
        let asked = self.asked.unwrap_or(Time::NEVER);
        let awaited = self.sending.awaits_since().min(asked);
        if awaited == Time::NEVER { Time::NEVER } else { awaited + self.config.give_up_after_s.time() }
    }

    /// CLOSE_TO: when the connection is given up unless both streams have ended. `[C17]`
    fn close_by(&self) -> Time {
        match (self.end_sent, self.config.close_timeout_s) {
            (Some(sent), Some(timeout)) => sent + timeout.time(),
            _ => Time::NEVER,
        }
    }

    /// When the peer is asked whether it is still there. `[C9]`
    fn keep_alive_at(&self) -> Time {
        match self.config.keep_alive_s {
            Some(idle) if self.may_send() && !self.is_link_down => self.last_sign + idle.time(),
            _ => Time::NEVER,
        }
    }

    /// LISTEN_TO: until when a connection that is over answers a peer that does not know that yet. `[C18]`
    fn answers_until(&self) -> Time {
        let is_done = self.lifecycle.is_over() && self.news.has_told_closed;
        if is_done { self.last_heard + self.config.listen_timeout() } else { Time::NEVER }
    }

    fn leave(&mut self) {
        if self.is_listener {
            self.listen_again();
        } else {
            self.lifecycle.end();
        }
    }
}

impl Reset {
    fn of<D>(segment: &Segment<D>) -> Self {
        Reset { tag: segment.tag, sequence: segment.sequence, timestamp: segment.timestamp }
    }
}

impl<D: Payload> Endpoint for Connection<D> {
    type Packet = Segment<D>;

    fn handle_packet(&mut self, now: Time, segment: &Segment<D>, rx: Rx) {
        self.marked = self.marked.wrapping_add(u16::from(rx.ecn == Ecn::Congestion));
        if !matches!(rx.integrity, Integrity::Intact | Integrity::Mended { .. }) {
            let is_data = segment.mack.is_none() && segment.repair.is_none();
            if is_data {
                self.receiving.on_errors(None);
            }
            // `[B8]`
            if !(self.config.deliver_damaged && is_data && !self.mode.is_acknowledged()) {
                self.dropped.damaged += 1;
                self.damaged = self.damaged.wrapping_add(1);
                return;
            }
        }
        if (segment.mode == Mode::Datagram) == self.has_states() {
            self.dropped.stray += 1;
            return;
        }
        if !self.has_states() {
            self.on_datagram(now, segment);
            return;
        }
        if segment.flags.has(Flags::RESET) {
            self.on_reset(now, segment);
            return;
        }
        if segment.is_malformed() {
            self.dropped.malformed += 1;
            return;
        }
        if self.is_closed() {
            self.answer_with_reset(segment);
            self.dropped.stray += 1;
            return;
        }
        if !self.admit(now, segment) {
            self.dropped.stray += 1;
            return;
        }
        (self.last_sign, self.last_heard, self.asked) = (now, now, None);
        if let Integrity::Mended { bits } = rx.integrity {
            self.receiving.on_errors(Some(bits));
        }
        match &segment.mack {
            Some(mack) => self.on_mack(now, segment, mack),
            None => self.on_data(now, segment),
        }
    }

    fn wants_hints(&self) -> bool {
        true
    }

    fn handle_link(&mut self, now: Time, hint: LinkHint) {
        match hint {
            LinkHint::Up(_) => self.is_link_down = false,
            LinkHint::Down(_) => self.is_link_down = true,
            LinkHint::Rate(_, rate) => return self.rate.on_hint(rate),
            LinkHint::Ber(_, ber) => {
                if let Some(errors) = &mut self.errors {
                    errors.on_hint(ber);
                    self.adapt();
                }
                return self.sending.on_ber(now, ber);
            }
            _ => return,
        }
        self.sending.on_link(now, !self.is_link_down);
    }

    fn handle_timeout(&mut self, now: Time) {
        if !self.is_alive() {
            return;
        }
        self.receiving.on_timeout(now);
        if now >= self.answers_until() {
            self.leave();
        }
        if !self.may_send() {
            return;
        }
        if now >= self.sending_deadline() {
            self.sending.on_timeout(now);
        }
        if now >= self.give_up_at() {
            self.abort(Abort::NoAnswer);
        } else if now >= self.close_by() {
            self.abort(Abort::NotClosed);
        } else if now >= self.keep_alive_at() {
            self.last_sign = now;
            self.is_question_due = true;
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time, _path: PathId) -> Option<Transmit<Segment<D>>> {
        if self.is_link_down {
            return None; // what goes out now is lost `[C19]`
        }
        let mut segment = self.next_segment(now)?;
        self.finish(&mut segment);
        self.first_sent = self.first_sent.or(Some(ticks(now)));
        self.marks.pass(self.sending.limits().1, ticks(now));
        // Data takes its time at the rate; what only answers is neither held back nor counted. `[P1]`, `[P2]`
        if !segment.flags.has(Flags(Flags::MACK.0 | Flags::RESET.0)) {
            self.rate.on_sent(now, crate::endpoint::Packet::wire_bytes(&segment));
        }
        self.last_sign = now;
        let ecn = if self.config.ecn && segment.mack.is_none() { Ecn::Capable0 } else { Ecn::NotCapable };
        Some(Transmit { ecn, class: Class(segment.class), ..Transmit::plain(segment) })
    }

    fn poll_event(&mut self) -> Option<Event> {
        if let Some(earlier) = self.news.earlier.take() {
            return Some(Event::Aborted(earlier));
        }
        if !self.news.has_told_connected && self.lifecycle.has_peer() {
            self.news.has_told_connected = true;
            return Some(Event::Connected);
        }
        if let Some(bytes) = self.receiving.take_skipped() {
            if self.receiving.is_complete() {
                self.lifecycle.on_peer_ended();
            }
            return Some(Event::Skipped(bytes));
        }
        if !self.news.has_told_finished && self.receiving.is_read() {
            self.news.has_told_finished = true;
            return Some(Event::Finished);
        }
        if let Some(why) = self.news.aborted {
            return (!std::mem::replace(&mut self.news.has_told_aborted, true)).then_some(Event::Aborted(why));
        }
        let expired = self.sending.take_expired();
        if expired > 0 {
            return Some(Event::Expired(expired));
        }
        if self.sending.take_writable() {
            return Some(Event::Writable);
        }
        if !self.news.has_told_closed && self.is_over() {
            self.news.has_told_closed = true;
            return Some(Event::Closed);
        }
        None
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        if !self.is_alive() {
            return None;
        }
        let mut next = self.receiving.deadline().min(self.answers_until());
        if self.may_send() {
            let patience = self.give_up_at().min(self.close_by()).min(self.keep_alive_at());
            next = next.min(self.sending_deadline()).min(patience);
            let ready = self.sending.ready_at();
            if ready != Time::NEVER {
                next = next.min(ready.max(self.rate.pacer.next()));
            }
        }
        (next != Time::NEVER).then_some(next)
    }

    fn counters(&self) -> Counters {
        let account = self.sending.account();
        Counters {
            timeouts: account.timeouts,
            fast_retransmits: account.overtaken,
            peak_reorder_bytes: self.receiving.peak_bytes(),
            peak_send_buffer_bytes: account.peak_bytes,
        }
    }

    fn probe(&self) -> Probe {
        let account = self.sending.account();
        Probe {
            rtt: account.latest_round_trip,
            in_flight_bytes: Some(account.in_flight_bytes),
            acknowledged_bytes: Some(self.sending.limits().0),
            pacing_bps: self.rate.pacer.bytes_per_s().map(|rate| rate * 8.0),
            ..Probe::default()
        }
    }
}

impl<D: Payload> Stream<D> for Connection<D> {
    fn write(&mut self, now: Time, data: &mut D) -> usize {
        if self.is_alive() { self.sending.write(now, data) } else { 0 }
    }

    fn read(&mut self) -> Option<D> {
        self.receiving.read()
    }

    fn close(&mut self, _now: Time) {
        self.sending.close();
    }
}

impl Express for Connection<Virtual> {
    type Plain = PlainSegment;

    #[inline]
    fn handle_plain(&mut self, now: Time, plain: &PlainSegment) -> bool {
        self.handle_packet(now, &Segment::from(plain), Rx::default());
        true
    }
}

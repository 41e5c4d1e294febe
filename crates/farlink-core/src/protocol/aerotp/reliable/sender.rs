//! Sends a stream until everything is acknowledged.

use std::collections::{BTreeMap, VecDeque};

use crate::origin::instants;
use crate::payload::Payload;
use crate::protocol::parts::chunks::Chunks;
use crate::protocol::parts::length::Length;
use crate::time::Time;

use super::super::clock::{span, ticks};
use super::super::config::AerotpConfig;
use super::super::fec::CRC_BYTES;
use super::super::forward::Forward;
use super::super::mack_fields::MackFields;
use super::super::outgoing::{Account, Outgoing, ROOM_BYTES};
use super::super::packet_size::PacketSize;
use super::super::rate::{Outcomes, ReportTimes};
use super::super::reordering::Reordering;
use super::super::round_trip::RoundTrip;
use super::super::segment::FORWARD_BYTES;
use super::super::window_requests::RemainingWindow;
use super::flight::{Amount, Flight};
use super::spare_copies::{SpareCopies, Waits};

/// The sending half of a reliable stream. `[R2]`
#[derive(Clone, Debug)]
pub(in super::super) struct Sender<D> {
    pub(super) unsent: Chunks<D>,
    pub(super) unsent_bytes: u64,
    /// How much data may be written ahead of the sent data.
    room_bytes: u64,
    is_closing: bool,
    is_end_sent: bool,
    pub(super) flight: Flight<D>,
    /// First unacknowledged position; `next` is the first unsent one.
    pub(super) first: u64,
    pub(super) next: u64,
    /// End of the peer's window.
    window_end: u64,
    round_trip: RoundTrip,
    /// The schedule of retransmissions until the round-trip time is known.
    opening: Opening,
    /// When the last segment arrived, or when something was first sent.
    silent_since: Time,
    /// When the link was last said to be up again.
    up_since: Time,
    /// Earliest time of the next segment while the peer is silent.
    probe: Time,
    /// When a peer with a closed window is probed again, because the announcement of new room may be lost.
    ask: Time,
    pub(super) copies: Copies,
    /// Data that is too old, where there is a deadline.
    pub(super) forward: Forward,
    /// Copies at the end of the stream, if they are sent.
    spare_copies: Option<Box<SpareCopies>>,
    /// The rule for the length of packets, if it varies.
    length: Option<Length>,
    reordering: Reordering,
    latest_echo: u64,
    is_link_down: bool,
    /// Whether the peer has been silent for so long that segments only probe whether the path works.
    is_silent: bool,
    is_full: bool,
    pub(in super::super) account: Account,
}

instants! {
    Sender<D>: flight, opening, silent_since, up_since, probe, ask, copies, forward, spare_copies, length, reordering;
    ticks: latest_echo;
    fixed: unsent, unsent_bytes, room_bytes, is_closing, is_end_sent, first, next, window_end, round_trip, is_link_down, is_silent,
    is_full, account
}

/// Retransmission before the round-trip time is known. `[R9]`
#[derive(Clone, Copy, Debug)]
struct Opening {
    at: Time,
    wait: Time,
    longest: Time,
}

instants! { Opening: at; fixed: wait, longest }

/// Further copies of sent segments. `[R10]`
#[derive(Clone, Debug)]
pub(super) struct Copies {
    /// Number of copies of each segment.
    extra: u64,
    /// Copies to be sent, in the order in which they are due.
    waiting: VecDeque<Copy>,
}

instants! { Copies: waiting; fixed: extra }

#[derive(Clone, Copy, Debug)]
struct Copy {
    due: Time,
    start: u64,
    left: u64,
}

instants! { Copy: due; fixed: start, left }

impl Copies {
    /// Pieces were cut: parts begin at these positions, by the start of the whole.
    fn cut(&mut self, parts: &BTreeMap<u64, Vec<u64>>) {
        for copy in std::mem::take(&mut self.waiting) {
            self.waiting.push_back(copy);
            let of_copy = parts.get(&copy.start).into_iter().flatten();
            self.waiting.extend(of_copy.map(|&start| Copy { start, ..copy }));
        }
    }

    /// Drops copies of data before a position; the piece that began at `cut` begins there now.
    pub(super) fn follow(&mut self, to: u64, cut: Option<u64>) {
        for copy in &mut self.waiting {
            copy.start = if cut == Some(copy.start) { to } else { copy.start };
        }
        self.waiting.retain(|copy| copy.start >= to);
    }
}

/// Number of timeouts of silence after which the path counts as down, and segments only probe it.
const SILENT_TIMEOUTS: u64 = 3;

impl<D: Payload> Sender<D> {
    pub(in super::super) fn new(config: &AerotpConfig) -> Self {
        let wait = config.initial_rto_s.time();
        Sender {
            unsent: Chunks::default(),
            unsent_bytes: 0,
            room_bytes: ROOM_BYTES,
            is_closing: false,
            is_end_sent: false,
            flight: Flight::default(),
            first: 0,
            next: 0,
            window_end: config.half_open(),
            round_trip: RoundTrip::new(config.mack_timeout_s.time()),
            opening: Opening { at: Time::NEVER, wait, longest: config.longest_repetition() },
            silent_since: Time::ZERO,
            up_since: Time::ZERO,
            probe: Time::ZERO,
            ask: Time::ZERO,
            forward: Forward::new(config),
            copies: Copies { extra: config.copies.whole() - 1, waiting: VecDeque::new() },
            spare_copies: config.has_spare_copies().then(|| Box::new(SpareCopies::new())),
            length: config
                .length(config.header_bytes.whole() + u64::from(CRC_BYTES), config.packet_size().data_bytes()),
            reordering: Reordering::default(),
            latest_echo: 0,
            is_link_down: false,
            is_silent: false,
            is_full: false,
            account: Account::default(),
        }
    }

    /// Outcomes of transmissions.
    pub(in super::super) fn outcomes(&mut self) -> &mut Outcomes {
        &mut self.flight.outcomes
    }

    pub(in super::super) fn write(&mut self, now: Time, data: &mut D) -> usize {
        if self.is_closing || data.is_empty() {
            return 0;
        }
        let room = self.room_bytes.saturating_sub(self.unsent_bytes);
        let n = (data.len() as u64).min(room) as usize;
        self.is_full |= n < data.len();
        if n > 0 {
            if self.unsent_bytes == 0 && self.flight.is_empty() {
                self.silent_since = self.silent_since.max(now); // the peer's window is full: questions begin now
            }
            self.unsent.push(data.split_to(n));
            self.unsent_bytes += n as u64;
            self.forward.on_written(now, self.next + self.unsent_bytes);
        }
        n
    }

    pub(in super::super) fn unsent_bytes(&self) -> u64 {
        self.unsent_bytes
    }

    pub(in super::super) fn close(&mut self) {
        self.is_closing = true;
    }

    #[inline]
    pub(in super::super) fn next(&mut self, now: Time, most_bytes: u32) -> Option<Outgoing<D>> {
        self.give_up(now);
        if self.ready_at() > now {
            return None;
        }
        if self.flight.is_empty() && !self.forward.is_awaited() && !self.is_blocked() {
            self.silent_since = self.silent_since.max(now); // the wait for an answer begins now
            self.opening.at = if self.round_trip.smoothed().is_none() { now + self.opening.wait } else { Time::NEVER };
        }
        if self.is_blocked() {
            self.ask = now + self.patience();
            self.note_probe(now);
            return Some(Outgoing { position: self.next, payload: D::default(), is_end: false, repair: None });
        }
        let stamp = ticks(now);
        if let Some(copy) = self.due_copy(now) {
            return Some(copy);
        }
        let mut most_bytes = self.length.as_mut().map_or(most_bytes, |length| length.next_bytes(now).min(most_bytes));
        if self.forward.is_wanted(now) {
            // Probes carry data, so that it arrives as soon as the path works again.
            match most_bytes.checked_sub(u32::from(FORWARD_BYTES)).filter(|&rest| rest > 0 && self.is_silent) {
                Some(rest) => most_bytes = rest,
                None => {
                    self.note_probe(now);
                    return Some(self.forward_alone());
                }
            }
        }
        if self.is_silent {
            self.flight.probe_with_first();
        }
        self.flight.cut_lost(most_bytes as usize);
        let Some((position, payload, is_end)) = self.flight.resend(stamp).or_else(|| self.new_piece(stamp, most_bytes))
        else {
            self.note_probe(now);
            let is_pending = self.forward.is_pending();
            return self.spare_copy(now).or_else(|| is_pending.then(|| self.forward_alone()));
        };
        self.on_sent(now, position);
        self.note_probe(now);
        if self.copies.extra > 0 {
            self.copies.waiting.push_back(Copy { due: now + self.spacing(), start: position, left: self.copies.extra });
        }
        self.account.in_flight_bytes = self.flight.bytes;
        self.account.peak_bytes = self.account.peak_bytes.max(self.next - self.forward.kept_from(self.first));
        Some(Outgoing { position, payload, is_end, repair: None })
    }

    /// Delays the next segment while the peer is silent.
    fn note_probe(&mut self, now: Time) {
        if let Some(timeout) = self.round_trip.timeout() {
            self.probe = now + RoundTrip::probe_interval(timeout);
        }
    }

    /// The next unsent data, or the end of the stream, which has no age. `[V9]`
    fn new_piece(&mut self, stamp: u64, most_bytes: u32) -> Option<(u64, D, bool)> {
        let room = self.window_end.saturating_sub(self.next).min(u64::from(most_bytes));
        let n = self.unsent_bytes.min(room);
        let is_end = self.is_closing && n == self.unsent_bytes && !self.is_end_sent && self.next <= self.window_end;
        if n == 0 && !is_end {
            return None;
        }
        let position = self.next;
        let payload = self.unsent.take(n as usize);
        self.unsent_bytes -= n;
        self.next += n + u64::from(is_end);
        self.is_end_sent |= is_end;
        self.flight.push(position, payload.clone(), is_end, stamp);
        Some((position, payload, is_end))
    }

    /// The copy that is due, if any and still useful.
    fn due_copy(&mut self, now: Time) -> Option<Outgoing<D>> {
        while let Some(&Copy { due, start, left }) = self.copies.waiting.front()
            && due <= now
        {
            self.copies.waiting.pop_front();
            let Some((position, payload, is_end)) = self.flight.copy(start, ticks(now)) else { continue };
            if left > 1 {
                self.copies.waiting.push_back(Copy { due: now + self.spacing(), start, left: left - 1 });
            }
            return Some(Outgoing { position, payload, is_end, repair: None });
        }
        None
    }

    /// Notes that a segment was sent; after the end of the stream, copies may follow.
    fn on_sent(&mut self, now: Time, position: u64) {
        let Some(spare_copies) = self.spare_copies.as_mut().filter(|_| self.is_end_sent) else { return };
        if spare_copies.is_open() {
            spare_copies.on_sent(now, position);
        } else {
            spare_copies.open(&self.flight);
        }
        self.look_for_copy(now);
    }

    /// A copy of a segment that is likely to be lost and would wait longest for its answer.
    fn spare_copy(&mut self, now: Time) -> Option<Outgoing<D>> {
        self.look_for_copy(now);
        let start = self.spare_copies.as_ref()?.chosen()?;
        let (position, payload, is_end) = self.flight.copy(start, ticks(now))?;
        self.on_sent(now, position);
        Some(Outgoing { position, payload, is_end, repair: None })
    }

    /// Looks for a segment to copy while nothing else is to be sent.
    pub(super) fn look_for_copy(&mut self, now: Time) {
        if let Some(answer) = self.round_trip.smoothed().filter(|_| self.is_end_sent) {
            let waits = Waits { answer, spacing: self.spacing() };
            if let Some(spare_copies) = &mut self.spare_copies {
                spare_copies.look(now, &self.flight, waits);
            }
        }
    }

    /// Interval between copies, so that one burst of losses does not hit several of them.
    fn spacing(&self) -> Time {
        let most = Time::from_millis(250);
        self.round_trip
            .smoothed()
            .map_or(Time::from_millis(20), |smoothed| most.min(Time::from_ps(smoothed.as_ps() / 16)))
    }

    pub(in super::super) fn on_mack(&mut self, now: Time, mack: &MackFields) {
        self.silent_since = now;
        let was_silent = std::mem::take(&mut self.is_silent);
        self.opening.at = Time::NEVER;
        if mack.echo >= self.latest_echo {
            if mack.echo > self.latest_echo || self.round_trip.smoothed().is_none() {
                self.round_trip.sample(mack.round_trip);
                self.account.latest_round_trip = Some(mack.round_trip);
            }
            self.latest_echo = mack.echo;
        }
        self.window_end = self.window_end.max(mack.window_end);
        self.first = self.first.max(mack.ack);
        let mut newly = self.flight.acknowledge_up_to(mack.ack);
        for &(start, end) in mack.blocks() {
            newly = newly.and(self.flight.acknowledge(start, end));
        }
        if newly.was_overtaken {
            self.reordering.on_wrong_verdict(ticks(self.round_trip.least) / 4);
        }
        if let Some(sent) = newly.oldest {
            // An answer that arrives sooner than a round trip after a retransmission is for the first transmission.
            let wait = span(ticks(now).saturating_sub(sent));
            self.round_trip.answered_after(wait.max(mack.round_trip));
        } else if self.round_trip.smoothed().is_none() {
            self.round_trip.answered_after(mack.round_trip);
        }
        self.flight.drop_acknowledged();
        self.first = self.flight.front().map_or(self.next, |piece| piece.start.max(self.first));
        self.forward.on_acknowledged(mack.ack, mack.skipped);
        self.first = self.forward.first(self.first);
        self.reordering.on_mack(now, mack.overtaken_by, self.patience());
        let before = mack.echo.saturating_sub(self.reordering.extent());
        if let Some(spare_copies) = &mut self.spare_copies {
            spare_copies.on_answer(before, &mut self.flight);
        }
        let lost = self.flight.judge(before, |position| mack.describes(position));
        if let Some(spare_copies) = &mut self.spare_copies {
            spare_copies.measure(newly.once, lost.once);
        }
        self.account.overtaken += lost.pieces;
        if let Some(length) = &mut self.length {
            length.on_acknowledged(now, newly.pieces, newly.bytes);
        }
        self.shorten(now, lost);
        self.flight.tidy();
        if was_silent {
            self.flight.resend_in_order();
        }
        self.flight.outcomes.on_report(ReportTimes { timeout: self.patience(), spacing: Time::ZERO });
        self.look_for_copy(now);
        self.account.in_flight_bytes = self.flight.bytes;
        if self.is_blocked() {
            self.ask = self.ask.max(now + self.patience());
        }
    }

    /// Whether data waits for the peer's window and no segment in flight could bring an answer that opens it. `[R6]`
    fn is_blocked(&self) -> bool {
        self.unsent_bytes > 0 && self.next >= self.window_end && self.flight.is_empty()
    }

    /// Adapts the length of packets to a loss.
    fn shorten(&mut self, now: Time, lost: Amount) {
        let Some(length) = &mut self.length else { return };
        for _ in 0..lost.pieces {
            length.on_lost(now, (lost.bytes / lost.pieces) as u32);
        }
    }

    /// The timeout for answers.
    pub(super) fn patience(&self) -> Time {
        self.round_trip.timeout().unwrap_or(self.opening.wait)
    }

    pub(in super::super) fn on_timeout(&mut self, now: Time) {
        self.give_up(now);
        if self.is_link_down {
            return;
        }
        match self.round_trip.timeout() {
            Some(timeout) => {
                let before = ticks(now).saturating_sub(ticks(timeout));
                let (found, overtaken) = self.flight.expire(before, self.latest_echo);
                self.account.timeouts += found;
                self.shorten(now, overtaken);
                if let Some(spare_copies) = &mut self.spare_copies {
                    spare_copies.measure(0, overtaken.once);
                }
                let is_waiting = !self.flight.is_empty() || self.forward.is_awaited();
                let silent_since = self.silent_since.max(self.up_since);
                self.is_silent = is_waiting && now.since(silent_since) > timeout.times(SILENT_TIMEOUTS);
            }
            None if now >= self.opening.at => {
                // Without any answer so far, only the start of the stream is retransmitted, at increasing intervals.
                self.account.timeouts += u64::from(self.flight.expire_oldest());
                self.opening.wait = self.opening.wait.times(2).min(self.opening.longest);
                self.opening.at = now + self.opening.wait;
            }
            None => {}
        }
        self.account.in_flight_bytes = self.flight.bytes;
    }

    pub(in super::super) fn on_link(&mut self, now: Time, is_up: bool) {
        self.is_link_down = !is_up;
        if is_up {
            // Segments that may have been lost in the outage are retransmitted now.
            self.probe = now;
            self.is_silent = false;
            self.flight.resend_in_order();
            self.up_since = now;
            self.forward.on_link_up();
        }
    }

    /// Changes the packet size. Longer segments in flight are cut, so that copies of them fit; lost ones are cut when
    /// they are retransmitted. `[S2]`
    pub(in super::super) fn set_packet_size(&mut self, now: Time, size: PacketSize) {
        if let Some(length) = &mut self.length {
            length.set_most_bytes(size.data_bytes());
        }
        let parts = self.flight.cut_waiting(size.data_bytes() as usize);
        if !parts.is_empty() {
            self.copies.cut(&parts);
            if let Some(spare_copies) = &mut self.spare_copies {
                spare_copies.follow_cut(&self.flight);
            }
            self.look_for_copy(now);
        }
    }

    /// Takes a report of the link's bit error rate.
    pub(in super::super) fn on_ber(&mut self, now: Time, ber: f64) {
        if let Some(length) = &mut self.length {
            length.set_link_ber(now, ber);
        }
    }

    #[inline]
    pub(in super::super) fn deadline(&self) -> Time {
        let too_old = self.forward.next_due();
        if self.is_link_down {
            return too_old;
        }
        let overdue = match (self.round_trip.timeout(), self.flight.oldest()) {
            (Some(timeout), Some(sent)) => span(sent + ticks(timeout) + 1),
            _ => Time::NEVER,
        };
        overdue.min(self.opening.at).min(too_old)
    }

    #[inline]
    pub(in super::super) fn ready_at(&self) -> Time {
        if self.is_link_down {
            return Time::NEVER;
        }
        let copy = self.copies.waiting.front().map_or(Time::NEVER, |copy| copy.due);
        if self.is_silent {
            let has_probe = self.flight.has_missing() || self.forward.is_pending();
            return if has_probe { copy.min(self.probe) } else { copy };
        }
        if self.is_blocked() {
            return self.ask.min(self.forward.alone_at(self.patience()));
        }
        let has_new = self.unsent_bytes > 0 && self.next < self.window_end;
        let has_end = self.is_closing && self.unsent_bytes == 0 && !self.is_end_sent && self.next <= self.window_end;
        if self.flight.has_lost() || has_new || has_end {
            return Time::ZERO;
        }
        let spare_copies = self.spare_copies.as_ref().map_or(Time::NEVER, |spare_copies| spare_copies.at());
        copy.min(spare_copies).min(self.forward.alone_at(self.patience()))
    }

    pub(in super::super) fn awaits_since(&self) -> Time {
        let awaits_nothing = self.flight.is_empty() && !self.is_blocked() && !self.forward.is_awaited();
        if awaits_nothing { Time::NEVER } else { self.silent_since }
    }

    #[inline]
    pub(in super::super) fn limits(&self) -> (u64, u64) {
        (self.first, self.next)
    }

    /// The rest of the peer's window, if there is data for it and the round-trip time is known.
    pub(in super::super) fn left(&self) -> Option<RemainingWindow> {
        let answer = self.round_trip.smoothed().filter(|_| self.unsent_bytes > 0)?;
        Some(RemainingWindow { bytes: self.window_end.saturating_sub(self.next), answer })
    }

    pub(in super::super) fn is_all_acknowledged(&self) -> bool {
        let is_end = self.flight.front().is_none_or(|piece| piece.is_end && piece.payload.is_empty());
        self.is_closing && self.unsent_bytes == 0 && is_end && !self.forward.is_pending()
    }

    pub(in super::super) fn is_done(&self) -> bool {
        self.is_end_sent && self.flight.is_empty() && !self.forward.is_pending()
    }

    /// Whether no data can become too old.
    #[inline]
    pub(in super::super) fn only_waits(&self) -> bool {
        !self.forward.is_possible()
    }

    #[inline]
    pub(in super::super) fn may_have_event(&self) -> bool {
        self.is_writable() || self.forward.is_possible()
    }

    #[inline]
    fn is_writable(&self) -> bool {
        self.is_full && self.unsent_bytes <= self.room_bytes / 2
    }

    pub(in super::super) fn take_writable(&mut self) -> bool {
        let is_writable = self.is_writable();
        self.is_full &= !is_writable;
        is_writable
    }
}

//! Reorders a stream, and skips data that does not arrive.

use std::collections::VecDeque;

use crate::origin::instants;
use crate::payload::Payload;
use crate::protocol::parts::reorder::Reorder;
use crate::time::Time;

#[cfg(feature = "trains")]
use super::super::absorbed::Absorbed;
use super::super::config::AerotpConfig;
use super::super::echo::Echo;
use super::super::incoming::{Incoming, most_pieces};
use super::super::mode::Mode;
use super::super::segment::{Mack, Repair};
use super::decoder::Decoder;
use super::repeat::Repeat;
use super::reports::Reports;

/// Reports of errors to a sender that adapts its code.
#[derive(Clone, Copy, Debug)]
struct Report {
    every: Time,
    next: Time,
}

instants! { Report: next; fixed: every }

/// The receiving half of a stream without acknowledgements. `[U2]`
#[derive(Clone, Debug)]
pub(in super::super) struct Receiver<D> {
    data: Reorder<D>,
    /// Where the stream ends, once that is known.
    end: Option<u64>,
    buffer_bytes: u64,
    /// Buffer for a peer that has not yet shown that it receives the answers. `[B7]`
    half_open_bytes: u64,
    /// How long later data waits for missing data before it. `[U3]`
    hold: Time,
    /// Positions before which data is missing, and when it is given up; in the order of arrival.
    gaps: VecDeque<(u64, Time)>,
    /// Missing data before this position was given up.
    given_up: u64,
    echo: Echo,
    /// Whether an answer is due, to the end of the stream or to a question.
    is_due: bool,
    /// Recovers lost data from repair symbols.
    decoder: Option<Box<Decoder<D>>>,
    /// Number of bits corrected so far; `report` says when it is reported.
    mended: u32,
    report: Option<Report>,
    /// Reports to a sender that learns its rate.
    reports: Option<Box<Reports>>,
    /// Repeats the answer to the opening until the peer has received it.
    opening: Repeat,
}

instants! {
    Receiver<D>: gaps, echo, report, reports, opening;
    fixed: data, end, buffer_bytes, half_open_bytes, hold, given_up, is_due, decoder, mended
}

impl<D: Payload> Receiver<D> {
    pub(in super::super) fn new(config: &AerotpConfig) -> Self {
        let erasure = config.erasure.filter(|_| config.has(Mode::QuasiReliable));
        // The block of the missing data is closed within one timeout, and sending its repair symbols takes at most as long.
        // `[E4]`
        let repair_time = erasure.map_or(Time::ZERO, |erasure| erasure.timeout_s.time().times(2));
        let decoder = erasure.map(|erasure| Box::new(Decoder::new(&erasure, config.packet_bytes.whole())));
        Receiver {
            data: Reorder::default(),
            end: None,
            buffer_bytes: config.first_buffer_bytes(),
            half_open_bytes: config.half_open(),
            hold: config.hold_time_s.time() + repair_time,
            decoder,
            gaps: VecDeque::new(),
            given_up: 0,
            echo: Echo::default(),
            is_due: false,
            mended: 0,
            report: config
                .adaptive_fec
                .filter(|_| !config.has_rate_reports())
                .map(|fec| Report { every: fec.report_every_s.time(), next: Time::ZERO }),
            reports: Reports::new(config),
            opening: Repeat::new(config.initial_rto_s.time(), config.longest_repetition()),
        }
    }

    pub(in super::super) fn on_segment(&mut self, now: Time, incoming: Incoming<D>) -> bool {
        let Incoming { position, payload, is_end, repair, timestamp, is_opening } = incoming;
        if let Some(repair) = repair {
            let is_sound = self.on_repair(repair, payload);
            if self.reports.is_some() && is_sound {
                self.echo.on_segment(now, timestamp);
                self.on_arrived(now);
            }
            return is_sound;
        }
        let end = position + payload.len() as u64;
        let is_beyond_end = self.end.is_some_and(|known| end > known || (is_end && end != known));
        let is_end_before_data = is_end && self.data.early_end().max(self.data.next) > end;
        if is_beyond_end || is_end_before_data {
            return false;
        }
        let overtaken_by = self.echo.on_segment(now, timestamp);
        if !payload.is_empty() {
            self.on_arrived(now);
        }
        if is_opening && now >= self.opening.at {
            self.opening.on_notice_sent(now);
            self.is_due = true;
        }
        if let Some(report) = self.report.as_mut().filter(|report| now >= report.next) {
            report.next = now + report.every;
            self.is_due = true;
        }
        let is_question = payload.is_empty() && !is_end;
        self.is_due |= is_end || is_question;
        if is_end {
            self.end = Some(end);
        }
        let most = if is_opening { self.half_open_bytes } else { self.buffer_bytes };
        // Many small pieces far apart would take much more memory than their bytes. `[B6]`
        let has_place = self.data.piece_count() < most_pieces(most);
        let has_room = self.data.held_bytes() + payload.len() as u64 <= most && has_place;
        if has_room && end > self.data.next && !payload.is_empty() {
            let had = self.here_bytes();
            let is_known = |decoder: &Decoder<D>| position > self.data.next && decoder.knows(position);
            if let Some(decoder) = self.decoder.as_mut().filter(|decoder| !is_known(decoder)) {
                decoder.on_data(position, &payload);
            }
            if position == self.data.next && !self.data.has_gaps() {
                self.data.deliver(payload);
            } else {
                self.data.put(position, payload);
            }
            if overtaken_by > 0 && self.here_bytes() > had {
                self.echo.on_overtaken_data(overtaken_by);
            }
        }
        if self.data.has_gaps() {
            self.recover();
        }
        if self.data.next < position {
            self.await_missing(now, position);
        }
        if is_end && self.data.next < end {
            self.await_missing(now, end);
        }
        has_room
    }

    /// Takes the next data in order and counts it as read, if nothing is missing and no report becomes due; without any effect otherwise.
    /// As [`on_segment`](Self::on_segment), then [`read`](Self::read).
    #[cfg(feature = "trains")]
    pub(in super::super) fn absorb(&mut self, now: Time, bytes: u64, timestamp: u32) -> Option<Absorbed> {
        let is_in_order = !self.data.has_gaps() && self.data.unread_bytes == 0 && self.given_up <= self.data.next;
        let reports = self.reports.is_some() || self.report.is_some_and(|report| now >= report.next);
        if !is_in_order
            || reports
            || self.is_due
            || self.end.is_some()
            || self.decoder.is_some()
            || bytes > self.buffer_bytes
        {
            return None;
        }
        let overtaken_by = self.echo.on_segment(now, timestamp);
        if overtaken_by > 0 {
            self.echo.on_overtaken_data(overtaken_by);
        }
        self.data.pass(bytes);
        Some(Absorbed { bytes, has_set_timer: false })
    }

    /// A segment with payload has arrived, perhaps too late.
    fn on_arrived(&mut self, now: Time) {
        self.is_due |= self.reports.as_mut().is_some_and(|reports| reports.on_segment(now));
    }

    /// How much of the stream has arrived, in order or not.
    fn here_bytes(&self) -> u64 {
        self.data.next + self.data.held_bytes() - self.data.unread_bytes
    }

    /// The next report's content on overtaken segments. `[A10]`
    pub(in super::super) fn take_overtaken(&mut self) -> Option<u32> {
        self.reports.is_some().then(|| self.echo.take_overtaken()).flatten()
    }

    pub(in super::super) fn on_mended(&mut self, bits: u16) {
        self.mended = self.mended.wrapping_add(u32::from(bits));
    }

    /// Takes a repair symbol, which may complete its block. Returns whether it is consistent. `[E3]`
    fn on_repair(&mut self, repair: Repair, payload: D) -> bool {
        let ahead = repair.start.wrapping_sub(self.data.next as u32) as i32;
        let (Some(decoder), Some(start)) = (&mut self.decoder, self.data.next.checked_add_signed(i64::from(ahead)))
        else {
            return false;
        };
        let is_sound = decoder.on_repair(start, repair, payload);
        self.recover();
        is_sound
    }

    /// Takes recovered data that had neither arrived nor been given up.
    fn recover(&mut self) {
        let Some(decoder) = &mut self.decoder else { return };
        let (data, end) = (&mut self.data, self.end);
        decoder.recover(data.next, |position, payload| {
            let behind = position + payload.len() as u64;
            if behind > data.next && end.is_none_or(|end| behind <= end) {
                data.put(position, payload);
            }
        });
        self.forget_filled();
    }

    /// Notes that data before a position is missing.
    fn await_missing(&mut self, now: Time, position: u64) {
        if self.hold == Time::ZERO {
            self.given_up = self.given_up.max(position);
        } else {
            self.forget_filled();
            let gap = (position, now + self.hold);
            let is_full = self.gaps.len() >= most_pieces(self.buffer_bytes);
            match self.gaps.back_mut() {
                Some(last) if position <= last.0 => {} // it is given up earlier
                Some(last) if is_full => *last = gap,
                _ => self.gaps.push_back(gap),
            }
        }
    }

    /// Drops gaps that were filled or given up.
    fn forget_filled(&mut self) {
        let settled = self.data.next.max(self.given_up);
        while self.gaps.front().is_some_and(|gap| gap.0 <= settled) {
            self.gaps.pop_front();
        }
    }

    pub(in super::super) fn on_timeout(&mut self, now: Time) {
        if let Some(reports) = self.reports.as_mut().filter(|reports| reports.deadline <= now) {
            reports.deadline = Time::NEVER;
            self.is_due = true;
        }
        self.forget_filled();
        while let Some(&(position, due)) = self.gaps.front()
            && due <= now
        {
            self.given_up = self.given_up.max(position);
            self.gaps.pop_front();
        }
    }

    #[inline]
    pub(in super::super) fn deadline(&self) -> Time {
        let report = self.reports.as_ref().map_or(Time::NEVER, |reports| reports.deadline);
        self.gaps.front().map_or(report, |gap| report.min(gap.1))
    }

    #[inline]
    pub(in super::super) fn may_have_event(&self) -> bool {
        self.end.is_some() || self.given_up > self.data.next
    }

    /// The number of bytes to skip now: the next gap that was given up, once all data before it was read.
    pub(in super::super) fn take_skipped(&mut self) -> Option<u64> {
        let next = self.data.next;
        if self.given_up <= next || self.data.unread_bytes > 0 {
            return None;
        }
        let target = self.data.early_start().or(self.end).filter(|&target| target <= self.given_up)?;
        self.data.skip_to(target);
        self.forget_filled();
        Some(target - next)
    }

    /// Whether an acknowledgement is due.
    pub(in super::super) fn is_mack_due(&self) -> bool {
        self.is_due && self.echo.is_known()
    }

    /// The acknowledgement that is due. In these modes it only says up to which position the receiver waits for no more data, and where
    /// the rate is learnt how many segments have arrived; its window field carries the number of corrected bits. `[U5]`, `[U10]`
    pub(in super::super) fn next_mack(&mut self, now: Time) -> Option<(u64, Box<Mack>)> {
        if !self.is_due {
            return None;
        }
        let mut mack = self.echo.mack(now)?;
        self.is_due = false;
        let ack = self.end.map_or(self.data.early_end().max(self.data.next), |end| end + 1);
        (mack.window, mack.counts_symbols) = (self.mended, self.reports.is_some());
        if let Some(reports) = &mut self.reports {
            reports.on_told();
            mack.edges.push(reports.arrived, 0);
        }
        Some((ack, mack))
    }

    #[inline]
    pub(in super::super) fn read(&mut self) -> Option<D> {
        self.data.read()
    }

    #[inline]
    pub(in super::super) fn next_position(&self) -> u64 {
        self.data.next
    }

    pub(in super::super) fn is_complete(&self) -> bool {
        self.end == Some(self.data.next)
    }

    pub(in super::super) fn is_read(&self) -> bool {
        self.is_complete() && self.data.unread_bytes == 0
    }

    pub(in super::super) fn peak_bytes(&self) -> u64 {
        self.data.peak_early_bytes
    }
}

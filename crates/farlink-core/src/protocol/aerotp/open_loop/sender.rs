//! Sends a stream once, and its end until that is acknowledged.

use crate::origin::instants;
use crate::payload::Payload;
use crate::protocol::parts::chunks::Chunks;
use crate::time::Time;

use super::super::config::AerotpConfig;
use super::super::mack_fields::MackFields;
use super::super::mode::Mode;
use super::super::outgoing::{Account, Outgoing, ROOM_BYTES};
use super::super::rate::Outcomes;
use super::super::write_times::WriteTimes;
use super::encoder::Encoder;
use super::flight::Flight;
use super::repeat::Repeat;

/// Largest distance at which a peer's position counts as behind instead of ahead.
const MOST_BEHIND: u64 = 1 << 30;

/// The sending half of a stream without acknowledgements. `[U1]`
#[derive(Clone, Debug)]
pub(in super::super) struct Sender<D> {
    unsent: Chunks<D>,
    unsent_bytes: u64,
    write_times: WriteTimes,
    encoder: Option<Box<Encoder<D>>>,
    is_coded: bool,
    /// Bytes that were too old and that the application was not told of yet.
    expired: u64,
    /// Position after all sent data, including the end of the stream.
    next: u64,
    is_closing: bool,
    /// When the end was first sent.
    ended: Option<Time>,
    /// When the end is sent again.
    repeat: Repeat,
    is_end_acknowledged: bool,
    is_link_down: bool,
    is_full: bool,
    /// Segments that were sent and not reported, where the rate is learnt.
    flight: Option<Box<Flight>>,
    pub(in super::super) account: Account,
}

instants! {
    Sender<D>: write_times, encoder, ended, repeat, flight;
    fixed: unsent, unsent_bytes, is_coded, expired, next, is_closing, is_end_acknowledged, is_link_down, is_full, account
}

impl<D: Payload> Sender<D> {
    pub(in super::super) fn new(config: &AerotpConfig) -> Self {
        Sender {
            unsent: Chunks::default(),
            unsent_bytes: 0,
            write_times: WriteTimes::new(config.deadline_s.map(|deadline| deadline.time())),
            encoder: config.erasure.map(|erasure| Box::new(Encoder::new(&erasure))),
            is_coded: config.mode == Mode::QuasiReliable,
            expired: 0,
            next: 0,
            is_closing: false,
            ended: None,
            repeat: Repeat::new(config.initial_rto_s.time(), config.longest_repetition()),
            is_end_acknowledged: false,
            is_link_down: false,
            is_full: false,
            flight: Flight::new(config),
            account: Account::default(),
        }
    }

    pub(in super::super) fn write(&mut self, now: Time, data: &mut D) -> usize {
        if self.is_closing || data.is_empty() {
            return 0;
        }
        let n = (data.len() as u64).min(ROOM_BYTES - self.unsent_bytes) as usize;
        self.is_full |= n < data.len();
        if n > 0 {
            self.unsent.push(data.split_to(n));
            self.unsent_bytes += n as u64;
            self.write_times.on_written(now, self.next + self.unsent_bytes);
        }
        n
    }

    pub(in super::super) fn unsent_bytes(&self) -> u64 {
        self.unsent_bytes
    }

    pub(in super::super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// Drops data that is too old. The stream continues after it, and the receiver skips it as if it were lost. `[V2]`
    #[inline]
    fn expire(&mut self, now: Time) {
        if !self.write_times.has_deadline() {
            return;
        }
        let too_old = self.write_times.expired(now).saturating_sub(self.next).min(self.unsent_bytes);
        self.unsent.advance(too_old as usize);
        self.unsent_bytes -= too_old;
        self.next += too_old;
        self.expired += too_old;
    }

    #[inline]
    pub(in super::super) fn next(&mut self, now: Time, most_bytes: u32) -> Option<Outgoing<D>> {
        let next = self.choose(now, most_bytes);
        if let Some(flight) = &mut self.flight
            && next.as_ref().is_some_and(|next| !next.payload.is_empty())
        {
            flight.on_sent(now);
        }
        next
    }

    fn choose(&mut self, now: Time, most_bytes: u32) -> Option<Outgoing<D>> {
        self.expire(now);
        if self.ready_at() > now {
            return None;
        }
        if self.ended.is_some() {
            self.repeat.on_notice_sent(now);
            let position = self.next - 1;
            return Some(Outgoing { position, payload: D::default(), is_end: true, repair: None });
        }
        let most_bytes = match self.next_symbol(now, most_bytes) {
            Some(most) => most,
            None => match self.next_repair(now, most_bytes) {
                Some(repair) => return Some(repair),
                None => self.next_symbol(now, most_bytes)?, // no repair symbol fits any more
            },
        };
        let n = self.unsent_bytes.min(u64::from(most_bytes));
        let payload = self.unsent.take(n as usize);
        self.unsent_bytes -= n;
        if let Some(encoder) = self.encoder.as_mut().filter(|_| self.is_coded) {
            encoder.on_sent(&payload);
        }
        let is_end = self.is_closing && self.unsent_bytes == 0 && !self.has_coded();
        if n == 0 && !is_end {
            return None;
        }
        let position = self.next;
        self.next += n + u64::from(is_end);
        self.write_times.forget(self.next);
        if is_end {
            self.ended = Some(now);
            self.repeat.on_notice_sent(now);
        }
        Some(Outgoing { position, payload, is_end, repair: None })
    }

    /// The amount of data to send next; `None` if a repair symbol goes first.
    #[inline]
    fn next_symbol(&mut self, now: Time, most_bytes: u32) -> Option<u32> {
        let Some(encoder) = self.encoder.as_mut().filter(|_| self.is_coded) else { return Some(most_bytes) };
        if encoder.deadline() <= now || (self.is_closing && self.unsent_bytes == 0) {
            encoder.close();
        }
        if encoder.has_repairs() {
            return None;
        }
        if self.unsent_bytes == 0 { Some(0) } else { Some(encoder.most_bytes(now, self.next, most_bytes)) }
    }

    fn next_repair(&mut self, now: Time, most_bytes: u32) -> Option<Outgoing<D>> {
        self.encoder.as_mut().and_then(|encoder| encoder.next(now, most_bytes))
    }

    /// Whether repair symbols are due or will be.
    fn has_coded(&self) -> bool {
        self.is_coded && self.encoder.as_ref().is_some_and(|encoder| encoder.has_repairs() || encoder.is_open())
    }

    pub(in super::super) fn set_coded(&mut self, is_coded: bool) {
        if let Some(encoder) = self.encoder.as_mut().filter(|_| !is_coded) {
            encoder.abandon();
        }
        self.is_coded = is_coded;
    }

    pub(in super::super) fn on_mack(&mut self, now: Time, mack: &MackFields) {
        self.is_end_acknowledged |= self.ended.is_some() && mack.ack == self.next;
        self.account.latest_round_trip = Some(mack.round_trip);
        if let Some(flight) = &mut self.flight {
            flight.on_report(now, mack);
        }
    }

    /// Outcomes of segments, where the rate is learnt from them.
    pub(in super::super) fn outcomes(&mut self) -> Option<&mut Outcomes> {
        self.flight.as_mut().map(|flight| &mut flight.outcomes)
    }

    pub(in super::super) fn on_timeout(&mut self, now: Time) {
        self.expire(now);
    }

    /// Waits while the link is known to be down, because packets would certainly be lost.
    pub(in super::super) fn on_link(&mut self, _now: Time, is_up: bool) {
        self.is_link_down = !is_up;
    }

    #[inline]
    pub(in super::super) fn deadline(&self) -> Time {
        self.write_times.next_due()
    }

    #[inline]
    pub(in super::super) fn ready_at(&self) -> Time {
        if self.is_link_down {
            Time::NEVER
        } else if self.unsent_bytes > 0 {
            Time::ZERO
        } else if self.has_coded() {
            let is_due = self.is_closing || self.encoder.as_ref().is_none_or(|encoder| encoder.has_repairs());
            if is_due { Time::ZERO } else { self.encoder.as_ref().map_or(Time::NEVER, |encoder| encoder.deadline()) }
        } else if self.is_closing && !self.is_end_acknowledged {
            self.repeat.at
        } else {
            Time::NEVER
        }
    }

    pub(in super::super) fn awaits_since(&self) -> Time {
        self.ended.filter(|_| !self.is_end_acknowledged).unwrap_or(Time::NEVER)
    }

    #[inline]
    pub(in super::super) fn limits(&self) -> (u64, u64) {
        (self.next.saturating_sub(MOST_BEHIND), self.next)
    }

    /// Position up to which data was sent or given up because of its age, without the end of the stream.
    pub(in super::super) fn settled_bytes(&self) -> u64 {
        self.next - u64::from(self.ended.is_some())
    }

    /// Data is never acknowledged in these modes, so sent data counts as done.
    pub(in super::super) fn is_all_acknowledged(&self) -> bool {
        self.is_closing && self.unsent_bytes == 0
    }

    pub(in super::super) fn is_done(&self) -> bool {
        self.is_end_acknowledged
    }

    pub(in super::super) fn take_expired(&mut self) -> u64 {
        std::mem::take(&mut self.expired)
    }

    /// Whether no data can become too old.
    #[inline]
    pub(in super::super) fn only_waits(&self) -> bool {
        !self.write_times.has_deadline()
    }

    #[inline]
    pub(in super::super) fn may_have_event(&self) -> bool {
        self.is_writable() || self.expired > 0
    }

    #[inline]
    fn is_writable(&self) -> bool {
        self.is_full && self.unsent_bytes < ROOM_BYTES / 2
    }

    pub(in super::super) fn take_writable(&mut self) -> bool {
        let is_writable = self.is_writable();
        self.is_full &= !is_writable;
        is_writable
    }
}

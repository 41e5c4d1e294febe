//! A link: a drop-tail queue, a transmitter, a channel and a delay.
//!
//! [`Link`] serves the engine and an emulator alike: it gets the arrival of each packet at its queue and returns the
//! packet's fate. Capacity and delay are known ahead, so everything is computed when the packet is queued, without an
//! event for the departure. With classes of service, a [`Hop`](crate::hop::Hop) keeps the queue and sends a packet when
//! the link can start it.

mod capacity;
pub mod pass;
pub mod series;
pub mod setting;
mod state;

use std::collections::VecDeque;

use crate::channel::{Channel, Fate, Frame, Prepared, Quiet, SettingId};
use crate::rng::Rng;
use crate::time::Time;

pub use capacity::Capacity;
pub use state::LinkState;

use series::{DelaySeries, Transmitter};
use setting::{PreparedDelay, PreparedRate};

/// Limit of the backlog, excluding the packet being sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// No limit.
    #[default]
    Unlimited,
    /// This many bytes.
    Bytes(u64),
    /// This many packets.
    Packets(u64),
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its last bit arrives then.
    Arrives(Time),
    /// Its last bit arrives then, some bits wrong: see [`Link::wrong_bits`].
    Damaged(Time),
    /// The channel lost it.
    Lost,
    /// The queue was full, or a policer in front of it had too few tokens.
    Dropped,
}

/// One direction of one hop in one run.
pub struct Link {
    /// When the transmitter is free.
    free_at: Time,
    transmitter: Transmitter,
    delay: DelaySeries,
    /// The unused part of the channel's last promise.
    quiet: Quiet,
    /// The promise itself.
    promised: Quiet,
    limit: QueueLimit,
    /// Backlog from which on packets are marked; never if unlimited.
    mark_from: QueueLimit,
    /// Whether the backlog is tracked, because the queue has a limit or marks.
    keeps_account: bool,
    /// The last packet found the marking threshold reached.
    is_marking: bool,
    /// Start of transmission and size of each waiting packet.
    waiting: VecDeque<(Time, u32)>,
    waiting_bytes: u64,
    peak_waiting_bytes: u64,
    /// Longest time from arrival at the queue to the start of transmission, kept if the backlog is not tracked.
    longest_wait: Time,
    channel: Box<dyn Channel>,
    rng: Rng,
    wrong_bits: Vec<u32>,
}

impl Link {
    /// Begins a run. `hop` is the random stream that both directions of a hop share; everything else is drawn from
    /// `rng`.
    pub fn new(
        rate: &PreparedRate,
        delay: &PreparedDelay,
        limit: QueueLimit,
        channel: &dyn Prepared,
        mut rng: Rng,
        hop: &Rng,
    ) -> Self {
        let transmitter = rate.start(&mut rng);
        let delay = delay.start(&mut rng);
        let channel = channel.start_on_hop(&mut rng, hop);
        Link {
            free_at: Time::ZERO,
            transmitter,
            delay,
            quiet: channel.quiet(),
            promised: channel.quiet(),
            limit,
            mark_from: QueueLimit::Unlimited,
            keeps_account: limit != QueueLimit::Unlimited,
            is_marking: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            peak_waiting_bytes: 0,
            longest_wait: Time::ZERO,
            channel,
            rng,
            wrong_bits: Vec::new(),
        }
    }

    /// Marks packets that find at least this backlog; see [`Link::is_marking`].
    #[must_use]
    pub fn marking(mut self, mark_from: QueueLimit) -> Self {
        self.mark_from = mark_from;
        self.keeps_account |= mark_from != QueueLimit::Unlimited;
        self
    }

    /// A packet arrives at the queue. `now` must not decrease from call to call.
    #[inline(always)]
    pub fn send(&mut self, now: Time, bytes: u32) -> Verdict {
        let ready = now.max(self.free_at);
        if self.keeps_account && !self.has_room(now, ready, bytes) {
            return Verdict::Dropped;
        }
        let (start, end) = self.transmitter.depart(ready, bytes);
        if !self.keeps_account {
            self.longest_wait = self.longest_wait.max(start.since(now));
        } else if start > now {
            self.waiting.push_back((start, bytes));
            self.waiting_bytes += u64::from(bytes);
            self.peak_waiting_bytes = self.peak_waiting_bytes.max(self.waiting_bytes);
        }
        self.free_at = end;
        let bits = u64::from(bytes) * 8;
        if self.quiet.frames > 0 && self.quiet.bits >= bits && self.quiet.until >= end {
            self.quiet.frames -= 1;
            self.quiet.bits -= bits;
            return Verdict::Arrives(end + self.delay.at(end));
        }
        self.carry(&Frame { start, end, bits: bits as u32, setting: SettingId::default() })
    }

    /// Equal packets arrive at the queue, `gap` apart from `first` on. Does the same as [`send`](Link::send) for as
    /// many of them as surely arrive intact at equal distances. Returns their number, the first arrival and the
    /// distance; a number of 0 means that they must be sent one by one, and that nothing was done.
    #[inline]
    pub fn send_train(&mut self, first: Time, gap: Time, count: u32, bytes: u32) -> (u32, Time, Time) {
        const NONE: (u32, Time, Time) = (0, Time::ZERO, Time::ZERO);
        let (Transmitter::Constant(byte_time, _), DelaySeries::Constant(delay)) = (&self.transmitter, &self.delay)
        else {
            return NONE;
        };
        let time = byte_time.of(bytes);
        let is_free = self.free_at <= first && time <= gap;
        // Packets that arrive while the transmitter is free meet no backlog, so they are neither dropped nor marked.
        let is_busy = gap <= time && !self.keeps_account;
        let bits = u64::from(bytes) * 8;
        let mut count = u64::from(count).min(self.quiet.frames);
        if count * bits > self.quiet.bits {
            count = self.quiet.bits / bits;
        }
        if !(is_free || is_busy) || count == 0 {
            return NONE;
        }
        let start = first.max(self.free_at);
        let distance = if is_free { gap } else { time };
        let last_start = start + distance.times(count - 1);
        if last_start + time > self.quiet.until {
            return NONE;
        }
        self.longest_wait = self.longest_wait.max(last_start.since(first + gap.times(count - 1)));
        self.free_at = last_start + time;
        self.quiet.frames -= count;
        self.quiet.bits -= count * bits;
        (count as u32, start + time + *delay, distance)
    }

    /// For a hop that keeps the queue: when the transmission of a packet sent at `now` begins, after the previous ones.
    pub(crate) fn next_start(&self, now: Time) -> Time {
        self.transmitter.next_start(now.max(self.free_at))
    }

    /// When the transmitter will have sent everything that it holds.
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// The capacity over any span of the run.
    pub fn capacity(&self) -> Capacity {
        Capacity::of(&self.transmitter)
    }

    /// For a hop that keeps the queue: whether nothing is being transmitted.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        self.free_at <= now
    }

    /// For a hop that keeps the queue: sets [`is_marking`](Link::is_marking) for the packets sent from now on.
    pub(crate) fn set_marking(&mut self, is_marking: bool) {
        self.is_marking = is_marking;
    }

    /// Asks the channel about a frame that its last promise does not cover.
    #[inline(never)]
    fn carry(&mut self, frame: &Frame) -> Verdict {
        let (frames, bits) = (self.promised.frames - self.quiet.frames, self.promised.bits - self.quiet.bits);
        if frames > 0 {
            self.channel.skip(frames, bits);
        }
        self.wrong_bits.clear();
        let fate = self.channel.carry(frame, &mut self.rng, &mut self.wrong_bits);
        self.promised = self.channel.quiet();
        self.quiet = self.promised;
        let arrival = frame.end + self.delay.at(frame.end);
        match fate {
            Fate::Delivered => Verdict::Arrives(arrival),
            Fate::Damaged => Verdict::Damaged(arrival),
            Fate::Lost => Verdict::Lost,
        }
    }

    /// Whether the queue has room for one more packet, after removing those that have left it.
    #[inline(always)]
    fn has_room(&mut self, now: Time, ready: Time, bytes: u32) -> bool {
        while let Some(&(begins, size)) = self.waiting.front()
            && begins <= now
        {
            self.waiting_bytes -= u64::from(size);
            self.waiting.pop_front();
        }
        self.is_marking = match self.mark_from {
            QueueLimit::Unlimited => false,
            QueueLimit::Bytes(least) => self.waiting_bytes >= least,
            QueueLimit::Packets(least) => self.waiting.len() as u64 >= least,
        };
        if ready <= now && self.waiting.is_empty() {
            return true; // straight to the transmitter
        }
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(most) => self.waiting_bytes + u64::from(bytes) <= most,
            QueueLimit::Packets(most) => (self.waiting.len() as u64) < most,
        }
    }

    /// Whether the packet that the last [`send`](Link::send) took found the marking threshold reached.
    ///
    /// The length of the queue at that instant decides, not an average of it.
    #[inline]
    pub fn is_marking(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc3168#section-5
        //# routers can set the CE codepoint in the IP header instead of dropping the packet, when such a field is
        //# provided in the IP header and understood by the transport protocol.
        self.is_marking
    }

    /// Wrong bits of the packet that the last [`send`](Link::send) reported as damaged.
    pub fn wrong_bits(&self) -> &[u32] {
        &self.wrong_bits
    }

    /// Largest backlog, bytes.
    ///
    /// An unlimited queue that does not mark does not track its packets. With a constant rate, the peak is then the
    /// amount sent during the longest wait, which counts the rest of the packet on the transmitter but not the one that
    /// waited longest; with a varying rate, it is `None`.
    pub fn peak_waiting_bytes(&self) -> Option<f64> {
        match &self.transmitter {
            _ if self.keeps_account => Some(self.peak_waiting_bytes as f64),
            Transmitter::Constant(rate, _) => Some((self.longest_wait.as_secs_f64() * rate.rate_bps() / 8.0).round()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::none::Clear;
    use crate::units::BitRate;

    fn link(limit: QueueLimit) -> Link {
        let rate = BitRate::new(8e6).unwrap().into(); // one byte per microsecond
        let delay = Time::from_millis(250).into();
        Link::new(&rate, &delay, limit, &Clear {}, Rng::for_component(1, 0, "test"), &Rng::for_component(1, 0, "hop"))
    }

    #[test]
    fn packets_are_transmitted_one_after_the_other() {
        let mut link = link(QueueLimit::Unlimited);
        assert_eq!(link.send(Time::ZERO, 1000), Verdict::Arrives(Time::from_millis(251)));
        assert_eq!(link.send(Time::ZERO, 1000), Verdict::Arrives(Time::from_millis(252)));
        assert_eq!(link.send(Time::from_millis(10), 1000), Verdict::Arrives(Time::from_millis(261)));
    }

    #[test]
    fn the_queue_limit_excludes_the_packet_being_sent() {
        let mut link = link(QueueLimit::Packets(1));
        let mut fates = || link.send(Time::ZERO, 1000);
        assert!(matches!(fates(), Verdict::Arrives(_)));
        assert!(matches!(fates(), Verdict::Arrives(_)));
        assert_eq!(fates(), Verdict::Dropped);
        assert!(matches!(link.send(Time::from_millis(1), 1000), Verdict::Arrives(_)), "the first has left");
        assert_eq!(link.peak_waiting_bytes(), Some(1000.0));
    }

    /// The backlog excludes the packet being sent.
    #[test]
    fn packets_are_marked_when_the_backlog_has_reached_the_threshold() {
        for (limit, threshold) in [
            (QueueLimit::Unlimited, QueueLimit::Packets(2)),
            (QueueLimit::Packets(3), QueueLimit::Packets(2)),
            (QueueLimit::Bytes(3000), QueueLimit::Bytes(1001)),
        ] {
            let mut link = link(limit).marking(threshold);
            let mut marks = |at| {
                let is_taken = link.send(Time::from_millis(at), 1000) != Verdict::Dropped;
                (is_taken, link.is_marking())
            };
            assert_eq!([0, 0, 0, 0].map(&mut marks), [false, false, false, true].map(|is_marked| (true, is_marked)));
            assert_eq!(marks(1), (true, true), "the first has left");
            assert_eq!(marks(4), (true, false), "one waits");
            assert_eq!(marks(20), (true, false), "none waits");
        }
    }

    #[test]
    fn a_marking_queue_accepts_trains_that_do_not_wait() {
        let mut link = link(QueueLimit::Unlimited).marking(QueueLimit::Packets(1));
        let millis = Time::from_millis;
        assert_eq!(link.send_train(millis(0), millis(1), 5, 1000), (5, millis(251), millis(1)));
        assert_eq!(link.send_train(millis(5), Time::ZERO, 5, 1000).0, 0, "one by one: some are marked");
        assert_eq!(link.peak_waiting_bytes(), Some(0.0));
    }

    #[test]
    fn a_byte_limit_admits_smaller_packets() {
        let mut link = link(QueueLimit::Bytes(100));
        assert!(matches!(link.send(Time::ZERO, 1000), Verdict::Arrives(_)));
        assert_eq!(link.send(Time::ZERO, 101), Verdict::Dropped);
        assert!(matches!(link.send(Time::ZERO, 100), Verdict::Arrives(_)));
    }
}

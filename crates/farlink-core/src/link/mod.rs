//! A link: a drop-tail queue, a transmitter of some rate, a channel and a delay.
//!
//! [`Link`] serves the engine and an emulator alike: it is told when a packet arrives at its queue and answers what
//! becomes of it. Capacity and delay are known ahead, so everything is computed when the packet is queued: no event marks
//! a departure.

pub mod series;
pub mod setting;
mod state;

use std::collections::VecDeque;

use crate::channel::{Channel, Fate, Frame, Prepared, Quiet, SettingId};
use crate::rng::Rng;
use crate::time::Time;

pub use state::LinkState;

use series::{DelaySeries, Transmitter};
use setting::{PreparedDelay, PreparedRate};

/// How much may wait for the transmitter; the packet on the transmitter does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// Everything.
    #[default]
    Unlimited,
    /// This many bytes.
    Bytes(u64),
    /// This many packets.
    Packets(u64),
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its last bit arrives then.
    Arrives(Time),
    /// Its last bit arrives then, some bits wrong: see [`Link::wrong_bits`].
    Damaged(Time),
    /// The channel lost it.
    Lost,
    /// The queue was full.
    Dropped,
}

/// One direction of one hop in one run.
pub struct Link {
    /// When the transmitter is free.
    free_at: Time,
    transmitter: Transmitter,
    delay: DelaySeries,
    /// What the channel promised, less what was used of it since.
    quiet: Quiet,
    /// The promise itself.
    promised: Quiet,
    limit: QueueLimit,
    /// Start of transmission and size of what waits.
    waiting: VecDeque<(Time, u32)>,
    waiting_bytes: u64,
    peak_waiting_bytes: u64,
    /// Longest time from arrival at the queue to the start of transmission; kept for an unlimited queue.
    longest_wait: Time,
    channel: Box<dyn Channel>,
    rng: Rng,
    wrong_bits: Vec<u32>,
}

impl Link {
    /// Begins a run.
    pub fn new(
        rate: &PreparedRate,
        delay: &PreparedDelay,
        limit: QueueLimit,
        channel: &dyn Prepared,
        mut rng: Rng,
    ) -> Self {
        let transmitter = rate.start(&mut rng);
        let delay = delay.start(&mut rng);
        let channel = channel.start(&mut rng);
        Link {
            free_at: Time::ZERO,
            transmitter,
            delay,
            quiet: channel.quiet(),
            promised: channel.quiet(),
            limit,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            peak_waiting_bytes: 0,
            longest_wait: Time::ZERO,
            channel,
            rng,
            wrong_bits: Vec::new(),
        }
    }

    /// A packet arrives at the queue. Calls are in order of time.
    #[inline(always)]
    pub fn send(&mut self, now: Time, bytes: u32) -> Verdict {
        let ready = now.max(self.free_at);
        let is_limited = self.limit != QueueLimit::Unlimited;
        if is_limited && !self.has_room(now, ready, bytes) {
            return Verdict::Dropped;
        }
        let (start, end) = self.transmitter.depart(ready, bytes);
        if !is_limited {
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

    /// Equal packets arrive at the queue, `gap` apart from `first` on: as [`send`](Link::send) for as many of them as
    /// surely arrive intact at equal distances. Returns how many these are, when the first arrives and the distance; 0 if
    /// they need a look one by one, and nothing was done.
    #[inline]
    pub fn send_train(&mut self, first: Time, gap: Time, count: u32, bytes: u32) -> (u32, Time, Time) {
        const NONE: (u32, Time, Time) = (0, Time::ZERO, Time::ZERO);
        let (Transmitter::Constant(byte_time, _), DelaySeries::Constant(delay)) = (&self.transmitter, &self.delay)
        else {
            return NONE;
        };
        let time = byte_time.of(bytes);
        let is_free = self.free_at <= first && time <= gap;
        let is_busy = gap <= time && self.limit == QueueLimit::Unlimited;
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

    /// Whether the queue takes one more, now that some have left it.
    fn has_room(&mut self, now: Time, ready: Time, bytes: u32) -> bool {
        while let Some(&(begins, size)) = self.waiting.front()
            && begins <= now
        {
            self.waiting_bytes -= u64::from(size);
            self.waiting.pop_front();
        }
        if ready <= now && self.waiting.is_empty() {
            return true; // straight to the transmitter
        }
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(most) => self.waiting_bytes + u64::from(bytes) <= most,
            QueueLimit::Packets(most) => (self.waiting.len() as u64) < most,
        }
    }

    /// Wrong bits of the packet that the last [`send`](Link::send) called damaged.
    pub fn wrong_bits(&self) -> &[u32] {
        &self.wrong_bits
    }

    /// Largest amount that waited, bytes.
    ///
    /// An unlimited queue keeps no account of its packets: of a constant rate, it is what is sent in the longest wait
    /// (what was left of the packet on the transmitter counts, the one that waited longest does not); of another, `None`.
    pub fn peak_waiting_bytes(&self) -> Option<f64> {
        match (&self.transmitter, self.limit) {
            (Transmitter::Constant(rate, _), QueueLimit::Unlimited) => {
                Some((self.longest_wait.as_secs_f64() * rate.rate_bps() / 8.0).round())
            }
            (_, QueueLimit::Unlimited) => None,
            _ => Some(self.peak_waiting_bytes as f64),
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
        Link::new(&rate, &delay, limit, &Clear {}, Rng::for_component(1, 0, "test"))
    }

    #[test]
    fn transmits_one_after_the_other() {
        let mut link = link(QueueLimit::Unlimited);
        assert_eq!(link.send(Time::ZERO, 1000), Verdict::Arrives(Time::from_millis(251)));
        assert_eq!(link.send(Time::ZERO, 1000), Verdict::Arrives(Time::from_millis(252)));
        assert_eq!(link.send(Time::from_millis(10), 1000), Verdict::Arrives(Time::from_millis(261)));
    }

    #[test]
    fn limit_counts_what_waits_and_not_what_is_sent() {
        let mut link = link(QueueLimit::Packets(1));
        let mut fates = || link.send(Time::ZERO, 1000);
        assert!(matches!(fates(), Verdict::Arrives(_)));
        assert!(matches!(fates(), Verdict::Arrives(_)));
        assert_eq!(fates(), Verdict::Dropped);
        assert!(matches!(link.send(Time::from_millis(1), 1000), Verdict::Arrives(_)), "the first has left");
        assert_eq!(link.peak_waiting_bytes(), Some(1000.0));
    }

    #[test]
    fn byte_limit_lets_small_packets_in() {
        let mut link = link(QueueLimit::Bytes(100));
        assert!(matches!(link.send(Time::ZERO, 1000), Verdict::Arrives(_)));
        assert_eq!(link.send(Time::ZERO, 101), Verdict::Dropped);
        assert!(matches!(link.send(Time::ZERO, 100), Verdict::Arrives(_)));
    }
}

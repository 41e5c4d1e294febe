//! One way through the relay: hop, jitter, and the packets under way. It has no clock: time is an argument.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use farlink_core::Time;
use farlink_core::emulator::ip;
use farlink_core::hop::{Entry, Hop, HopSetup, Place};
use farlink_core::link::Verdict;
use farlink_core::rng::Rng;

use crate::counts::Flows;

/// Call [`handle_packet`](Way::handle_packet) for each packet, and [`poll`](Way::poll) at [`poll_timeout`](Way::poll_timeout) until
/// nothing more is due.
pub(crate) struct Way {
    hop: Hop,
    jitter: Time,
    rng: Rng,
    under_way: BinaryHeap<Reverse<Due>>,
    /// Packets taken so far.
    taken: u64,
    pub(crate) flows: Flows,
}

/// A packet under way; those due at the same time leave as they came.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Time,
    number: u64,
    packet: Vec<u8>,
}

impl Way {
    /// `shared` is the random stream of both ways.
    pub(crate) fn new(setup: &HopSetup, jitter: Time, hop: Rng, rng: Rng, shared: &Rng) -> Self {
        let hop = Hop::new(setup, false, hop, shared);
        Way { hop, jitter, rng, under_way: BinaryHeap::new(), taken: 0, flows: Flows::default() }
    }

    /// A packet comes in. `now` must not decrease from call to call.
    pub(crate) fn handle_packet(&mut self, now: Time, mut packet: Vec<u8>) {
        let bytes = packet.len() as u32;
        let counts = self.flows.of(&packet);
        counts.came += 1;
        counts.came_bytes += u64::from(bytes);
        counts.longest_bytes = counts.longest_bytes.max(u64::from(bytes));
        let Entry::Sent(verdict) = self.hop.send(now, bytes, 0) else { unreachable!("its queue has no classes") };
        let at = match verdict {
            Verdict::Arrives(at) => at,
            Verdict::Damaged(at) => {
                counts.damaged += 1;
                ip::invert(&mut packet, self.hop.wrong_bits().iter().copied());
                at
            }
            Verdict::Lost => {
                counts.lost += 1;
                return;
            }
            Verdict::Dropped => {
                counts.dropped += 1;
                return;
            }
        };
        counts.marked += u64::from(self.hop.is_marking() && ip::mark(&mut packet));
        let jitter = Time::from_secs_f64(self.jitter.as_secs_f64() * self.rng.uniform());
        let (Place::Behind(at) | Place::InFront(at)) = self.hop.place(at + jitter);
        self.under_way.push(Reverse(Due { at, number: self.taken, packet }));
        self.taken += 1;
    }

    /// When the next packet leaves; never if none is under way.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.under_way.peek().map_or(Time::NEVER, |Reverse(due)| due.at)
    }

    /// The next packet that leaves by `now`, and when it was due.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        if self.poll_timeout() > now {
            return None;
        }
        self.under_way.pop().map(|Reverse(due)| (due.at, due.packet))
    }
}

#[cfg(test)]
mod tests {
    use etherparse::IpEcn;

    use super::*;
    use crate::arguments::parse;
    use crate::packet::tests::datagram;

    /// The way there of a command line.
    fn way(options: &str) -> Way {
        let words = format!("near far {options}");
        let arguments = parse(words.split_whitespace().map(str::to_owned)).unwrap().unwrap();
        let [there, _] = arguments.ways().unwrap();
        there
    }

    /// Sends packets of 1000 bytes, `gap_us` apart, and returns when each of those that leave does so, in microseconds, with its
    /// number.
    fn play(way: &mut Way, packets: u64, gap_us: u64) -> Vec<(u64, u64)> {
        for n in 0..packets {
            let mut packet = datagram(972, IpEcn::TWO);
            packet[992..].copy_from_slice(&n.to_be_bytes());
            way.handle_packet(Time::from_ps(n * gap_us * 1_000_000), packet);
        }
        let mut left = Vec::new();
        while let Some((due, packet)) = way.poll(Time::NEVER.since(Time::from_secs(1))) {
            left.push((due.as_ps() / 1_000_000, u64::from_be_bytes(packet[992..].try_into().unwrap())));
        }
        left
    }

    #[test]
    fn packets_take_rate_queue_and_delay() {
        // A packet in a millisecond: the first is sent, two wait, the others are dropped.
        let mut way = way("--rate 8e6 --queue 2 --delay 0.25");
        assert_eq!(play(&mut way, 5, 0), [(251_000, 0), (252_000, 1), (253_000, 2)]);
        assert_eq!(way.flows.of(&datagram(972, IpEcn::TWO)).dropped, 2);
        assert_eq!(way.poll_timeout(), Time::NEVER);
    }

    #[test]
    fn nothing_leaves_before_it_is_due() {
        let mut way = way("--delay 0.25");
        way.handle_packet(Time::ZERO, datagram(972, IpEcn::TWO));
        let due = way.poll_timeout();
        assert!(due >= Time::from_millis(250) && due < Time::from_millis(251));
        assert!(way.poll(due.since(Time::from_ps(1))).is_none() && way.poll(due).is_some());
    }

    #[test]
    fn a_policer_drops_what_a_queue_would_hold() {
        let mut way = way("--rate 8e6 --police 5"); // 7500 bytes
        let left = play(&mut way, 20, 0);
        assert_eq!(left, (0..7).map(|n| (0, n)).collect::<Vec<_>>());
    }

    #[test]
    fn marks_begin_where_so_many_wait() {
        let mut way = way("--rate 8e6 --mark 3");
        assert_eq!(play(&mut way, 10, 0).len(), 10);
        let counts = way.flows.of(&datagram(972, IpEcn::TWO));
        assert_eq!((counts.marked, counts.dropped), (6, 0), "one is sent and three wait unmarked");
    }

    #[test]
    fn jitter_keeps_the_order_unless_packets_may_overtake() {
        let numbers = |options: &str| {
            let left = play(&mut way(options), 200, 500);
            assert!(left.iter().all(|&(at, n)| at >= n * 500 && at <= n * 500 + 10_001), "{options}: {left:?}");
            assert!(left.iter().any(|&(at, n)| at > n * 500 + 5_000), "{options}: there is jitter");
            left.iter().map(|&(_, n)| n).collect::<Vec<_>>()
        };
        assert!(numbers("--jitter 0.01").is_sorted());
        assert!(!numbers("--jitter 0.01 --overtake").is_sorted());
    }

    #[test]
    fn losses_have_their_share_and_come_in_bursts() {
        let lost_share = |options: &str| {
            let left = play(&mut way(options), 50_000, 0);
            let gaps = left.windows(2).filter(|pair| pair[1].1 > pair[0].1 + 1).count();
            (1.0 - left.len() as f64 / 50_000.0, (50_000 - left.len()) as f64 / gaps as f64)
        };
        let (share, length) = lost_share("--loss 0.1");
        assert!((share - 0.1).abs() < 0.01 && (length - 1.11).abs() < 0.05, "{share} {length}");
        let (share, length) = lost_share("--loss 0.1 --burst 5");
        assert!((share - 0.1).abs() < 0.02 && (length - 5.0).abs() < 0.5, "{share} {length}");
    }

    #[test]
    fn wrong_bits_are_in_the_packet() {
        let mut way = way("--channel {\"kind\":\"ber\",\"ber\":1e-4}");
        let sent = datagram(972, IpEcn::ZERO);
        for _ in 0..100 {
            way.handle_packet(Time::ZERO, sent.clone());
        }
        let mut wrong = 0;
        while let Some((_, packet)) = way.poll(Time::from_secs(1)) {
            wrong += u64::from(packet != sent);
        }
        let damaged = way.flows.of(&sent).damaged;
        assert!(wrong == damaged && (30..80).contains(&wrong), "{wrong} {damaged}");
    }
}

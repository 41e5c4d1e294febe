//! Reassembly of packets from the fragments that the members of a bundle deliver (RFC 1990, section 4).

use std::collections::VecDeque;

use crate::payload::Payload;
use crate::time::Time;

use super::fragment::{Fragment, Numbering};

/// Reassembles packets and delivers them in the order in which they were sent.
///
/// Each member of a bundle delivers in order, so a missing fragment is lost once every member has delivered one with a higher
/// number. Then M, the least of the numbers that arrived last over each member, has passed it (RFC 1990, section 4.1). A member
/// that delivers nothing holds M back. Therefore the number of waiting fragments is limited, as in Linux, and the waiting time
/// may be limited too.
///
/// A driver calls [`on_fragment`](Reassembler::on_fragment), takes packets with [`next_packet`](Reassembler::next_packet) until
/// it returns `false`, and calls [`on_timeout`](Reassembler::on_timeout) at [`deadline`](Reassembler::deadline).
#[derive(Clone, Debug)]
pub struct Reassembler<D> {
    numbering: Numbering,
    members: Vec<Member>,
    /// All fragments before this one were delivered or given up.
    expected: u64,
    /// M + 1: fragments before this one are no longer waited for.
    passed: u64,
    /// Fragments that wait, in the order of their numbers, without duplicates.
    held: VecDeque<Held<D>>,
    /// Packets that came without a multilink header.
    outside: VecDeque<D>,
    most_held: usize,
    most_bytes: usize,
    patience: Option<Time>,
    /// Whether the peer sends lost fragments again over other lines, under their old numbers.
    is_resent: bool,
    /// Since when the receiver has waited for the first missing fragment.
    waiting_since: Option<Time>,
    /// One more than the highest number that arrived.
    highest: u64,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    is_up: bool,
    /// One more than the number that arrived over it last; `None` if no fragment has arrived yet.
    behind_last: Option<u64>,
}

#[derive(Clone, Debug)]
struct Held<D> {
    count: u64,
    is_beginning: bool,
    is_end: bool,
    payload: D,
}

/// Counts of a [`Reassembler`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that were delivered.
    pub packets: u64,
    /// Packets among them that came without a multilink header.
    pub outside: u64,
    /// Fragments that were given up without having arrived.
    pub missing: u64,
    /// Fragments that arrived but were dropped, because others of their packet are missing.
    pub useless: u64,
    /// Fragments that arrived after they had been given up, or a second time.
    pub late: u64,
    /// Fragments that arrived after one with a higher number.
    pub out_of_order: u64,
    /// Packets longer than the limit that was announced to the peer (MRRU).
    pub too_long: u64,
    /// How many times the oldest gap was given up, because too many fragments waited or the timer expired.
    pub given_up: u64,
    /// Largest number of fragments that waited at once.
    pub most_held: usize,
}

/// The state of the first waiting fragments.
enum Front {
    /// The first `n` fragments are a packet.
    Packet(usize),
    /// The first `n` fragments belong to packets that can no longer be completed.
    Useless(usize),
    /// The first `n` fragments belong to a packet that is too long, whether it ends with them or not.
    TooLong(usize),
    /// A fragment is missing that may still arrive.
    Waits,
}

impl<D: Payload> Reassembler<D> {
    /// A receiver of packets of up to `most_bytes` (the MRRU that was announced) over `members` links, all up, that holds up to
    /// `most_held` waiting fragments (Linux: 128).
    pub fn new(numbering: Numbering, members: usize, most_bytes: usize, most_held: usize) -> Self {
        Reassembler {
            numbering,
            members: vec![Member { is_up: true, behind_last: None }; members],
            expected: 0,
            passed: 0,
            held: VecDeque::new(),
            outside: VecDeque::new(),
            most_held: most_held.max(1),
            most_bytes,
            patience: None,
            is_resent: false,
            waiting_since: None,
            highest: 0,
            counts: Counts::default(),
        }
    }

    /// Adds a timer: a missing fragment is given up after `patience`, even if it may still arrive.
    #[must_use]
    pub fn with_patience(mut self, patience: Time) -> Self {
        self.patience = Some(patience);
        self
    }

    /// For a peer that sends lost fragments again under their old numbers, over any line. A number that all members have passed
    /// is then not lost: only the timer and the limit of waiting fragments end a wait.
    #[must_use]
    pub fn with_resending(mut self) -> Self {
        self.is_resent = true;
        self
    }

    /// Number of fragments from the first on that were delivered or given up.
    pub fn settled(&self) -> u64 {
        self.expected
    }

    /// Counts of packets and fragments so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of fragments that wait.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// A fragment arrived over a member. A fragment from an unknown member is counted as late and dropped.
    pub fn on_fragment(&mut self, now: Time, member: usize, fragment: Fragment<D>) {
        let Some(count) = self.numbering.count_near(self.expected, fragment.number) else {
            self.counts.late += 1;
            return;
        };
        let Some(member) = self.members.get_mut(member) else {
            self.counts.late += 1;
            return;
        };
        member.behind_last = Some(member.behind_last.map_or(count + 1, |last| last.max(count + 1)));
        self.counts.out_of_order += u64::from(count < self.highest);
        self.highest = self.highest.max(count + 1);
        self.advance();
        let at = self.held.partition_point(|held| held.count < count);
        if count < self.expected || self.held.get(at).is_some_and(|held| held.count == count) {
            self.counts.late += 1;
            return;
        }
        let Fragment { is_beginning, is_end, payload, .. } = fragment;
        self.held.insert(at, Held { count, is_beginning, is_end, payload });
        self.make_room();
        self.counts.most_held = self.counts.most_held.max(self.held.len());
        self.note_wait(now);
    }

    /// A whole packet arrived over a member without a multilink header, as RFC 1990 allows (section 4). It is delivered at once: it
    /// has no place among those with numbers, and says nothing of what its member has delivered.
    pub fn on_packet(&mut self, packet: D) {
        self.outside.push_back(packet);
    }

    /// A member joined the bundle or left it. The receiver no longer waits for a member that left.
    pub fn set_up(&mut self, now: Time, member: usize, is_up: bool) {
        if self.members.len() <= member {
            self.members.resize(member + 1, Member::default());
        }
        self.members[member] = Member { is_up, behind_last: None };
        self.advance();
        self.note_wait(now);
    }

    /// The bundle begins anew, with the number 0, since all members left it. What was held is dropped, and what was missing is lost.
    pub fn restart(&mut self) {
        self.counts.useless += self.held.len() as u64;
        self.counts.missing += self.highest.saturating_sub(self.expected).saturating_sub(self.held.len() as u64);
        self.held.clear();
        (self.expected, self.passed, self.highest, self.waiting_since) = (0, 0, 0, None);
        self.members.iter_mut().for_each(|member| member.behind_last = None);
    }

    /// When [`on_timeout`](Reassembler::on_timeout) is due.
    pub fn deadline(&self) -> Option<Time> {
        Some(self.waiting_since? + self.patience?)
    }

    /// Gives up a fragment that was waited for too long. Calls before the deadline have no effect.
    pub fn on_timeout(&mut self, now: Time) {
        if self.deadline().is_some_and(|deadline| deadline <= now) && !self.held.is_empty() {
            self.give_up_oldest_gap();
            self.waiting_since = None;
            self.note_wait(now);
        }
    }

    /// Appends the pieces of the next packet to `pieces`, in order, and returns whether there was one. A packet without content,
    /// which only carries a number (RFC 1990, section 4.1), is none.
    pub fn next_packet(&mut self, now: Time, pieces: &mut Vec<D>) -> bool {
        if let Some(packet) = self.outside.pop_front() {
            self.counts.packets += 1;
            self.counts.outside += 1;
            pieces.push(packet);
            return true;
        }
        loop {
            match self.front() {
                Front::Waits => {
                    self.note_wait(now);
                    return false;
                }
                Front::Useless(n) => self.drop_useless(n),
                Front::TooLong(n) => self.drop_too_long(n),
                Front::Packet(n) => {
                    let is_empty = self.held.iter().take(n).all(|held| held.payload.is_empty());
                    if is_empty {
                        self.drop_front(n);
                        continue;
                    }
                    self.waiting_since = None;
                    self.counts.packets += 1;
                    self.expected = self.held[n - 1].count + 1;
                    pieces.extend(self.held.drain(..n).map(|held| held.payload));
                    return true;
                }
            }
        }
    }

    /// Classifies the first waiting fragments: a packet, the rest of a lost one, or fragments after a gap that may
    /// still be filled. Skips gaps that will never be filled.
    fn front(&mut self) -> Front {
        let Some(first) = self.held.front() else { return Front::Waits };
        if first.count > self.expected {
            if first.count > self.passed {
                return Front::Waits;
            }
            self.counts.missing += first.count - self.expected;
            self.expected = first.count;
        }
        if !first.is_beginning {
            return Front::Useless(1);
        }
        let mut bytes = 0;
        for (n, held) in self.held.iter().enumerate() {
            if held.count != self.expected + n as u64 {
                // The packet continues in the gap. If the gap is lost, the packet is lost as well, up to here.
                return if held.count > self.passed { Front::Waits } else { Front::Useless(n) };
            }
            if n > 0 && held.is_beginning {
                return Front::Useless(n); // the last fragment of the packet before is missing
            }
            bytes += held.payload.len();
            if bytes > self.most_bytes {
                return Front::TooLong(n + 1);
            }
            if held.is_end {
                return Front::Packet(n + 1);
            }
        }
        Front::Waits
    }

    /// Gives up missing fragments until the number of waiting ones is within its limit, or a complete packet can be taken.
    fn make_room(&mut self) {
        while self.held.len() > self.most_held {
            match self.front() {
                Front::Waits => self.give_up_oldest_gap(),
                Front::Useless(n) => self.drop_useless(n),
                Front::TooLong(n) => self.drop_too_long(n),
                Front::Packet(_) => return,
            }
        }
    }

    fn drop_useless(&mut self, n: usize) {
        self.counts.useless += n as u64;
        self.drop_front(n);
    }

    fn drop_too_long(&mut self, n: usize) {
        self.counts.too_long += 1;
        self.drop_front(n);
    }

    fn drop_front(&mut self, n: usize) {
        self.expected = self.held[n - 1].count + 1;
        self.held.drain(..n);
        self.waiting_since = None;
    }

    /// Updates M, the least of the numbers that arrived last over the members that are up.
    fn advance(&mut self) {
        if self.is_resent {
            return;
        }
        let mut members = self.members.iter().filter(|member| member.is_up).peekable();
        if members.peek().is_none() {
            return;
        }
        let least = members.map(|member| member.behind_last.unwrap_or(0)).min();
        self.passed = self.passed.max(least.unwrap_or(0));
    }

    /// Skips the first gap before a waiting fragment. Without a gap, the waiting fragments are of a packet without an end, and
    /// are dropped.
    fn give_up_oldest_gap(&mut self) {
        let mut next = self.expected;
        for held in &self.held {
            if held.count > next.max(self.passed) {
                self.passed = held.count;
                self.counts.given_up += 1;
                return;
            }
            next = held.count + 1;
        }
        self.drop_useless(self.held.len());
    }

    fn note_wait(&mut self, now: Time) {
        if self.patience.is_some() {
            self.waiting_since = if self.held.is_empty() { None } else { self.waiting_since.or(Some(now)) };
        }
    }
}

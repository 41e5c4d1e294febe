//! The queue in front of the paths: flows take turns, and packets that wait too long are dropped (FQ-CoDel, RFC 8290).
//!
//! Target and interval follow the bundle (RFC 8289, section 4.4): at a low rate a single packet takes longer than 5 ms.

use std::collections::VecDeque;

use super::packet::LANES;
use crate::payload::Payload;
use crate::time::Time;

/// Flows that are told apart.
const FLOWS: usize = 256;

/// CoDel never drops the last packets of so many bytes of all flows.
const LEAST_BYTES: usize = 1514;

/// A packet that waited longer is dropped, for example because no path was up.
const LONGEST: Time = Time::from_secs(10);

/// Room that a packet takes in memory besides its bytes, for the bound.
const ENTRY_BYTES: usize = 64;

/// A packet that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<D> {
    pub(crate) data: D,
    pub(crate) lane: u8,
    pub(crate) since: Time,
    /// Number in its lane and position, if a piece of it was sent already; then it is not dropped.
    pub(crate) begun: Option<(u64, u16)>,
    /// Which of the queues it belongs to.
    pub(crate) flow: u16,
    /// Its byte of traffic class, once a piece of it was sent.
    pub(crate) traffic_class: u8,
}

#[derive(Clone, Debug)]
struct Flow<D> {
    packets: VecDeque<Waiting<D>>,
    bytes: usize,
    deficit: i64,
    is_listed: bool,
    codel: Codel,
}

/// State of CoDel (RFC 8289, section 5.3).
#[derive(Clone, Debug, Default)]
struct Codel {
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    is_dropping: bool,
}

/// How long packets may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    /// Wait that is always allowed.
    pub(crate) target: Time,
    /// For how long more is allowed.
    pub(crate) interval: Time,
    /// Bytes of a flow's turn.
    pub(crate) quantum: i64,
    /// Bytes that a flow without a backlog may send before the others go on.
    pub(crate) first_quantum: i64,
}

/// The packets of one class that wait.
#[derive(Clone, Debug)]
pub(crate) struct FlowQueue<D> {
    flows: Vec<Flow<D>>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    packets: usize,
    bytes: usize,
    /// Packets that were dropped.
    dropped: u64,
    /// Packets that were marked.
    marked: u64,
}

impl<D: Payload> FlowQueue<D> {
    pub(crate) fn new() -> Self {
        let (flows, new, old) = (Vec::new(), VecDeque::new(), VecDeque::new());
        FlowQueue { flows, new, old, packets: 0, bytes: 0, dropped: 0, marked: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Bytes that wait, with a share for each packet.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.packets * ENTRY_BYTES
    }

    /// Since when the packet has waited that has waited longest.
    pub(super) fn waiting_since(&self) -> Option<Time> {
        let first = |&flow: &u16| self.flows[usize::from(flow)].packets.front().map(|waiting| waiting.since);
        self.new.iter().chain(&self.old).filter_map(first).min()
    }

    /// Packets that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Packets that were marked in place of being dropped.
    pub(super) fn marked(&self) -> u64 {
        self.marked
    }

    /// Appends a packet of the flow with this hash.
    pub(crate) fn push(&mut self, now: Time, data: D, flow: u64) {
        if self.flows.is_empty() {
            let flow =
                Flow { packets: VecDeque::new(), bytes: 0, deficit: 0, is_listed: false, codel: Codel::default() };
            self.flows = vec![flow; FLOWS];
        }
        let hash = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let flow = (hash % FLOWS as u64) as u16;
        let lane = (hash % u64::from(LANES)) as u8;
        self.append(Waiting { data, lane, since: now, begun: None, flow, traffic_class: 0 });
    }

    fn append(&mut self, waiting: Waiting<D>) {
        let index = waiting.flow;
        let flow = &mut self.flows[usize::from(index)];
        flow.bytes += waiting.data.len();
        self.bytes += waiting.data.len();
        self.packets += 1;
        flow.packets.push_back(waiting);
        if !flow.is_listed {
            (flow.is_listed, flow.deficit) = (true, 0);
            self.new.push_back(index);
        }
    }

    /// Puts back what is left of a packet, as the next one of its flow.
    pub(crate) fn put_back(&mut self, waiting: Waiting<D>) {
        let index = waiting.flow;
        let flow = &mut self.flows[usize::from(index)];
        flow.bytes += waiting.data.len();
        self.bytes += waiting.data.len();
        self.packets += 1;
        flow.packets.push_front(waiting);
        if !flow.is_listed {
            // It had its turn.
            flow.is_listed = true;
            self.old.push_back(index);
        }
    }

    /// Takes a packet back that was not sent after all, as if it had never been taken out.
    pub(super) fn take_back(&mut self, waiting: Waiting<D>) {
        self.flows[usize::from(waiting.flow)].deficit += waiting.data.len() as i64;
        self.put_back(waiting);
    }

    /// Whether the flow of a packet has further ones.
    pub(crate) fn has_more(&self, waiting: &Waiting<D>) -> bool {
        !self.flows[usize::from(waiting.flow)].packets.is_empty()
    }

    /// Drops what is left of packets that were begun; returns how many.
    pub(crate) fn drop_begun(&mut self) -> u64 {
        let mut count = 0;
        for flow in &mut self.flows {
            if flow.packets.front().is_some_and(|waiting| waiting.begun.is_some()) {
                let length = flow.packets.pop_front().map_or(0, |waiting| waiting.data.len());
                flow.bytes -= length;
                self.bytes -= length;
                self.packets -= 1;
                count += 1;
            }
        }
        count
    }

    /// Drops the oldest packet of the flow with the most bytes, if any can be dropped.
    pub(crate) fn drop_from_longest(&mut self) -> bool {
        let longest = self.flows.iter().enumerate().max_by_key(|(_, flow)| flow.bytes).map(|(index, _)| index);
        let Some(index) = longest else { return false };
        let flow = &mut self.flows[index];
        let at = usize::from(flow.packets.front().is_some_and(|waiting| waiting.begun.is_some()));
        let Some(waiting) = flow.packets.remove(at) else { return false };
        flow.bytes -= waiting.data.len();
        self.bytes -= waiting.data.len();
        self.packets -= 1;
        self.dropped += 1;
        true
    }

    /// The next packet, and drops that are due.
    pub(crate) fn pop(&mut self, now: Time, pressure: Pressure) -> Option<Waiting<D>> {
        self.pop_or_mark(now, pressure, |_| false)
    }

    /// As [`pop`](Self::pop); a packet that `mark` marks is kept in place of being dropped (RFC 8290, section 4.2).
    pub(super) fn pop_or_mark(
        &mut self,
        now: Time,
        pressure: Pressure,
        mark: fn(&mut D) -> bool,
    ) -> Option<Waiting<D>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[usize::from(index)];
            let next = flow.packets.front();
            // A packet that was begun is finished first: until then its pieces are of no use.
            let is_begun = next.is_some_and(|waiting| waiting.begun.is_some());
            if flow.deficit <= 0 && !is_new && !is_begun {
                flow.deficit += pressure.quantum;
                list.rotate_left(1);
                continue;
            }
            let length = next.map_or(0, |waiting| waiting.data.len() as i64);
            if is_new && flow.deficit - length < -pressure.first_quantum {
                // A new flow has had its first turn, or needs a longer one.
                self.new.pop_front();
                self.old.push_back(index);
                continue;
            }
            let total = self.bytes;
            match flow.take(now, pressure, total, mark, (&mut self.dropped, &mut self.marked)) {
                (Some(waiting), taken, packets) => {
                    self.bytes -= taken;
                    self.packets -= packets;
                    return Some(waiting);
                }
                (None, taken, packets) => {
                    self.bytes -= taken;
                    self.packets -= packets;
                    let flow = &mut self.flows[usize::from(index)];
                    if is_new {
                        // Once through the old flows, so that it cannot be new again at once (RFC 8290, section 4.2).
                        self.new.pop_front();
                        self.old.push_back(index);
                    } else {
                        self.old.pop_front();
                        flow.is_listed = false;
                    }
                }
            }
        }
    }
}

impl<D: Payload> Flow<D> {
    /// The next packet that is not dropped; the bytes and packets that left the queue.
    fn take(
        &mut self,
        now: Time,
        pressure: Pressure,
        total: usize,
        mark: fn(&mut D) -> bool,
        (dropped, marked): (&mut u64, &mut u64),
    ) -> (Option<Waiting<D>>, usize, usize) {
        let (mut bytes, mut packets) = (0, 0);
        while let Some(mut waiting) = self.packets.pop_front() {
            let length = waiting.data.len();
            self.bytes -= length;
            bytes += length;
            packets += 1;
            let remaining = total - bytes;
            let is_old = now.since(waiting.since) > LONGEST.max(pressure.target.times(4));
            if waiting.begun.is_none() && (is_old || self.codel.drops(now, waiting.since, pressure, remaining)) {
                if is_old || !mark(&mut waiting.data) {
                    *dropped += 1;
                    continue;
                }
                *marked += 1;
            }
            self.deficit -= length as i64;
            return (Some(waiting), bytes, packets);
        }
        self.codel.first_above = None;
        self.codel.is_dropping = false;
        (None, bytes, packets)
    }
}

impl Codel {
    /// Whether the packet that leaves the queue now is dropped.
    fn drops(&mut self, now: Time, since: Time, pressure: Pressure, remaining: usize) -> bool {
        let is_above = now.since(since) >= pressure.target && remaining > LEAST_BYTES;
        let is_ripe = if is_above {
            let ripe_at = *self.first_above.get_or_insert(now + pressure.interval);
            now >= ripe_at
        } else {
            self.first_above = None;
            false
        };
        if self.is_dropping {
            if !is_ripe {
                self.is_dropping = false;
            } else if now >= self.drop_next {
                self.count += 1;
                self.drop_next += self.spacing(pressure.interval);
                return true;
            }
            return false;
        }
        if is_ripe {
            self.is_dropping = true;
            let recent = self.count.saturating_sub(self.last_count);
            let is_recent = now.since(self.drop_next) < pressure.interval.times(16);
            self.count = if recent > 1 && is_recent { recent } else { 1 };
            self.last_count = self.count;
            self.drop_next = now + self.spacing(pressure.interval);
            return true;
        }
        false
    }

    fn spacing(&self, interval: Time) -> Time {
        Time::from_secs_f64(interval.as_secs_f64() / f64::from(self.count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    const PRESSURE: Pressure =
        Pressure { target: Time::from_millis(5), interval: Time::from_millis(100), quantum: 1514, first_quantum: 1514 };

    #[test]
    fn a_sparse_flow_goes_before_a_long_one() {
        let mut queue = FlowQueue::new();
        for _ in 0..50 {
            queue.push(Time::ZERO, Virtual(1500), 1);
        }
        for _ in 0..3 {
            assert_eq!(queue.pop(Time::ZERO, PRESSURE).unwrap().data, Virtual(1500));
        }
        queue.push(Time::ZERO, Virtual(40), 2);
        assert_eq!(queue.pop(Time::ZERO, PRESSURE).unwrap().data, Virtual(40));
        assert_eq!(queue.pop(Time::ZERO, PRESSURE).unwrap().data, Virtual(1500));
    }

    #[test]
    fn flows_share_by_bytes() {
        let mut queue = FlowQueue::new();
        for _ in 0..400 {
            queue.push(Time::ZERO, Virtual(1500), 1);
            queue.push(Time::ZERO, Virtual(300), 2);
        }
        let taken: Vec<u32> = (0..240).map(|_| queue.pop(Time::ZERO, PRESSURE).unwrap().data.0).collect();
        let long: u32 = taken.iter().filter(|&&bytes| bytes == 1500).sum();
        let short: u32 = taken.iter().filter(|&&bytes| bytes == 300).sum();
        assert!(long.abs_diff(short) <= 2 * 1514, "{long} {short}");
    }

    /// A flow that adapts to marks as TCP does loses nothing; one beside it that cannot be marked is thinned as before.
    #[test]
    fn what_can_be_marked_is_not_dropped() {
        // Packets with an even length can be marked.
        let mark = |data: &mut Virtual| data.0.is_multiple_of(2);
        let mut queue = FlowQueue::new();
        for at in 0..4000_u64 {
            let now = Time::from_millis(at);
            for (flow, bytes) in [(1, 1000), (2, 1001)] {
                queue.push(now, Virtual(bytes), flow);
            }
            if at % 10 == 0 {
                queue.push(now, Virtual(1000), 1);
                queue.push(now, Virtual(1001), 2);
            }
            for _ in 0..2 {
                queue.pop_or_mark(now, PRESSURE, mark);
            }
        }
        let mut left = [0; 2];
        while let Some(waiting) = queue.pop(Time::from_secs(4), Pressure { target: Time::from_secs(60), ..PRESSURE }) {
            left[usize::from(waiting.data.0 % 2 == 1)] += 1;
        }
        assert!(queue.marked() > 20 && queue.dropped() > 20, "{} {}", queue.marked(), queue.dropped());
        assert!(left[0] > left[1], "{left:?}: this flow does not adapt, and nothing of it was dropped");
        // A packet that waits for too long is of no use, marked or not.
        queue.push(Time::ZERO, Virtual(1000), 1);
        assert!(queue.pop_or_mark(Time::from_secs(100), PRESSURE, mark).is_none());
    }

    #[test]
    fn a_standing_queue_is_thinned_and_a_short_one_is_not() {
        let mut queue = FlowQueue::new();
        let mut now = Time::ZERO;
        // 1000 packets a second leave; 1100 come.
        let mut longest_wait = Time::ZERO;
        for at in 0..20_000_u64 {
            now = Time::from_millis(at);
            queue.push(now, Virtual(1000), 7);
            if at % 10 == 0 {
                queue.push(now, Virtual(1000), 7);
            }
            let waiting = queue.pop(now, PRESSURE).unwrap();
            if at > 10_000 {
                longest_wait = longest_wait.max(now.since(waiting.since));
            }
        }
        let dropped = queue.dropped();
        assert!(dropped > 1000 && longest_wait < Time::from_millis(300), "{longest_wait}");
        while queue.pop(now, PRESSURE).is_some() {}
        assert_eq!(queue.bytes(), 0);
        let before = queue.dropped();
        for at in 0..2000 {
            now = Time::from_secs(100) + Time::from_millis(at);
            queue.push(now, Virtual(1000), 7);
            assert!(queue.pop(now, PRESSURE).is_some());
        }
        assert_eq!(queue.dropped(), before);
    }
}

//! One direction of a path: the link that datagrams take, and what is on it.

use std::collections::VecDeque;

use super::super::{Entry, Hop, HopSetup, Place};
use super::parcel::Parcel;
use crate::link::Verdict;
use crate::paths::{Frame, Packet};
use crate::payload::Payload;
use crate::time::Time;

/// Counts of one direction of a path, since the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathCounts {
    /// Datagrams that were sent, and their bytes, headers included.
    pub sent: u64,
    /// Bytes of them, headers included.
    pub sent_bytes: u64,
    /// Bytes of users in them: what is sent again and copies included.
    pub sent_data_bytes: u64,
    /// Datagrams that the path's own queue dropped.
    pub dropped: u64,
    /// Datagrams that were lost otherwise.
    pub lost: u64,
    /// Datagrams that arrived.
    pub arrived: u64,
    /// Bytes of them, headers included.
    pub arrived_bytes: u64,
    /// Bytes of users that arrived: copies included.
    pub data_bytes: u64,
    /// Sum of the delays of datagrams that arrived, in s.
    pub delay_s: f64,
    /// How long the sending end took the path for up, in s.
    pub up_s: f64,
    /// How often the sending end found it down.
    pub failures: u64,
}

/// A datagram on its way.
struct UnderWay {
    at: Time,
    sent: Time,
    packet: Packet<Parcel>,
}

/// One direction of a path.
pub(super) struct Wire {
    pub(super) hop: Hop,
    under_way: VecDeque<UnderWay>,
    unplugged: Vec<(Time, Time)>,
    /// The first span that has not ended.
    span: usize,
    overhead_bytes: u32,
    pub(super) counts: PathCounts,
}

impl Wire {
    pub(super) fn start(
        setup: &HopSetup,
        end: usize,
        unplugged: Vec<(Time, Time)>,
        overhead: u32,
        of: (u64, u64),
    ) -> Self {
        let hop = Hop::start(setup, ["forward", "return"][end], of.0, of.1);
        Wire {
            hop,
            under_way: VecDeque::new(),
            unplugged,
            span: 0,
            overhead_bytes: overhead,
            counts: PathCounts::default(),
        }
    }

    /// Takes a datagram that is sent now.
    pub(super) fn send(&mut self, now: Time, packet: Packet<Parcel>) {
        let bytes = packet.wire_bytes() as u32 + self.overhead_bytes;
        self.counts.sent += 1;
        self.counts.sent_bytes += u64::from(bytes);
        self.counts.sent_data_bytes += data_bytes(&packet);
        while self.unplugged.get(self.span).is_some_and(|&(_, until)| until <= now) {
            self.span += 1;
        }
        let arrival = match self.hop.send(now, bytes, 0) {
            Entry::Sent(Verdict::Arrives(at)) => at,
            Entry::Sent(Verdict::Dropped) => return self.counts.dropped += 1,
            // A seal does not open if a bit is wrong, and a link alone lets nothing wait.
            Entry::Sent(Verdict::Damaged(_) | Verdict::Lost) | Entry::Waits(_) => return self.counts.lost += 1,
        };
        let (Place::Behind(at) | Place::InFront(at)) = self.hop.place(arrival);
        let is_out = self.unplugged[self.span..].iter().any(|&(from, until)| from <= at && now < until);
        if is_out {
            return self.counts.lost += 1;
        }
        self.under_way.push_back(UnderWay { at, sent: now, packet });
    }

    /// When the next datagram arrives.
    pub(super) fn next_arrival(&self) -> Time {
        self.under_way.front().map_or(Time::NEVER, |under_way| under_way.at)
    }

    /// The next datagram that has arrived by `now`.
    pub(super) fn arrived(&mut self, now: Time) -> Option<Packet<Parcel>> {
        if self.next_arrival() > now {
            return None;
        }
        let UnderWay { at, sent, packet } = self.under_way.pop_front()?;
        self.counts.arrived += 1;
        self.counts.arrived_bytes += packet.wire_bytes() as u64 + u64::from(self.overhead_bytes);
        self.counts.data_bytes += data_bytes(&packet);
        self.counts.delay_s += at.since(sent).as_secs_f64();
        Some(packet)
    }
}

/// Bytes of users in a datagram.
fn data_bytes(packet: &Packet<Parcel>) -> u64 {
    let of_frame = |frame: &Frame<Parcel>| if let Frame::Data(data) = frame { data.payload.len() as u64 } else { 0 };
    packet.frames.iter().map(of_frame).sum()
}

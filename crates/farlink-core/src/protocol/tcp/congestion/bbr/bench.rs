//! Two connections with a bottleneck between them, in virtual time, for the tests of both versions.

use std::collections::BTreeMap;

use super::v1::Bbr;
use super::v3::Bbr3;
use crate::endpoint::{Endpoint, Rx, Stream};
use crate::payload::Virtual;
use crate::protocol::tcp::congestion::{BbrConfig, Congestion, CongestionControl};
use crate::protocol::tcp::window::Window;
use crate::protocol::tcp::{Segment, TcpConfig, TcpConnection};
use crate::rng::Rng;
use crate::time::Time;
use crate::units::{Count, PositiveSeconds};

/// Payload of a segment. There are no headers, so that rates are those of the link.
pub(super) const MSS: u32 = 1000;

/// A sender with endless data, or with a given amount, behind a link with a queue.
pub(super) struct Bench {
    pub(super) ends: [TcpConnection<Virtual>; 2],
    pub(super) now: Time,
    /// Rate of the bottleneck, bytes per second.
    pub(super) rate: f64,
    /// Delay of each direction.
    pub(super) one_way: Time,
    pub(super) queue_bytes: f64,
    /// Share of the segments that are lost.
    pub(super) loss: f64,
    random: Rng,
    /// When the bottleneck will have sent all queued segments.
    free_at: Time,
    under_way: BTreeMap<(Time, u64), (usize, Segment<Virtual>)>,
    count: u64,
    pub(super) received: u64,
}

impl Bench {
    /// A path with a rate of `rate` bytes per second and a round trip of `rtt_ms` milliseconds.
    pub(super) fn new(control: CongestionControl, rate: f64, rtt_ms: u64, bbr: Option<BbrConfig>) -> Self {
        let count = |n: u32| Count::new(f64::from(n)).unwrap();
        let config = TcpConfig {
            congestion_control: control,
            segment_bytes: count(MSS),
            header_bytes: count(1),
            delayed_ack: false,
            bbr,
            ..TcpConfig::default()
        };
        let (sender, receiver) = TcpConnection::pair(&config, 7);
        Bench {
            ends: [sender, receiver],
            now: Time::ZERO,
            rate,
            one_way: Time::from_millis(rtt_ms / 2),
            queue_bytes: f64::INFINITY,
            loss: 0.0,
            random: Rng::for_component(1, 0, "bench"),
            free_at: Time::ZERO,
            under_way: BTreeMap::new(),
            count: 0,
            received: 0,
        }
    }

    /// Gives the sender `bytes` bytes to send.
    pub(super) fn write(&mut self, bytes: u32) {
        self.ends[0].write(self.now, &mut Virtual(bytes));
        self.send_all();
    }

    pub(super) fn window(&self) -> &Window {
        &self.ends[0].window
    }

    pub(super) fn window_mut(&mut self) -> &mut Window {
        &mut self.ends[0].window
    }

    /// The bandwidth-delay product in bytes.
    pub(super) fn bdp(&self) -> f64 {
        self.rate * 2.0 * self.one_way.as_secs_f64()
    }

    pub(super) fn v1(&self) -> &Bbr {
        match &self.ends[0].control {
            Congestion::Bbr(state) => state,
            _ => panic!("another congestion control"),
        }
    }

    pub(super) fn v3(&self) -> &Bbr3 {
        match &self.ends[0].control {
            Congestion::Bbr3(state) => state,
            _ => panic!("another congestion control"),
        }
    }

    /// Handles the next event; `false` if there is none.
    pub(super) fn step(&mut self) -> bool {
        let arrival = self.under_way.keys().next().copied();
        let timer = (0..2).filter_map(|side| Some((self.ends[side].poll_timeout()?, side))).min();
        match (arrival, timer) {
            (Some(key), timer) if timer.is_none_or(|timer| key.0 <= timer.0) => {
                let (side, segment) = self.under_way.remove(&key).unwrap();
                self.now = key.0;
                self.ends[side].handle_packet(self.now, &segment, Rx::default());
            }
            (_, Some((at, side))) => {
                self.now = self.now.max(at);
                self.ends[side].handle_timeout(self.now);
            }
            _ => return false,
        }
        while let Some(data) = self.ends[1].read() {
            self.received += u64::from(data.0);
        }
        self.send_all();
        true
    }

    /// Runs until a condition holds, for at most `seconds`; returns whether it held.
    pub(super) fn until(&mut self, seconds: f64, mut is_so: impl FnMut(&Bench) -> bool) -> bool {
        let end = self.now + Time::from_secs_f64(seconds);
        while self.now < end {
            if is_so(self) {
                return true;
            }
            if !self.step() {
                return false;
            }
        }
        false
    }

    pub(super) fn run(&mut self, seconds: f64) {
        self.until(seconds, |_| false);
    }

    /// Bytes per second that arrive in the next `seconds`.
    pub(super) fn goodput(&mut self, seconds: f64) -> f64 {
        let (before, start) = (self.received, self.now);
        self.run(seconds);
        (self.received - before) as f64 / (self.now - start).as_secs_f64()
    }

    fn send_all(&mut self) {
        for side in 0..2 {
            while let Some(sent) = self.ends[side].poll_transmit(self.now) {
                self.carry(1 - side, sent.packet);
            }
        }
    }

    fn carry(&mut self, to: usize, segment: Segment<Virtual>) {
        let mut at = self.now;
        if to == 1 && segment.payload.0 > 0 {
            let waiting = self.free_at.since(self.now).as_secs_f64() * self.rate;
            if self.random.chance(self.loss) || waiting + f64::from(segment.payload.0) > self.queue_bytes {
                return;
            }
            self.free_at = self.free_at.max(self.now) + Time::from_secs_f64(f64::from(segment.payload.0) / self.rate);
            at = self.free_at;
        }
        self.count += 1;
        self.under_way.insert((at + self.one_way, self.count), (to, segment));
    }
}

/// BBR's constants with another window of the least round-trip time.
pub(super) fn min_rtt_window(seconds: f64) -> Option<BbrConfig> {
    Some(BbrConfig { min_rtt_window_s: PositiveSeconds::new(seconds).unwrap(), ..BbrConfig::default() })
}

//! Whole connections with random losses: a further reduction for the same window of data never raises the threshold.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::endpoint::{Ecn, Endpoint, Rx, Stream};
use crate::payload::Virtual;
use crate::protocol::tcp::window::Window;
use crate::protocol::tcp::{CongestionControl, Segment, TcpConfig, TcpConnection, Variant};
use crate::rng::Rng;
use crate::time::Time;
use crate::units::Count;

/// Probabilities that a burst of losses begins and ends at a segment, that a segment within it is lost, that an acknowledgement
/// is lost, and that a segment is marked.
#[derive(Clone, Copy, Debug)]
struct Losses {
    begins: f64,
    ends: f64,
    within: f64,
    of_acks: f64,
    marks: f64,
}

/// The state that shows a reduction, and the window that it belongs to.
#[derive(Clone, Copy, Debug)]
struct Glance {
    una: u64,
    recover: u64,
    marked: u64,
    ssthresh: f64,
    reactions: (u64, u64, u64),
}

impl Glance {
    fn at(connection: &TcpConnection<Virtual>) -> Self {
        let &Window { una, recover, marked, ssthresh, fast_retransmits, .. } = &connection.window;
        Glance { una, recover, marked, ssthresh, reactions: (fast_retransmits, connection.timeouts, marked) }
    }
}

/// A sender with endless data and its receiver, with 1 Mb/s and 50 ms in each direction between them.
struct Path {
    ends: [TcpConnection<Virtual>; 2],
    under_way: BTreeMap<(Time, u64), (usize, Segment<Virtual>, Ecn)>,
    count: u64,
    idle_at: Time,
    losses: Losses,
    is_bad: bool,
    rng: Rng,
    /// Number of reductions of a window that was reduced before.
    further: u32,
}

const ONE_WAY: Time = Time::from_millis(50);
const PER_SEGMENT: Time = Time::from_millis(8);

impl Path {
    fn new(config: &TcpConfig, losses: Losses, seed: u64) -> Self {
        let (mut sender, receiver) = TcpConnection::pair(config, seed);
        sender.write(Time::ZERO, &mut Virtual(u32::MAX));
        let rng = Rng::for_component(seed, 7, "losses");
        let (under_way, count, idle_at) = (BTreeMap::new(), 0, Time::ZERO);
        Path { ends: [sender, receiver], under_way, count, idle_at, losses, is_bad: false, rng, further: 0 }
    }

    fn is_lost(&mut self, from: usize) -> bool {
        if from == 1 {
            return self.rng.chance(self.losses.of_acks);
        }
        self.is_bad ^= self.rng.chance(if self.is_bad { self.losses.ends } else { self.losses.begins });
        self.is_bad && self.rng.chance(self.losses.within)
    }

    /// Sends due segments while the link's queue is shorter than half a second.
    fn send(&mut self, now: Time) {
        for from in [0, 1] {
            while let Some(sent) = self.ends[from].poll_transmit(now) {
                let mut arrival = now + ONE_WAY;
                if from == 0 {
                    let begins = self.idle_at.max(now);
                    if begins > now + Time::from_millis(500) {
                        continue;
                    }
                    self.idle_at = begins + PER_SEGMENT;
                    arrival = self.idle_at + ONE_WAY;
                }
                let is_marked = sent.ecn != Ecn::NotCapable && self.rng.chance(self.losses.marks);
                let ecn = if is_marked { Ecn::Congestion } else { sent.ecn };
                if !self.is_lost(from) {
                    self.count += 1;
                    self.under_way.insert((arrival, self.count), (1 - from, sent.packet, ecn));
                }
            }
            while self.ends[from].poll_event().is_some() {}
            while self.ends[from].read().is_some() {}
        }
    }

    fn run(&mut self, until: Time) {
        self.send(Time::ZERO);
        loop {
            let timers = [0, 1].map(|side| self.ends[side].poll_timeout().unwrap_or(Time::NEVER));
            let arrival = self.under_way.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
            let now = arrival.min(timers[0]).min(timers[1]);
            if now > until {
                return;
            }
            let before = Glance::at(&self.ends[0]);
            if arrival == now {
                let (_, (to, segment, ecn)) = self.under_way.pop_first().expect("it was seen");
                self.ends[to].handle_packet(now, &segment, Rx { ecn, ..Rx::default() });
            } else {
                let side = usize::from(timers[0] != now);
                self.ends[side].handle_timeout(now);
            }
            self.check(before);
            self.send(now);
        }
    }

    fn check(&mut self, before: Glance) {
        let after = Glance::at(&self.ends[0]);
        let is_same_window = after.una < before.recover || (before.marked > 0 && after.una <= before.marked);
        let is_found_again = after.recover > before.recover;
        if is_same_window && before.una > 0 && (after.reactions != before.reactions || is_found_again) {
            self.further += 1;
            assert!(after.ssthresh <= before.ssthresh, "{before:?} -> {after:?}");
        }
    }
}

fn losses() -> impl Strategy<Value = Losses> {
    (0.001..0.05, 0.05..1.0, 0.1..1.0, prop_oneof![Just(0.0), 0.0..0.3], prop_oneof![Just(0.0), 0.0..0.1])
        .prop_map(|(begins, ends, within, of_acks, marks)| Losses { begins, ends, within, of_acks, marks })
}

fn settings() -> impl Strategy<Value = TcpConfig> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (prop::sample::select(Variant::ALL), prop::sample::select(CongestionControl::ALL), 4..200u32, flags)
        .prop_filter("wants reports", |(variant, control, ..)| !control.measures_rates() || variant.uses_sack())
        .prop_map(|(variant, congestion_control, window, (delayed_ack, recover_guard, limited_transmit, ecn))| {
            TcpConfig {
                variant,
                congestion_control,
                segment_bytes: Count::new(960.0).expect("positive"),
                max_window_segments: Some(Count::new(f64::from(window)).expect("positive")),
                delayed_ack,
                recover_guard,
                limited_transmit,
                ecn,
                ..TcpConfig::default()
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_further_reduction_of_a_window_never_raises_the_threshold(config in settings(), losses in losses(), seed: u64) {
        Path::new(&config, losses, seed).run(Time::from_secs(120));
    }
}

/// The property is not empty: every variant that finds losses by duplicates or by time reduces a window twice here.
#[test]
fn further_reductions_do_occur() {
    let losses = Losses { begins: 0.02, ends: 0.3, within: 0.7, of_acks: 0.0, marks: 0.0 };
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack, Variant::Rack] {
        let config = TcpConfig { variant, segment_bytes: Count::new(960.0).unwrap(), ..TcpConfig::default() };
        let mut path = Path::new(&config, losses, 1);
        path.run(Time::from_secs(600));
        assert!(path.further > 5, "{variant:?}: {}", path.further);
    }
}

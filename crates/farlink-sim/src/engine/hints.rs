//! Hints from links to endpoints.
//!
//! Endpoints get hints only about the link that they send into, their local interface. As on a real host, they must
//! infer the state of later links and of the way back. The first forward link gives hints to the senders (station 0),
//! the first link of the way back to the receivers (station 1). Endpoints of gateways have stations of their own. A
//! station without listeners costs nothing.
//!
//! About the link that it receives from, an endpoint gets a single hint: a frame arrived damaged beyond use
//! ([`LinkHint::Corrupted`]).

use farlink_core::hop::LinkWatch;
use farlink_core::{Endpoint, LinkHint, Time};

use super::path::Path;
use super::route::Route;
use super::timers::{Alarm, Kind, Timers};

/// An endpoint that wants hints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listener {
    pub(super) kind: u8,
    pub(super) flow: u32,
    pub(super) side: u8,
}

/// Endpoints that send into the same link and receive from the same link.
#[derive(Debug)]
struct Station {
    outgoing: usize,
    incoming: usize,
    listeners: Vec<Listener>,
    watch: LinkWatch,
}

/// The listeners and the last reported state of each station.
#[derive(Debug)]
pub(super) struct Hints {
    stations: Vec<Station>,
}

impl Hints {
    /// The stations at both ends of a path of `hops` hops, without listeners.
    pub(super) fn new(hops: usize) -> Self {
        let whole = Route::over(hops, 0, hops - 1, None);
        let station = |side| Station::new(whole.first[side], whole.incoming(side));
        Hints { stations: vec![station(0), station(1)] }
    }

    /// Registers the ends of a flow that want hints, and returns their stations.
    pub(super) fn add<E: Endpoint>(
        &mut self,
        kind: u8,
        ends: &(E, E),
        flow: usize,
        route: &Route,
    ) -> [Option<usize>; 2] {
        let mut at = [None; 2];
        for (side, end) in [&ends.0, &ends.1].into_iter().enumerate() {
            if end.wants_hints() {
                let station = self.station(route.first[side], route.incoming(side));
                let listener = Listener { kind, flow: flow as u32, side: side as u8 };
                self.stations[station].listeners.push(listener);
                at[side] = Some(station);
            }
        }
        at
    }

    /// The number of a station, which is created if it does not exist.
    pub(super) fn station(&mut self, outgoing: usize, incoming: usize) -> usize {
        let known =
            self.stations.iter().position(|station| station.outgoing == outgoing && station.incoming == incoming);
        known.unwrap_or_else(|| {
            self.stations.push(Station::new(outgoing, incoming));
            self.stations.len() - 1
        })
    }

    /// Number of stations.
    pub(super) fn stations(&self) -> usize {
        self.stations.len()
    }

    /// The link from which a station receives.
    pub(super) fn incoming(&self, station: usize) -> usize {
        self.stations[station].incoming
    }

    /// The listeners at a station.
    pub(super) fn listeners(&self, station: usize) -> &[Listener] {
        &self.stations[station].listeners
    }

    /// The hints for the listeners now, in order. Sets the alarm of the next change. There are none without listeners.
    pub(super) fn pending_hints(
        &mut self,
        station: usize,
        now: Time,
        path: &mut Path,
        timers: &mut Timers,
    ) -> [Option<LinkHint>; 4] {
        let Station { outgoing, listeners, watch, .. } = &mut self.stations[station];
        if listeners.is_empty() {
            return [None; 4];
        }
        let (state, next) = path.state(*outgoing, now);
        if next < Time::NEVER {
            timers.push(next, Alarm { event: Kind::Link, kind: 0, side: station as u8, flow: 0 });
        }
        watch.update(state)
    }

    /// The hints for a listener that joins a station later.
    pub(super) fn current_hints(&self, station: usize) -> [Option<LinkHint>; 4] {
        self.stations[station].watch.current_hints()
    }
}

impl Station {
    fn new(outgoing: usize, incoming: usize) -> Self {
        Station { outgoing, incoming, listeners: Vec::new(), watch: LinkWatch::new() }
    }
}

#[cfg(test)]
mod tests {
    use farlink_core::scenario::expand;
    use farlink_core::trace::{MemoryTraces, Trace};
    use farlink_fec::events::ErrorEvents;
    use serde_json::{Value, json};

    use super::super::hint_recorder::{Manner, ReceivedHint, with};
    use super::super::{NoTrace, RunResult, Setup, simulate};
    use super::*;
    use crate::resolve;

    fn setup(scenario: &Value) -> Setup {
        let rate = Trace::Rate { time_s: vec![0.0, 1.0, 1.5], rate_bps: vec![1e6, 0.0, 2e6], duration_s: 3.0 };
        let delay = Trace::Delay { time_s: vec![0.0, 0.7], delay_s: vec![0.1, 0.03], duration_s: 2.0 };
        let opportunity_s = (0..100).map(|i| f64::from(i) * 0.01).collect();
        let delivery = Trace::Delivery { opportunity_s, bytes_per_opportunity: 1500, duration_s: 1.0 };
        let traces = MemoryTraces::default().with("rate", rate).with("delay", delay).with("delivery", delivery);
        resolve(&expand(scenario).unwrap().points[0].scenario, &traces).unwrap()
    }

    fn run(setup: &Setup, manner: Manner, seed: u64) -> (RunResult, Vec<ReceivedHint>) {
        with(manner, || simulate(setup, seed, 0, &mut NoTrace, &|| false).expect("the run is not stopped"))
    }

    /// Datagrams of 1000 bytes on the wire.
    fn datagrams(per_second: f64, count: u32, link: Value) -> Value {
        let traffic = json!({
            "kind": "cbr", "rate_bps": per_second * 972.0 * 8.0, "payload_bytes": 972, "bytes": count * 972,
        });
        json!({
            "duration_s": 20,
            "link": link,
            "transport": { "udp": { "kind": "udp" } },
            "flow": { "data": { "transport": "udp", "traffic": traffic } },
        })
    }

    /// Time, side and a description of each hint.
    fn described(received: &[ReceivedHint]) -> Vec<(f64, usize, String)> {
        let word = |hint| match hint {
            LinkHint::Down => "down".to_owned(),
            LinkHint::Up => "up".to_owned(),
            LinkHint::Rate(rate) => format!("{} Mb/s", rate.get() / 1e6),
            LinkHint::Ber(ber) => format!("ber {ber}"),
            LinkHint::Dropped { token } => format!("dropped {token}"),
            LinkHint::Corrupted => "corrupted".to_owned(),
            other => panic!("unknown hint {other:?}"),
        };
        received.iter().map(|&(at, side, hint)| (at.as_secs_f64(), side, word(hint))).collect()
    }

    #[test]
    fn each_side_gets_hints_about_its_own_first_link_at_once() {
        let outage = |from, to| json!({ "kind": "outage", "schedule": [[from, to]] });
        let scenario = json!({
            "duration_s": 5,
            "path": ["near", "far"],
            "hop": {
                "near": { "rate_bps": { "kind": "rate-trace", "file": "rate" }, "delay_s": 0.1, "channel": outage(3.5, 3.75),
                    "return": { "rate_bps": 3e6, "channel": outage(1.0, 2.0) } },
                "far": { "rate_bps": 5e6, "delay_s": 0.1, "channel": outage(2.0, 3.0),
                    "return": { "rate_bps": 4e6, "channel": outage(0.0, 2.5) } },
            },
            "transport": { "tcp": { "kind": "tcp", "segment_bytes": 1000 } },
            // Hints come before the flow has started, too.
            "flow": { "data": { "transport": "tcp", "start_s": 2.75, "traffic": { "kind": "bulk" } } },
        });
        let (_, received) = run(&setup(&scenario), Manner::Records, 1);
        let expected = [
            (0.0, 0, "1 Mb/s"),
            (0.0, 1, "down"),
            (0.0, 1, "4 Mb/s"),
            (1.0, 0, "down"), // a rate of zero
            (1.5, 0, "2 Mb/s"),
            (1.5, 0, "up"),
            (2.5, 1, "up"),
            (3.0, 0, "1 Mb/s"),
            (3.5, 0, "down"),
            (3.75, 0, "up"),
            (4.0, 0, "down"),
            (4.5, 0, "2 Mb/s"),
            (4.5, 0, "up"),
        ];
        assert_eq!(described(&received), expected.map(|(at, side, word)| (at, side, word.to_owned())));
    }

    #[test]
    fn a_sender_gets_the_error_rate_of_its_coding() {
        let coding = json!({ "ebn0_db": 4, "code": { "kind": "uncoded" } });
        let channel = json!({ "kind": "outage", "schedule": [[1, 2]] });
        let link = json!({ "rate_bps": 8e5, "delay_s": 0.1, "channel": channel, "coding": coding });
        let events = ErrorEvents::new([&[0u32][..]], 0.0, 99_999.0);
        let scenario = expand(&datagrams(10.0, 50, link)).unwrap();
        let setup = resolve(&scenario.points[0].scenario, &MemoryTraces::default().with_events(events)).unwrap();
        let (_, received) = run(&setup, Manner::Records, 1);
        let expected =
            [(0.0, 0, "0.8 Mb/s"), (0.0, 0, "ber 0.00001"), (0.0, 1, "0.8 Mb/s"), (1.0, 0, "down"), (2.0, 0, "up")];
        let mut hints = described(&received);
        hints.retain(|(_, _, word)| word != "corrupted");
        assert_eq!(hints, expected.map(|(at, side, word)| (at, side, word.to_owned())));
    }

    /// Both ends send into the link over the satellite.
    #[test]
    fn both_ends_get_hints_when_a_satellite_sets_and_the_next_takes_over() {
        let pass = json!({
            "kind": "pass", "altitude_m": 610e3, "min_elevation_deg": 20, "start_elevation_deg": 20.5, "direction": "falling",
            "handover_s": 2,
        });
        let link = json!({ "rate_bps": 8e5, "delay_s": pass });
        let (_, received) = run(&setup(&datagrams(10.0, 190, link)), Manner::Records, 1);
        let mut hints = described(&received);
        hints.retain(|(_, _, word)| word == "down" || word == "up");
        let words: Vec<(usize, &str)> = hints.iter().map(|(_, side, word)| (*side, word.as_str())).collect();
        assert_eq!(words, [(0, "down"), (1, "down"), (0, "up"), (1, "up")]);
        let times: Vec<f64> = hints.iter().map(|(at, ..)| *at).collect();
        assert!(times[0] > 1.0 && times[0] < 15.0 && times[0] == times[1], "{times:?}");
        assert!((times[2] - times[0] - 2.0).abs() < 1e-9 && times[2] == times[3], "{times:?}");
    }

    #[test]
    fn endpoints_that_want_no_hints_get_none() {
        let link = json!({ "rate_bps": { "kind": "rate-trace", "file": "rate" }, "delay_s": 0.1 });
        let (_, received) = run(&setup(&datagrams(10.0, 100, link)), Manner::WithoutHints, 1);
        assert_eq!(described(&received), []);
    }

    /// Down from 1.1 to 1.6 s; a datagram takes 10 ms to send and is written each 250 ms, the last one at 1.5 s.
    #[test]
    fn an_endpoint_acts_on_a_hint_at_once() {
        let outage = json!({ "kind": "outage", "schedule": [[1.1, 1.6]] });
        let link = json!({ "rate_bps": 8e5, "delay_s": 0.1, "channel": outage });
        let setup = setup(&datagrams(4.0, 7, link));
        let (unaware, _) = run(&setup, Manner::Records, 1);
        assert_eq!((unaware.flows[0].delivered_packets, unaware.flows[0].lost_packets), (5, 2));
        let (waiting, _) = run(&setup, Manner::Waits, 1);
        assert_eq!((waiting.flows[0].delivered_packets, waiting.flows[0].lost_packets), (7, 0));
        assert_eq!(waiting.flows[0].finished, Some(Time::from_millis(1600 + 2 * 10 + 100)));
    }

    /// A datagram takes 1 s to send and is written each 500 ms; one may wait.
    #[test]
    fn a_full_queue_reports_at_once_which_packet_it_dropped() {
        let link = json!({ "rate_bps": 8e3, "delay_s": 0.1, "queue_packets": 1 });
        let mut setup = setup(&datagrams(2.0, 8, link));
        for weights in [None, Some([None; 8])] {
            setup.forward[0].weights = weights;
            check_drops(&setup);
        }
    }

    fn check_drops(setup: &Setup) {
        let (run_, received) = run(setup, Manner::Tokens, 1);
        let mut dropped = described(&received);
        dropped.retain(|(_, _, word)| word.starts_with("dropped"));
        assert_eq!(dropped, [(1.5, 0, "dropped 4".into()), (2.5, 0, "dropped 6".into()), (3.5, 0, "dropped 8".into())]);
        assert_eq!(run_.flows[0].lost_packets, 3);
        // A packet without a token cannot be reported.
        assert!(described(&run(setup, Manner::Records, 1).1).iter().all(|(_, _, word)| !word.starts_with("dropped")));
    }

    /// Datagrams of 10 ms, one each 250 ms, over two hops: bits are wrong in the second and fifth on the last hop, in
    /// the third on the first hop; the fourth is lost whole.
    #[test]
    fn a_receiver_gets_a_hint_for_each_frame_that_its_own_link_damaged_at_its_arrival_time() {
        let bits = |datagrams: &[u64]| Trace::BitErrors {
            position: datagrams.iter().map(|n| n * 8000 + 4000).collect(),
            bits: 1_000_000,
        };
        let lost: Vec<bool> = (0..100).map(|n| n == 3).collect();
        // The datagram damaged on the first hop and the lost one never reach the last hop, so positions there are
        // lower.
        let traces = MemoryTraces::default()
            .with("near", bits(&[2]))
            .with("far", bits(&[1, 2]))
            .with("lost", Trace::PacketLoss { lost });
        let replay = |file: &str| json!({ "kind": "bit-trace", "file": file, "offset": 0 });
        let near = json!({ "kind": "chain", "stages": [replay("near"), { "kind": "packet-trace", "file": "lost" }] });
        let mut scenario = datagrams(4.0, 8, Value::Null);
        scenario.as_object_mut().unwrap().remove("link");
        scenario["path"] = json!(["near", "far"]);
        scenario["hop"] = json!({
            "near": { "rate_bps": 8e5, "delay_s": 0.1, "channel": near },
            "far": { "rate_bps": 8e5, "delay_s": 0.2, "channel": replay("far") },
        });
        let setup = resolve(&expand(&scenario).unwrap().points[0].scenario, &traces).unwrap();
        let (result, received) = run(&setup, Manner::Records, 1);
        let mut corrupted = described(&received);
        corrupted.retain(|(_, _, word)| word == "corrupted");
        assert_eq!(result.flows[0].lost_packets, 4);
        // Sent at 0.25 s and at 1 s; 10 ms on each hop, and 0.3 s of delay.
        assert_eq!(corrupted, [(0.57, 1, "corrupted".into()), (1.32, 1, "corrupted".into())]);
    }

    /// The flow of a damaged frame is unknown.
    #[test]
    fn every_listener_gets_the_hint_for_a_damaged_frame() {
        let link = json!({ "rate_bps": 8e5, "delay_s": 0.1, "channel": { "kind": "ber", "ber": 1e-5 } });
        let mut scenario = datagrams(10.0, 100, link);
        scenario["flow"]["data"]["count"] = 3.into();
        let (result, received) = run(&setup(&scenario), Manner::Records, 1);
        let lost: u64 = result.flows.iter().map(|flow| flow.lost_packets).sum();
        let corrupted =
            described(&received).into_iter().filter(|(_, side, word)| *side == 1 && word == "corrupted").count();
        assert!(lost > 10, "{lost}");
        assert_eq!(corrupted as u64, 3 * lost);
    }

    fn links() -> Vec<Value> {
        let outages = [
            json!({ "kind": "outage", "schedule": [[0, 0.3], [2, 2.7], [2.7, 3]] }),
            json!({ "kind": "outage", "period_s": 0.9, "down_s": 0.11 }),
            json!({ "kind": "outage", "rate_per_s": 0.8, "down_s": 0.2 }),
        ];
        let ber = json!({ "kind": "ber", "ber": 2e-6 });
        let mut links = Vec::new();
        for outage in &outages {
            links.push(json!({ "rate_bps": 2e6, "delay_s": 0.05, "channel": outage }));
            links.push(json!({
                "rate_bps": { "kind": "rate-trace", "file": "rate", "offset_s": "random" },
                "delay_s": { "kind": "delay-trace", "file": "delay" }, "queue_packets": 20,
                "channel": { "kind": "chain", "stages": [ber, outage, { "kind": "loss", "loss": 0.01 }] },
                "return": { "rate_bps": 1e6, "channel": { "kind": "chain", "stages": [outage, ber] } },
            }));
            links.push(json!({
                "rate_bps": { "kind": "rate-trace", "file": "delivery" }, "delay_s": 0.02, "queue_packets": 9,
                "return": { "rate_bps": { "kind": "rate-trace", "file": "rate" }, "channel": outage },
            }));
        }
        links
    }

    #[test]
    fn hints_that_are_ignored_do_not_change_results() {
        let mut hints = 0;
        for (seed, link) in (0..).zip(links()) {
            for variant in ["tahoe", "newreno", "sack"] {
                for duration_s in [json!(8), Value::Null] {
                    let file = json!({ "kind": "file", "bytes": 6e5 });
                    let traffic = if duration_s.is_null() { file } else { json!({ "kind": "bulk" }) };
                    let mut scenario = datagrams(20.0, 100, link.clone());
                    scenario["duration_s"] = duration_s;
                    scenario.as_object_mut().unwrap().retain(|_, value| !value.is_null());
                    scenario["measure"] = json!({ "warmup_s": 1.0 });
                    scenario["transport"]["tcp"] = json!({ "kind": "tcp", "variant": variant, "segment_bytes": 1000 });
                    scenario["flow"]["bulk"] =
                        json!({ "transport": "tcp", "count": 2, "start_spread_s": 3, "traffic": traffic });
                    let setup = setup(&scenario);
                    let (without, _) = run(&setup, Manner::WithoutHints, seed);
                    for manner in [Manner::Records, Manner::Tokens] {
                        let (listening, received) = run(&setup, manner, seed);
                        assert_eq!(listening.end, without.end, "{scenario:#}");
                        assert_eq!(listening.return_bytes, without.return_bytes);
                        assert_eq!(listening.peak_queue_bytes, without.peak_queue_bytes);
                        assert_eq!(format!("{:?}", listening.flows), format!("{:?}", without.flows), "{scenario:#}");
                        assert!(received.is_sorted_by_key(|received| received.0));
                        hints += received.len();
                    }
                }
            }
        }
        assert!(hints > 1000, "{hints}");
    }

    /// The endpoint depends on a hint, which is not allowed, and the link changes for ever.
    #[test]
    fn a_run_without_duration_ends_when_only_links_change() {
        let channel = json!({ "kind": "outage", "period_s": 10, "down_s": 5 });
        let link = json!({ "rate_bps": 8e5, "delay_s": 0.1, "return": { "rate_bps": 8e5, "channel": channel }, "channel": channel });
        let mut scenario = datagrams(4.0, 7, link);
        scenario.as_object_mut().unwrap().remove("duration_s");
        let (run, _) = run(&setup(&scenario), Manner::Waits, 1);
        assert_eq!(run.flows[0].delivered_packets, 0);
        assert_eq!(run.end, Time::from_millis(1500), "when the last datagram was written");
    }
}

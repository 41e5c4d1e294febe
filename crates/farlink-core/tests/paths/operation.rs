//! Ends that restart, budgets of probes, and small packets on slow lines.

use bytes::Bytes;
use farlink_core::paths::{Event, PathBundle, PathBundleConfig, PathId, PathRules, PathState, Policy};
use farlink_core::{Time, Virtual};

use super::network::{Network, Wire, tag, tagged};

fn two_paths() -> [(Wire, Wire, PathRules); 2] {
    [(5e6, 0.014), (2e6, 0.05)]
        .map(|(rate, delay)| (Wire::new(rate, delay), Wire::new(rate, delay), PathRules::default()))
}

/// Whichever end restarts, both go on within two seconds, and nothing is delivered twice or out of order.
#[test]
fn an_end_that_restarts_is_known_again() {
    for restarts in [0, 1] {
        let mut network: Network<Bytes> = Network::new(PathBundleConfig::default(), two_paths(), 5);
        let mut last = [None; 2];
        let mut resumed_at = [None; 2];
        for number in 0..600u32 {
            let at = 0.5 + f64::from(number) * 0.01;
            network.run_until(Time::from_secs_f64(at));
            if number == 200 {
                let mut fresh = PathBundle::new(PathBundleConfig::default(), network.now, 77);
                two_paths().into_iter().for_each(|(_, _, rules)| {
                    fresh.add_path(network.now, rules);
                });
                network.ends[restarts] = fresh;
            }
            for from in 0..2 {
                let now = network.now;
                network.ends[from].send(now, tagged(from as u32, number, 300), 3, 9);
            }
            network.settle();
            for to in 0..2 {
                while let Some((at, packet)) = network.delivered[to].pop_front() {
                    let (_, number) = tag(&packet);
                    assert!(last[to].is_none_or(|last| last < number), "{number} after {:?}", last[to]);
                    last[to] = Some(number);
                    if number >= 200 {
                        resumed_at[to].get_or_insert(at);
                    }
                }
            }
        }
        for to in 0..2 {
            let resumed = resumed_at[to].unwrap().as_secs_f64();
            assert!(resumed < 2.5 + 2.0, "end {to} got nothing until {resumed} s after end {restarts} restarted");
            assert!(last[to].unwrap() > 580, "{last:?}");
        }
        assert!(network.events[1 - restarts].iter().any(|(_, event)| *event == Event::PeerRestarted));
    }
}

/// An idle bundle for two days: probes and their answers stay within the budget of each path.
#[test]
fn probes_of_an_idle_path_stay_within_their_budget() {
    let rules = PathRules { probe_bytes_a_day: 50_000, ..PathRules::default() };
    let paths = two_paths().map(|(there, back, _)| (there, back, rules.clone()));
    let mut network: Network<Virtual> = Network::new(PathBundleConfig::default(), paths, 5);
    network.run_until(Time::from_secs(2 * 86_400));
    for end in &network.ends {
        for path in 0..2 {
            let stats = end.stats(PathId(path));
            // What may be sent at once comes on top in the first day.
            assert!((60_000..=104_000).contains(&stats.sent_bytes), "{stats:?}");
            assert!(stats.probe_bytes <= stats.sent_bytes);
        }
    }
    assert!(network.events[0].iter().all(|(_, event)| matches!(event, Event::Up(_))), "{:?}", network.events[0]);
}

/// A path whose answers take minutes comes up, and carries.
#[test]
fn a_path_with_a_round_trip_of_minutes_comes_up() {
    for delay in [50.0, 200.0] {
        let wire = Wire::new(9600.0, delay);
        let paths = [(wire.clone(), wire, PathRules::default())];
        let mut network: Network<Virtual> = Network::new(PathBundleConfig::default(), paths, 5);
        network.run_until(Time::from_secs_f64(2.0 * delay + 30.0));
        assert_eq!(network.ends[0].stats(PathId(0)).state, Some(PathState::Up), "{delay} s");
        network.ends[0].send(network.now, Virtual(200), 1, 1);
        network.run_until(network.now + Time::from_secs_f64(delay + 30.0)); // the start is slow in seconds, as in round trips
        assert_eq!(network.delivered[1].len(), 1, "{delay} s");
        // It stays up: answers come as steadily as probes go.
        let downs = network.events[0].iter().filter(|(_, event)| matches!(event, Event::Down(..))).count();
        assert_eq!(downs, 0, "{:?}", network.events[0]);
    }
}

/// Bytes that a cheap and a dear path carry in 20 s of so many bits a second, of which the cheap one can have 1 Mb/s.
fn cheap_and_dear(offered_bps: f64, spill: Time) -> (u64, u64, u64) {
    let mut config = PathBundleConfig { spill, ..PathBundleConfig::default() };
    config.classes[1].policy = Policy::Cheapest;
    let paths = [(1e6, 0.0), (1e6, 5.0)]
        .map(|(rate, cost)| (Wire::new(rate, 0.03), Wire::new(rate, 0.03), PathRules { cost, ..PathRules::default() }));
    let mut network: Network<Virtual> = Network::new(config, paths, 5);
    let gap = 1000.0 * 8.0 / offered_bps;
    for number in 0..(20.0 / gap) as u32 {
        network.run_until(Time::from_secs_f64(1.0 + f64::from(number) * gap));
        network.ends[0].send(network.now, Virtual(1000), 1, u64::from(number % 4));
        network.settle();
    }
    let [cheap, dear] = [0, 1].map(|path| network.ends[0].stats(PathId(path)).data_bytes);
    (cheap, dear, network.ends[0].totals().dropped)
}

/// The dear path carries nothing while the cheap one is fast enough, and helps when packets have waited.
#[test]
fn the_cheapest_path_spills_over_when_packets_wait() {
    let (cheap, dear, _) = cheap_and_dear(0.6e6, Time::from_millis(50));
    assert!(cheap > 1_400_000 && dear < 20_000, "{cheap} {dear}"); // the start
    let (cheap, dear, dropped) = cheap_and_dear(1.5e6, Time::from_millis(50));
    println!("1.5 Mb/s: {cheap} bytes cheap, {dear} dear, {dropped} packets dropped");
    assert!(cheap > 2_000_000 && dear > 400_000, "{cheap} {dear}");
    let (_, dear, without) = cheap_and_dear(1.5e6, Time::from_secs(1000));
    assert!(dear == 0 && dropped < without / 2, "{dear} {dropped} {without}");
}

/// A small packet beside bulk on a slow line waits for a piece and a short queue of the line, not for the packets that wait in front.
#[test]
fn a_small_packet_passes_long_ones_on_a_slow_line() {
    let wire = Wire::new(20e3, 0.1);
    let paths = [(wire.clone(), wire, PathRules::default())];
    let mut network: Network<Bytes> = Network::new(PathBundleConfig::default(), paths, 5);
    let (mut longest, mut small_arrived) = (0.0_f64, 0);
    for tick in 0..1200u32 {
        network.run_until(Time::from_millis(u64::from(tick) * 50));
        let now = network.now;
        if tick % 8 == 0 {
            network.ends[0].send(now, tagged(1, tick, 1300), 1, 1); // 26 kbit/s
        }
        if tick % 40 == 20 {
            network.ends[0].send(now, tagged(2, tick, 40), 1, 2);
        }
        network.settle();
        while let Some((at, packet)) = network.delivered[1].pop_front() {
            let (flow, number) = tag(&packet);
            if flow == 2 && number > 400 {
                let sent = Time::from_millis(u64::from(number) * 50);
                longest = longest.max((at - sent).as_secs_f64());
                small_arrived += 1;
            }
        }
    }
    println!("{small_arrived} small packets, at most {longest:.3} s; a long one takes 0.55 s");
    // The delay, its own time, and what it may wait.
    assert!(small_arrived >= 18 && longest < 0.1 + 0.05 + 0.25, "{small_arrived} {longest}");
}

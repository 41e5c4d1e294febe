//! Ends that restart, budgets of probes, and small packets on slow lines.

use bytes::Bytes;
use farlink_core::paths::{Event, PathBundle, PathBundleConfig, PathId, PathRules};
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

//! Marks of congestion through a bundle, and rules that change while it runs.

use bytes::Bytes;
use farlink_core::Time;
use farlink_core::endpoint::Ecn;
use farlink_core::paths::{ClassRules, Frame, PathBundle, PathBundleConfig, PathId, PathRules, Policy};

use super::network::{Network, Wire, tag, tagged};

/// Two ends with a path that has been up for a while.
fn pair(mtu: u32) -> ([PathBundle<Bytes>; 2], Time) {
    let mut ends: [PathBundle<Bytes>; 2] =
        [1, 2].map(|seed| PathBundle::new(PathBundleConfig::default(), Time::ZERO, seed));
    for end in &mut ends {
        end.add_path(Time::ZERO, PathRules { mtu, ..PathRules::default() });
        end.read_packets_with(|packet| packet[0], |_| false);
    }
    let mut now = Time::ZERO;
    for _ in 0..200 {
        now += Time::from_millis(10);
        exchange(&mut ends, now, |_| Ecn::NotCapable);
    }
    (ends, now)
}

/// Moves everything; `mark` says which mark a datagram with this byte of traffic class arrives with.
fn exchange(ends: &mut [PathBundle<Bytes>; 2], now: Time, mut mark: impl FnMut(u8) -> Ecn) -> Vec<(bool, u8)> {
    let mut seen = Vec::new();
    for from in 0..2 {
        ends[from].handle_timeout(now);
        while let Some((path, packet)) = ends[from].poll_transmit(now) {
            let has_data = packet.frames.iter().any(|frame| matches!(frame, Frame::Data(_)));
            let class = ends[from].traffic_class();
            seen.push((has_data, class));
            ends[1 - from].handle_marked(now, path, &packet, mark(class));
        }
    }
    seen
}

#[test]
fn every_piece_has_the_class_of_its_packet_and_the_packet_the_severest_mark_of_its_pieces() {
    let (mut ends, mut now) = pair(500);
    for (byte, marked_piece, wanted) in
        [(0b10, None, Ecn::Capable0), (0b10, Some(2), Ecn::Congestion), (0xb9, None, Ecn::Capable0)]
    {
        assert!(ends[0].send(now, Bytes::from(vec![byte; 1400]), 4, 7));
        let (mut pieces, mut classes) = (0, Vec::new());
        for _ in 0..50 {
            now += Time::from_millis(10);
            let seen = exchange(&mut ends, now, |class| {
                pieces += u32::from(class == byte);
                if class == byte && Some(pieces) == marked_piece { Ecn::Congestion } else { Ecn::Capable0 }
            });
            classes.extend(seen);
        }
        let of_data: Vec<u8> = classes.iter().filter(|(has_data, _)| *has_data).map(|(_, class)| *class).collect();
        assert!(of_data.len() >= 3 && of_data.iter().all(|&class| class == byte), "{of_data:?}");
        assert!(classes.iter().all(|&(has_data, class)| has_data || class == 0), "what is no data has no mark");
        let (packet, ecn) = ends[1].receive_marked().expect("it arrives");
        assert_eq!((packet.len(), ecn), (1400, wanted));
    }
}

/// A class gets another policy, a path is taken away and comes back, and what flows meanwhile loses nothing.
#[test]
fn rules_change_while_packets_flow() {
    let paths = [(5e6, 0.014), (2e6, 0.05)]
        .map(|(rate, delay)| (Wire::new(rate, delay), Wire::new(rate, delay), PathRules::default()));
    let mut network: Network<Bytes> = Network::new(PathBundleConfig::default(), paths, 3);
    let second = PathId(1);
    let (mut received, mut sent_before) = (Vec::new(), 0);
    for number in 0..900_u32 {
        network.run_until(Time::from_secs_f64(0.5 + f64::from(number) * 0.01));
        let now = network.now;
        match number {
            200 => {
                let mut config = PathBundleConfig::default();
                config.classes[3] = ClassRules { policy: Policy::Redundant, is_ordered: true };
                network.ends.iter_mut().for_each(|end| end.set_config(now, config.clone()));
                sent_before = network.ends[0].stats(second).data_bytes;
            }
            400 => {
                assert!(network.ends[0].stats(second).data_bytes > sent_before + 150 * 300, "a copy on each path");
                for end in 0..2 {
                    network.ends[end].set_rules(now, second, PathRules { classes: 0, ..PathRules::DEFAULT });
                    network.set_carrier(end, 1, false);
                }
                sent_before = network.ends[0].stats(second).data_bytes;
            }
            600 => {
                assert_eq!(network.ends[0].stats(second).data_bytes, sent_before, "nothing goes there");
                for end in 0..2 {
                    network.ends[end].set_rules(now, second, PathRules::DEFAULT);
                    network.set_carrier(end, 1, true);
                }
            }
            _ => {}
        }
        network.ends[0].send(now, tagged(0, number, 300), 3, 9);
        network.settle();
        received.extend(std::iter::from_fn(|| network.delivered[1].pop_front()).map(|(_, packet)| tag(&packet).1));
    }
    network.run_until(Time::from_secs(12));
    received.extend(std::iter::from_fn(|| network.delivered[1].pop_front()).map(|(_, packet)| tag(&packet).1));
    assert_eq!(received, (0..900).collect::<Vec<u32>>());
    assert!(network.ends[0].stats(second).data_bytes > sent_before + 150 * 300, "it is used again");
    assert_eq!(network.ends[1].totals().strange, 0);
}

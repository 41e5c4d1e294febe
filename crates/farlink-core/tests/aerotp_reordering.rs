//! AeroTP's reliable mode over paths whose packets overtake each other: how many packets are sent for no reason. `[R3]`

use farlink_core::payload::{Payload, Virtual};
use farlink_core::protocol::aerotp::AerotpConfig;
use farlink_core::protocol::{Pairs, ProtocolConfig};
use farlink_core::{Packet, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use crate::pair::{Fault, Pair};

/// A path that loses, duplicates and delays packets, in both directions.
#[derive(Clone, Copy, Debug)]
struct Path {
    one_way_ms: u64,
    lost: f64,
    duplicated: f64,
    late: f64,
    late_by: Late,
}

/// The additional delay of a late packet, in ms.
#[derive(Clone, Copy, Debug)]
enum Late {
    Always(u64),
    UpTo(u64),
}

impl Path {
    fn delay(&self, random: &mut Pcg64Mcg) -> u64 {
        let late = match self.late_by {
            Late::Always(ms) => ms,
            Late::UpTo(ms) => random.random_range(1..=ms),
        };
        self.one_way_ms + if random.random_bool(self.late) { late } else { 0 }
    }

    fn faults(&self, count: usize, random: &mut Pcg64Mcg) -> Vec<Fault> {
        let fault = |random: &mut Pcg64Mcg| match random.random::<f64>() {
            x if x < self.lost => Fault::Lose,
            x if x < self.lost + self.duplicated => Fault::Twice(self.delay(random), self.delay(random)),
            _ => Fault::Delay(self.delay(random)),
        };
        (0..count).map(|_| fault(random)).collect()
    }
}

/// How often data was sent again, and how much of the sent data was lost, in packets.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    resent: usize,
    lost: usize,
}

/// A transfer at 10 Mb/s.
fn transfer(path: Path, seed: u64, keys: &Value, bytes: usize) -> Repeated {
    let mut all = json!({ "packet_bytes": 1200, "rate_bps": 10e6 });
    all.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let config: AerotpConfig = serde_json::from_value(all).unwrap();
    config.check().unwrap();
    let faults = path.faults(50_000, &mut Pcg64Mcg::seed_from_u64(seed));
    let mut net = Pair::of(Pairs::<Virtual>::pair(&config, seed), &faults);
    net.write_all(0, bytes, bytes);
    net.write_all(1, 0, 1);
    net.run_until(Time::from_secs(10_000));
    net.assert_done([bytes, 0]);
    assert!(!net.faults.is_empty(), "the path was never without faults");
    let sent = net.log.iter().zip(&faults).filter(|((_, side, packet), _)| *side == 0 && packet.payload_bytes() > 0);
    let lost = sent.clone().filter(|(_, fault)| matches!(fault, Fault::Lose)).count();
    let longest = sent.clone().map(|((_, _, packet), _)| packet.payload.len()).max().unwrap();
    Repeated { resent: sent.count() - bytes.div_ceil(longest), lost }
}

/// A fifth of the packets arrive twice, three tenths 20 ms late: what is sent again was lost, but for one in twenty.
#[test]
fn what_was_overtaken_is_seldom_sent_again() {
    for seed in 0..3 {
        for lost in [0.05, 0.3] {
            let path = Path { one_way_ms: 20, lost, duplicated: 0.2, late: 0.3, late_by: Late::Always(20) };
            let repeated = transfer(path, seed, &json!({}), 4_000_000);
            assert!(repeated.resent as f64 <= 1.05 * repeated.lost as f64, "{path:?}, seed {seed}: {repeated:?}");
        }
    }
}

/// The extent of the reordering has to be learnt: that costs a few packets, however it compares with the round trip.
#[test]
fn the_extent_of_the_reordering_is_learnt_from_a_few_packets() {
    for one_way_ms in [0, 2, 20, 100, 300] {
        for late_by in [Late::Always(20), Late::UpTo(20), Late::UpTo(200)] {
            for (lost, late) in [(0.0, 0.3), (0.0, 0.003), (0.05, 0.3), (0.3, 0.05)] {
                let path = Path { one_way_ms, lost, duplicated: 0.2, late, late_by };
                let repeated = transfer(path, 1, &json!({}), 4_000_000);
                let most = 1.05 * repeated.lost as f64 + 60.0;
                assert!(repeated.resent as f64 <= most, "{path:?}: {repeated:?}");
            }
        }
    }
}

/// `[K10]`: of coded blocks little more is sent than their loss calls for.
#[test]
fn coded_blocks_wait_for_what_was_overtaken() {
    let path = Path { one_way_ms: 5, lost: 0.05, duplicated: 0.2, late: 0.3, late_by: Late::UpTo(200) };
    let repeated = transfer(path, 1, &json!({ "coded": {} }), 500_000);
    assert!(repeated.resent as f64 <= 1.05 * repeated.lost as f64 + 60.0, "{repeated:?}");
}

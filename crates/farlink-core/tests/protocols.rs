//! Every protocol, in each of its modes, over random networks: it delivers what the mode guarantees, ends, and gives
//! the same result when repeated. A protocol without an example in `pair/examples.rs` fails here.

use crate::pair;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::pair::examples::{Example, Guarantee, examples, with_config};
use crate::pair::{Fault, Pair};
use crate::random_schedules::schedules;
use farlink_core::protocol::Pairs;
use farlink_core::{Event, Packet, Rng, Time};
use proptest::prelude::*;

/// Long enough for any number of timeouts that the faults can cause.
const LONG: Time = Time::from_secs(1_000_000);

/// A network and the data sent over it.
#[derive(Debug)]
struct Schedule {
    seed: u64,
    faults: Vec<Fault>,
    bytes: [usize; 2],
    piece: usize,
    sleeps: bool,
}

impl Schedule {
    fn random(number: u64) -> Self {
        let mut rng = Rng::for_component(number, 0, "schedule");
        // From a network that loses nearly everything for a while to one that only reorders.
        let (lost, twice, damaged) = (rng.uniform() * 0.6, rng.uniform() * 0.3, rng.uniform() * 0.4);
        let faults = (0..rng.below(60))
            .map(|_| {
                if rng.chance(lost) {
                    Fault::Lose
                } else if rng.chance(twice) {
                    Fault::Twice(1 + rng.below(60), 1 + rng.below(3_000))
                } else if rng.chance(damaged) {
                    Fault::Damage(rng.below(1 << 20) as u32, 1 + rng.below(12) as u32)
                } else {
                    let most = if rng.chance(0.5) { 20 } else { 200 };
                    Fault::Delay(1 + rng.below(most))
                }
            })
            .collect();
        let back = if rng.chance(0.3) { rng.below(1_500) as usize } else { 0 };
        Schedule {
            seed: rng.below(u64::MAX),
            faults,
            bytes: [rng.below(3_000) as usize, back],
            piece: 1 + rng.below(2_000) as usize,
            sleeps: rng.chance(0.1),
        }
    }
}

/// The packets seen on the network: time, side and length of each.
type Trace = Vec<(Time, usize, u32, Option<u32>)>;

fn play(example: &Example, schedule: &Schedule) -> Trace {
    let code = example.transport.as_dyn().correction().map(|correction| correction.code()).unwrap_or_default();
    with_config!(&example.transport, |config| {
        let ends = Pairs::<Vec<u8>>::pair(config, schedule.seed);
        if example.guarantee == Guarantee::Datagrams {
            datagrams(ends, schedule)
        } else {
            stream(ends, example, schedule, code)
        }
    })
}

fn trace<P: Packet>(log: &[(Time, usize, P)]) -> Trace {
    log.iter().map(|(at, side, packet)| (*at, *side, packet.wire_bytes(), packet.stream_position())).collect()
}

fn stream<E: farlink_core::Stream<Vec<u8>>>(
    ends: (E, E),
    example: &Example,
    schedule: &Schedule,
    code: farlink_core::PacketCode,
) -> Trace {
    let mut pair = Pair::<Vec<u8>, E>::of(ends, &schedule.faults);
    pair.code = code;
    pair.is_reader_asleep[1] = schedule.sleeps;
    pair.write_all(0, schedule.bytes[0], schedule.piece);
    pair.write_all(1, schedule.bytes[1], schedule.piece);
    if schedule.sleeps {
        pair.run_until(Time::from_secs(20));
        pair.is_reader_asleep[1] = false;
    }
    pair.run_until(LONG);
    pair.assert_done(schedule.bytes);
    if example.guarantee == Guarantee::All {
        assert_eq!(pair.skipped, [0, 0], "it guarantees every byte");
    }
    trace(&pair.log)
}

/// Each datagram arrives at most as often as the network repeats it.
fn datagrams<E: farlink_core::Stream<Vec<u8>>>(ends: (E, E), schedule: &Schedule) -> Trace {
    let mut pair = Pair::<Vec<u8>, E>::of(ends, &schedule.faults);
    pair.is_reader_asleep = [true; 2];
    pair.write_all(0, schedule.bytes[0], schedule.piece);
    pair.write_all(1, schedule.bytes[1], schedule.piece);
    pair.run_until(LONG);
    for side in [0, 1] {
        assert!(pair.events[side].contains(&Event::Closed));
        assert_eq!(pair.ends[side].poll_timeout(), None);
        let sent: Vec<u64> =
            pair.log.iter().filter(|sent| sent.1 != side).map(|sent| sent.2.payload_bytes().into()).collect();
        let mut arrived = 0;
        while let Some(data) = pair.ends[side].read() {
            assert!(sent.contains(&(data.len() as u64)), "nobody sent {} bytes", data.len());
            arrived += data.len() as u64;
        }
        assert!(arrived <= 2 * sent.iter().sum::<u64>());
    }
    trace(&pair.log)
}

#[test]
fn every_mode_delivers_what_it_guarantees_over_any_network() {
    let examples = examples();
    // Examples take unequal time, so each free thread takes the next one.
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(example) = examples.get(next.fetch_add(1, Ordering::Relaxed)) {
                    over_any_network(example);
                }
            });
        }
    });
}

fn over_any_network(example: &Example) {
    for number in 0..schedules(2_500, 1) {
        let schedule = Schedule::random(number);
        let played = catch_unwind(AssertUnwindSafe(|| play(example, &schedule)));
        let Ok(played) = played else { panic!("{} fails over network {number}: {schedule:?}", example.name) };
        if number % 32 == 0 {
            assert!(
                play(example, &schedule) == played,
                "{} differs the second time over network {number}",
                example.name
            );
        }
    }
}

proptest! {
    /// Any order of calls and deliveries; the fuzz target `protocols` has the same body.
    #[test]
    fn any_operations_deliver_what_was_written(bytes in proptest::collection::vec(any::<u8>(), 3..600)) {
        pair::operations::any_protocol(&examples(), &bytes);
    }

    /// The fuzz target `aerotp` has the same body.
    #[test]
    fn aerotp_survives_any_forgery(bytes in proptest::collection::vec(any::<u8>(), 3..1000)) {
        pair::forgery::against_a_forger(&examples(), &bytes);
    }
}

/// Forged segments that are all dropped would test nothing.
#[test]
fn many_forged_segments_are_taken() {
    let examples = examples();
    let mut rng = Rng::for_component(1, 0, "forger");
    let (mut forged, mut accepted) = (0, 0);
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..400).map(|_| rng.below(256) as u8).collect();
        let tally = pair::forgery::against_a_forger(&examples, &bytes);
        (forged, accepted) = (forged + tally.forged, accepted + tally.accepted);
    }
    println!("{accepted} of {forged} forged segments were taken");
    assert!(accepted * 5 > forged, "{accepted} of {forged}");
}

//! Two ends over lines that damage, lose and drop at random: they open or say why not, and carry each packet at most once.

use std::collections::BTreeSet;

use bytes::Bytes;
use farlink_core::ppp::{Bundle, BundleConfig, Cause, Event, Proof};
use farlink_core::rng::SplitMix64;
use farlink_core::{BitRate, Time};
use proptest::prelude::*;

use super::wires::{Wires, config, packet, proven, secs};

/// What happens at a time.
#[derive(Clone, Debug)]
enum Step {
    /// An end sends packets.
    Send(usize, u32, usize),
    /// One end of a line, or both, has carrier or not.
    Carrier(usize, Option<usize>, bool),
    /// A line carries nothing, or again.
    Hole(usize, bool),
    /// Damage and loss of all lines.
    Noise(f64, f64),
    /// An end begins anew.
    Restart(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..2_usize, 1..8_u32, 20..1500_usize).prop_map(|(end, count, length)| Step::Send(end, count, length)),
        3 => (0..4_usize, prop::option::of(0..2_usize), any::<bool>()).prop_map(|(line, end, is_up)| Step::Carrier(line, end, is_up)),
        1 => (0..4_usize, any::<bool>()).prop_map(|(line, is_hole)| Step::Hole(line, is_hole)),
        2 => (0.0..0.1_f64, 0.0..0.1_f64).prop_map(|(damage, loss)| Step::Noise(damage, loss)),
        1 => (0..2_usize).prop_map(Step::Restart),
    ]
}

prop_compose! {
    fn setting()(
        lines in 1..4_usize,
        rate_bps in 1200.0..100_000.0_f64,
        delay_ms in 0..2500_u64,
        chap in any::<bool>(),
        proves in any::<bool>(),
        short in [any::<bool>(), any::<bool>()],
        mrru in [300..3000_u16, 300..3000_u16],
        linger in prop_oneof![Just(0.0), 1.0..100.0],
        ipv6 in any::<bool>(),
        map in prop_oneof![Just(0), any::<u32>()],
    ) -> (f64, Time, [BundleConfig; 2]) {
        let configs = [0, 1].map(|end| {
            let mut one = config(end, lines, rate_bps);
            one.rates = vec![BitRate::new(rate_bps).unwrap(); lines];
            (one.ipv6, one.linger) = (ipv6, secs(linger));
            one.link.lcp.receive_map.0 = map;
            let multilink = one.link.lcp.multilink.as_mut().unwrap();
            (multilink.short_numbers, multilink.mrru) = (short[end], mrru[end]);
            let proof = if chap { Proof::ChapMd5 } else { Proof::Pap };
            if proves { proven(one, end, vec![proof], "secret") } else { one }
        });
        (rate_bps, Time::from_millis(delay_ms), configs)
    }
}

fn lines(wires: &Wires) -> usize {
    wires.wires.len()
}

fn play(wires: &mut Wires, configs: &[BundleConfig; 2], step: &Step, next: &mut u32) {
    match *step {
        Step::Send(end, count, length) => {
            for _ in 0..count {
                *next += 1;
                wires.send(end, packet(*next, length));
            }
        }
        Step::Carrier(line, end, is_up) if line < lines(wires) => match end {
            Some(end) => wires.carrier_at(end, line, is_up),
            None => wires.carrier(line, is_up),
        },
        Step::Hole(line, is_hole) if line < lines(wires) => wires.wires[line].is_hole = is_hole,
        Step::Noise(damage, loss) => {
            for way in wires.wires.iter_mut().flat_map(|wire| &mut wire.ways) {
                (way.damage, way.loss) = (damage, loss);
            }
        }
        Step::Restart(end) => {
            wires.ends[end] = Bundle::new(configs[end].clone(), SplitMix64::new(2 * u64::from(*next) + end as u64));
            (0..lines(wires)).for_each(|line| wires.carrier_at(end, line, wires.wires[line].carrier[end]));
        }
        Step::Carrier(..) | Step::Hole(..) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), ..ProptestConfig::default() })]

    #[test]
    fn ends_open_whatever_happened_and_carry_each_packet_at_most_once(
        (rate_bps, delay, configs) in setting(),
        steps in prop::collection::vec((step(), 0.0..20.0_f64), 0..40),
        seed in any::<u64>(),
    ) {
        let mut wires = Wires::new(configs.clone(), rate_bps, delay, seed);
        wires.all_up();
        let mut next = 0;
        let mut restarted = false;
        for (step, span) in &steps {
            restarted |= matches!(step, Step::Restart(_));
            play(&mut wires, &configs, step, &mut next);
            wires.run(secs(*span));
        }
        for end in 0..2 {
            let arrived = wires.arrived(end);
            let unique: BTreeSet<u32> = arrived.iter().copied().collect();
            prop_assert!(unique.len() == arrived.len(), "packets came twice at end {}", end);
        }
        // Quiet lines that are dialled anew: everything works, within what timers and tries take.
        play(&mut wires, &configs, &Step::Noise(0.0, 0.0), &mut next);
        for line in 0..lines(&wires) {
            wires.wires[line].is_hole = false;
            wires.carrier(line, false);
            wires.carrier(line, true);
        }
        wires.run(secs(120.0));
        prop_assert!(wires.has_network(), "{:?}", wires.events.iter().map(|events| events.iter().rev().take(6).collect::<Vec<_>>()).collect::<Vec<_>>());
        prop_assert_eq!(wires.members(), lines(&wires));
        wires.run(secs(60.0));
        for end in 0..2 {
            let before = wires.packets[1 - end].len();
            for number in 0..5 {
                prop_assert!(wires.send(end, packet(1_000_000 + number, 200)));
            }
            wires.run(secs(40.0));
            let counts = wires.ends.each_ref().map(|end| (end.send_counts(), end.receive_counts()));
            let arrived = wires.arrived(1 - end)[before..].to_vec();
            prop_assert_eq!(arrived, (1_000_000..1_000_005).collect::<Vec<_>>(), "from end {}: {:?}, {:?}", end, counts, wires.events);
        }
        for end in 0..2 {
            let hopeless = wires.causes(end).into_iter().find(|cause| matches!(cause, Cause::LoopedBack | Cause::WrongSecret | Cause::OtherHeader | Cause::NoMultilink));
            prop_assert!(hopeless.is_none() || restarted, "{:?}", hopeless);
        }
    }

    #[test]
    fn any_bytes_are_taken(
        (_, _, configs) in setting(),
        portions in prop::collection::vec((0..4_usize, prop::collection::vec(any::<u8>(), 0..100), 0.0..10.0_f64), 0..100),
        is_framed in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let [near, _] = configs;
        let mut bundle = Bundle::new(near, SplitMix64::new(seed));
        let mut now = Time::ZERO;
        (0..bundle.lines()).for_each(|line| bundle.on_carrier(now, line, true));
        for (line, mut bytes, span) in portions {
            if is_framed {
                // A good check, and a protocol that is known.
                const PROTOCOLS: [[u8; 2]; 6] = [[0xc0, 0x21], [0xc0, 0x23], [0xc2, 0x23], [0x80, 0x21], [0x80, 0x57], [0x00, 0x3d]];
                let mut frame = vec![0xff, 0x03];
                frame.extend(PROTOCOLS[bytes.len() % 6]);
                if let [code, _, high, low, ..] = &mut bytes[..] {
                    *code %= 13;
                    (*high, *low) = (0, *low % 100);
                }
                frame.extend(&bytes);
                bytes.clear();
                farlink_core::ppp::hdlc::encode(&frame, farlink_core::ppp::Accm::ALL, &mut bytes);
            }
            bundle.receive(now, line, &bytes);
            now += secs(span);
            while bundle.poll_timeout().is_some_and(|due| due <= now) {
                bundle.handle_timeout(now);
            }
            let mut out = Vec::new();
            bundle.poll_bytes(line, 50, &mut out);
            bundle.sent(now, line, out.len());
            while bundle.poll_event().is_some() {}
            while bundle.poll_packet().is_some() {}
            bundle.send(now, Bytes::from(bytes), 0);
        }
    }
}

/// Few in `make test`; as many as `PROPTEST_CASES` says elsewhere.
fn cases(few: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

#[test]
fn an_event_says_why() {
    let event = Event::LineDown { line: 3, cause: Cause::WrongSecret };
    assert!(matches!(event, Event::LineDown { cause, .. } if cause.to_string().starts_with("wrong secret")));
}

//! Forged and very old segments of a TCP connection neither panic, nor reach the application, nor disturb the transfer.

use crate::pair::{Pair, configs, faults, small};
use farlink_core::protocol::tcp::variant::Variant;
use farlink_core::protocol::tcp::{Flags, SackBlock, Segment, TcpConfig, Timestamps};
use farlink_core::{Event, Time};
use proptest::prelude::*;

/// Long enough for any number of timeouts that the faults can cause.
const LONG: Time = Time::from_secs(100_000);

proptest! {
    /// Segments that nobody sent, or that were sent long ago, neither panic nor reach the application.
    #[test]
    fn garbage_is_dropped(
        config in configs(), seed: u64, faults in faults(), bytes in [500_usize..4_000, 0_usize..2_000],
        garbage in proptest::collection::vec((garbage(), 0_u64..3_000, 0_usize..2), 1..40),
    ) {
        // A forged segment with the right numbers is indistinguishable from the peer's, so these have wrong ones.
        let mut pair = Pair::<Vec<u8>>::new(&config, seed, &faults);
        pair.write_all(0, bytes[0], 700);
        pair.write_all(1, bytes[1], 700);
        pair.pump(0);
        pair.pump(1);
        let is_connected = |pair: &Pair<Vec<u8>>| pair.events.iter().all(|events| events.contains(&Event::Connected));
        while !is_connected(&pair) && pair.step(LONG) {}
        for (forged, ms, to) in garbage {
            let initial = [seed as u32, (seed >> 32) as u32];
            let segment = forged.segment(initial[1 - to], initial[to]);
            pair.insert(pair.now + Time::from_millis(ms), to, segment);
        }
        pair.run_until(LONG);
        pair.assert_done(bytes);
    }
}

/// A forged segment, with numbers relative to the initial ones of both sides.
#[derive(Clone, Debug)]
struct Forged {
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    timestamps: Option<Timestamps>,
    sack: Vec<(u32, u32)>,
    bytes: usize,
}

impl Forged {
    fn segment(&self, peer_initial: u32, own_initial: u32) -> Segment<Vec<u8>> {
        let mut segment = Segment {
            seq: peer_initial.wrapping_add(self.seq),
            ack: own_initial.wrapping_add(self.ack),
            flags: Flags(self.flags),
            header_bytes: 40,
            window: self.window,
            timestamps: self.timestamps,
            payload: vec![0xee; self.bytes],
            ..Segment::default()
        };
        for &(left, right) in &self.sack {
            segment
                .sack
                .push(SackBlock { left: own_initial.wrapping_add(left), right: own_initial.wrapping_add(right) });
        }
        segment
    }
}

fn garbage() -> impl Strategy<Value = Forged> {
    // Far from any window, or just before the first byte of the stream.
    let far = 0x1000_0000_u32..0xf000_0000;
    let place = prop_oneof![
        (far.clone(), 0_usize..200),
        (0_u32..300).prop_map(|before| (0_u32.wrapping_sub(before), before as usize)),
        // It begins before the stream and its length claims to end before the first byte.
        (1_u32..300, 0_usize..300).prop_map(|(before, len)| (0_u32.wrapping_sub(before), len.min(before as usize))),
    ];
    let timestamps =
        proptest::option::of((any::<u32>(), any::<u32>()).prop_map(|(value, echo)| Timestamps { value, echo }));
    let sack = proptest::collection::vec((0_u32..9_000, 0_u32..9_000), 0..5);
    let ack = prop_oneof![far, Just(0_u32), (0_u32..5_000).prop_map(|before| 0_u32.wrapping_sub(before))];
    (place, ack, any::<u8>(), any::<u16>(), timestamps, sack).prop_map(
        |((seq, bytes), ack, flags, window, timestamps, sack)| Forged {
            seq,
            ack,
            flags,
            window,
            timestamps,
            sack,
            bytes,
        },
    )
}

/// Garbage that overlaps the start of the number space, with lengths that would wrap around it.
#[test]
fn a_segment_from_before_the_stream_is_old() {
    for variant in Variant::ALL {
        let config = TcpConfig { handshake: false, ..small(*variant) };
        let mut pair = Pair::<Vec<u8>>::new(&config, 0, &[]);
        pair.insert(
            Time::ZERO,
            1,
            Segment {
                seq: 0_u32.wrapping_sub(50),
                flags: Flags::ACK.with(Flags::FIN),
                payload: vec![0xee; 51],
                ..Segment::default()
            },
        );
        pair.write_all(0, 1_000, 1_000);
        pair.write_all(1, 0, 1);
        pair.run_until(LONG);
        pair.assert_done([1_000, 0]);
    }
}

/// Forged timestamps: a SYN out of place does not change the echo, and an echo from the future gives no sample.
#[test]
fn forged_timestamps_leave_the_timer_alone() {
    let config = TcpConfig { timestamps: true, ..small(Variant::Sack) };
    let far = 2_000_000;
    let mut pair = Pair::<Vec<u8>>::new(&config, 0, &[]);
    pair.write_all(0, 5_000, 5_000);
    pair.write_all(1, 0, 1);
    pair.run_until(Time::from_millis(100));
    let next = pair.log.iter().rev().find(|sent| sent.1 == 1).expect("it has acknowledged").2.ack;
    for (to, seq, flags, timestamps) in [
        (1, 0x1000_0000, Flags::SYN.with(Flags::CWR), Timestamps { value: far, echo: 0 }),
        (0, 1, Flags::ACK, Timestamps { value: 1, echo: far }),
    ] {
        pair.insert(
            pair.now,
            to,
            Segment { seq, flags, ack: next, timestamps: Some(timestamps), ..Segment::default() },
        );
    }
    pair.run_until(LONG);
    pair.assert_done([5_000, 0]);
    assert!(pair.log.iter().all(|(_, _, segment)| segment.timestamps.is_none_or(|sent| sent.echo != far)));
    assert!(pair.now < Time::from_secs(3), "a timer of {:?} was waited for", pair.now);
}

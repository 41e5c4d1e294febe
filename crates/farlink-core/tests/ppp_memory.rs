//! Memory of a PPP line with a hostile peer, counted by the allocator. It runs alone: other tests allocate, too.

use farlink_core::ppp::hdlc::encode;
use farlink_core::ppp::{Accm, Bundle};
use farlink_core::rng::{RandomSource, SplitMix64};
use farlink_core::{Rng, Time};
use peak_alloc::PeakAlloc;

#[path = "ppp/wires.rs"]
#[allow(dead_code, missing_docs, unreachable_pub, reason = "what the other tests need besides")]
mod wires;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Most that a hostile peer may hold of a line, in bytes.
const MOST_A_LINE: usize = 1 << 20;

/// A frame with a good check: `protocol` and what the peer likes.
fn frame(protocol: [u8; 2], information: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&[&[0xff, 0x03], &protocol[..], information].concat(), Accm::ALL, &mut bytes);
    bytes
}

/// Sends frames to the near end of open lines, and returns what it holds of memory at most, a line.
fn held(lines: usize, mut attack: impl FnMut(&mut Rng) -> Vec<u8>) -> usize {
    let configs = [0, 1].map(|end| wires::config(end, lines, 9600.0));
    let mut open = wires::Wires::new(configs, 9600.0, Time::from_millis(100), 1);
    open.all_up();
    open.run(Time::from_secs(20));
    assert_eq!(open.members(), lines);
    let [near, far] = open.ends;
    drop((far, open.wires, open.events, open.packets));
    let mut near: Bundle<SplitMix64> = near;
    let mut rng = Rng::for_component(7, 0, "hostile");
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    for step in 0..4000_usize {
        let bytes = attack(&mut rng);
        // The driver takes nothing: neither bytes for the port nor packets.
        near.receive(Time::from_secs(20), step % lines, &bytes);
    }
    (ALLOCATED.peak_usage() - before) / lines
}

#[test]
fn a_hostile_peer_holds_less_than_a_megabyte_a_line() {
    let long = vec![0x55; 1400];
    // Fragments that never make a packet: no beginning, no end, gaps everywhere.
    let mut number = 0_u32;
    let gaps = move |rng: &mut Rng| {
        number = (number + 2 + rng.below(3) as u32) % (1 << 24);
        let header = (rng.below(4) as u32) << 30 | number;
        frame([0x00, 0x3d], &[&header.to_be_bytes()[..], &[0x21; 1400]].concat())
    };
    let echoes = {
        let long = long.clone();
        move |_: &mut Rng| frame([0xc0, 0x21], &[&[9, 1, 0x05, 0x7c][..], &long].concat())
    };
    let unknown = {
        let long = long.clone();
        move |rng: &mut Rng| frame([0x40 | (rng.below(64) as u8 & 0xfe), 0x01 | rng.next_u64() as u8], &long)
    };
    let codes = {
        let long = long.clone();
        move |rng: &mut Rng| frame([0x80, 0x21], &[&[rng.next_u64() as u8, 1, 0x05, 0x7c][..], &long].concat())
    };
    let packets = {
        let long = long.clone();
        move |_: &mut Rng| frame([0x00, 0x21], &[&[0x45][..], &long].concat())
    };
    let endless = move |_: &mut Rng| vec![0x55; 1400];
    let noise = |rng: &mut Rng| (0..1400).map(|_| rng.next_u64() as u8).collect();
    for lines in [1, 4] {
        let found = [
            ("gaps", held(lines, gaps)),
            ("echoes", held(lines, echoes.clone())),
            ("unknown protocols", held(lines, unknown.clone())),
            ("codes", held(lines, codes.clone())),
            ("packets nobody takes", held(lines, packets.clone())),
            ("a frame without end", held(lines, endless)),
            ("noise", held(lines, noise)),
        ];
        println!("{lines} lines, bytes a line: {found:?}");
        for (attack, bytes) in found {
            assert!(bytes < MOST_A_LINE, "{attack}: {bytes} bytes a line of {lines}");
        }
    }
}

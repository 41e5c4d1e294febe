//! Parity in the segments of AeroTP's reliable modes, on real bytes with wrong bits: `docs/aerotp.md`, `[F6]` to `[F8]`.

use std::collections::VecDeque;

use bytes::Bytes;
use farlink_core::protocol::aerotp::{AerotpConfig, Fec, Segment, Side};
use farlink_core::protocol::{Pairs, ProtocolConfig};
use farlink_core::wire::aerotp::{Outside, decode_segment, encode_segment};
use farlink_core::{Endpoint, Event, Integrity, Rng, Rx, Stream, Time};
use serde_json::{Value, json};

const ONE_WAY: Time = Time::from_millis(200);
const STEP: Time = Time::from_millis(1);

fn config(keys: &Value) -> AerotpConfig {
    let config: AerotpConfig = serde_json::from_value(keys.clone()).unwrap();
    config.check().unwrap();
    config
}

/// Changes the bytes of a segment; the number is the length of its header.
type Damage<'a> = dyn FnMut(&mut Rng, &Segment<Vec<u8>>, &mut [u8], usize) + 'a;

/// Two sides whose segments travel as bytes of which some bits are flipped.
struct Wire {
    ends: [Side<Vec<u8>>; 2],
    now: Time,
    under_way: VecDeque<(Time, usize, Vec<u8>)>,
    rng: Rng,
    received: [Vec<u8>; 2],
    has_closed: [bool; 2],
    tally: Tally,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    data_segments: u32,
    macks: u32,
    mended_data: u32,
    mended_macks: u32,
    damaged: u32,
    /// Segments whose header was damaged, or that cannot be read.
    lost: u32,
}

impl Wire {
    fn new(keys: [&Value; 2], seed: u64) -> Wire {
        let (client, _) = Pairs::<Vec<u8>>::pair(&config(keys[0]), seed);
        let (_, server) = Pairs::<Vec<u8>>::pair(&config(keys[1]), seed);
        Wire {
            ends: [client, server],
            now: Time::ZERO,
            under_way: VecDeque::new(),
            rng: Rng::for_component(seed, 0, "wire"),
            received: [Vec::new(), Vec::new()],
            has_closed: [false; 2],
            tally: Tally::default(),
        }
    }

    /// Sends what is due, with damage.
    fn send(&mut self, flip: &mut Damage<'_>) {
        for side in [0, 1] {
            while let Some(sent) = self.ends[side].poll_transmit(self.now) {
                let mut bytes = Vec::new();
                encode_segment(&sent.packet, &Outside::default(), &mut bytes).unwrap();
                let header = usize::from(sent.packet.header_bytes) - 20;
                let is_mack = sent.packet.mack.is_some();
                self.tally.macks += u32::from(is_mack);
                self.tally.data_segments += u32::from(!sent.packet.payload.is_empty());
                flip(&mut self.rng, &sent.packet, &mut bytes, header);
                self.under_way.push_back((self.now + ONE_WAY, 1 - side, bytes));
            }
        }
    }

    fn arrive(&mut self, to: usize, bytes: Vec<u8>) {
        let Ok(arrived) = decode_segment::<Vec<u8>>(&Bytes::from(bytes)) else {
            self.tally.lost += 1;
            return;
        };
        let is_mack = arrived.segment.mack.is_some();
        match arrived.integrity {
            Integrity::Mended { .. } if is_mack => self.tally.mended_macks += 1,
            Integrity::Mended { .. } => self.tally.mended_data += 1,
            Integrity::Intact => {}
            _ => self.tally.damaged += 1,
        }
        self.ends[to].handle_packet(self.now, &arrived.segment, Rx { integrity: arrived.integrity, ..Rx::default() });
    }

    /// Both applications take what there is.
    fn take(&mut self) {
        for side in [0, 1] {
            while let Some(event) = self.ends[side].poll_event() {
                self.has_closed[side] |= event == Event::Closed;
                assert!(!matches!(event, Event::Aborted(_)), "{event:?}");
            }
            while let Some(data) = self.ends[side].read() {
                self.received[side].extend(data);
            }
        }
    }

    fn transfer(&mut self, data: &[u8], flip: &mut Damage<'_>) {
        assert_eq!(self.ends[0].write(self.now, &mut data.to_vec()), data.len());
        for side in [0, 1] {
            let now = self.now;
            self.ends[side].close(now);
        }
        while self.has_closed != [true; 2] {
            assert!(self.now < Time::from_secs(2000), "it does not end: {:?}", self.tally);
            self.send(flip);
            self.now += STEP;
            while self.under_way.front().is_some_and(|next| next.0 <= self.now)
                && let Some((_, to, bytes)) = self.under_way.pop_front()
            {
                self.arrive(to, bytes);
            }
            for side in [0, 1] {
                if self.ends[side].poll_timeout().is_some_and(|due| due <= self.now) {
                    self.ends[side].handle_timeout(self.now);
                }
            }
            self.take();
        }
        assert_eq!(self.received[1], data);
    }
}

fn data(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// One wrong byte in each segment with data: all are corrected, and none is sent again.
#[test]
fn a_receiver_corrects_before_it_asks_again() {
    for keys in [json!({ "fec_words": 4 }), json!({ "mode": "near-reliable", "fec_share": 0.01 })] {
        let mut keys = keys;
        (keys["rate_bps"], keys["initial_rto_s"]) = (json!(1e6), json!(5));
        let mut wire = Wire::new([&keys, &keys], 1);
        let data = data(100_000);
        wire.transfer(&data, &mut |rng, segment, bytes, header| {
            if !segment.payload.is_empty() {
                let at = header + (rng.uniform() * (bytes.len() - header) as f64) as usize;
                bytes[at] ^= 0x5a;
            }
        });
        let Tally { data_segments, mended_data, damaged, lost, .. } = wire.tally;
        assert_eq!((mended_data, damaged, lost), (data_segments, 0, 0), "{keys}");
        assert!(data_segments <= 73, "nothing is sent again: {data_segments}");
    }
}

/// Random bits over random segments: what cannot be corrected is sent again, and all of the data arrives as it was written.
#[test]
fn damaged_streams_arrive_complete() {
    let (mut mended, mut damaged) = (0, 0);
    for seed in 0..40 {
        let mut rng = Rng::for_component(seed, 1, "settings");
        let share =
            json!({ "fec_share": 0.001 + 0.5 * rng.uniform(), "packet_bytes": (80.0 + 900.0 * rng.uniform()).round() });
        let words = json!({ "fec_words": (5.0 * rng.uniform()).round(), "packet_bytes": 300, "copies": 2 });
        let plain = json!({ "packet_bytes": 400 });
        let all = [&share, &words, &plain];
        // Sides with different settings: what a segment carries is in its header.
        let mut keys = [all[seed as usize % 3].clone(), all[(seed as usize / 3) % 3].clone()];
        for keys in &mut keys {
            (keys["rate_bps"], keys["initial_rto_s"]) = (json!(2e5), json!(1));
        }
        let ber = 10_f64.powf(-5.0 + 2.0 * rng.uniform());
        let mut wire = Wire::new([&keys[0], &keys[1]], seed);
        wire.transfer(&data(20_000), &mut |rng, _, bytes, _| {
            for at in 0..8 * bytes.len() {
                if rng.chance(ber) {
                    bytes[at / 8] ^= 1 << (at % 8);
                }
            }
        });
        mended += wire.tally.mended_data;
        damaged += wire.tally.damaged;
    }
    assert!(mended > 100 && damaged > 100, "{mended} {damaged}");
}

/// `[F8]`: lists of many blocks with a wrong byte in each are read; without parity of their own they are dropped.
#[test]
fn macks_are_corrected() {
    let run = |mack_parity: bool| {
        let keys = json!({ "fec_words": 16, "mack_parity": mack_parity, "packet_bytes": 300, "rate_bps": 1e6, "initial_rto_s": 5 });
        let mut wire = Wire::new([&keys, &keys], 3);
        let mut count = 0;
        let mut longest = 0;
        wire.transfer(&data(60_000), &mut |rng, segment, bytes, header| {
            count += 1;
            if let Some(mack) = &segment.mack {
                longest = longest.max(mack.edges.len());
                let is_damaged = rng.chance(0.6);
                bytes[header + (rng.uniform() * (bytes.len() - header) as f64) as usize] ^=
                    if is_damaged { 0x81 } else { 0 };
            } else if count % 3 == 0 && !segment.payload.is_empty() {
                bytes[0] ^= 1; // the header fails: gaps to report
            }
        });
        assert!(longest > 20, "{longest} edges");
        (wire.tally, wire.now)
    };
    let ((with, soon), (without, late)) = (run(true), run(false));
    assert!(with.mended_macks > 20 && with.damaged == 0, "{with:?}");
    assert!(without.mended_macks == 0 && without.damaged > 20, "{without:?}");
    assert!(soon < late, "{soon:?} {late:?}");
}

/// `[F8]`: what a MACK of each length has, and a peer without parity of its own reads it.
#[test]
fn a_mack_has_as_much_parity_for_its_length_as_data() {
    for (keys, expected) in [
        (json!({ "fec_words": 16 }), 1),
        (json!({ "fec_words": 256 }), 10), // 424 bytes of payload
        (json!({ "fec_share": 0.5 }), 2),
        (json!({ "mode": "near-reliable", "fec_share": 0.01 }), 1),
        (json!({ "fec_words": 16, "mack_parity": false }), 0),
        (json!({ "mode": "quasi-reliable" }), 0),
        (json!({ "mode": "quasi-reliable", "mack_parity": true }), 1),
        (json!({}), 0),
    ] {
        let mode = keys.get("mode").cloned().unwrap_or(json!("reliable"));
        let mut wire = Wire::new([&json!({ "mode": mode }), &keys], 4);
        let mut words = Vec::new();
        wire.transfer(b"some data", &mut |_, segment, _, _| {
            if let Some(mack) = &segment.mack {
                words.push((mack.edges.len(), segment.fec_words));
            }
        });
        // The listener's answers; the opener's own come from a side without parity.
        assert_eq!(words.iter().map(|mack| mack.1).max(), Some(expected), "{keys}: {words:?}");
    }
}

/// The table of MACKs in `docs/aerotp.md`, section 7: the probability that a MACK with so many blocks is lost, with the parity that data
/// has by `fec_share = 0.05` and without parity.
#[test]
fn long_lists_survive_bit_errors() {
    for (ber, blocks, without, with) in [
        (1e-6, 0, 4.8e-4, 3.5e-4),
        (1e-6, 32, 2.5e-3, 3.5e-4),
        (1e-5, 0, 4.8e-3, 3.5e-3),
        (1e-5, 32, 2.5e-2, 3.5e-3),
        (1e-4, 0, 4.7e-2, 3.5e-2),
        (1e-4, 32, 0.223, 3.5e-2),
    ] {
        let list = 16 + 8 * blocks;
        let words = (0.05 * f64::from(list) / 4.0).ceil() as u16;
        let intact = |bytes: u32| (1.0_f64 - ber).powi(8 * bytes as i32);
        let unprotected = 1.0 - intact(40 + list + 4);
        let code = Fec::new(list, words);
        let protected = 1.0 - intact(44) * (1.0 - code.residual_loss(ber));
        println!("{ber:e}, {blocks} blocks, {words} words: {unprotected:.2e}, {protected:.2e}");
        assert!((unprotected / without - 1.0).abs() < 0.03, "{ber} {blocks}: {unprotected}");
        assert!((protected / with - 1.0).abs() < 0.03, "{ber} {blocks}: {protected}");
    }
}

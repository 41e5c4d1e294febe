//! Sealed segments with real AEADs: packets of an independent program, wrong bits, replays, keys that change.

use aes_gcm::Aes256Gcm;
use aes_gcm::aead::{AeadInOut, KeyInit};
use bytes::{Bytes, BytesMut};
use chacha20poly1305::ChaCha20Poly1305;
use farlink_core::Time;
use farlink_core::endpoint::{Ecn, Integrity, Packet};
use farlink_core::protocol::aerotp::{Flags, Mack, Mode, Segment};
use farlink_core::wire::EncodeError;
use farlink_core::wire::aerotp::sealed::{
    Algorithm, KeyPhase, Kind, Nonce, NotOpened, OUTER_BYTES, OuterHeader, OuterPacket, PacketKey, SealError, Sealer,
    TAG_BYTES, Tag, Unsealer, WINDOW_NUMBERS, nonce, sealed_bytes,
};
use farlink_core::wire::aerotp::{Arrived, Outside, Refusal, decode_segment, encode_segment};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::Deserialize;

use crate::wire::aerotp_segments;

const CONNECTION_ID: u32 = 0x0bad_cafe;
const KEEP: Time = Time::from_secs(3600);

/// A key of RustCrypto.
#[derive(Clone, Debug)]
struct Key {
    algorithm: Algorithm,
    key: [u8; 32],
    iv: Nonce,
}

impl Key {
    fn test(algorithm: Algorithm) -> Self {
        Key { algorithm, key: [0x42; 32], iv: [0x24; 12] }
    }
}

impl PacketKey for Key {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn iv(&self) -> &Nonce {
        &self.iv
    }

    fn seal(&self, nonce: &Nonce, associated: &[u8], content: &mut [u8]) -> Tag {
        let tag = match self.algorithm {
            Algorithm::ChaCha20Poly1305 => {
                ChaCha20Poly1305::new(&self.key.into()).encrypt_inout_detached(nonce.into(), associated, content.into())
            }
            Algorithm::Aes256Gcm => {
                Aes256Gcm::new(&self.key.into()).encrypt_inout_detached(nonce.into(), associated, content.into())
            }
        };
        tag.expect("a packet is short").into()
    }

    fn open(&self, nonce: &Nonce, associated: &[u8], content: &mut [u8], tag: &Tag) -> bool {
        let (nonce, tag, content) = (nonce.into(), tag.into(), content.into());
        match self.algorithm {
            Algorithm::ChaCha20Poly1305 => {
                ChaCha20Poly1305::new(&self.key.into()).decrypt_inout_detached(nonce, associated, content, tag)
            }
            Algorithm::Aes256Gcm => {
                Aes256Gcm::new(&self.key.into()).decrypt_inout_detached(nonce, associated, content, tag)
            }
        }
        .is_ok()
    }

    /// Not a derivation to be used: the handshake will define one.
    fn next(&self) -> Self {
        let mut next = self.clone();
        next.seal(&self.iv, b"next", &mut next.key.clone());
        next.key.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(5).wrapping_add(1));
        next
    }
}

fn read(datagram: &[u8]) -> Result<OuterPacket, Refusal> {
    OuterPacket::read(BytesMut::from(datagram))
}

fn open(unsealer: &mut Unsealer<Key>, datagram: &[u8]) -> Result<Arrived<Vec<u8>>, NotOpened> {
    unsealer.open(read(datagram).expect("the outer header is right"), Time::ZERO)
}

fn sealed(sealer: &mut Sealer<Key>, segment: &Segment<Vec<u8>>) -> Vec<u8> {
    let mut out = vec![0x55; sealed_bytes(segment)];
    assert_eq!(sealer.seal_into(segment, &Outside::default(), &mut out), Ok(out.len()));
    out
}

/// A pair of both ends.
fn ends(algorithm: Algorithm) -> (Sealer<Key>, Unsealer<Key>) {
    let key = Key::test(algorithm);
    (Sealer::new(key.clone(), CONNECTION_ID), Unsealer::new(key, CONNECTION_ID, KEEP))
}

fn data(sequence: u32) -> Segment<Vec<u8>> {
    Segment { sequence, payload: b"payload".to_vec(), ..Segment::default() }
}

#[derive(Deserialize)]
struct Vectors {
    packet: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    algorithm: String,
    kind: u8,
    key_phase: u8,
    number: u64,
    connection_id: u32,
    parity_words: u16,
    key: String,
    iv: String,
    nonce: String,
    segment: String,
    packet: String,
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

impl Vector {
    fn all() -> Vec<Vector> {
        toml::from_str::<Vectors>(include_str!("vectors/aerotp_sealed.toml")).unwrap().packet
    }

    fn key(&self) -> Key {
        let algorithm = match &self.algorithm[..] {
            "chacha20-poly1305" => Algorithm::ChaCha20Poly1305,
            "aes-256-gcm" => Algorithm::Aes256Gcm,
            other => panic!("{other} is no AEAD of the specification"),
        };
        Key { algorithm, key: bytes(&self.key).try_into().unwrap(), iv: bytes(&self.iv).try_into().unwrap() }
    }

    fn kind(&self) -> Kind {
        [Kind::Hello, Kind::Early, Kind::Sealed, Kind::Reset][usize::from(self.kind)]
    }

    fn sealer(&self, number: u64) -> Sealer<Key> {
        Sealer::starting_at(number, self.kind(), self.key(), KeyPhase::new(self.key_phase), self.connection_id)
    }

    /// A receiver that has opened a packet less than half a round of the numbers before. `[O8]`
    fn unsealer(&self) -> Unsealer<Key> {
        let (phase, kind) = (KeyPhase::new(self.key_phase), self.kind());
        let mut unsealer = Unsealer::starting_in(phase, kind, self.key(), self.connection_id, KEEP);
        for earlier in (1..self.number).step_by(1 << 31) {
            open(&mut unsealer, &sealed(&mut self.sealer(earlier), &data(0))).unwrap();
        }
        unsealer
    }

    /// What the independent program was given.
    fn expected(&self) -> (Segment<Vec<u8>>, Ecn) {
        let data = Segment {
            tag: 0xabcd,
            sequence: 0x1112_1314,
            timestamp: 0x2122_2324,
            payload: b"AeroTP over satellite".to_vec(),
            ..Segment::default()
        };
        let timestamp = |ticks| data.timestamp - 4 + ticks;
        let segment = match &self.name[..] {
            "data" => data,
            "data with parity" => Segment {
                flags: Flags::AFIN.with(Flags::FEC),
                sequence: data.sequence + 21,
                timestamp: timestamp(5),
                ..data
            },
            "several codewords" => Segment {
                mode: Mode::QuasiReliable,
                flags: Flags::FEC,
                timestamp: timestamp(6),
                payload: (0..600).map(|i| (i * 7) as u8).collect(),
                ..data
            },
            "MACK" => {
                let mut mack = Mack {
                    echo: 0x2122_2324,
                    held: 1500,
                    window: 65_536,
                    marked: 3,
                    damaged: 4,
                    is_to_end: true,
                    ..Mack::default()
                };
                mack.edges.push(0x1112_1400, 0x1112_1500);
                Segment {
                    tag: 0x1234,
                    flags: Flags::MACK.with(Flags::FEC),
                    sequence: 0x1112_1390,
                    timestamp: 0x3132_3334,
                    mack: Some(Box::new(mack)),
                    ..Segment::default()
                }
            }
            "packet number beyond 2^32" => {
                Segment { mode: Mode::QuasiReliable, class: 5, flags: Flags::EXTENDED, timestamp: timestamp(7), ..data }
            }
            "key phase 1" => {
                Segment { mode: Mode::Datagram, flags: Flags::FEC, sequence: 0, timestamp: timestamp(8), ..data }
            }
            "early" => Segment { flags: Flags::ASYN, opening: data.sequence, timestamp: timestamp(0), ..data },
            other => panic!("no test expects {other}"),
        };
        let header_bytes = (OUTER_BYTES + bytes(&self.segment).len() + TAG_BYTES) as u16
            - segment
                .mack
                .as_ref()
                .map_or(segment.payload.len() as u16, |mack| mack.body_bytes(segment.sequence) as u16);
        let ecn = if self.name == "several codewords" { Ecn::Capable0 } else { Ecn::NotCapable };
        (Segment { header_bytes, fec_words: self.parity_words, ..segment }, ecn)
    }
}

/// The packets of the specification, both ways. `[O1]`, `[O7]`, `[O10]`, `[O14]`, `[O16]`
#[test]
fn packets_of_an_independent_program_are_sealed_and_opened() {
    let vectors = Vector::all();
    assert_eq!(vectors.len(), 7);
    for vector in vectors {
        let (name, packet) = (&vector.name, bytes(&vector.packet));
        assert_eq!(nonce(&vector.key().iv, vector.number).to_vec(), bytes(&vector.nonce), "{name}");
        let (segment, ecn) = vector.expected();
        let outside = Outside { source: 5001, destination: 5002, ecn };
        let mut out = vec![0x55; packet.len() + 1];
        let written = vector.sealer(vector.number).seal_into(&segment, &outside, &mut out).unwrap();
        assert_eq!(out[..written], packet, "{name}");
        assert_eq!(out[written], 0x55, "nothing behind the packet is written");

        let arrived = open(&mut vector.unsealer(), &packet).unwrap();
        assert_eq!(arrived, Arrived { segment, outside, integrity: Integrity::Intact }, "{name}");
        assert_eq!(arrived.segment.wire_bytes() as usize, packet.len(), "{name}");
    }
}

/// Each bit in turn: the CRC-16 finds those of the outer header, parity corrects those behind it, the AEAD refuses them
/// without. What is refused changes nothing. `[O4]`, `[O15]`, `[O19]`
#[test]
fn each_wrong_bit_is_found_or_corrected() {
    for vector in Vector::all() {
        let packet = bytes(&vector.packet);
        let mut unsealer = vector.unsealer();
        let expected = unsealer.expected_number();
        let right = open(&mut vector.unsealer(), &packet).unwrap();
        for bit in 0..packet.len() * 8 {
            let mut wrong = packet.clone();
            wrong[bit / 8] ^= 0x80 >> (bit % 8);
            let Ok(outer) = read(&wrong) else {
                assert!(bit < OUTER_BYTES * 8, "{}: bit {bit}", vector.name);
                assert_eq!(read(&wrong).unwrap_err(), Refusal::Check);
                continue;
            };
            assert!(bit >= OUTER_BYTES * 8);
            if vector.parity_words > 0 {
                let arrived = vector.unsealer().open(outer, Time::ZERO);
                let mended = Arrived { integrity: Integrity::Mended { bits: 1 }, ..right.clone() };
                assert_eq!(arrived, Ok(mended), "{}: bit {bit}", vector.name);
            } else {
                assert_eq!(unsealer.open::<Bytes>(outer, Time::ZERO), Err(NotOpened::Damaged));
            }
        }
        assert_eq!(unsealer.expected_number(), expected);
        assert_eq!(open(&mut unsealer, &packet), Ok(right), "nothing has changed");
        for bytes in 0..packet.len() {
            assert!(matches!(read(&packet[..bytes]), Err(Refusal::Length | Refusal::Check)), "{bytes} bytes");
        }
        assert_eq!(read(&[&packet[..], &[0]].concat()).unwrap_err(), Refusal::Length);
    }
}

/// Changed outer headers with a right CRC-16: they are associated data, so the packet does not open. `[O2]`, `[O3]`,
/// `[O5]`, `[O14]`
#[test]
fn a_forged_outer_header_opens_nothing() {
    let (mut sealer, mut unsealer) = ends(Algorithm::ChaCha20Poly1305);
    let packet = sealed(&mut sealer, &data(1));
    let header = *read(&packet).unwrap().header();
    let with = |header: OuterHeader, behind: &[u8]| [&header.encode()[..], behind].concat();
    let behind = &packet[OUTER_BYTES..];
    for kind in [Kind::Hello, Kind::Early, Kind::Reset] {
        assert_eq!(open(&mut unsealer, &with(OuterHeader { kind, ..header }, behind)), Err(NotOpened::Kind));
    }
    let elsewhere = OuterHeader { connection_id: 5, ..header };
    assert_eq!(open(&mut unsealer, &with(elsewhere, behind)), Err(NotOpened::Connection));
    let later = OuterHeader { number: 1, ..header };
    assert_eq!(open(&mut unsealer, &with(later, behind)), Err(NotOpened::Damaged));
    for phase in 1..8 {
        let other = OuterHeader { key_phase: KeyPhase::new(phase), ..header };
        let why = if phase <= 4 { NotOpened::Damaged } else { NotOpened::Phase };
        assert_eq!(open(&mut unsealer, &with(other, behind)), Err(why), "phase {phase}");
    }
    // As long as before, but with parity that is right for the rest.
    let shorter = OuterHeader { parity_words: 1, content_bytes: header.content_bytes - 4, ..header };
    assert_eq!(open(&mut unsealer, &with(shorter, behind)), Err(NotOpened::Damaged));
    let mut version = packet.clone();
    version[0] ^= 0xc0;
    let check = farlink_fec::crc::crc_16_ibm_3740(&version[..12]).to_be_bytes();
    version[12..14].copy_from_slice(&check);
    assert_eq!(read(&version).unwrap_err(), Refusal::Version);
    assert_eq!((unsealer.expected_number(), unsealer.key_phase()), (0, KeyPhase::default()));
    assert!(open(&mut unsealer, &packet).is_ok());
}

#[test]
fn impossible_lengths_are_refused() {
    let header = OuterHeader {
        kind: Kind::Sealed,
        key_phase: KeyPhase::default(),
        parity_words: 256,
        content_bytes: 16,
        connection_id: 1,
        number: 2,
    };
    let with = |header: OuterHeader, behind: usize| [&header.encode()[..], &vec![0; behind]].concat();
    assert!(read(&with(header, 16 + 1024)).is_ok());
    let short = OuterHeader { content_bytes: 15, parity_words: 0, ..header };
    assert_eq!(read(&with(short, 15)).unwrap_err(), Refusal::Length, "no room for the tag");
    let reset = OuterHeader { kind: Kind::Reset, content_bytes: 0, ..short };
    assert_eq!(read(&with(reset, 0)).unwrap().behind(), b"");
    let mut many = with(header, 16 + 4 * 257);
    many[1] = 1; // 257 words
    let check = farlink_fec::crc::crc_16_ibm_3740(&many[..12]).to_be_bytes();
    many[12..14].copy_from_slice(&check);
    assert_eq!(read(&many).unwrap_err(), Refusal::Field);
}

/// Neither form passes for the other, whoever seals it. `[O17]`, `[O18]`, `[L3]`
#[test]
fn the_forms_are_never_mixed() {
    let key = Key::test(Algorithm::Aes256Gcm);
    let mut plain = Vec::new();
    encode_segment(&data(1), &Outside::default(), &mut plain).unwrap();
    assert!(read(&plain).is_err(), "a keyed side drops what is not sealed");
    let mut number = 0;
    let mut opened = |content: &[u8]| {
        let header = OuterHeader {
            kind: Kind::Sealed,
            key_phase: KeyPhase::default(),
            parity_words: 0,
            content_bytes: (content.len() + TAG_BYTES) as u16,
            connection_id: CONNECTION_ID,
            number,
        };
        let mut content = content.to_vec();
        let tag = key.seal(&nonce(&key.iv, number.into()), &header.encode()[..12], &mut content);
        number += 1;
        let packet = [&header.encode()[..], &content, &tag].concat();
        open(&mut Unsealer::new(key.clone(), CONNECTION_ID, KEEP), &packet)
    };
    assert_eq!(opened(&plain), Err(NotOpened::Segment(Refusal::Plain)));
    for vector in Vector::all() {
        let segment = bytes(&vector.segment);
        assert_eq!(decode_segment::<Bytes>(&segment.clone().into()), Err(Refusal::Sealed), "{}", vector.name);
        assert!(opened(&segment).is_ok());
        for flag in [Flags::FEC, Flags::CRC] {
            let mut with_check = segment.clone();
            with_check[13] |= flag.0;
            assert_eq!(opened(&with_check), Err(NotOpened::Segment(Refusal::Field)));
        }
        let longer = [&segment[..], &[0]].concat();
        assert_eq!(opened(&longer), Err(NotOpened::Segment(Refusal::Length)));
        assert_eq!(opened(&segment[..segment.len() - 1]), Err(NotOpened::Segment(Refusal::Length)));
    }
    assert_eq!(opened(&[]), Err(NotOpened::Segment(Refusal::Length)));
}

/// A retransmission is another packet with another number; a replay opens nothing. `[O6]`, `[O9]`
#[test]
fn a_number_opens_once() {
    let (mut sealer, mut unsealer) = ends(Algorithm::ChaCha20Poly1305);
    let (first, again) = (sealed(&mut sealer, &data(1)), sealed(&mut sealer, &data(1)));
    assert_ne!(first[OUTER_BYTES..], again[OUTER_BYTES..]);
    assert!(open(&mut unsealer, &again).is_ok());
    assert!(open(&mut unsealer, &first).is_ok());
    assert_eq!(open(&mut unsealer, &first), Err(NotOpened::Repeated));
    for _ in 0..WINDOW_NUMBERS - 1 {
        sealed(&mut sealer, &data(2));
    }
    let last = sealed(&mut sealer, &data(3));
    assert_eq!(sealer.next_number(), WINDOW_NUMBERS + 2);
    assert!(open(&mut unsealer, &last).is_ok());
    assert_eq!(open(&mut unsealer, &again), Err(NotOpened::Old));
}

/// A sealed packet takes 30 bytes more than the plain segment, less its checks and the field of its parity. What does
/// not fit takes no number. `[O22]`
#[test]
fn what_does_not_fit_takes_no_number() {
    let (mut sealer, mut unsealer) = ends(Algorithm::ChaCha20Poly1305);
    let segment = Segment { fec_words: 3, ..data(1) };
    let mut room = vec![0x55; sealed_bytes(&segment) - 1];
    let (bytes, least) = (room.len() + 1, room.len());
    let no_room = SealError::Encode(EncodeError::NoRoom { bytes, room: least });
    assert_eq!(sealer.seal_into(&segment, &Outside::default(), &mut room), Err(no_room));
    assert!(room.iter().all(|&byte| byte == 0x55));
    let long = Segment { payload: vec![0; 65_468], ..Segment::default() };
    let mut room = vec![0; 70_000];
    assert!(matches!(
        sealer.seal_into(&long, &Outside::default(), &mut room),
        Err(SealError::Encode(EncodeError::TooLong(_)))
    ));
    assert_eq!(sealer.next_number(), 0);
    let longest = Segment { payload: vec![7; 65_467], ..Segment::default() };
    let bytes = sealer.seal_into(&longest, &Outside::default(), &mut room).unwrap();
    assert_eq!((bytes, sealer.next_number()), (65_515, 1));
    assert_eq!(open(&mut unsealer, &room[..bytes]).unwrap().segment.payload, longest.payload);
}

/// A receiver that has missed up to four changes of the key follows; from the key before, only earlier numbers open,
/// and not for ever. `[O12]`, `[O13]`
#[test]
fn keys_change_under_loss() {
    for missed in 1..=5 {
        let (mut sealer, mut unsealer) = ends(Algorithm::Aes256Gcm);
        open(&mut unsealer, &sealed(&mut sealer, &data(0))).unwrap();
        let oldest = sealed(&mut sealer, &data(1));
        for _ in 1..missed {
            sealer.change_key();
        }
        let earlier = [(); 3].map(|()| sealed(&mut sealer, &data(1)));
        sealer.change_key();
        let packet = sealed(&mut sealer, &data(2));
        if missed == 5 {
            assert_eq!(open(&mut unsealer, &packet), Err(NotOpened::Phase));
            continue;
        }
        assert!(open(&mut unsealer, &packet).is_ok(), "{missed} changes");
        assert_eq!(unsealer.key_phase(), KeyPhase::new(missed));
        assert!(open(&mut unsealer, &earlier[0]).is_ok(), "from the key before");
        if missed > 1 {
            assert_eq!(open(&mut unsealer, &oldest), Err(NotOpened::Phase));
        }
        assert!(open(&mut unsealer, &sealed(&mut sealer, &data(3))).is_ok());
        let too_late = unsealer.open::<Bytes>(read(&earlier[1]).unwrap(), KEEP);
        assert_eq!(too_late, Err(NotOpened::Phase), "the key before is forgotten");
        assert_eq!(open(&mut unsealer, &earlier[2]), Err(NotOpened::Phase), "for good");
    }
}

/// Phases come round after eight changes.
#[test]
fn keys_change_many_times() {
    let (mut sealer, mut unsealer) = ends(Algorithm::ChaCha20Poly1305);
    for change in 0..40 {
        assert!(open(&mut unsealer, &sealed(&mut sealer, &data(change))).is_ok());
        sealer.change_key();
    }
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    select(&[Algorithm::ChaCha20Poly1305, Algorithm::Aes256Gcm][..])
}

proptest! {
    /// Any segment arrives as it was, also after as many wrong bytes as the parity corrects. `[O21]`, `[O22]`
    #[test]
    fn segments_survive_sealing(
        segment in aerotp_segments(), algorithm in algorithms(), number in 0..1_u64 << 31,
        wrong in any::<(Index, u8)>(),
    ) {
        let key = Key::test(algorithm);
        let mut unsealer = Unsealer::new(key.clone(), CONNECTION_ID, KEEP);
        let mut sealer = Sealer::starting_at(number, Kind::Sealed, key, KeyPhase::default(), CONNECTION_ID);
        let mut packet = sealed(&mut sealer, &segment);
        let mut plain = Vec::new();
        encode_segment(&segment, &Outside::default(), &mut plain).unwrap();
        let left_out = 2
            + if segment.flags.has(Flags::CRC) { 4 } else { 0 }
            + if segment.fec_words > 0 { 4 } else { 0 };
        prop_assert_eq!(packet.len(), plain.len() + 30 - left_out);

        let behind = packet.len() - OUTER_BYTES;
        let is_wrong = segment.fec_words > 0 && 4 * usize::from(segment.fec_words) >= 2 * behind.div_ceil(255);
        if is_wrong {
            packet[OUTER_BYTES + wrong.0.index(behind)] ^= wrong.1;
        }
        let arrived = open(&mut unsealer, &packet).unwrap();
        let integrity = match (is_wrong, wrong.1.count_ones() as u16) {
            (true, bits @ 1..) => Integrity::Mended { bits },
            _ => Integrity::Intact,
        };
        prop_assert_eq!(arrived.integrity, integrity);
        prop_assert_eq!(arrived.segment.wire_bytes() as usize, packet.len());
        let flags = Flags(segment.flags.0 & !Flags::CRC.0);
        let header_bytes = arrived.segment.header_bytes;
        prop_assert_eq!(arrived.segment, Segment { flags, header_bytes, ..segment });
    }

    /// Over a network that loses, repeats and reorders, with keys that change: each packet opens at most once, and once
    /// unless its key is too old or too new.
    #[test]
    fn each_packet_opens_once_over_a_bad_network(
        changes in vec(0_u8..8, 60), order in vec((0_usize..12, 0_u8..8), 60), algorithm in algorithms(),
    ) {
        let (mut sealer, mut unsealer) = ends(algorithm);
        let (mut arrivals, mut phase) = (Vec::new(), 0_i32);
        for (at, (change, (late, fate))) in changes.into_iter().zip(order).enumerate() {
            if change == 0 {
                sealer.change_key();
                phase += 1;
            }
            let packet = (at, phase, sealed(&mut sealer, &data(at as u32)));
            match fate {
                0 => {}
                1 => arrivals.extend([(at + late, packet.clone()), (at + 5, packet)]),
                _ => arrivals.push((at + late, packet)),
            }
        }
        arrivals.sort_by_key(|&(when, (at, ..))| (when, at));
        let (mut opened, mut present) = ([false; 60], 0);
        for (_, (at, phase, packet)) in arrivals {
            let may_open = !opened[at] && (-1..=4).contains(&(phase - present));
            let arrived = open(&mut unsealer, &packet);
            prop_assert_eq!(arrived.is_ok(), may_open, "{}: {:?}", at, arrived);
            if let Ok(arrived) = arrived {
                prop_assert_eq!(arrived.segment.sequence as usize, at);
                opened[at] = true;
                present = present.max(phase);
                prop_assert_eq!(unsealer.key_phase(), KeyPhase::new(present as u8));
            }
        }
    }
}

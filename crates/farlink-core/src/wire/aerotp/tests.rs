use super::*;
use crate::payload::Virtual;
use crate::protocol::aerotp::{Mack, Mode, Repair};
use farlink_fec::crc::crc_16_ibm_3740;

type Bytes = Vec<u8>;

fn encoded<D: WirePayload>(segment: &Segment<D>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_segment(segment, &Outside { source: 0x0102, destination: 0x0304, ecn: Ecn::Capable0 }, &mut bytes).unwrap();
    bytes
}

fn decoded(bytes: &[u8]) -> Result<Arrived<Bytes>, Refusal> {
    decode_segment(&bytes::Bytes::copy_from_slice(bytes))
}

fn refusal(bytes: &[u8]) -> Refusal {
    decoded(bytes).unwrap_err()
}

/// The bytes of a segment with a changed header and a recomputed header check.
fn altered(segment: &Segment<Bytes>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let bytes = encoded(segment);
    let (header, behind) = bytes.split_at(header::bytes(segment, Form::Plain));
    let mut header = header[..header.len() - 2].to_vec();
    change(&mut header);
    let check = crc_16_ibm_3740(&header);
    [&header, &check.to_be_bytes()[..], behind].concat()
}

#[test]
fn the_header_matches_the_specification() {
    let segment = Segment {
        tag: 0xabcd,
        mode: Mode::QuasiReliable,
        class: 5,
        flags: Flags::ASYN.with(Flags::AFIN),
        fec_words: 2,
        sequence: 0x1112_1314,
        timestamp: 0x2122_2324,
        opening: 0x3132_3334,
        repair: Some(Repair { start: 1, bytes: 2, symbol_bytes: 3, symbols: 4, index: 5 }),
        payload: b"xyz".to_vec(),
        ..Segment::default()
    };
    let bytes = encoded(&segment);
    let header = [
        &[1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24][..],
        &[0b0100_1010, 0x80 | 0x40 | 0x08 | 0x04 | 0x02 | 0x01, 0, 3],
        &[0x31, 0x32, 0x33, 0x34],
        &[0, 2, 0, 0],
        &[0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 0, 0, 5],
        &[1, 1, 1, 5],
        &[0xab, 0xcd],
    ]
    .concat();
    assert_eq!(bytes[..header.len()], header);
    assert_eq!(bytes[header.len()..header.len() + 2], crc_16_ibm_3740(&header).to_be_bytes());
    let behind = &bytes[header.len() + 2..];
    assert_eq!((behind.len(), &behind[..3]), (3 + 8 + 4, &b"xyz"[..]));
    assert_eq!(behind[11..], crc_32_iso_hdlc(b"xyz").to_be_bytes());
}

#[test]
fn the_list_of_a_mack_matches_the_specification() {
    let mut mack = Mack { echo: 1, held: 2, window: 3, marked: 4, damaged: 5, is_to_end: true, ..Mack::default() };
    mack.edges.push(0x10, 0x20);
    mack.edges.push(0x30, 0x40);
    let bytes = encoded(&Segment::<Bytes> { flags: Flags::CRC, mack: Some(Box::new(mack)), ..Segment::default() });
    assert_eq!((bytes[13], &bytes[14..16]), (0x20 | 0x02, &[0, 32][..]));
    let list = [1, 0x4000_0002, 3, 0x0004_0005, 0x10, 0x20, 0x30, 0x40_u32].map(u32::to_be_bytes).concat();
    assert_eq!(bytes[20..52], list);
    assert_eq!(bytes[52..], crc_32_iso_hdlc(&list).to_be_bytes());
    mack.held = u32::MAX;
    let long = encoded(&Segment::<Bytes> { mack: Some(Box::new(mack)), ..Segment::default() });
    assert_eq!(long[24..28], 0x4fff_ffff_u32.to_be_bytes(), "as long as there are bits for");
}

#[test]
fn the_short_list_of_a_mack_matches_the_specification() {
    let mut mack = Mack { echo: 1, held: 2, window: 3, is_from_start: true, has_distances: true, ..Mack::default() };
    let encoded = |mack| {
        encoded(&Segment::<Bytes> {
            flags: Flags::CRC,
            sequence: 0x100,
            mack: Some(Box::new(mack)),
            ..Segment::default()
        })
    };
    assert_eq!(encoded(mack)[14..16], [0, 16], "no unit without blocks");
    mack.edges.push(0x100 + 1460, 0x100 + 3 * 1460);
    mack.edges.push(0x100 + 4 * 1460, 0x100 + 104 * 1460);
    mack.edges.push(0x100 + 104 * 1460, 0x100 + 104 * 1460);
    let bytes = encoded(mack);
    let fields = [1, 0x9000_0002, 3, 0_u32].map(u32::to_be_bytes).concat();
    // Unit 1460; then one packet is missing, two are there, one is missing, a hundred are there; and an empty block.
    let list = [&fields[..], &[0x45, 0xb4, 1, 2, 1, 0x40, 100, 0, 0]].concat();
    assert_eq!((&bytes[14..16], &bytes[20..45]), (&[0, 25][..], &list[..]));
    assert_eq!(bytes[45..], crc_32_iso_hdlc(&list).to_be_bytes());
    assert_eq!(decoded(&bytes).unwrap().segment.mack.as_deref(), Some(&mack));
    mack.edges.push(mack.edges.numbers()[5], 0xfd);
    let bytes = encoded(mack);
    assert_eq!(bytes[20 + 16], 1, "one short packet: the unit is a byte");
    assert_eq!(decoded(&bytes).unwrap().segment.mack.as_deref(), Some(&mack), "distances up to 2^32 - 1");
}

/// Figure 2 with its trailer: the field, the list, its parity, its check; and up to two wrong bytes are corrected.
#[test]
fn the_parity_of_a_mack_follows_its_list() {
    let mut mack = Mack { echo: 1, window: 3, ..Mack::default() };
    mack.edges.push(0x10, 0x20);
    let segment = Segment::<Bytes> { fec_words: 1, mack: Some(Box::new(mack)), ..Segment::default() };
    let bytes = encoded(&segment);
    assert_eq!((bytes[13], &bytes[14..20]), (0x20 | 0x08 | 0x02, &[0, 24, 0, 1, 0, 0][..]));
    assert_eq!(bytes.len(), 24 + 24 + 4 + 4);
    for (wrong, integrity) in [
        (&[24][..], Integrity::Mended { bits: 2 }),
        (&[30, 50], Integrity::Mended { bits: 4 }),
        (&[30, 40, 55], Integrity::PayloadDamaged),
    ] {
        let mut damaged = bytes.clone();
        for &at in wrong {
            damaged[at] ^= 0x11;
        }
        let arrived = decoded(&damaged).unwrap();
        assert_eq!(arrived.integrity, integrity, "{wrong:?}");
        assert!(integrity == Integrity::PayloadDamaged || arrived.segment.mack.as_deref() == Some(&mack));
    }
}

#[test]
fn invalid_lists_are_refused() {
    let list = |bytes: usize| Segment { payload: vec![0; bytes], ..Segment::default() };
    let as_mack = |bytes| altered(&list(bytes), |header| header[13] |= Flags::MACK.0);
    for bytes in [0, 12, 17, 20, 16 + 65 * 4, 16 + 66 * 4] {
        assert_eq!(refusal(&as_mack(bytes)), Refusal::Field, "{bytes} bytes");
    }
    for bytes in [16, 24, 16 + 64 * 4] {
        assert!(decoded(&as_mack(bytes)).unwrap().segment.mack.is_some(), "{bytes} bytes");
    }
    let short = |list: &[u8]| {
        let payload = [&[0, 0, 0, 0, 0x10][..], &[0; 11], list].concat();
        decoded(&altered(&Segment { payload, ..Segment::default() }, |header| header[13] |= Flags::MACK.0))
    };
    let (longest, too_long) = ([&[1][..], &[0; 64]].concat(), [&[1][..], &[0; 66]].concat());
    let four_gigabytes = [0x84, 0, 0, 0, 0x84, 0, 0, 0, 0];
    for list in [&[1, 2][..], &[1, 2, 3, 4], &[0x41], &[1, 0xc0, 0, 0, 0, 0, 0, 0], &too_long, &four_gigabytes] {
        assert_eq!(short(list).unwrap_err(), Refusal::Field, "{list:?}");
    }
    for list in [&[][..], &[1], &[1, 2, 3], &[0, 2, 3], &[1, 0x40, 2, 0x80, 0, 0, 3], &longest] {
        assert!(short(list).is_ok(), "{list:?}");
    }
}

#[test]
fn undecodable_segments_are_refused_with_the_reason() {
    let plain = Segment { flags: Flags::CRC, payload: b"abc".to_vec(), ..Segment::default() };
    assert!(decoded(&altered(&plain, |_| {})).is_ok());
    for version in [0, 2, 3] {
        let other = altered(&plain, |header| header[12] = version << 6);
        assert_eq!(refusal(&other), Refusal::Version);
    }
    assert_eq!(refusal(&altered(&plain, |header| header[12] |= 0x20)), Refusal::Sealed);
    for mode in 5..8 {
        assert_eq!(refusal(&altered(&plain, |header| header[12] |= mode << 2)), Refusal::Field, "mode {mode}");
    }
    assert_eq!(refusal(&altered(&plain, |header| header[15] = 2)), Refusal::Length);
    let bytes = encoded(&plain);
    let cut: std::collections::BTreeSet<Refusal> = (0..bytes.len()).map(|n| refusal(&bytes[..n])).collect();
    assert_eq!(cut.into_iter().collect::<Vec<_>>(), [Refusal::Length]);
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(refusal(&longer), Refusal::Length);
    let wrong = [&bytes[..19], &[!bytes[19]], &bytes[20..]].concat();
    assert_eq!(refusal(&wrong), Refusal::Check);

    let coded = Segment { fec_words: 1, ..plain };
    for words in [0, 257, u16::MAX] {
        let other = altered(&coded, |header| header[16..18].copy_from_slice(&words.to_be_bytes()));
        let why = refusal(&other);
        assert_eq!(why, Refusal::Field, "{words} words");
    }
    let unchecked = Segment { payload: vec![0; 7], ..coded.clone() };
    let unchecked = altered(&unchecked, |header| header[13] &= !Flags::CRC.0);
    assert_eq!(refusal(&unchecked[..unchecked.len() - 4]), Refusal::Field, "parity without a check");
}

#[test]
fn unknown_fields_are_skipped_unless_marked_critical() {
    let segment = Segment { class: 3, payload: b"abc".to_vec(), ..Segment::default() };
    let with = |fields: &[u8]| {
        altered(&segment, |header| {
            let mut all = vec![(1 + fields.len()).div_ceil(4) as u8];
            all.extend(fields);
            all.resize(all.len().next_multiple_of(4), 0);
            header.splice(16..20, all);
        })
    };
    let class = |fields: &[u8]| decoded(&with(fields)).map(|arrived| arrived.segment.class);
    assert_eq!(class(&[1, 1, 3]), Ok(3));
    assert_eq!(class(&[0x42, 3, 9, 9, 9, 1, 1, 6]), Ok(6), "an unknown field, then the class");
    assert_eq!(class(&[0, 0, 0, 0, 1, 1, 2]), Ok(2), "padding");
    assert_eq!(class(&[0x7f, 0]), Ok(0));
    assert_eq!(class(&[]), Ok(0));
    assert_eq!(class(&[0xc2, 3, 9, 9, 9, 1, 1, 6]), Err(Refusal::UnknownField));
    for malformed in [&[1, 1, 8][..], &[1, 2, 0, 1], &[1, 0, 1], &[9, 9, 9], &[0, 0, 9]] {
        assert_eq!(class(malformed), Err(Refusal::Field), "{malformed:?}");
    }
    assert_eq!(refusal(&altered(&segment, |header| header[16] = 0)), Refusal::Field, "no words");
    assert_eq!(refusal(&altered(&segment, |header| header[16] = 99)), Refusal::Length);
}

#[test]
fn extension_fields_share_words() {
    let forward = Segment::<Bytes> { forward: Some(0x0102_0304), ..Segment::default() };
    let bytes = encoded(&forward);
    assert_eq!((bytes.len(), bytes[13]), (28, Flags::EXTENDED.0));
    assert_eq!(bytes[16..24], [2, 2, 4, 1, 2, 3, 4, 0], "two words, with a byte of padding");
    let both = Segment { class: 7, ..forward.clone() };
    assert_eq!(encoded(&both)[16..28], [3, 1, 1, 7, 2, 4, 1, 2, 3, 4, 0, 0]);
    let mack = Segment { mack: Some(Box::default()), forward: None, skipped: Some(5), ..forward.clone() };
    assert_eq!(encoded(&mack)[16..24], [2, 3, 4, 0, 0, 0, 5, 0]);
    let overtaken = Segment { overtaken_by: Some(0x0102_0304), ..mack.clone() };
    assert_eq!(encoded(&overtaken)[16..32], [4, 3, 4, 0, 0, 0, 5, 4, 4, 1, 2, 3, 4, 0, 0, 0]);
    assert_eq!(decoded(&encoded(&overtaken)).unwrap().segment.overtaken_by, Some(0x0102_0304));
    for wrong in
        [[2, 2, 3, 1, 2, 3, 0, 0], [2, 3, 5, 1, 2, 3, 4, 5], [2, 2, 0, 0, 0, 0, 0, 0], [2, 2, 6, 1, 2, 3, 4, 5]]
    {
        let bytes = altered(&forward, |header| header[16..24].copy_from_slice(&wrong));
        assert_eq!(refusal(&bytes), Refusal::Field, "{wrong:?}");
    }
    let twice = altered(&both, |header| header[16..28].copy_from_slice(&[3, 2, 4, 0, 0, 0, 9, 2, 4, 0, 0, 8]));
    assert_eq!(refusal(&twice), Refusal::Field, "the second one is cut off");
}

#[test]
fn a_damaged_payload_leaves_the_header_usable() {
    let segment = Segment { flags: Flags::CRC, sequence: 9, payload: b"abc".to_vec(), ..Segment::default() };
    let mut bytes = encoded(&segment);
    bytes[20] ^= 1;
    let arrived = decoded(&bytes).unwrap();
    assert_eq!((arrived.integrity, arrived.segment.sequence), (Integrity::PayloadDamaged, 9));
    let mut unchecked = encoded(&Segment { flags: Flags::default(), ..segment });
    unchecked[20] ^= 1;
    let arrived = decoded(&unchecked).unwrap();
    assert_eq!(
        (arrived.integrity, &arrived.segment.payload[..]),
        (Integrity::Intact, &b"`bc"[..]),
        "the damage is not detected"
    );
}

/// x times y modulo x^8 + x^4 + x^3 + x^2 + 1, bit by bit, independent of the code's tables.
fn multiply(x: u8, y: u8) -> u8 {
    (0..8).rev().fold(0, |product: u8, bit| {
        let shifted = product << 1 ^ if product & 0x80 != 0 { 0x1d } else { 0 };
        shifted ^ if y >> bit & 1 == 1 { x } else { 0 }
    })
}

/// The formula of the specification, computed without the code's tables: every codeword is zero at 1, 2, 4, ...
#[test]
fn parity_makes_multiples_of_the_generator() {
    for (payload, words) in [(0, 1), (3, 1), (100, 5), (251, 1), (700, 20), (1072, 96), (436, 256), (5000, 256)] {
        let content: Bytes = (0..payload).map(|i| (i * 7 + i / 256) as u8).collect();
        let bytes = encoded(&Segment { fec_words: words, payload: content, ..Segment::default() });
        let behind = &bytes[24..];
        let fec = Fec::new(payload as u32, words);
        let (parity, mut rest) = (fec.parity_of_each(), 0);
        let mut codewords = vec![vec![]; fec.codewords() as usize];
        // Data first, parity last. The check follows the parity on the wire and is data.
        let data = (0..payload).chain(payload + 4 * usize::from(words)..behind.len());
        for place in data.chain(payload..payload + 4 * usize::from(words)) {
            match fec.codeword_of(place as u32) {
                Some(codeword) => codewords[codeword as usize].push(behind[place]),
                None => rest += u32::from(behind[place]),
            }
        }
        assert_eq!(rest, 0, "bits outside the codewords are zero");
        let mut root = 1;
        for _ in 0..parity {
            for codeword in &codewords {
                assert_eq!(
                    codeword.iter().fold(0, |sum, &symbol| multiply(sum, root) ^ symbol),
                    0,
                    "{payload} {words}"
                );
            }
            root = multiply(root, 2);
        }
    }
}

#[test]
fn wrong_bytes_are_corrected_up_to_the_limit_of_the_code() {
    let payload: Bytes = (0..1072).map(|i| (i % 251) as u8).collect();
    let segment = Segment { fec_words: 96, payload, ..Segment::default() };
    let bytes = encoded(&segment);
    let fec = Fec::new(1072, 96);
    assert_eq!((fec.codewords(), fec.mends_of_each()), (6, 32));
    let with_wrong = |count: usize| {
        let mut damaged = bytes.clone();
        for symbol in 0..count {
            damaged[24 + 6 * symbol + 2] ^= 0x81;
        }
        decoded(&damaged).unwrap()
    };
    let mended = with_wrong(32);
    assert_eq!((mended.integrity, &mended.segment.payload), (Integrity::Mended { bits: 64 }, &segment.payload));
    assert_eq!(with_wrong(33).integrity, Integrity::PayloadDamaged);
    assert_eq!(with_wrong(0).integrity, Integrity::Intact);
}

#[test]
fn segments_too_long_for_ipv4_are_refused_and_write_nothing() {
    let segment = Segment { flags: Flags::CRC, payload: Virtual(65_492), ..Segment::default() };
    let mut bytes = vec![7];
    assert_eq!(segment.encode(&Envelope::simulated(0), &mut bytes), Err(TooLong { bytes: 65_536 }));
    assert!(encode_segment(&segment, &Outside::default(), &mut bytes).is_err());
    assert_eq!(bytes, [7]);
    let shorter = Segment { payload: Virtual(65_491), ..segment };
    assert!(shorter.encode(&Envelope::simulated(0), &mut bytes).is_ok());
    assert_eq!(bytes.len(), 65_536);
}

#[test]
fn a_capture_stores_macks_whole_and_only_headers_of_data() {
    let envelope = Envelope::simulated(0);
    let headers = |segment: &Segment<Virtual>| {
        let mut bytes = Vec::new();
        segment.encode_headers(&envelope, &mut bytes);
        bytes
    };
    let mack = Segment { flags: Flags::CRC, mack: Some(Box::default()), ..Segment::default() };
    assert_eq!(headers(&mack).len(), 20 + 20 + 16 + 4);
    let data = Segment { fec_words: 1, payload: Virtual(100), ..Segment::default() };
    let bytes = headers(&data);
    assert_eq!((bytes.len(), u16::from_be_bytes([bytes[2], bytes[3]])), (20 + 24, 20 + 24 + 100 + 4 + 4));
}

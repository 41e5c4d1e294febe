//! Properties of the wire codec: round trips, agreement with [`Packet::inspect`] on damage, and robustness against
//! random bytes.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::SocketAddrV4;

use bytes::Bytes;
use farlink_core::PacketCode;
use farlink_core::endpoint::{Damage, Ecn, Integrity, Packet};
use farlink_core::payload::Virtual;
use farlink_core::protocol::aerotp::{self, Mack, Mode, Repair};
use farlink_core::protocol::arq::{self, Blocks, Frame};
use farlink_core::protocol::stp::{Kind, Pdu, Range, Report};
use farlink_core::protocol::tcp::{
    Flags, MOST_SNACK_BYTES, SackBlock, SackBlocks, ScpsCapabilities, Segment, SnackReport, SynOptions, Timestamps,
};
use farlink_core::protocol::udp::Datagram;
use farlink_core::wire::aerotp::{Outside, decode_segment, encode_segment, encode_segment_into};
use farlink_core::wire::{Codec, Decoded, EncodeError, Envelope};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::pair::{WithoutContent, outer_packets};

/// Damage within this many consecutive bits never escapes the Internet checksum.
const CERTAIN_WINDOW_BITS: u32 = 15;

fn envelopes() -> impl Strategy<Value = Envelope> {
    let ecn = prop_oneof![Just(Ecn::NotCapable), Just(Ecn::Capable0), Just(Ecn::Capable1), Just(Ecn::Congestion)];
    (any::<u32>(), any::<u16>(), any::<u32>(), any::<u16>(), ecn).prop_map(|(from, port, to, service, ecn)| Envelope {
        source: SocketAddrV4::new(from.into(), port),
        destination: SocketAddrV4::new(to.into(), service),
        ecn,
    })
}

/// Any segment with at most as many SACK blocks as fit, whose `header_bytes` are those that its headers have on the wire.
fn segments() -> impl Strategy<Value = Segment<Vec<u8>>> {
    let fields = (any::<u32>(), any::<u32>(), any::<u8>(), any::<u16>());
    let timestamps =
        proptest::option::of((any::<u32>(), any::<u32>()).prop_map(|(value, echo)| Timestamps { value, echo }));
    let scps = (any::<u8>(), any::<u8>()).prop_map(|(bits, connection_id)| ScpsCapabilities { bits, connection_id });
    let syn = (any::<u16>(), proptest::option::of(0_u8..=14), any::<bool>(), proptest::option::of(scps))
        .prop_map(|(mss, window_shift, sack_permitted, scps)| SynOptions { mss, window_shift, sack_permitted, scps });
    let vector = vec(any::<u8>(), 0..=MOST_SNACK_BYTES);
    let snack = (any::<u16>(), any::<u16>(), vector).prop_map(|(offset, size, vector)| {
        let mut report = SnackReport::new(offset, size);
        report.set_vector(&vector);
        report
    });
    let scps = (proptest::option::of(snack), any::<bool>());
    let blocks = vec((any::<u32>(), any::<u32>()), 0..=4);
    (fields, timestamps, syn, scps, blocks, vec(any::<u8>(), 0..200)).prop_map(
        |((seq, ack, flags, window), timestamps, syn, (snack, corruption_experienced), blocks, payload)| {
            let flags = Flags(flags);
            let syn = if flags.has(Flags::SYN) { syn } else { SynOptions::default() };
            let mut option_bytes = 4 * u16::from(syn.mss != 0)
                + 4 * u16::from(syn.sack_permitted)
                + 4 * u16::from(syn.window_shift.is_some())
                + 4 * u16::from(syn.scps.is_some())
                + 12 * u16::from(timestamps.is_some())
                + 4 * u16::from(corruption_experienced);
            let snack = snack.filter(|snack| option_bytes + snack.option_bytes().next_multiple_of(4) <= 40);
            option_bytes += snack.map_or(0, |snack| snack.option_bytes().next_multiple_of(4));
            let mut sack = SackBlocks::default();
            for (left, right) in blocks {
                let block_bytes = if sack.is_empty() { 12 } else { 8 };
                if option_bytes + block_bytes <= 40 {
                    option_bytes += block_bytes;
                    sack.push(SackBlock { left, right });
                }
            }
            let header_bytes = 40 + option_bytes;
            Segment {
                seq,
                ack,
                flags,
                header_bytes,
                window,
                timestamps,
                syn,
                sack,
                snack,
                corruption_experienced,
                payload,
            }
        },
    )
}

fn datagrams() -> impl Strategy<Value = Datagram<Vec<u8>>> {
    vec(any::<u8>(), 0..200).prop_map(|payload| Datagram { header_bytes: 28, number: None, payload })
}

/// Any frame with any number of blocks, whose `header_bytes` are those that its headers have on the wire.
fn frames() -> impl Strategy<Value = Frame<Vec<u8>>> {
    let words = any::<[u32; 7]>();
    let shorts = (any::<u16>(), any::<u16>(), any::<u8>(), 0_u16..40);
    (words, shorts, vec(any::<(u32, u32)>(), 0..12), vec(any::<u8>(), 0..200)).prop_map(
        |(words, (flags, nak_count, increment, parity_bytes), list, payload)| {
            let [number, position, skipped_bytes, ack, nak, timestamp, echo] = words;
            let flags = arq::Flags(flags);
            let mut blocks = Blocks::default();
            for &(left, right) in &list {
                blocks.push(arq::Block { left, right });
            }
            let (has_time, has_echo) = (flags.has(arq::Flags::TIMESTAMP), flags.has(arq::Flags::ECHO));
            let options = 4 * u16::from(has_time) + 4 * u16::from(has_echo) + 8 * list.len() as u16;
            Frame {
                flags,
                number,
                position,
                skipped_bytes,
                ack,
                nak,
                nak_count,
                increment,
                timestamp: if has_time { timestamp } else { 0 },
                echo: if has_echo { echo } else { 0 },
                header_bytes: 20 + 41 + options + 2 * u16::from(options > 0),
                parity_bytes,
                blocks,
                payload,
            }
        },
    )
}

/// Any STP packet: the fields that its kind has, and the `header_bytes` that its headers have on the wire.
fn pdus() -> impl Strategy<Value = Pdu<Vec<u8>>> {
    let range = || any::<[u32; 2]>().prop_map(|[from, to]| Range { from, to });
    let fields = (any::<[u32; 4]>(), range(), vec(range(), 0..20), vec(any::<u8>(), 0..200));
    (proptest::sample::select(&Kind::ALL[..]), fields).prop_map(|(kind, (numbers, covers, missing, payload))| {
        let [position, poll, clock, window] = numbers;
        let blank = Pdu { kind, position, ..Pdu::default() };
        match kind {
            Kind::Data => Pdu { header_bytes: 32, payload, ..blank },
            Kind::Begin | Kind::BeginAck => Pdu { header_bytes: 40, window, ..blank },
            Kind::End | Kind::EndAck => Pdu { header_bytes: 40, ..blank },
            Kind::Poll => Pdu { header_bytes: 40, poll, clock, ..blank },
            Kind::Stat if covers.from == covers.to => Pdu { header_bytes: 44, poll, clock, window, ..blank },
            Kind::Stat => {
                let header_bytes = 44 + 8 + 8 * missing.len() as u16;
                Pdu { header_bytes, poll, clock, window, report: Report { covers, missing }, ..blank }
            }
            Kind::Ustat => Pdu { header_bytes: 44, window, report: Report { covers, missing: vec![covers] }, ..blank },
        }
    })
}

/// Any AeroTP segment whose flags are those of its fields, and whose `header_bytes` are those that its headers have on the wire.
pub(crate) fn aerotp_segments() -> impl Strategy<Value = aerotp::Segment<Vec<u8>>> {
    use aerotp::Flags;
    // Anywhere, or some packets of equal length behind each other.
    let blocks = prop_oneof![
        vec(any::<(u32, u32)>(), 0..=32),
        (any::<u32>(), 1_u32..9000, vec((0_u32..3, 0_u32..300), 0..=32)).prop_map(|(mut at, bytes, packets)| {
            let mut next = |packets: u32| {
                at = at.wrapping_add(packets * bytes);
                at
            };
            packets.into_iter().map(|(gap, block)| (next(gap), next(block))).collect()
        }),
    ];
    let mack = (any::<[u32; 3]>(), any::<[u16; 2]>(), any::<[bool; 4]>(), blocks).prop_map(
        |([echo, held, window], [marked, damaged], flags, blocks)| {
            let held = held & 0x0fff_ffff;
            let [is_from_start, is_to_end, counts_symbols, has_distances] = flags;
            let mut mack = Mack {
                echo,
                held,
                window,
                marked,
                damaged,
                is_from_start,
                is_to_end,
                counts_symbols,
                has_distances,
                ..Mack::default()
            };
            blocks.into_iter().for_each(|(start, end)| assert!(mack.edges.push(start, end)));
            mack
        },
    );
    let repair = any::<(u32, u32, u16, u16, u32)>().prop_map(|(start, bytes, symbol_bytes, symbols, index)| Repair {
        start,
        bytes,
        symbol_bytes,
        symbols,
        index,
    });
    let fields = (any::<[u32; 3]>(), any::<u16>(), proptest::sample::select(&Mode::ALL[..]), 0_u8..8, any::<u8>());
    let fec_words = prop_oneof![3 => Just(0), 1 => 1_u16..=256];
    let bodies = prop_oneof![vec(any::<u8>(), 0..200), vec(any::<u8>(), 1000..1500)];
    let numbers = any::<[Option<u32>; 4]>();
    let optional = (proptest::option::of(mack), proptest::option::of(repair), numbers);
    (fields, fec_words, optional, bodies).prop_map(
        |(([sequence, timestamp, opening], tag, mode, class, flags), fec_words, optional, payload)| {
            let (mack, repair, numbers) = optional;
            let [forward, skipped, overtaken_by, mack_bytes_per_s] = numbers;
            // Flags that follow from no other field.
            let free = Flags::ASYN.with(Flags::AFIN).with(Flags::RESET).with(Flags::CRC);
            let mut flags = Flags(flags & free.0);
            let is_opening = flags.has(Flags::ASYN);
            // One byte holds the total length; each field has a type and a length.
            let values: u16 = std::iter::once((class > 0, 1))
                .chain(numbers.map(|number| (number.is_some(), 4)))
                .map(|(is_there, bytes)| if is_there { 2 + bytes } else { 0 })
                .sum();
            let extended_bytes = if values == 0 { 0 } else { (1 + values).next_multiple_of(4) };
            let optional = [
                // `[L12]`: without a check, damage may leave no list, of which the simulator knows nothing.
                (mack.is_some(), Flags::MACK.with(Flags::CRC), 0),
                (repair.is_some(), Flags::REPAIR, 16),
                (fec_words > 0, Flags::FEC.with(Flags::CRC), 4),
                (extended_bytes > 0, Flags::EXTENDED, extended_bytes),
                (is_opening, Flags::ASYN, 4),
            ];
            let mut header_bytes = 40;
            for (_, flag, bytes) in optional.into_iter().filter(|(is_there, _, _)| *is_there) {
                flags = flags.with(flag);
                header_bytes += bytes;
            }
            let opening = if is_opening { opening } else { 0 };
            let payload = if mack.is_some() { Vec::new() } else { payload };
            aerotp::Segment {
                tag,
                mode,
                class,
                flags,
                header_bytes,
                fec_words,
                sequence,
                timestamp,
                opening,
                mack: mack.map(Box::new),
                repair,
                forward,
                skipped,
                overtaken_by,
                mack_bytes_per_s,
                payload,
            }
        },
    )
}

/// The start of a burst of damage, and the wrong bits within its window.
fn bursts() -> impl Strategy<Value = (Index, u32)> {
    (any::<Index>(), 1_u32..1 << CERTAIN_WINDOW_BITS)
}

fn decode<P: Codec>(bytes: &[u8]) -> Option<Decoded<P>> {
    P::decode(Bytes::copy_from_slice(bytes))
}

fn encoded<P: Codec>(packet: &P, envelope: &Envelope) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.encode(envelope, &mut bytes).expect("short enough for IPv4");
    bytes
}

/// Result of decoding the packet after the given bits were flipped.
fn decoded_integrity<P: Codec>(mut bytes: Vec<u8>, wrong_bits: &[u32]) -> Option<Integrity> {
    for &bit in wrong_bits {
        bytes[bit as usize / 8] ^= 0x80 >> (bit % 8);
    }
    decode::<P>(&bytes).map(|decoded| decoded.integrity)
}

fn check_round_trip<P: Codec + Debug + PartialEq>(packet: P, envelope: Envelope) -> Result<(), TestCaseError> {
    let mut bytes = encoded(&packet, &envelope);
    prop_assert_eq!(bytes.len(), packet.wire_bytes() as usize);
    check_encode_into(&packet, &envelope, &bytes)?;
    // Padding that a network with a minimum frame length appends is not part of the packet.
    bytes.extend([0xaa; 7]);
    prop_assert_eq!(decode::<P>(&bytes), Some(Decoded { packet, envelope, integrity: Integrity::Intact }));
    Ok(())
}

/// Encoding into a buffer with other bytes gives the same as appending to a vector; a buffer that is too short stays
/// unchanged.
fn check_encode_into<P: Codec>(packet: &P, envelope: &Envelope, expected: &[u8]) -> Result<(), TestCaseError> {
    let mut buffer = vec![0x55; expected.len() + 9];
    prop_assert_eq!(packet.encode_into(envelope, &mut buffer), Ok(expected.len()));
    prop_assert_eq!(&buffer[..expected.len()], expected);
    prop_assert_eq!(&buffer[expected.len()..], &[0x55; 9]);
    let (bytes, room) = (expected.len(), expected.len() - 1);
    let mut short = vec![0x55; room];
    prop_assert_eq!(packet.encode_into(envelope, &mut short), Err(EncodeError::NoRoom { bytes, room }));
    prop_assert!(short.iter().all(|&byte| byte == 0x55));
    Ok(())
}

fn check_burst<P: Codec>(packet: &P, envelope: &Envelope, burst: (Index, u32)) -> Result<(), TestCaseError> {
    let bytes = encoded(packet, envelope);
    let bits = bytes.len() as u32 * 8;
    let start = burst.0.index(bits as usize) as u32;
    let in_window = (0..CERTAIN_WINDOW_BITS).filter(|i| burst.1 >> i & 1 == 1);
    let wrong_bits: Vec<u32> = in_window.map(|i| start + i).filter(|&bit| bit < bits).collect();

    let inspected = packet.inspect(&Damage { bits: &wrong_bits, code: PacketCode::None });
    // Only the simulated channel knows the number of wrong symbols.
    let inspected = inspected.map(|integrity| match integrity {
        Integrity::PayloadErrors { .. } => Integrity::PayloadDamaged,
        other => other,
    });
    prop_assert_eq!(decoded_integrity::<P>(bytes, &wrong_bits), inspected, "{:?}", wrong_bits);
    Ok(())
}

/// After the header any bits may be wrong.
fn check_scattered(segment: &aerotp::Segment<Vec<u8>>, places: &[Index]) -> Result<(), TestCaseError> {
    let mut bytes = encoded(segment, &Envelope::simulated(0));
    let header_bits = usize::from(segment.header_bytes) * 8;
    let behind = bytes.len() * 8 - header_bits;
    prop_assume!(behind > 0);
    let wrong_bits: BTreeSet<u32> = places.iter().map(|place| (header_bits + place.index(behind)) as u32).collect();
    let wrong_bits: Vec<u32> = wrong_bits.into_iter().collect();
    let inspected = segment.inspect(&Damage { bits: &wrong_bits, code: PacketCode::None });
    for &bit in &wrong_bits {
        bytes[bit as usize / 8] ^= 0x80 >> (bit % 8);
    }
    let decoded = decode::<aerotp::Segment<Vec<u8>>>(&bytes).expect("the header is right");
    prop_assert_eq!(Some(decoded.integrity), inspected, "{:?}", wrong_bits);
    let is_right = !matches!(decoded.integrity, Integrity::PayloadDamaged);
    if is_right && segment.flags.has(aerotp::Flags::CRC) {
        prop_assert_eq!(&decoded.packet, segment, "an intact packet is unchanged");
    }
    Ok(())
}

/// Headers written for a payload of zeros equal those of the whole packet.
fn check_headers<P: Codec, Z: Codec>(without_content: &P, zeros: &Z, envelope: &Envelope) -> Result<(), TestCaseError> {
    let whole = encoded(zeros, envelope);
    prop_assert_eq!(&encoded(without_content, envelope), &whole);
    let mut headers = Vec::new();
    without_content.encode_headers(envelope, &mut headers);
    prop_assert_eq!(&headers, &whole[..headers.len()]);
    prop_assert_eq!(headers.len() + without_content.payload_bytes() as usize, whole.len());
    Ok(())
}

proptest! {
    #[test]
    fn segments_survive_the_round_trip(segment in segments(), envelope in envelopes()) {
        check_round_trip(segment, envelope)?;
    }

    #[test]
    fn datagrams_survive_the_round_trip(datagram in datagrams(), envelope in envelopes()) {
        check_round_trip(datagram, envelope)?;
    }

    #[test]
    fn frames_survive_the_round_trip(frame in frames(), envelope in envelopes()) {
        check_round_trip(frame, envelope)?;
    }

    #[test]
    fn lengths_of_frames_stand_for_zeros(mut frame in frames(), envelope in envelopes()) {
        frame.payload.fill(0);
        let virtual_frame = frame.without_content();
        let mut headers = Vec::new();
        virtual_frame.encode_headers(&envelope, &mut headers);
        let whole = encoded(&frame, &envelope);
        prop_assert_eq!(&encoded(&virtual_frame, &envelope), &whole);
        prop_assert_eq!(&headers, &whole[..headers.len()]);
    }

    #[test]
    fn a_burst_affects_a_frame_equally_on_the_wire_and_in_the_simulator(
        frame in frames(), envelope in envelopes(), burst in bursts(),
    ) {
        check_burst(&frame, &envelope, burst)?;
    }

    #[test]
    fn stp_packets_survive_the_round_trip(pdu in pdus(), envelope in envelopes()) {
        check_round_trip(pdu, envelope)?;
    }

    #[test]
    fn stp_lengths_stand_for_zeros(mut pdu in pdus(), envelope in envelopes()) {
        pdu.payload.fill(0);
        check_headers(&pdu.without_content(), &pdu, &envelope)?;
    }

    #[test]
    fn a_burst_loses_an_stp_packet_on_the_wire_and_in_the_simulator(
        pdu in pdus(), envelope in envelopes(), burst in bursts(),
    ) {
        check_burst(&pdu, &envelope, burst)?;
    }

    #[test]
    fn aerotp_segments_survive_the_round_trip(segment in aerotp_segments(), envelope in envelopes()) {
        let outside = Outside { source: 1, destination: 2, ecn: envelope.ecn };
        let (mut vector, mut buffer) = (Vec::new(), [0x55; 70_000]);
        encode_segment(&segment, &outside, &mut vector).expect("it fits into IPv4");
        let bytes = encode_segment_into(&segment, &outside, &mut buffer).expect("the buffer is long enough");
        prop_assert_eq!(&buffer[..bytes], &vector);
        let refused = EncodeError::NoRoom { bytes, room: bytes - 1 };
        prop_assert_eq!(encode_segment_into(&segment, &outside, &mut buffer[..bytes - 1]), Err(refused));
        check_round_trip(segment, envelope)?;
    }

    #[test]
    fn aerotp_lengths_stand_for_zeros(mut segment in aerotp_segments(), envelope in envelopes()) {
        segment.payload.fill(0);
        let whole = encoded(&segment, &envelope);
        let lengths = segment.without_content();
        prop_assert_eq!(&encoded(&lengths, &envelope), &whole);
        let mut headers = Vec::new();
        lengths.encode_headers(&envelope, &mut headers);
        prop_assert_eq!(&headers, &whole[..headers.len()]);
        let is_whole = headers.len() == whole.len();
        prop_assert!(is_whole || segment.mack.is_none() && headers.len() == usize::from(segment.header_bytes));
    }

    #[test]
    fn a_burst_affects_an_aerotp_segment_equally_on_the_wire_and_in_the_simulator(
        segment in aerotp_segments(), envelope in envelopes(), burst in bursts(),
    ) {
        check_burst(&segment, &envelope, burst)?;
    }

    /// This includes parity: the decoder finds as many errors as the simulator counts.
    #[test]
    fn scattered_errors_affect_an_aerotp_segment_equally_on_the_wire_and_in_the_simulator(
        segment in aerotp_segments(), places in vec(any::<Index>(), 1..400), count in any::<Index>(),
    ) {
        check_scattered(&segment, &places[..=count.index(places.len())])?;
    }

    /// Random bytes seldom pass the check of the header; these do. Decoded packets encode to bytes that decode to the
    /// same packet.
    #[test]
    fn no_aerotp_header_makes_decoding_panic(mut body in vec(any::<u8>(), 20..200), shape in any::<(u8, u8)>(), fits: bool) {
        body[12] = 0x40 | shape.0 & 0x13;
        body[13] = shape.1;
        use aerotp::Flags;
        let flags = Flags(shape.1);
        let mut at = 16 + 4 * usize::from(flags.has(Flags::ASYN));
        let words = if flags.has(Flags::FEC) && at + 4 < body.len() {
            body[at] = 0;
            body[at + 1] %= 20;
            at += 4;
            usize::from(body[at - 3])
        } else {
            0
        };
        at += if flags.has(Flags::REPAIR) { 16 } else { 0 };
        if flags.has(Flags::EXTENDED) && at < body.len() {
            body[at] = 1 + body[at] % 3;
            at += 4 * usize::from(body[at]);
        }
        let at = at + 2;
        body.resize(body.len().max(at + 2), 0);
        let trailer = 4 * words + 4 * usize::from(flags.has(Flags::CRC));
        if fits {
            let length = (body.len() - at - 2).saturating_sub(trailer) as u16;
            body[14..16].copy_from_slice(&length.to_be_bytes());
        }
        let check = farlink_fec::crc::crc_16_ibm_3740(&body[..at]).to_be_bytes();
        body[at..at + 2].copy_from_slice(&check);
        if let Ok(arrived) = decode_segment::<Vec<u8>>(&Bytes::from(body.clone())) {
            let mut again = Vec::new();
            encode_segment(&arrived.segment, &arrived.outside, &mut again).expect("it was no longer than this");
            let again = decode_segment::<Vec<u8>>(&again.into()).expect("what was written can be read").segment;
            let normal = |segment: aerotp::Segment<Vec<u8>>| {
                let aerotp::Segment { header_bytes: _, flags, .. } = segment;
                // Unknown extension fields are not written again.
                let flags = Flags(flags.0 & !Flags::EXTENDED.0);
                aerotp::Segment { header_bytes: 0, flags, ..segment }
            };
            prop_assert_eq!(normal(again), normal(arrived.segment));
        }
    }

    /// Random bytes seldom pass the check of an outer header; half of these do.
    #[test]
    fn no_bytes_behind_an_outer_header_make_opening_panic(bytes in vec(any::<u8>(), 0..300)) {
        outer_packets::read_and_seal_again(&bytes);
    }

    #[test]
    fn lengths_stand_for_zeros(mut segment in segments(), envelope in envelopes()) {
        segment.payload.fill(0);
        check_headers(&segment.without_content(), &segment, &envelope)?;
        let datagram = Datagram { header_bytes: 28, number: None, payload: Virtual(segment.payload.len() as u32) };
        check_headers(&datagram, &Datagram { header_bytes: 28, number: None, payload: segment.payload }, &envelope)?;
    }

    #[test]
    fn a_burst_loses_a_segment_on_the_wire_and_in_the_simulator(
        segment in segments(), envelope in envelopes(), burst in bursts(),
    ) {
        check_burst(&segment, &envelope, burst)?;
    }

    #[test]
    fn a_burst_loses_a_datagram_on_the_wire_and_in_the_simulator(
        datagram in datagrams(), envelope in envelopes(), burst in bursts(),
    ) {
        check_burst(&datagram, &envelope, burst)?;
    }

    #[test]
    fn no_bytes_make_decoding_panic(bytes in vec(any::<u8>(), 0..300)) {
        let _ = decode::<Segment<Vec<u8>>>(&bytes);
        let _ = decode::<Datagram<Virtual>>(&bytes);
        let _ = decode::<Frame<Vec<u8>>>(&bytes);
        let _ = decode::<Pdu<Virtual>>(&bytes);
        let _ = decode::<aerotp::Segment<Vec<u8>>>(&bytes);
        let _ = decode_segment::<Virtual>(&Bytes::from(bytes.clone()));
    }

    /// The same for STP: decoded packets encode to the same bytes.
    #[test]
    fn no_stp_header_makes_decoding_panic(mut body in vec(any::<u8>(), 8..120), kind in proptest::sample::select(&Kind::ALL[..])) {
        (body[4], body[5]) = (kind as u8, 0);
        let bytes = with_right_checksums(body, 253);
        if let Some(Decoded { packet, envelope, .. }) = decode::<Pdu<Vec<u8>>>(&bytes) {
            let again = decode::<Pdu<Vec<u8>>>(&encoded(&packet, &envelope)).expect("its own bytes").packet;
            let is_same = again == packet;
            // A STAT that covers nothing has no report.
            prop_assert!(is_same || packet.kind == Kind::Stat && packet.report.is_empty(), "{:?}", packet);
        }
    }

    /// Random bytes seldom pass the checksums; these do, with everything else random.
    #[test]
    fn no_transport_header_makes_decoding_panic(mut body in vec(any::<u8>(), 0..120), is_tcp: bool, length_fits: bool) {
        if !is_tcp && length_fits && body.len() >= 8 {
            let length = body.len() as u16;
            body[4..6].copy_from_slice(&length.to_be_bytes());
        }
        let bytes = with_right_checksums(body, if is_tcp { 6 } else { 17 });
        let _ = decode::<Datagram<Vec<u8>>>(&bytes);
        if let Some(Decoded { packet, envelope, .. }) = decode::<Segment<Vec<u8>>>(&bytes) {
            let again = decode::<Segment<Vec<u8>>>(&encoded(&packet, &envelope)).expect("its own bytes").packet;
            prop_assert_eq!((again.seq, again.ack, again.flags), (packet.seq, packet.ack, packet.flags));
            prop_assert_eq!((again.syn, again.timestamps), (packet.syn, packet.timestamps));
            prop_assert_eq!(again.payload, packet.payload);
        }
    }
}

/// An IPv4 packet around `body` whose header and transport checksums are right.
fn with_right_checksums(mut body: Vec<u8>, protocol: u8) -> Vec<u8> {
    let length = (body.len() as u16).to_be_bytes();
    let field = if protocol == 6 { 16..18 } else { 6..8 }; // UDP and STP
    if body.len() >= field.end {
        body[field.clone()].fill(0);
        let pseudo = [&[10, 0, 0, 1, 10, 0, 0, 2, 0, protocol][..], &length, &body].concat();
        body[field].copy_from_slice(&internet_checksum(&pseudo).to_be_bytes());
    }
    let [high, low] = (20 + body.len() as u16).to_be_bytes();
    let mut header = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let checksum = internet_checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&checksum);
    [&header[..], &body].concat()
}

/// RFC 1071, section 1, word by word, as an independent check.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
    let sum: u32 = bytes.chunks(2).map(word).sum();
    let folded = (sum >> 16) + (sum & 0xffff);
    !((folded + (folded >> 16)) as u16)
}

#[test]
fn every_single_bit_error_is_detected() {
    let mut segment = Segment { flags: Flags::SYN.with(Flags::ACK), payload: vec![0; 9], ..Segment::default() };
    segment.syn = SynOptions { mss: 1460, window_shift: Some(3), sack_permitted: true, scps: None };
    segment.sack.push(SackBlock { left: 0, right: u32::MAX });
    let datagram = Datagram { header_bytes: 28, number: None, payload: vec![0xff; 9] };

    assert_eq!(unnoticed_bits(&segment), Vec::<u32>::new());
    assert_eq!(unnoticed_bits(&datagram), Vec::<u32>::new());

    let gap = Range { from: 0, to: u32::MAX };
    let report = Report { covers: gap, missing: vec![gap; 3] };
    let stat = Pdu::<Vec<u8>> { kind: Kind::Stat, header_bytes: 76, report, ..Pdu::default() };
    assert_eq!(unnoticed_bits(&stat), Vec::<u32>::new());
}

fn unnoticed_bits<P: Codec>(packet: &P) -> Vec<u32> {
    let bytes = encoded(packet, &Envelope::simulated(3));
    (0..bytes.len() as u32 * 8).filter(|&bit| decoded_integrity::<P>(bytes.clone(), &[bit]).is_some()).collect()
}

/// The residual error that the module's documentation admits: the simulator loses this segment, a receiver would accept
/// it.
#[test]
fn exchanged_words_escape_the_checksum() {
    let segment = Segment { flags: Flags::ACK, header_bytes: 40, payload: vec![0, 1, 0, 0], ..Segment::default() };
    let bytes = encoded(&segment, &Envelope::simulated(0));
    let wrong_bits = [40 * 8 + 15, 40 * 8 + 31];

    assert_eq!(segment.inspect(&Damage { bits: &wrong_bits, code: PacketCode::None }), None);
    assert_eq!(decoded_integrity::<Segment<Vec<u8>>>(bytes, &wrong_bits), Some(Integrity::Intact));
}

/// Position of a packet's payload in the buffer that it was decoded from.
fn place(buffer: &Bytes, payload: &Bytes) -> usize {
    payload.as_ptr() as usize - buffer.as_ptr() as usize
}

#[test]
fn payloads_are_slices_of_the_received_bytes() {
    let envelope = Envelope::simulated(0);
    let payload = Bytes::from_static(b"payload");
    let tcp =
        Bytes::from(encoded(&Segment { header_bytes: 40, payload: payload.clone(), ..Segment::default() }, &envelope));
    assert_eq!(place(&tcp, &Segment::<Bytes>::decode(tcp.clone()).unwrap().packet.payload), 40);
    let udp = Bytes::from(encoded(&Datagram { header_bytes: 28, number: None, payload: payload.clone() }, &envelope));
    assert_eq!(place(&udp, &Datagram::<Bytes>::decode(udp.clone()).unwrap().packet.payload), 28);
    let stp = Bytes::from(encoded(&Pdu { kind: Kind::Data, payload: payload.clone(), ..Pdu::default() }, &envelope));
    assert_eq!(place(&stp, &Pdu::<Bytes>::decode(stp.clone()).unwrap().packet.payload), 32);
    let arq = Bytes::from(encoded(&Frame { payload: payload.clone(), ..Frame::default() }, &envelope));
    assert_eq!(place(&arq, &Frame::<Bytes>::decode(arq.clone()).unwrap().packet.payload), 61);

    let segment = aerotp::Segment { fec_words: 1, payload, ..aerotp::Segment::default() };
    let mut datagram = encoded(&segment, &envelope);
    let arrived = Bytes::from(datagram.clone());
    assert_eq!(place(&arrived, &aerotp::Segment::<Bytes>::decode(arrived.clone()).unwrap().packet.payload), 44);
    let inner = arrived.slice(20..);
    assert_eq!(place(&inner, &decode_segment::<Bytes>(&inner).unwrap().segment.payload), 24);
    // A corrected payload is a copy.
    datagram[45] ^= 1;
    let mended = decode_segment::<Bytes>(&Bytes::from(datagram).slice(20..)).unwrap();
    assert_eq!((mended.integrity, &mended.segment.payload), (Integrity::Mended { bits: 1 }, &segment.payload));
}

//! A small hand-made conversation, captured and read by tshark.

use std::path::PathBuf;
use std::process::Command;

use farlink_core::payload::{Payload, Virtual};
use farlink_core::protocol::tcp::{Flags, SackBlock, Segment, SynOptions, Timestamps};
use farlink_core::protocol::udp::Datagram;
use farlink_core::wire::{Codec, Envelope, WirePayload};
use farlink_core::{Ecn, Packet, Time};
use farlink_sim::pcap::{Direction, PcapWriter};
use pcap_file::pcapng::{Block, PcapNgReader};

use Direction::{Inbound, Outbound};

const BYTES: u32 = 1_000;

/// SYN, SYN-ACK, six data segments of which the second is lost, duplicate ACKs with growing SACK blocks, the
/// retransmission, ACK, FIN in both directions: all with the sequence numbers of a real connection.
fn conversation<D: WirePayload>(payload: impl Fn(u32) -> D) -> Vec<(Time, Direction, Segment<D>)> {
    let timestamps = |ms: u32| Some(Timestamps { value: ms, echo: ms.saturating_sub(250) });
    let segment = |ms: u32, seq, ack, flags, bytes| Segment {
        seq,
        ack,
        flags,
        header_bytes: 52,
        window: 65_535,
        timestamps: timestamps(ms),
        payload: payload(bytes),
        ..Segment::default()
    };
    let at = |ms: u32| Time::from_millis(ms.into());
    let offer = SynOptions { mss: 1_460, window_shift: Some(7), sack_permitted: true, scps: None };

    let mut packets = vec![
        (at(0), Outbound, Segment { syn: offer, ..segment(0, u32::MAX, 0, Flags::SYN, 0) }),
        (at(500), Inbound, Segment { syn: offer, ..segment(250, 8_999, 0, Flags::SYN.with(Flags::ACK), 0) }),
        (at(500), Outbound, segment(500, 0, 9_000, Flags::ACK, 0)),
    ];
    for n in 0..6 {
        packets.push((
            at(508 + 8 * n),
            Outbound,
            segment(508 + 8 * n, n * BYTES, 9_000, Flags::ACK.with(Flags::PSH), BYTES),
        ));
    }
    packets.push((at(1_008), Inbound, segment(758, 9_000, BYTES, Flags::ACK, 0)));
    for n in 3..=6 {
        let mut duplicate = segment(750 + 8 * n, 9_000, BYTES, Flags::ACK, 0);
        assert!(duplicate.sack.push(SackBlock { left: 2 * BYTES, right: n * BYTES }));
        packets.push((at(1_000 + 8 * n), Inbound, duplicate));
    }
    packets.push((at(1_049), Outbound, segment(1_049, BYTES, 9_000, Flags::ACK, BYTES)));
    packets.push((at(1_550), Inbound, segment(1_300, 9_000, 6 * BYTES, Flags::ACK, 0)));
    let fin = Flags::FIN.with(Flags::ACK);
    packets.push((at(1_550), Outbound, segment(1_550, 6 * BYTES, 9_000, fin, 0)));
    packets.push((at(2_050), Inbound, segment(1_800, 9_000, 6 * BYTES + 1, fin, 0)));
    packets.push((at(2_050), Outbound, segment(2_050, 6 * BYTES + 1, 9_001, Flags::ACK, 0)));
    packets
}

fn headers_only() -> Vec<u8> {
    let mut capture = PcapWriter::new("a conversation", "0.1.0");
    for (now, direction, segment) in conversation(Virtual) {
        capture.packet(now, direction, &segment, Ecn::NotCapable, 0);
    }
    for n in 0..3 {
        let datagram = Datagram { header_bytes: 28, number: None, payload: Virtual(1_472) };
        capture.packet(Time::from_secs(3 + n), Outbound, &datagram, Ecn::NotCapable, 1);
    }
    capture.finish()
}

fn whole_packets() -> Vec<u8> {
    let mut capture = PcapWriter::new("a conversation with its payload", "0.1.0");
    for (now, direction, segment) in conversation(|bytes| vec![0; bytes as usize]) {
        let envelope = Envelope::simulated(70_000);
        let envelope = if direction == Outbound { envelope } else { envelope.reversed() };
        let mut bytes = Vec::new();
        segment.encode(&envelope, &mut bytes).unwrap();
        capture.bytes(now, direction, bytes.len() as u32, &bytes);
    }
    capture.finish()
}

#[test]
fn a_capture_reads_back_as_the_packets_that_went_in() {
    let capture = headers_only();
    let mut reader = PcapNgReader::new(&capture[..]).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            packets.push((packet.timestamp.as_millis() as u64, packet.original_len, packet.data.into_owned()));
        }
    }
    let sent = conversation(Virtual);
    assert_eq!(packets.len(), sent.len() + 3);
    for ((ms, original_len, mut bytes), (now, _, segment)) in packets.into_iter().zip(sent) {
        assert_eq!(Time::from_millis(ms), now);
        assert_eq!(original_len as usize, bytes.len() + segment.payload.len());
        bytes.resize(original_len as usize, 0);
        let decoded = Segment::<Virtual>::decode(bytes.clone().into())
            .expect("lengths and checksums are those of the whole packet")
            .packet;
        assert_eq!(decoded.wire_bytes(), original_len);
        assert_eq!(Segment { header_bytes: 52, ..decoded }, segment);
    }
}

#[test]
fn the_same_packets_make_the_same_bytes() {
    assert_eq!(headers_only(), headers_only());
    assert!(headers_only().len() < 4_000, "payload is not stored");
}

#[test]
fn a_title_of_any_length_makes_a_readable_capture() {
    let capture = PcapWriter::new(&"ä".repeat(100_000), "0.1.0").finish();
    assert!(PcapNgReader::new(&capture[..]).unwrap().next_block().unwrap().is_ok());
}

#[test]
fn tshark_dissects_headers_and_their_options() {
    let fields = ["ip.proto", "frame.protocols", "tcp.options.sack_le", "tcp.options.sack_re", "tcp.options.mss_val"];
    let Some(rows) = tshark("headers", &headers_only(), &fields) else { return };

    assert_eq!(rows.len(), 22);
    for row in &rows[..19] {
        assert_eq!((row[0].as_str(), row[1].as_str()), ("6", "raw:ip:tcp"), "{row:?}");
    }
    for row in &rows[19..] {
        assert!(row[1].starts_with("raw:ip:udp"), "{row:?}");
    }
    let sack: Vec<_> =
        rows.iter().filter(|row| !row[2].is_empty()).map(|row| (row[2].as_str(), row[3].as_str())).collect();
    assert_eq!(sack, [("2000", "3000"), ("2000", "4000"), ("2000", "5000"), ("2000", "6000")]);
    let mss: Vec<_> = rows.iter().map(|row| row[4].as_str()).filter(|mss| !mss.is_empty()).collect();
    assert_eq!(mss, ["1460", "1460"]);
}

#[test]
fn tshark_finds_every_checksum_of_whole_packets_right() {
    let fields = ["ip.checksum.status", "tcp.checksum.status", "frame.protocols", "tcp.analysis.retransmission"];
    let Some(rows) = tshark("whole", &whole_packets(), &fields) else { return };

    assert_eq!(rows.len(), 19);
    for row in &rows {
        assert_eq!((row[0].as_str(), row[1].as_str()), ("1", "1"), "1 is good: {row:?}");
        assert!(row[2].starts_with("raw:ip:tcp"), "{row:?}");
    }
    assert_eq!(rows.iter().filter(|row| !row[3].is_empty()).count(), 1, "the retransmission is recognised");
}

/// The fields of every packet as tshark shows them; asserts that it reports no malformed packet and no error.
///
/// `None`, with a message, if tshark is not installed. Checksums of packets whose payload is not in the capture cannot
/// be verified, and tshark does not try.
fn tshark(name: &str, capture: &[u8], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
    std::fs::write(&file, capture).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&file).args(["-n", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    command.args(["-o", "udp.check_checksum:TRUE", "-o", "tcp.relative_sequence_numbers:FALSE", "-T", "fields"]);
    for field in ["_ws.malformed", "_ws.expert.severity"].iter().chain(fields) {
        command.args(["-e", field]);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: tshark cannot be run ({error}); Debian's package is tshark");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<String>> = text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    for row in &rows {
        assert_eq!(row[0], "", "malformed: {row:?}");
        let severities = row[1].split(',').filter(|severity| !severity.is_empty());
        assert!(severities.into_iter().all(|severity| severity.parse::<u32>().unwrap() < EXPERT_ERROR), "{row:?}");
    }
    Some(rows.into_iter().map(|row| row[2..].to_vec()).collect())
}

/// Wireshark's severity of an error (`PI_ERROR`).
const EXPERT_ERROR: u32 = 0x0080_0000;

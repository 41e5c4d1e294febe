//! AeroTP in captures, read by tshark with the dissector that farlink ships: it shows the segments that were sent.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{expanded, real, run, scenario, set};
use farlink_core::payload::{Payload, Virtual};
use farlink_core::protocol::aerotp::{Edges, Flags, Mack, Mode, Repair, Segment};
use farlink_core::protocol::udp::Datagram;
use farlink_core::wire::aerotp::{Outside, encode_segment};
use farlink_core::wire::{Codec, Decoded, Envelope};
use farlink_core::{Ecn, Time};
use farlink_sim::pcap::{Direction, PcapWriter};
use farlink_sim::trace_run;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::{Value, json};

const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/farlink/wireshark/aerotp.lua");

const FIELDS: [&str; 33] = [
    "aerotp.srcport",
    "aerotp.dstport",
    "aerotp.seq",
    "aerotp.timestamp",
    "aerotp.version",
    "aerotp.sealed",
    "aerotp.mode",
    "aerotp.ecn",
    "aerotp.flags",
    "aerotp.len",
    "aerotp.opening",
    "aerotp.fec.words",
    "aerotp.repair.start",
    "aerotp.repair.bytes",
    "aerotp.repair.symbol_bytes",
    "aerotp.repair.symbols",
    "aerotp.repair.index",
    "aerotp.class",
    "aerotp.tag",
    "aerotp.hec.status",
    "aerotp.mack.echo",
    "aerotp.mack.from_start",
    "aerotp.mack.to_end",
    "aerotp.mack.counts_symbols",
    "aerotp.mack.has_distances",
    "aerotp.mack.held",
    "aerotp.mack.window",
    "aerotp.mack.marked",
    "aerotp.mack.damaged",
    "aerotp.mack.block.start",
    "aerotp.mack.block.end",
    "aerotp.forward",
    "aerotp.mack.skipped",
];

/// The fields that tshark must show for a segment.
fn expected<D: Payload>(segment: &Segment<D>, envelope: &Envelope) -> Vec<String> {
    let bit = |is_set: bool| u8::from(is_set).to_string();
    let when = |is_there: bool, number: u32| if is_there { number.to_string() } else { String::new() };
    let of_repair =
        |number: fn(&Repair) -> u32| segment.repair.as_ref().map_or(String::new(), |r| number(r).to_string());
    let of_mack = |text: fn(&Mack) -> String| segment.mack.as_deref().map_or(String::new(), text);
    let edges = |number: fn((u32, u32)) -> u32| {
        let all = segment.mack.iter().flat_map(|mack| mack.edges.blocks().map(number).collect::<Vec<_>>());
        all.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
    };
    let ecn = match envelope.ecn {
        Ecn::NotCapable => 0,
        Ecn::Capable1 => 1,
        Ecn::Capable0 => 2,
        Ecn::Congestion => 3,
    };
    let length = segment.mack.as_ref().map_or(segment.payload.len() as u32, |mack| mack.body_bytes(segment.sequence));
    vec![
        envelope.source.port().to_string(),
        envelope.destination.port().to_string(),
        segment.sequence.to_string(),
        segment.timestamp.to_string(),
        "1".to_owned(),
        bit(false),
        segment.mode.number().to_string(),
        ecn.to_string(),
        format!("0x{:02x}", segment.flags.0),
        length.to_string(),
        when(segment.flags.has(Flags::ASYN), segment.opening),
        when(segment.fec_words > 0, segment.fec_words.into()),
        of_repair(|repair| repair.start),
        of_repair(|repair| repair.bytes),
        of_repair(|repair| repair.symbol_bytes.into()),
        of_repair(|repair| repair.symbols.into()),
        of_repair(|repair| repair.index),
        when(segment.class > 0, segment.class.into()),
        format!("0x{:04x}", segment.tag),
        "1".to_owned(),
        of_mack(|mack| mack.echo.to_string()),
        of_mack(|mack| u8::from(mack.is_from_start).to_string()),
        of_mack(|mack| u8::from(mack.is_to_end).to_string()),
        of_mack(|mack| u8::from(mack.counts_symbols).to_string()),
        of_mack(|mack| u8::from(mack.has_distances).to_string()),
        of_mack(|mack| mack.held.to_string()),
        of_mack(|mack| mack.window.to_string()),
        of_mack(|mack| mack.marked.to_string()),
        of_mack(|mack| mack.damaged.to_string()),
        edges(|block| block.0),
        edges(|block| block.1),
        when(segment.forward.is_some(), segment.forward.unwrap_or_default()),
        when(segment.skipped.is_some(), segment.skipped.unwrap_or_default()),
    ]
}

/// The fields of every packet; `None`, with a message, if tshark is not installed.
fn tshark(name: &str, capture: &[u8], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("aerotp-{name}.pcapng"));
    std::fs::write(&file, capture).unwrap();
    let mut command = Command::new("tshark");
    command.args(["-n", "-X", &format!("lua_script:{DISSECTOR}"), "-T", "fields", "-r"]).arg(&file);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: tshark cannot be run ({error}); Debian's package is tshark");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("Lua"), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    // Newer versions write booleans as words.
    let number = |field: &str| match field {
        "True" => "1".to_owned(),
        "False" => "0".to_owned(),
        other => other.to_owned(),
    };
    Some(text.lines().map(|line| line.split('\t').map(number).collect()).collect())
}

/// Segments of a capture, decoded by the codec; truncated bytes are zeros.
fn segments(capture: &[u8]) -> Vec<(Segment<Virtual>, Envelope)> {
    let mut reader = PcapNgReader::new(capture).unwrap();
    let mut segments = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            let mut bytes = packet.data.into_owned();
            bytes.resize(packet.original_len as usize, 0);
            let Decoded { packet, envelope, .. } =
                Segment::<Virtual>::decode(bytes.clone().into()).expect("the length is that of its parts");
            segments.push((packet, envelope));
        }
    }
    segments
}

/// A file over a link that loses one packet in ten, acknowledgements as well.
fn lossy(changes: &[(&str, Value)]) -> Value {
    let mut scenario = scenario(&[
        ("runs", 1.into()),
        ("duration_s", 300.into()),
        ("link.channel", json!({ "kind": "loss", "loss": 0.1 })),
        ("link.return", json!({ "channel": { "kind": "loss", "loss": 0.1 } })),
        ("transport.tcp", json!({ "kind": "aerotp", "packet_bytes": 1000, "rate_bps": 9e5 })),
        ("flow", json!({ "file": { "transport": "tcp", "traffic": { "kind": "file", "bytes": 3e5 } } })),
    ]);
    for (path, value) in changes {
        set(&mut scenario, path, value.clone());
    }
    scenario
}

fn capture(scenario: &Value) -> Vec<u8> {
    trace_run(&expanded(scenario), 0, 0, false, true, &|| false).unwrap().pcapng.unwrap()
}

#[test]
fn tshark_reads_every_field_of_simulated_runs() {
    for (name, changes) in [
        ("plain", vec![]),
        ("copies", vec![("transport.tcp.copies", json!(2)), ("transport.tcp.acks_per_mack", json!(3))]),
        ("near-reliable", vec![("transport.tcp.mode", json!("near-reliable")), ("flow.file.count", json!(2))]),
        ("both-open", vec![("transport.tcp.opens", json!("both"))]),
        ("parity", vec![("transport.tcp.fec_share", json!(0.1))]),
        ("deadline", vec![("transport.tcp.deadline_s", json!(1.2))]),
        ("slow way back", vec![("link.return.rate_bps", json!(4e3)), ("flow.file.traffic.bytes", json!(1e6))]),
    ] {
        let scenario = lossy(&changes);
        let capture = capture(&scenario);
        let sent = segments(&capture);
        let (mut macks, mut blocks, mut ends, mut openings) = (0, 0, 0, 0);
        for (segment, _) in &sent {
            macks += u32::from(segment.mack.is_some());
            blocks += segment.mack.as_ref().map_or(0, |mack| mack.edges.len());
            ends += u32::from(segment.flags.has(Flags::AFIN));
            openings += u32::from(segment.flags.has(Flags::ASYN));
        }
        assert!(macks > 5 && blocks > 5 && ends > 0 && openings > 0, "{name}: {macks} {blocks} {ends} {openings}");
        let data: u64 = sent.iter().filter(|(s, _)| s.mack.is_none()).map(|(s, _)| u64::from(s.payload.0)).sum();
        let table = run(&scenario, 1).rows;
        let delivered = *real(&table, "delivered_bytes").last().unwrap();
        assert!(data as f64 > delivered, "{name}: what was lost is sent again: {data} for {delivered}");
        let has_forwards =
            sent.iter().any(|(s, _)| s.forward.is_some()) && sent.iter().any(|(s, _)| s.skipped.is_some());
        assert_eq!(has_forwards, name == "deadline");
        let has_distances = |mack: &Mack| mack.has_distances && !mack.edges.is_empty();
        assert_eq!(sent.iter().any(|(s, _)| s.mack.as_deref().is_some_and(has_distances)), name == "slow way back");

        let wanted = [&["_ws.malformed", "_ws.expert", "frame.protocols", "aerotp.crc.status"][..], &FIELDS].concat();
        let Some(rows) = tshark(name, &capture, &wanted) else { return };
        assert_eq!(rows.len(), sent.len());
        for (row, (segment, envelope)) in rows.iter().zip(&sent) {
            assert_eq!(row[..3], ["", "", "raw:ip:aerotp"].map(str::to_owned), "{name}: {row:?} {segment:?}");
            // A capture holds whole MACKs, but of data neither the payload nor the bytes after it.
            let status = if segment.mack.is_some() { "1" } else { "2" };
            let has_check = segment.flags.has(Flags::CRC);
            assert_eq!(row[3], if has_check { status } else { "" }, "{name}: {row:?} {segment:?}");
            assert_eq!(row[4..], expected(segment, envelope), "{name}: {segment:?}");
        }
    }
}

/// A segment with all optional fields, and one of each kind.
fn kinds() -> Vec<Segment<Vec<u8>>> {
    let payload = b"what is sent".to_vec();
    let mut mack = Mack { echo: 9, held: 0x0fff_ffff, window: u32::MAX, marked: 7, damaged: 8, ..Mack::default() };
    (mack.is_to_end, mack.is_from_start, mack.counts_symbols) = (true, true, true);
    while mack.edges.push(mack.edges.len() as u32 * 100, mack.edges.len() as u32 * 100 + 50) {}
    // Distances of one, two, four and eight bytes.
    let mut short = Mack { has_distances: true, ..Mack::default() };
    for (start, end) in [(7, 8), (1008, 1_000_008), (4_000_000_000, 5)] {
        short.edges.push(start, end);
    }
    let repair = Repair { start: u32::MAX, bytes: 5, symbol_bytes: 6, symbols: 7, index: u32::MAX };
    let flags = [Flags::ASYN, Flags::AFIN, Flags::CRC, Flags::EXTENDED, Flags::FEC, Flags::REPAIR];
    let all = flags.into_iter().fold(Flags::default(), Flags::with);
    vec![
        Segment { mode: Mode::Unreliable, sequence: 4_000_000_000, payload: payload.clone(), ..Segment::default() },
        Segment {
            tag: 0xfedc,
            mode: Mode::QuasiReliable,
            class: 7,
            flags: all,
            fec_words: 3,
            opening: 77,
            repair: Some(repair),
            forward: Some(u32::MAX),
            payload,
            ..Segment::default()
        },
        Segment {
            flags: Flags::MACK.with(Flags::CRC).with(Flags::EXTENDED),
            mack: Some(Box::new(mack)),
            skipped: Some(4_000_000_000),
            ..Segment::default()
        },
        Segment { flags: Flags::RESET, mode: Mode::Datagram, ..Segment::default() },
        Segment {
            flags: Flags::MACK.with(Flags::CRC).with(Flags::FEC),
            fec_words: 5,
            mack: Some(Box::new(mack)),
            ..Segment::default()
        },
        Segment { flags: Flags::MACK.with(Flags::CRC), sequence: 5, mack: Some(Box::new(short)), ..Segment::default() },
        Segment {
            flags: Flags::MACK.with(Flags::CRC),
            mack: Some(Box::new(Mack { edges: Edges::default(), ..short })),
            ..Segment::default()
        },
    ]
}

/// Whole packets, in IPv4 and in UDP, on any port; some of them changed on the way.
fn whole(packets: &[(Segment<Vec<u8>>, bool)], change: impl Fn(usize, &mut Vec<u8>)) -> Vec<u8> {
    let mut writer = PcapWriter::new("whole segments", "0.1.0");
    for (index, (segment, is_in_udp)) in packets.iter().enumerate() {
        let envelope = Envelope { ecn: Ecn::Congestion, ..Envelope::simulated(5) };
        let mut bytes = Vec::new();
        if *is_in_udp {
            let outside = Outside { source: 49_157, destination: 40_000, ecn: Ecn::Congestion };
            encode_segment(segment, &outside, &mut bytes).unwrap();
            change(index, &mut bytes);
            let datagram = Datagram { header_bytes: 28, number: None, payload: bytes.clone() };
            bytes.clear();
            datagram.encode(&envelope, &mut bytes).unwrap();
        } else {
            segment.encode(&envelope, &mut bytes).unwrap();
            let mut behind = bytes.split_off(20);
            change(index, &mut behind);
            bytes.extend(behind);
        }
        writer.bytes(Time::from_millis(index as u64), Direction::Outbound, bytes.len() as u32, &bytes);
    }
    writer.finish()
}

#[test]
fn tshark_reads_every_kind_whole_in_ip_and_in_udp() {
    let packets: Vec<_> = kinds().into_iter().flat_map(|segment| [(segment.clone(), false), (segment, true)]).collect();
    let wanted = [&["_ws.malformed", "_ws.expert", "aerotp.crc.status", "aerotp.payload"][..], &FIELDS].concat();
    let Some(rows) = tshark("whole", &whole(&packets, |_, _| {}), &wanted) else { return };
    assert_eq!(rows.len(), packets.len());
    let envelope = Envelope { ecn: Ecn::Congestion, ..Envelope::simulated(5) };
    for (row, (segment, _)) in rows.iter().zip(&packets) {
        let status = if segment.flags.has(Flags::CRC) { "1" } else { "" };
        assert_eq!(row[..3], ["", "", status].map(str::to_owned), "{row:?}");
        let payload: String = segment.payload.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((&row[3], &row[4..]), (&payload, &expected(segment, &envelope)[..]));
    }
}

#[test]
fn tshark_names_the_failed_check() {
    let [plain, all, mack, reset, protected, _, _] = kinds().try_into().unwrap();
    let checked = Segment { flags: Flags::CRC, ..plain };
    let packets: Vec<_> = [checked.clone(), checked, all, mack, reset.clone(), reset.clone(), reset, protected]
        .map(|segment| (segment, false))
        .into();
    let capture = whole(&packets, |index, bytes| match index {
        0 => bytes[4] ^= 1,
        1 => bytes[21] ^= 1,
        2 => *bytes.last_mut().unwrap() ^= 1,
        3 => bytes[40] ^= 1,
        4 => bytes[12] ^= 0xc0,
        5 => bytes[12] ^= 0x20,
        7 => bytes[40] ^= 1,
        _ => {}
    });
    let Some(rows) = tshark("wrong", &capture, &["_ws.expert.message", "aerotp.hec.status", "aerotp.crc.status"])
    else {
        return;
    };
    let expected = [
        ["Header check is wrong", "0", ""],
        ["Payload check is wrong", "1", "0"],
        ["Payload check is wrong; parity may mend it", "1", "0"],
        ["Payload check is wrong", "1", "0"],
        ["Another version of AeroTP", "", ""],
        ["In the form for sealed packets, but not sealed", "", ""],
        ["", "1", ""],
        ["Payload check is wrong; parity may mend it", "1", "0"],
    ];
    assert_eq!(rows, expected.map(|row| row.map(str::to_owned).to_vec()));
}

/// No bytes make the dissector fail, and other UDP traffic is left alone.
#[test]
fn tshark_survives_noise() {
    let mut writer = PcapWriter::new("noise", "0.1.0");
    let mut state = 7_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    for index in 0..2_000_u64 {
        let bytes = usize::from(next()) % 90;
        let mut noise: Vec<u8> = (0..bytes).map(|_| next()).collect();
        if bytes > 16 {
            // Few extension fields of random bytes have the length that their first byte gives.
            let is_extended = noise[13] < 64;
            (noise[12], noise[14]) = (0x40, 0);
            noise[13] = if is_extended { noise[13] } else { noise[13] & !Flags::EXTENDED.0 };
        }
        let envelope = Envelope::simulated(index as u32);
        let datagram = Datagram { header_bytes: 28, number: None, payload: noise };
        let mut packet = Vec::new();
        datagram.encode(&envelope, &mut packet).unwrap();
        if index % 2 == 0 {
            // The same after an IPv4 header, without a UDP header.
            packet.drain(20..28);
            packet[9] = 254;
            let length = (packet.len() as u16).to_be_bytes();
            packet[2..4].copy_from_slice(&length);
        }
        let cut = if index % 3 == 0 { packet.len().min(20 + usize::from(next()) % 60) } else { packet.len() };
        writer.bytes(Time::from_millis(index), Direction::Inbound, packet.len() as u32, &packet[..cut]);
    }
    let fields = ["frame.protocols", "_ws.expert.message", "aerotp.hec.status"];
    let Some(rows) = tshark("noise", &writer.finish(), &fields) else { return };
    assert_eq!(rows.len(), 2_000);
    for (index, row) in rows.iter().enumerate() {
        assert!(!row[1].contains("Lua"), "{row:?}");
        let is_aerotp = row[0].contains("aerotp");
        assert!(index % 2 == 0 || !is_aerotp, "no datagram of noise is taken for AeroTP: {row:?}");
        assert_ne!(row[2], "1", "{row:?}");
    }
    assert!(rows.iter().filter(|row| row[2] == "0").count() > 300, "many get as far as the check");
}

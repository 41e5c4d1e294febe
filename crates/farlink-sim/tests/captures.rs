//! Captures of simulated runs, read by tshark: it shows what the engine did.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{expanded, losses, real, run, scenario, set};
use farlink_core::payload::Virtual;
use farlink_core::protocol::tcp::{Flags, Segment, SnackReport};
use farlink_core::{Ecn, Time};
use farlink_sim::pcap::{Direction, PcapWriter};
use farlink_sim::trace_run;
use serde_json::{Value, json};

/// A file over a lossy link, for every version. The recording has single losses and bursts.
fn lossy(variant: &str) -> Value {
    let lost: Vec<bool> =
        (0..300_u32).map(|frame| [40, 90, 92, 95, 150, 151, 152, 200, 290].contains(&frame)).collect();
    let channel = json!({ "kind": "packet-trace", "file": losses("singles-and-bursts", &lost), "offset": 0 });
    scenario(&[
        ("runs", 1.into()),
        ("duration_s", 200.into()),
        ("link.channel", channel),
        ("transport.tcp.variant", variant.into()),
        ("flow", json!({ "file": { "transport": "tcp", "traffic": { "kind": "file", "bytes": 5e5 } } })),
    ])
}

fn capture(scenario: &Value) -> Vec<u8> {
    trace_run(&expanded(scenario), 0, 0, false, true, &|| false).unwrap().pcapng.unwrap()
}

/// One number of the aggregate of the only run.
fn figure(scenario: &Value, quantity: &str) -> f64 {
    *real(&run(scenario, 1).rows, quantity).last().unwrap()
}

/// The fields of every packet; `None`, with a message, if tshark is not installed.
fn tshark(name: &str, capture: &[u8], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
    std::fs::write(&file, capture).unwrap();
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-o", "tcp.relative_sequence_numbers:TRUE", "-r"]).arg(&file);
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
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

const FIELDS: [&str; 9] = [
    "frame.protocols",
    "_ws.malformed",
    "ip.src",
    "tcp.seq",
    "tcp.len",
    "tcp.options.sack_le",
    "tcp.flags.syn",
    "tcp.options.sack_perm",
    "tcp.analysis.retransmission",
];

#[test]
fn tshark_finds_the_retransmissions_that_the_table_counts() {
    for variant in ["tahoe", "reno", "newreno", "sack"] {
        for timestamps in [false, true] {
            let mut scenario = lossy(variant);
            set(&mut scenario, "transport.tcp.timestamps", timestamps.into());
            let name = format!("{variant}-{timestamps}");
            let Some(packets) = tshark(&name, &capture(&scenario), &FIELDS) else { return };

            for packet in &packets {
                assert_eq!((packet[0].as_str(), packet[1].as_str()), ("raw:ip:tcp", ""), "{packet:?}");
            }
            let syns: Vec<_> = packets.iter().filter(|packet| packet[6] == "True" || packet[6] == "1").collect();
            assert_eq!(syns.len(), 2, "SYN and SYN-ACK");
            assert!(syns.iter().all(|syn| syn[7].is_empty() != (variant == "sack")), "{syns:?}");
            let reports = packets.iter().filter(|packet| !packet[5].is_empty()).count();
            assert_eq!(reports > 0, variant == "sack", "{reports} packets with SACK blocks");

            let is_data = |packet: &&Vec<String>| packet[2] == "10.0.0.1" && packet[4] != "0";
            // Bytes below the highest sent before, counted here, ...
            let (mut highest, mut again) = (0, 0);
            for packet in packets.iter().filter(is_data) {
                let (seq, len): (u64, u64) = (packet[3].parse().unwrap(), packet[4].parse().unwrap());
                again += highest.min(seq + len).saturating_sub(seq);
                highest = highest.max(seq + len);
            }
            assert_eq!(again as f64, figure(&scenario, "retransmitted_bytes"), "{name}");
            // ... and by tshark, which does not count first transmissions.
            let marked = packets.iter().filter(is_data).filter(|packet| !packet[8].is_empty());
            let marked_bytes: u64 = marked.map(|packet| packet[4].parse::<u64>().unwrap()).sum();
            assert_eq!(marked_bytes, again, "{name}: tshark's retransmissions");
        }
    }
}

#[test]
fn tshark_sees_every_datagram() {
    let cbr = json!({ "kind": "cbr", "rate_bps": 1e5, "payload_bytes": 2000, "bytes": 40_000 });
    let scenario = scenario(&[
        ("runs", 1.into()),
        ("link.channel", json!({ "kind": "loss", "loss": 0.3 })),
        ("transport.udp", json!({ "kind": "udp", "segment_bytes": 1472 })),
        ("flow", json!({ "stream": { "transport": "udp", "traffic": cbr } })),
    ]);
    let fields = ["frame.protocols", "_ws.malformed", "frame.len"];
    let Some(packets) = tshark("datagrams", &capture(&scenario), &fields) else { return };
    assert_eq!(packets.len(), 40, "each write makes two");
    for packet in &packets {
        assert!(packet[0].starts_with("raw:ip:udp") && packet[1].is_empty(), "{packet:?}");
    }
    let bytes: u64 = packets.iter().map(|packet| packet[2].parse::<u64>().unwrap()).sum();
    assert_eq!(bytes as f64, figure(&scenario, "sent_bytes"));
}

/// Several flows are several conversations, and the series written with the capture agree with it.
#[test]
fn flows_have_ports_of_their_own_and_series_agree() {
    let mut scenario = lossy("sack");
    set(&mut scenario, "flow.file.count", 3.into());
    set(&mut scenario, "measure", json!({ "series": ["sent_sequence", "retransmitted_sequence", "cwnd"] }));
    let traced = trace_run(&expanded(&scenario), 0, 0, true, true, &|| false).unwrap();
    let count = |quantity| traced.series.quantity.iter().filter(|name| **name == quantity).count();
    assert!(count("cwnd") > 50);
    assert!(traced.series.time_s.is_sorted());
    let fields = ["tcp.srcport", "ip.src", "tcp.len", "_ws.malformed"];
    let Some(packets) = tshark("flows", &traced.pcapng.unwrap(), &fields) else { return };
    let data: Vec<_> = packets.iter().filter(|packet| packet[1] == "10.0.0.1" && packet[2] != "0").collect();
    assert_eq!(data.len(), count("sent_sequence") + count("retransmitted_sequence"));
    let mut ports: Vec<_> = data.iter().map(|packet| &packet[0]).collect();
    ports.sort();
    ports.dedup();
    assert_eq!(ports.len(), 3);
    assert!(packets.iter().all(|packet| packet[3].is_empty()));
}

/// For several protocols and random numbers of flows.
#[test]
fn series_have_the_names_of_their_flows() {
    let mut scenario = scenario(&[]);
    set(&mut scenario, "transport.udp", json!({ "kind": "udp" }));
    set(
        &mut scenario,
        "flow",
        json!({
            "tele": { "transport": "udp", "traffic": { "kind": "cbr", "rate_bps": 1e5, "payload_bytes": 500 } },
            "web": { "transport": "tcp", "traffic": { "kind": "transfers", "rate_per_s": 0.2, "bytes": 3000 } },
            "pair": { "transport": "tcp", "count": 2, "traffic": { "kind": "bulk" } },
            "file": { "transport": "tcp", "traffic": { "kind": "file", "bytes": 50_000 } },
        }),
    );
    let series = trace_run(&expanded(&scenario), 0, 0, true, false, &|| false).unwrap().series;
    let names: std::collections::BTreeSet<&str> = series.flow.iter().map(|name| &**name).collect();
    assert!(names.contains("web.1") && !names.contains("tele") && !names.contains("web"), "{names:?}");
    // The last byte acknowledged identifies the flow: transfers are small, bulk is not.
    let last = |name: &str| {
        let rows = series.flow.iter().zip(&series.quantity).zip(&series.value);
        rows.filter(|((flow, quantity), _)| ***flow == *name && **quantity == "in_flight")
            .map(|(_, value)| *value)
            .fold(0.0, f64::max)
    };
    assert!(
        names.iter().filter(|name| name.starts_with("web.")).all(|name| last(name) <= 3001.0),
        "transfers are small"
    );
    for name in ["pair.1", "pair.2", "file"] {
        assert!(last(name) > 9000.0, "{name} has filled its first window");
    }
}

/// Kinds, lengths and positions of the options of SCPS-TP are those that Wireshark knows (CCSDS 714.0-B-2, section 3).
#[test]
fn tshark_reads_the_options_of_scps() {
    let mut scenario = lossy("snack");
    let transport = json!({ "kind": "scps-tp", "loss_means": "signalled", "hold_time_s": 100, "segment_bytes": 960 });
    set(&mut scenario, "transport.tcp", transport);
    set(&mut scenario, "link.channel", json!({ "kind": "ber", "ber": 5e-6 }));
    let fields = ["_ws.malformed", "tcp.flags.syn", "tcp.options.scps.vector", "tcp.option_kind", "tcp.option_len"];
    let Some(packets) = tshark("scps", &capture(&scenario), &fields) else { return };

    let syns: Vec<_> = packets.iter().filter(|packet| !packet[2].is_empty()).collect();
    assert_eq!(syns.len(), 2, "SYN and SYN-ACK alone tell what they are capable of");
    for syn in syns {
        assert!(syn[1] == "True" || syn[1] == "1", "{syn:?}");
        let vector = u8::from_str_radix(syn[2].trim_start_matches("0x"), 16).unwrap();
        assert_eq!(vector, 0x80 | 0x40 | 0x20, "best effort, and SNACK of both forms");
    }
    let (mut signals, mut reports) = (0, 0);
    for packet in &packets {
        assert_eq!(packet[0], "", "{packet:?}");
        // End of options and padding have no length.
        let kinds: Vec<&str> = packet[3].split(',').filter(|kind| !["0", "1", ""].contains(kind)).collect();
        let lengths: Vec<&str> = packet[4].split(',').filter(|length| !length.is_empty()).collect();
        assert_eq!(kinds.len(), lengths.len(), "{packet:?}");
        for (kind, length) in kinds.into_iter().zip(lengths) {
            let length: u32 = length.parse().unwrap();
            signals += u32::from(kind == "23" && length == 2);
            reports += u32::from(kind == "21" && (7..=22).contains(&length));
        }
    }
    assert!(signals > 0 && reports > 0, "{signals} times corruption experienced, {reports} SNACKs with a bit vector");
}

/// The fields of a SNACK option without bit vector. Wireshark 4.0 then reads the acknowledgement number from behind
/// this option, not from TCP's header, and reports the packet as malformed; the fields before are right.
#[test]
fn tshark_reads_the_hole_of_a_snack() {
    let ack = Segment {
        ack: 1,
        flags: Flags::ACK,
        header_bytes: 48,
        snack: Some(SnackReport::new(2, 3)),
        payload: Virtual(0),
        ..Segment::default()
    };
    let mut writer = PcapWriter::new("one SNACK", "0.1.0");
    writer.packet(Time::ZERO, Direction::Inbound, &ack, Ecn::NotCapable, 0);
    let fields = ["tcp.option_kind", "tcp.option_len", "tcp.options.snack.offset", "tcp.options.snack.size"];
    let Some(packets) = tshark("snack", &writer.finish(), &fields) else { return };
    assert_eq!(packets, [["1,1,21", "6", "2", "3"].map(str::to_owned)]);
}

//! Queues that mark packets and connections that react, from end to end.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{expanded, once, scenario, set, setup};
use farlink_sim::engine::FlowResult;
use farlink_sim::trace_run;
use serde_json::{Value, json};

/// A queue of 50 packets before 1 Mb/s, 100 ms of round trip: 12 packets fill the path.
fn marking(changes: &[(&str, Value)]) -> Value {
    let mut scenario = scenario(&[
        ("duration_s", 60.into()),
        ("link.ecn_threshold_packets", 20.into()),
        ("transport.tcp.ecn", true.into()),
        ("transport.tcp.initial_ssthresh_segments", 20.into()),
    ]);
    for (path, value) in changes {
        set(&mut scenario, path, value.clone());
    }
    scenario
}

fn flow(scenario: &Value) -> FlowResult {
    once(&setup(scenario), 1).flows.remove(0)
}

#[test]
fn marks_replace_losses() {
    let marked = flow(&marking(&[]));
    assert_eq!((marked.lost_packets, marked.retransmitted_bytes, marked.timeouts), (0, 0, 0));
    // The window grows from 16 to 32 packets, one per round trip: about 15 reductions, each with several marks.
    assert!((15..15 * 32).contains(&marked.marked_packets), "{}", marked.marked_packets);
    let dropped = flow(&marking(&[("transport.tcp.ecn", false.into())]));
    assert!(dropped.lost_packets > 0 && dropped.marked_packets == 0);
    // The queue stays short, because the window is halved at 20 packets and not at 50.
    assert!(marked.delay.mean().unwrap() < 0.7 * dropped.delay.mean().unwrap());
    // The pipe is always full, because half of 32 packets are more than 12.
    let goodput = marked.delivered_bytes as f64 * 8.0 / 60.0;
    assert!(goodput > 0.94 * 1e6 * 1000.0 / 1040.0, "{goodput}");
}

#[test]
fn thresholds_in_bytes_and_in_packets_agree() {
    let packets = flow(&marking(&[]));
    let bytes =
        flow(&marking(&[("link.ecn_threshold_packets", Value::Null), ("link.ecn_threshold_bytes", 20_800.into())]));
    assert_eq!(format!("{packets:?}"), format!("{bytes:?}"));
}

/// A threshold changes nothing for them.
#[test]
fn flows_without_ecn_are_not_marked() {
    let without = json!(null);
    let plain = flow(&marking(&[("transport.tcp.ecn", false.into()), ("link.ecn_threshold_packets", without.clone())]));
    let beside = flow(&marking(&[("transport.tcp.ecn", false.into())]));
    assert_eq!(format!("{plain:?}"), format!("{beside:?}"));
    // Without marks, flows with ECN behave like the others.
    let capable = flow(&marking(&[("link.ecn_threshold_packets", without)]));
    assert_eq!(format!("{plain:?}"), format!("{capable:?}"));
}

/// The mark of a middle hop reaches the receiver through the later hops, also for packets with rare options.
#[test]
fn a_mark_is_kept_to_the_end_of_the_path() {
    let hop = |rate: f64| json!({ "rate_bps": rate, "delay_s": 0.02, "queue_packets": 50 });
    for (at, timestamps) in [(0, false), (1, false), (2, false), (1, true)] {
        let mut scenario = marking(&[("link", Value::Null), ("transport.tcp.timestamps", timestamps.into())]);
        scenario["path"] = json!(["a", "b", "c"]);
        let rate = |n| if n == at { 1e6 } else { 1e7 };
        scenario["hop"] = json!({ "a": hop(rate(0)), "b": hop(rate(1)), "c": hop(rate(2)) });
        scenario["hop"][["a", "b", "c"][at]]["ecn_threshold_packets"] = 20.into();
        let flow = flow(&scenario);
        assert_eq!((flow.lost_packets, flow.retransmitted_bytes), (0, 0), "marked at hop {at}");
        assert!(flow.marked_packets > 0);
    }
}

/// Frames that overtake others in flight keep their marks.
#[test]
fn packets_that_overtake_keep_their_marks() {
    let flow = flow(&marking(&[("link.ordering", "overtake".into())]));
    assert_eq!((flow.lost_packets, flow.retransmitted_bytes), (0, 0));
    assert!(flow.marked_packets > 0);
}

#[test]
fn the_return_path_has_a_threshold_of_its_own() {
    // Acknowledgements are never marked, whatever the queue.
    let mut scenario =
        marking(&[("link.return", json!({ "rate_bps": 2e4, "queue_packets": 40, "ecn_threshold_packets": 1 }))]);
    set(&mut scenario, "link.ecn_threshold_packets", Value::Null);
    assert_eq!(flow(&scenario).marked_packets, 0);
    let hop = &expanded(&scenario).points[0].scenario.hops()[0].1.clone();
    use farlink_core::link::QueueLimit::{Packets, Unlimited};
    assert_eq!((hop.forward().ecn_threshold, hop.back().ecn_threshold), (Unlimited, Packets(1)));
    // Without a queue or threshold of its own, the return path has those of the forward path.
    let inherited = &expanded(&marking(&[])).points[0].scenario.hops()[0].1.clone();
    assert_eq!(inherited.back().ecn_threshold, Packets(20));
    let own_queue =
        &expanded(&marking(&[("link.return", json!({ "queue_packets": 9 }))])).points[0].scenario.hops()[0].1.clone();
    assert_eq!(own_queue.back().ecn_threshold, Unlimited);
}

/// The fields that tshark reads in a capture: the handshake, ECN-capable data, echoes, and CWR.
#[test]
fn tshark_sees_the_bits() {
    let capture = trace_run(&expanded(&marking(&[])), 0, 0, false, true, &|| false).unwrap().pcapng.unwrap();
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ecn.pcapng");
    std::fs::write(&file, capture).unwrap();
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-r"]).arg(&file);
    for field in ["ip.src", "ip.dsfield.ecn", "tcp.flags", "tcp.len", "ip.checksum.status"] {
        command.args(["-e", field]);
    }
    let Ok(output) = command.args(["-o", "ip.check_checksum:TRUE"]).output() else {
        eprintln!("skipped: tshark cannot be run; Debian's package is tshark");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let packets: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert!(packets.iter().all(|packet| packet[4] == "1"), "header checksums are right");
    let flags = |packet: &[&str]| u16::from_str_radix(packet[2].trim_start_matches("0x"), 16).unwrap();
    assert_eq!((flags(&packets[0]), packets[0][1]), (0xc2, "0"), "SYN, ECE, CWR");
    assert_eq!((flags(&packets[1]), packets[1][1]), (0x52, "0"), "SYN, ACK, ECE");
    let (mut echoes, mut answers) = (0, 0);
    for packet in &packets[2..] {
        let is_data = packet[3] != "0";
        assert_eq!(packet[1], if is_data { "2" } else { "0" }, "ECT(0) on data, none on acknowledgements: {packet:?}");
        echoes += usize::from(packet[0] == "10.0.0.2" && flags(packet) & 0x40 != 0);
        answers += usize::from(packet[0] == "10.0.0.1" && flags(packet) & 0x80 != 0);
    }
    assert!(answers > 2 && echoes > answers, "{answers} answers, {echoes} echoes");
}

//! BBR in the packet engine: its states over a GEO link, and its goodput over loss.

use std::fmt::Write as _;

use crate::common::{expanded, real, run, scenario, text};
use farlink_sim::trace_run;
use serde_json::{Value, json};

/// A GEO link of 1 Mb/s with half a bandwidth-delay product of queue.
fn geo(control: &str, changes: &[(&str, Value)]) -> Value {
    let transport = json!({ "kind": "tcp", "variant": "sack", "congestion_control": control, "segment_bytes": 1000 });
    let link = json!({ "rate_bps": 1e6, "delay_s": 0.25, "queue_packets": 30 });
    let mut all = vec![("duration_s", 60.into()), ("link", link), ("transport.tcp", transport)];
    all.extend_from_slice(changes);
    scenario(&all)
}

/// The pacing gain over time where it changes, estimated as pacing rate over bandwidth.
fn gains(control: &str) -> String {
    let series = json!({ "series": ["pacing_rate", "bandwidth", "cwnd"] });
    let points = expanded(&geo(control, &[("measure", series)]));
    let series = trace_run(&points, 0, 0, true, false, &|| false).unwrap().series;
    let (mut log, mut last) = (String::new(), String::new());
    let (mut pace, mut bandwidth, mut cwnd) = (0.0, 0.0, 0.0);
    let mut at = 0.0;
    for ((quantity, &time_s), &value) in series.quantity.iter().zip(&series.time_s).zip(&series.value) {
        if time_s > at && bandwidth > 0.0 {
            let gain = f64::round(pace / bandwidth * 100.0) / 100.0;
            let state = if cwnd <= 4000.0 { " four segments" } else { "" };
            let line = format!("gain {gain:.2}{state}");
            if line != last {
                writeln!(log, "{at:7.3} {line:<25} bandwidth {:.0} kb/s", bandwidth / 1e3).unwrap();
                last = line;
            }
        }
        at = time_s;
        match *quantity {
            "pacing_rate" => pace = value,
            "bandwidth" => bandwidth = value,
            _ => cwnd = value,
        }
    }
    log
}

/// Version 1: 2.86 (2.885 less a margin of 1 %) until the bandwidth stops growing, 0.34 until the queue is empty, then
/// cycles of 1.24, 0.74 and 0.99. After ten seconds without a shorter round trip, four segments for a round trip.
#[test]
fn version_1_starts_drains_cycles_and_measures_the_round_trip() {
    insta::assert_snapshot!(gains("bbr"));
}

/// Version 3: 2.74 (2.77 less 1 %), 0.5 until the queue is empty, 0.89 and 0.99 for two to three seconds, 1.24 for the
/// probe. The round trip is measured with half a pipe.
#[test]
fn version_3_starts_drains_cruises_and_probes() {
    insta::assert_snapshot!(gains("bbr3"));
}

/// Goodput as a share of the link's rate, 20 runs of 60 s; headers leave 0.962.
#[test]
fn goodput_over_loss() {
    let mut table = String::from("loss      reno    bbr     bbr3\n");
    for loss in [0.0, 1e-3, 1e-2, 3e-2, 1e-1] {
        write!(table, "{loss:<8}").unwrap();
        for control in ["reno", "bbr", "bbr3"] {
            let channel = json!({ "kind": "loss", "loss": loss });
            let output = run(&geo(control, &[("link.channel", channel), ("runs", 20.into())]), 2);
            let goodput: Vec<f64> = real(&output.rows, "goodput_fraction")
                .iter()
                .zip(text(&output.rows, "flow"))
                .filter(|(_, flow)| *flow == "all")
                .map(|(value, _)| *value)
                .collect();
            write!(table, "  {:.3} ", goodput.iter().sum::<f64>() / goodput.len() as f64).unwrap();
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

//! Numbers of a bundle of lines: as text for Prometheus, and as a line for people.

use std::fmt::Write as _;

use farlink_core::ppp::LineStatus;

use super::config::TtyConfig;
use super::driver::{Carried, Driver};

/// Line by line, and the rest.
pub(super) fn text(config: &TtyConfig, driver: &Driver) -> String {
    let bundle = driver.bundle();
    let lines: Vec<(&str, LineStatus, Carried)> = (config.lines.iter().enumerate())
        .filter_map(|(at, line)| Some((&*line.name, bundle.status(at)?, driver.carried(at))))
        .collect();
    let mut text = String::new();
    let mut of_lines = |name: &str, kind: &str, help: &str, value: fn(&LineStatus, Carried) -> Option<f64>| {
        head(&mut text, &format!("line_{name}"), kind, help);
        for (line, status, carried) in &lines {
            if let Some(value) = value(status, *carried) {
                writeln!(text, "farlink_ppp_line_{name}{{line=\"{line}\"}} {value}").expect("a text grows");
            }
        }
    };
    of_lines("up", "gauge", "Whether it carries packets.", |it, _| Some(f64::from(it.is_member)));
    of_lines("carrier", "gauge", "Whether its port has carrier.", |_, it| Some(f64::from(it.has_carrier)));
    of_lines("rate_bits_per_second", "gauge", "Rate at which its port sends.", |it, _| Some(it.rate_bps));
    of_lines("round_trip_seconds", "gauge", "Shortest time to an answer.", |it, _| {
        it.round_trip.map(|time| time.as_secs_f64())
    });
    of_lines("backlog_bytes", "gauge", "Bytes that have not left its port.", |it, _| Some(it.backlog_bytes as f64));
    of_lines("received_bytes_total", "counter", "Bytes that came.", |_, it| Some(it.bytes_in as f64));
    of_lines("sent_bytes_total", "counter", "Bytes that have left.", |_, it| Some(it.bytes_out as f64));
    of_lines("frames_total", "counter", "Frames that came and were right.", |it, _| Some(it.frames.frames as f64));
    of_lines("damaged_frames_total", "counter", "Frames that came and were damaged.", |it, _| {
        Some(it.frames.damaged as f64)
    });
    let (sent, received) = (bundle.send_counts(), bundle.receive_counts());
    for (name, kind, help, value) in [
        ("taken_total", "counter", "Packets from the device that were taken.", sent.packets),
        ("dropped_total", "counter", "Packets that the queue dropped, or that were too long.", sent.dropped),
        ("fragments_total", "counter", "Fragments sent.", sent.fragments),
        ("repeated_total", "counter", "Packets sent again, because a line was lost with a part.", sent.repeated),
        ("delivered_total", "counter", "Packets put together.", received.packets),
        ("lost_fragments_total", "counter", "Fragments that did not come.", received.missing),
        ("queued_bytes", "gauge", "Bytes that wait in front of the lines.", bundle.waiting_bytes() as u64),
        ("overrun_total", "counter", "Packets that came and that the device was too slow for.", bundle.overrun()),
        ("restarts_total", "counter", "Times that the peer began its bundle anew.", bundle.peer_restarts()),
        ("network_up", "gauge", "Whether packets are carried.", u64::from(bundle.properties().is_some())),
    ] {
        head(&mut text, name, kind, help);
        writeln!(text, "farlink_ppp_{name} {value}").expect("a text grows");
    }
    text
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(text, "# HELP farlink_ppp_{name} {help}\n# TYPE farlink_ppp_{name} {kind}").expect("a text grows");
}

/// How the bundle stands, in a line.
pub(super) fn line_of_status(config: &TtyConfig, driver: &Driver) -> String {
    let bundle = driver.bundle();
    let all = config.lines.len();
    let up = (0..all).filter(|&line| bundle.status(line).is_some_and(|it| it.is_member)).count();
    let carried = (0..all).map(|line| driver.carried(line));
    let (bytes_in, bytes_out) = carried.fold((0, 0), |(a, b), it| (a + it.bytes_in, b + it.bytes_out));
    let waiting = bundle.waiting_bytes();
    format!("{up} of {all} lines up, {bytes_in} bytes in, {bytes_out} bytes out, {waiting} bytes wait")
}

//! Applications whose total offered load exceeds the rate of the path.

use farlink_core::protocol::TransportConfig;
use farlink_core::scenario::traffic::Arrivals;
use farlink_core::scenario::{Flow, Scenario, TrafficKind};

use super::legs::{rate, slowest_bps};
use super::rates::fixed_rate;
use super::{Point, Remark};

/// Arrivals of all flows that do not wait for answers and exceed the rate of the path.
pub(super) fn above_the_path(Point { scenario, setup }: Point<'_>) -> Vec<Remark> {
    let path_bps = slowest_bps(&setup.forward);
    let of_flow = |(name, flow): (_, &Flow)| {
        offer(scenario, flow).map(|(key, bps)| Offer { name, key, bps, wire_bps: bps * wire_share(scenario, flow) })
    };
    let offers: Vec<Offer<'_>> = scenario.flow.iter().filter_map(of_flow).collect();
    let all_bps: f64 = offers.iter().map(|offer| offer.bps).sum();
    let wire_bps: f64 = offers.iter().map(|offer| offer.wire_bps).sum();
    // A datagram flow that alone exceeds the rate has a remark by another rule.
    let is_said = scenario.flow.iter().any(|(name, flow)| {
        fixed_rate(scenario, name, flow).is_some_and(|(_, bps, _)| bps * flow.count.get() > path_bps)
    });
    let most = offers.iter().max_by(|one, other| one.wire_bps.total_cmp(&other.wire_bps));
    let Some(Offer { name, key, .. }) = most else { return Vec::new() };
    if wire_bps <= path_bps || is_said {
        return Vec::new();
    }
    let on_the_wire =
        if all_bps > path_bps { String::new() } else { format!(", {} with headers and copies", rate(wire_bps)) };
    let with = match offers.len() {
        1 => String::new(),
        2 => " with the other flow".to_owned(),
        many => format!(" with {} other flows", many - 1),
    };
    let rest = format!(
        "offers {}{with}{on_the_wire}, and the path carries {}: what waits grows for as long as the run lasts; offer less, or give a \
         faster link",
        rate(all_bps),
        rate(path_bps),
    );
    vec![Remark::new(format!("flow.{name}.traffic.{key}"), rest)]
}

/// The offered load of a flow, in bit/s: data, and bytes on the wire.
struct Offer<'a> {
    name: &'a String,
    key: &'static str,
    bps: f64,
    wire_bps: f64,
}

/// Least number of bytes on the wire per byte of data, because a stream may fill its packets.
fn wire_share(scenario: &Scenario, flow: &Flow) -> f64 {
    let transport = scenario.transport_of_class(flow);
    let pace = transport.as_dyn().pace();
    let packed = pace.copies * pace.wire_bytes / pace.payload_bytes;
    match (&*transport, &flow.traffic) {
        (TransportConfig::Udp(udp), TrafficKind::Cbr(cbr)) => {
            let message = cbr.payload_bytes.get();
            let packets = (message / udp.segment_bytes.get()).ceil();
            pace.copies * (1.0 + packets * (pace.wire_bytes - pace.payload_bytes) / message)
        }
        _ => packed,
    }
}

/// The key for the arrival rate, and the rate of data in bit/s. `None` if the traffic ends by itself, or if late data is not sent
/// at all.
fn offer(scenario: &Scenario, flow: &Flow) -> Option<(&'static str, f64)> {
    if matches!(scenario.transport_of(flow), TransportConfig::Aerotp(aerotp) if aerotp.deadline_s.is_some()) {
        return None;
    }
    let (key, each_bps) = match &flow.traffic {
        TrafficKind::Cbr(cbr) if cbr.bytes.is_none() => ("rate_bps", cbr.rate_bps.get()),
        TrafficKind::Transfers(transfers) => match transfers.arrivals() {
            Arrivals::Poisson { rate_per_s, bytes } => ("rate_per_s", rate_per_s * bytes as f64 * 8.0),
            Arrivals::Listed(_) => return None,
        },
        _ => return None,
    };
    Some((key, each_bps * flow.count.get()))
}

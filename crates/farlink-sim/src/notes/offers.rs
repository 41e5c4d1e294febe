//! Applications that together offer more than the path carries.

use farlink_core::protocol::TransportConfig;
use farlink_core::scenario::traffic::Arrivals;
use farlink_core::scenario::{Flow, Scenario, TrafficKind};

use super::legs::{rate, slowest_bps};
use super::rates::fixed_rate;
use super::{Point, Remark};

/// Arrivals that do not wait for answers, of all flows, beyond the rate of the path.
pub(super) fn above_the_path(Point { scenario, setup }: Point<'_>) -> Vec<Remark> {
    let path_bps = slowest_bps(&setup.forward);
    let offers: Vec<(&String, &str, f64)> = scenario
        .flow
        .iter()
        .filter_map(|(name, flow)| offer(scenario, flow).map(|(key, bps)| (name, key, bps)))
        .collect();
    let all_bps: f64 = offers.iter().map(|(.., bps)| bps).sum();
    // A datagram flow that alone is above is told so by another rule.
    let is_said = scenario.flow.iter().any(|(name, flow)| {
        fixed_rate(scenario, name, flow).is_some_and(|(_, bps, _)| bps * flow.count.get() > path_bps)
    });
    let Some((name, key, _)) = offers.iter().max_by(|one, other| one.2.total_cmp(&other.2)) else { return Vec::new() };
    if all_bps <= path_bps || is_said {
        return Vec::new();
    }
    let with = match offers.len() {
        1 => String::new(),
        2 => " with the other flow".to_owned(),
        many => format!(" with {} other flows", many - 1),
    };
    let rest = format!(
        "offers {}{with}, and the path carries {}: what waits grows for as long as the run lasts; offer less, or give a \
         faster link",
        rate(all_bps),
        rate(path_bps),
    );
    vec![Remark::new(format!("flow.{name}.traffic.{key}"), rest)]
}

/// The key that says how often something arrives, and the data of it, bit/s; none if it comes to an end by itself, or if what
/// is late is not sent at all.
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

//! Traffic that a path cannot carry.

use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::tcp::CongestionControl;
use farlink_core::scenario::{Flow, Scenario, TrafficKind};

use super::{Point, Remark};

/// A fixed rate that the path cannot carry.
pub(super) fn above_the_bottleneck(Point { scenario, setup }: Point<'_>) -> Vec<Remark> {
    let rates = setup.forward.iter().map(|hop| hop.rate.constant().map_or(f64::INFINITY, |rate| rate.get()));
    let bottleneck_bps = rates.fold(f64::INFINITY, f64::min);
    let note = |(name, flow): (&String, &Flow)| {
        let (key, each_bps, consequence) = fixed_rate(scenario, name, flow)?;
        let count = flow.count.get();
        let flows = if count > 1.0 { format!(", {count} times,") } else { String::new() };
        (each_bps * count > bottleneck_bps).then(|| {
            let rest = format!(
                "= {each_bps} bit/s{flows} is above the {bottleneck_bps} bit/s that the path carries: {consequence}"
            );
            Remark::new(key, rest)
        })
    };
    scenario.flow.iter().filter_map(note).collect()
}

/// The rate at which a flow sends regardless of losses: its key, the rate in bit/s, and the consequence of exceeding the path's
/// rate.
pub(super) fn fixed_rate(scenario: &Scenario, name: &str, flow: &Flow) -> Option<(String, f64, &'static str)> {
    let of_transport = |rate_bps: f64| {
        // With an unlimited window, the receiver may hold nearly all received data behind the first gap.
        let consequence = "its queue drops the rest, and most of what arrives may wait behind a gap until the end; give a \
                           lower rate, or a max_window_segments of a few times what the path holds";
        (format!("transport.{}.rate_bps", flow.transport), rate_bps, consequence)
    };
    match (scenario.transport.get(&flow.transport)?, &flow.traffic) {
        (TransportConfig::Stp(stp), _) => stp.rate_bps.map(|rate| of_transport(rate.get())),
        (TransportConfig::ScpsTp(scps), _) if scps.congestion_control == CongestionControl::None => {
            scps.rate_bps.map(|rate| of_transport(rate.get()))
        }
        (TransportConfig::Udp(_), TrafficKind::Cbr(cbr)) => {
            let consequence = "what exceeds it is dropped, or waits ever longer where the queue has no limit";
            Some((format!("flow.{name}.traffic.rate_bps"), cbr.rate_bps.get(), consequence))
        }
        _ => None,
    }
}

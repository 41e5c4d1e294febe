//! The connections of flows, and the parts of the path that they run over.

use std::ops::Range;

use farlink_core::Time;
use farlink_core::hop::HopSetup;
use farlink_core::protocol::TransportConfig;
use farlink_core::scenario::{Flow, TrafficKind};

use super::Point;

/// One connection of a flow: over the whole path, or between gateways.
pub(super) struct Leg<'a> {
    /// The flow's name.
    pub(super) flow_name: &'a str,
    pub(super) flow: &'a Flow,
    /// The transport's name.
    pub(super) transport: &'a str,
    pub(super) config: &'a TransportConfig,
    /// Its hops in the forward direction.
    hops: Range<usize>,
    point: Point<'a>,
}

/// The connections of all flows whose transports have a name.
pub(super) fn legs<'a>(point: Point<'a>) -> Vec<Leg<'a>> {
    let hops = point.setup.forward.len();
    let mut all = Vec::new();
    for (flow_name, flow) in &point.scenario.flow {
        let mut add = |transport: &'a str, hops: Range<usize>| {
            if let Some(config) = point.scenario.transport.get(transport).filter(|_| !hops.is_empty()) {
                all.push(Leg { flow_name, flow, transport, config, hops, point });
            }
        };
        match point.scenario.gateway() {
            Some((at, _, gateway)) if point.scenario.is_split(flow) => {
                let edge = gateway.edge_transport.as_deref().unwrap_or_default();
                add(edge, 0..at);
                add(&flow.transport, at..at + 1);
                add(edge, at + 1..hops);
            }
            _ => add(&flow.transport, 0..hops),
        }
    }
    all
}

impl Leg<'_> {
    /// The hops in the forward direction.
    pub(super) fn forward(&self) -> &[HopSetup] {
        &self.point.setup.forward[self.hops.clone()]
    }

    /// The hops in the return direction.
    pub(super) fn back(&self) -> &[HopSetup] {
        let hops = self.point.setup.back.len();
        &self.point.setup.back[hops - self.hops.end..hops - self.hops.start]
    }

    /// The shortest propagation delay there and back.
    pub(super) fn round_trip(&self) -> Time {
        let least = |hops: &[HopSetup]| hops.iter().fold(Time::ZERO, |sum, hop| sum + hop.delay.shortest());
        least(self.forward()) + least(self.back())
    }

    /// Forward rate, in bit/s: the mean rate of the slowest hop.
    pub(super) fn rate_bps(&self) -> f64 {
        slowest_bps(self.forward())
    }

    /// Return rate, in bit/s.
    pub(super) fn back_bps(&self) -> f64 {
        slowest_bps(self.back())
    }

    /// Offered rate of all connections of the flow on the wire, in bit/s: that of a constant-rate source, or the rate of the
    /// path.
    pub(super) fn wanted_bps(&self) -> f64 {
        match &self.flow.traffic {
            TrafficKind::Cbr(cbr) => {
                let pace = self.config.as_dyn().pace();
                let bps = self.flow.count.get() * cbr.rate_bps.get() * pace.wire_bytes / pace.payload_bytes;
                bps.min(self.rate_bps())
            }
            _ => self.rate_bps(),
        }
    }

    /// Whether the flow is saturated, or sends a file of at least `bytes` bytes.
    pub(super) fn has_at_least(&self, bytes: f64) -> bool {
        match &self.flow.traffic {
            TrafficKind::Bulk(_) => true,
            TrafficKind::File(file) => file.bytes.get() >= bytes,
            _ => false,
        }
    }
}

pub(super) fn slowest_bps(hops: &[HopSetup]) -> f64 {
    hops.iter().map(|hop| hop.rate.mean_bps()).fold(f64::INFINITY, f64::min)
}

/// A rate as text.
pub(super) fn rate(bps: f64) -> String {
    match bps {
        1e9.. => format!("{} Gb/s", digits(bps / 1e9)),
        1e6.. => format!("{} Mb/s", digits(bps / 1e6)),
        1e3.. => format!("{} kb/s", digits(bps / 1e3)),
        _ => format!("{} bit/s", digits(bps)),
    }
}

/// Three significant digits.
pub(super) fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let places = (2.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

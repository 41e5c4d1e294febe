//! Refuses packets that are too long for the receiver of a bundle, or for the burst of a policer.

use super::flow::Flow;
use super::gateway::Gateway;
use super::{Hop, Scenario, TrafficKind};
use crate::ConfigError;
use crate::bundle::BundleConfig;
use crate::hop::PolicerConfig;
use crate::protocol::{LongestPacket, TransportConfig};

/// The longest packet of a flow on a hop, and the full path of the key that sets it.
struct Longest {
    key: String,
    bytes: u64,
    packet: LongestPacket,
}

/// Checks the length of packets against all limits.
pub(super) fn check(scenario: &Scenario) -> Result<(), ConfigError> {
    let gateway = scenario.gateway();
    for (at, (name, hop)) in scenario.hops().into_iter().enumerate() {
        let Hop { bundle, policer, .. } = hop;
        if bundle.is_none() && policer.is_none() {
            continue;
        }
        let place = scenario.table_of(name);
        for (flow_name, flow) in &scenario.flow {
            let edge = gateway.filter(|&(between, ..)| between != at && scenario.is_split(flow));
            let longest = longest(scenario, flow, edge.map(|(_, edged, gateway)| (edged, gateway)));
            bundle.as_ref().map_or(Ok(()), |bundle| fits_the_mrru(&longest, bundle, &place))?;
            policer.map_or(Ok(()), |policer| fits_the_burst(&longest, policer, &place, flow_name))?;
        }
    }
    Ok(())
}

/// The longest packet of a flow, or of the gateways' transport at the edges of a split path.
fn longest(scenario: &Scenario, flow: &Flow, edge: Option<(&str, &Gateway)>) -> Longest {
    let Some((edged, gateway)) = edge else {
        let transport = scenario.transport_of(flow);
        let packet = transport.as_dyn().longest_packet();
        let bytes = data_bytes(transport, &flow.traffic, packet) + packet.overhead_bytes;
        return Longest { key: format!("transport.{}.{}", flow.transport, packet.key), bytes, packet };
    };
    let packet = gateway.edge(scenario).as_dyn().longest_packet();
    let key = match &gateway.edge_transport {
        Some(named) => format!("transport.{named}.{}", packet.key),
        None => format!("hop.{edged}.gateway.edge_transport"),
    };
    Longest { key, bytes: packet.data_bytes + packet.overhead_bytes, packet }
}

/// On a real bundle the peer's MRRU is the MTU of the interface (RFC 1990, section 5.1.1), so a sender makes no longer packets; in
/// a scenario, the transport's keys determine their length.
fn fits_the_mrru(longest: &Longest, bundle: &BundleConfig, place: &str) -> Result<(), ConfigError> {
    let Longest { key, bytes, packet } = longest;
    let most = bundle.mrru_bytes.whole();
    if *bytes <= most {
        return Ok(());
    }
    let what =
        format!("packets of {bytes} bytes are longer than {place}.bundle.mrru_bytes = {most}, and all would be lost");
    let remedy = match most.checked_sub(packet.overhead_bytes).filter(|&room| room > 0) {
        Some(room) => format!("give a {} of at most {room}, or raise mrru_bytes", packet.key),
        None => "raise mrru_bytes".to_owned(),
    };
    Err(ConfigError::new(key, what, remedy))
}

/// A bucket that never holds enough tokens for a packet never passes it.
fn fits_the_burst(longest: &Longest, policer: PolicerConfig, place: &str, flow: &str) -> Result<(), ConfigError> {
    let Longest { key, bytes, .. } = longest;
    let burst_bytes = policer.burst_bytes.whole();
    if *bytes <= burst_bytes {
        return Ok(());
    }
    let what = format!(
        "a burst of {burst_bytes} bytes never holds the tokens for a packet of {bytes} bytes, the longest of flow.{flow}, and \
         all such packets would be dropped"
    );
    let remedy = format!("give {bytes} or more, or shorter packets with {key}");
    Err(ConfigError::new(format!("{place}.policer.burst_bytes"), what, remedy))
}

/// Largest payload of a packet of a flow: a datagram is at most as long as one message, and any packet at most as long as the
/// file.
fn data_bytes(transport: &TransportConfig, traffic: &TrafficKind, longest: LongestPacket) -> u64 {
    let written = match traffic {
        TrafficKind::Cbr(cbr) if transport.as_dyn().carries_datagrams() => cbr.payload_bytes.whole(),
        TrafficKind::File(file) if longest.overhead_bytes > 0 => file.bytes.whole(),
        _ => u64::MAX,
    };
    longest.data_bytes.min(written)
}

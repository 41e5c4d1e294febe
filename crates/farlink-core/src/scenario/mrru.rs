//! Refuses packets that are too long for the receiver of a bundle.

use super::{Scenario, TrafficKind};
use crate::ConfigError;
use crate::protocol::{LongestPacket, TransportConfig};

/// Checks the length of packets against the MRRU. On a real bundle the peer's MRRU is the MTU of the interface (RFC 1990, section
/// 5.1.1), so a sender makes no longer packets; in a scenario, the transport's keys determine their length.
pub(super) fn check(scenario: &Scenario) -> Result<(), ConfigError> {
    let gateway = scenario.gateway();
    for (at, (name, hop)) in scenario.hops().into_iter().enumerate() {
        let Some(bundle) = &hop.bundle else { continue };
        let place = if scenario.link.is_some() { "link".to_owned() } else { format!("hop.{name}") };
        let most = bundle.mrru_bytes.whole();
        for flow in scenario.flow.values() {
            let transport = scenario.transport_of(flow);
            let edge = gateway.filter(|&(between, ..)| between != at && scenario.is_split(flow));
            let (key, bytes, longest) = match edge {
                None => {
                    let longest = transport.as_dyn().longest_packet();
                    let data_bytes = data_bytes(transport, &flow.traffic, longest);
                    (
                        format!("transport.{}.{}", flow.transport, longest.key),
                        data_bytes + longest.overhead_bytes,
                        longest,
                    )
                }
                Some((_, edged, gateway)) => {
                    let longest = gateway.edge(scenario).as_dyn().longest_packet();
                    let key = match &gateway.edge_transport {
                        Some(named) => format!("transport.{named}.{}", longest.key),
                        None => format!("hop.{edged}.gateway.edge_transport"),
                    };
                    (key, longest.data_bytes + longest.overhead_bytes, longest)
                }
            };
            if bytes > most {
                let what = format!(
                    "packets of {bytes} bytes are longer than {place}.bundle.mrru_bytes = {most}, and all would be lost"
                );
                let remedy = match most.checked_sub(longest.overhead_bytes).filter(|&room| room > 0) {
                    Some(room) => format!("give a {} of at most {room}, or raise mrru_bytes", longest.key),
                    None => "raise mrru_bytes".to_owned(),
                };
                return Err(ConfigError::new(key, what, remedy));
            }
        }
    }
    Ok(())
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

//! The engine `model`: the keys that closed forms support, and what they need to know of a flow besides its keys.

use serde::Serialize;

use super::{Flow, Scenario};
use crate::protocol::parts::rto::RtoConfig;
use crate::protocol::{ProtocolConfig, TransportConfig};

/// Keys that the engine supports; the name of a transport stands for its kind. Which values of them a closed form covers is for
/// the form to say. Long-run averages do not depend on the keys for the start and the end of a run.
pub(super) const HONOURED: &[&str] = &[
    "title",
    "seed",
    "engines",
    "unsupported",
    "precision.*",
    "fluid.**",
    "path",
    "link.rate_bps",
    "link.delay_s",
    "link.queue_bytes",
    "link.queue_packets",
    "link.channel.kind",
    "link.channel.loss",
    "link.channel.ber",
    "link.coding.modulation",
    "link.coding.decision",
    "link.coding.ebn0_db",
    "link.coding.cn0_dbhz",
    "link.coding.code.kind",
    "link.coding.errors",
    "link.return.rate_bps",
    "link.return.delay_s",
    "link.return.processing_s",
    "link.return.channel.kind",
    "link.return.channel.loss",
    "link.return.channel.ber",
    "flow.*.transport",
    "flow.*.count",
    "flow.*.traffic.kind",
    "flow.*.traffic.bytes",
    "flow.*.traffic.rate_bps",
    "flow.*.traffic.payload_bytes",
    "transport.tcp.kind",
    "transport.tcp.variant",
    "transport.tcp.congestion_control",
    "transport.tcp.segment_bytes",
    "transport.tcp.header_bytes",
    "transport.tcp.ack_bytes",
    "transport.tcp.timestamps",
    "transport.tcp.window_scaling",
    "transport.tcp.max_window_segments",
    "transport.tcp.receive_window_segments",
    "transport.tcp.duplicate_ack_threshold",
    "transport.tcp.limited_transmit",
    "transport.tcp.delayed_ack",
    "transport.tcp.delayed_ack_timeout_s",
    "transport.tcp.byte_counting",
    "transport.tcp.initial_window_segments",
    "transport.tcp.initial_ssthresh_segments",
    "transport.tcp.hystart",
    "transport.tcp.handshake",
    "transport.tcp.rto.initial_s",
    "transport.tcp.rto.minimum_s",
    "transport.tcp.rto.maximum_s",
    "transport.arq.kind",
    "transport.arq.mode",
    "transport.arq.segment_bytes",
    "transport.arq.header_bytes",
    "transport.arq.ack_bytes",
    "transport.arq.window_frames",
    "transport.arq.buffer_frames",
    "transport.arq.rate_bps",
    "transport.arq.ack",
    "transport.arq.timestamps",
    "transport.arq.rto.algorithm",
    "transport.arq.rto.initial_s",
    "transport.udp.kind",
    "transport.udp.segment_bytes",
    "transport.udp.header_bytes",
    "transport.aerotp.kind",
    "transport.aerotp.mode",
    "transport.aerotp.packet_bytes",
    "transport.aerotp.header_bytes",
    "transport.aerotp.rate_bps",
    "transport.aerotp.rate_control",
    "transport.aerotp.alone",
    // The start and length of a run.
    "duration_s",
    "give_up_after_s",
    "runs",
    "measure.*",
    "limits.*",
    "flow.*.start_s",
    "flow.*.start_spread_s",
    "transport.tcp.fin",
    "transport.tcp.restart_after_idle",
];

/// Lengths and limits of a transport that several of its keys and their defaults decide together. Bytes include headers, except
/// where they are called payload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// Payload of a full packet.
    pub payload_bytes: u64,
    /// A full packet on the wire.
    pub packet_bytes: u64,
    /// Largest number of packets sent and not acknowledged.
    pub window_packets: Option<u64>,
    /// Packets per acknowledgement.
    pub packets_per_ack: Option<f64>,
    /// An acknowledgement on the wire.
    pub ack_bytes: Option<u64>,
    /// Whether the window grows by what an acknowledgement covers, not by one for each (TCP).
    pub counts_bytes: bool,
    /// Least and longest retransmission timeout, in seconds.
    pub timeouts_s: Option<(f64, f64)>,
}

impl Sizes {
    /// Those of a flow's transport; `None` if there is no closed form for it.
    ///
    /// # Panics
    /// If the transport does not exist; a scenario from [`expand`](super::expand) has it.
    pub fn of(scenario: &Scenario, flow: &Flow) -> Option<Sizes> {
        match &*scenario.transport_of_class(flow) {
            TransportConfig::Tcp(tcp) => {
                let sizes = Sizes::of_flight(tcp, Some(tcp.rto))?;
                Some(Sizes { counts_bytes: tcp.counts_bytes(), ..sizes })
            }
            TransportConfig::Arq(arq) => Sizes::of_flight(arq, Some(arq.rto)),
            TransportConfig::Udp(udp) => {
                let longest = udp.longest_packet();
                Some(Sizes::unbounded(longest.data_bytes, longest.data_bytes + longest.overhead_bytes))
            }
            TransportConfig::Aerotp(aerotp) => {
                Some(Sizes::unbounded(aerotp.full_payload_bytes(), aerotp.packet_bytes.whole()))
            }
            TransportConfig::Stp(_) | TransportConfig::ScpsTp(_) => None,
        }
    }

    fn of_flight(transport: &dyn ProtocolConfig, rto: Option<RtoConfig>) -> Option<Sizes> {
        let flight = transport.flight()?;
        Some(Sizes {
            window_packets: Some(flight.window_packets),
            packets_per_ack: flight.acknowledgements.map(|acks| acks.every_packets),
            ack_bytes: flight.acknowledgements.map(|acks| acks.bytes),
            timeouts_s: rto.map(|rto| (rto.least_s(), rto.most_s())),
            ..Sizes::unbounded(flight.payload_bytes, flight.packet_bytes)
        })
    }

    fn unbounded(payload_bytes: u64, packet_bytes: u64) -> Sizes {
        Sizes {
            payload_bytes,
            packet_bytes,
            window_packets: None,
            packets_per_ack: None,
            ack_bytes: None,
            counts_bytes: false,
            timeouts_s: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scenario::expand;

    fn sizes(transport: serde_json::Value) -> Option<Sizes> {
        let scenario = json!({
            "duration_s": 10,
            "link": {"rate_bps": 1e6, "delay_s": 0.25},
            "transport": {"t": transport},
            "flow": {"f": {"transport": "t", "traffic": {"kind": "bulk"}}},
        });
        let expanded = expand(&scenario).unwrap();
        let scenario = &expanded.points[0].scenario;
        Sizes::of(scenario, &scenario.flow["f"])
    }

    #[test]
    fn defaults_and_options_are_in_the_lengths() {
        let tcp = sizes(json!({"kind": "tcp", "timestamps": true, "receive_window_segments": 9})).unwrap();
        assert_eq!((tcp.payload_bytes, tcp.packet_bytes, tcp.ack_bytes), (1460, 1512, Some(52)));
        assert_eq!((tcp.window_packets, tcp.packets_per_ack, tcp.timeouts_s), (Some(9), Some(2.0), Some((1.0, 60.0))));
        let arq = sizes(json!({"kind": "arq", "mode": "stop-and-wait"})).unwrap();
        assert_eq!((arq.packet_bytes, arq.window_packets, arq.ack_bytes), (1020, Some(1), Some(20)));
        let udp = sizes(json!({"kind": "udp"})).unwrap();
        assert_eq!((udp.payload_bytes, udp.packet_bytes), (1472, 1500));
        let aerotp = sizes(json!({"kind": "aerotp"})).unwrap();
        assert_eq!((aerotp.payload_bytes, aerotp.packet_bytes), (1456, 1500));
        assert_eq!(sizes(json!({"kind": "stp"})), None);
    }
}

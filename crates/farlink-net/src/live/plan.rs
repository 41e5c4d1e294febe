//! Which flows a scenario has, as sockets can play them.

use std::time::Duration;

use farlink_core::ConfigError;
use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::aerotp::{AerotpConfig, Mode};
use farlink_core::protocol::tcp::{CongestionControl, TcpConfig, Variant};
use farlink_core::scenario::Scenario;
use farlink_core::scenario::traffic::TrafficKind;

/// Most flows of a run: each has sockets, tasks and a port.
const MOST_FLOWS: usize = 256;
/// The port of the first flow at the far end.
const FIRST_PORT: u16 = 5001;
/// A datagram that is longer than a packet of the path would be cut into several.
const MOST_UDP_BYTES: usize = 1472;
/// Bytes of TCP's payload with its options: least as the kernel has it, and most in a packet of 1500 bytes.
const PACKET_BYTES: u64 = 1500;
const LEAST_SEGMENT: u64 = 88;
const MOST_SEGMENT: u64 = 1460;
const TIMESTAMP_BYTES: u64 = 12;
/// First bytes of UDP messages: the time at which they were sent.
const UDP_HEAD_BYTES: usize = 8;

/// The flows of a scenario.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One for each connection.
    pub flows: Vec<LiveFlow>,
    /// How long they run.
    pub duration: Duration,
    /// Duration of the warm-up: packets in it do not count.
    pub warmup: Duration,
    /// Whether TCP sends timestamps: a setting of the namespaces.
    pub timestamps: bool,
}

/// A flow.
#[derive(Clone, Debug)]
pub struct LiveFlow {
    /// Its name in the result.
    pub name: String,
    /// The name of its transport.
    pub transport: String,
    /// When it begins.
    pub start: Duration,
    /// Its port at the far end.
    pub port: u16,
    pub(super) how: How,
    pub(super) traffic: Traffic,
}

#[derive(Clone, Debug)]
pub(super) enum How {
    Tcp { control: &'static str, segment_bytes: u32 },
    Aerotp(Box<AerotpConfig>),
    Udp,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Traffic {
    Bulk,
    File {
        bytes: u64,
    },
    /// A message after each interval.
    Cbr {
        every: Duration,
        bytes: usize,
        messages: Option<u64>,
        /// The last one may be shorter.
        last_bytes: usize,
    },
}

impl Plan {
    /// The flows of a point of a scenario.
    ///
    /// # Errors
    /// If a key of it says what no socket does.
    pub fn of(scenario: &Scenario) -> Result<Self, ConfigError> {
        let Some(duration) = scenario.duration_s else {
            let what = "a live run takes real time, and the scenario does not say how much";
            return Err(ConfigError::new("duration_s", what, "give for example duration_s = 60"));
        };
        let mut flows = Vec::new();
        for (name, flow) in &scenario.flow {
            let within = |key: &str| format!("flow.{name}.{key}");
            if flow.restart.is_some() {
                let what = "sockets of a live run are not restarted";
                return Err(ConfigError::new(within("restart"), what, "remove it, or use the engine packet"));
            }
            if flow.start_spread_s.get() > 0.0 {
                let what = "a live run begins flows at set times";
                return Err(ConfigError::new(within("start_spread_s"), what, "give start_s alone"));
            }
            if flow.class.whole() > 0 {
                let what = "packets of a live run have no class of service";
                return Err(ConfigError::new(within("class"), what, "remove it, or use the engine packet"));
            }
            let how = how(&flow.transport, scenario)?;
            let traffic =
                traffic(&flow.traffic, &how).map_err(|error| error.within(&format!("flow.{name}.traffic")))?;
            let count = flow.count.whole() as usize;
            if flows.len() + count > MOST_FLOWS {
                let what = format!("there are more than {MOST_FLOWS} flows, each with its sockets");
                return Err(ConfigError::new(within("count"), what, "give fewer, or use the engine packet"));
            }
            for number in 1..=count {
                flows.push(LiveFlow {
                    name: if count == 1 { name.clone() } else { format!("{name}.{number}") },
                    transport: flow.transport.clone(),
                    start: Duration::from_secs_f64(flow.start_s.get()),
                    port: FIRST_PORT + flows.len() as u16,
                    how: how.clone(),
                    traffic,
                });
            }
        }
        let seconds = Duration::from_secs_f64;
        let warmup = seconds(scenario.measure.warmup_s.get());
        Ok(Plan { flows, duration: seconds(duration.get()), warmup, timestamps: timestamps(scenario)? })
    }
}

/// Whether the kernel's TCP of all flows sends timestamps.
fn timestamps(scenario: &Scenario) -> Result<bool, ConfigError> {
    let used = scenario.flow.values().map(|flow| flow.transport.as_str());
    let mut wanted = used.filter_map(|name| match &scenario.transport[name] {
        TransportConfig::Tcp(tcp) => Some((name, tcp.timestamps)),
        _ => None,
    });
    let Some((first, of_first)) = wanted.next() else { return Ok(false) };
    match wanted.find(|(_, timestamps)| *timestamps != of_first) {
        None => Ok(of_first),
        Some((other, _)) => {
            let what = format!("all TCP of a live run sends timestamps or none does, and {first} differs");
            Err(ConfigError::new(format!("transport.{other}.timestamps"), what, "give all the same"))
        }
    }
}

fn how(name: &str, scenario: &Scenario) -> Result<How, ConfigError> {
    let table = format!("transport.{name}");
    match &scenario.transport[name] {
        TransportConfig::Tcp(tcp) => kernel_tcp(tcp).map_err(|error| error.within(&table)),
        TransportConfig::Aerotp(aerotp) if aerotp.mode == Mode::Datagram => {
            let what = "a live run of AeroTP has connections";
            Err(ConfigError::new(format!("{table}.mode"), what, "give another mode, or kind = \"udp\""))
        }
        TransportConfig::Aerotp(aerotp) if aerotp.packet_bytes.whole() != PACKET_BYTES => {
            let what =
                format!("packets of a live run have up to {PACKET_BYTES} bytes, not {}", aerotp.packet_bytes.whole());
            Err(ConfigError::new(format!("{table}.packet_bytes"), what, "give 1500, or use the engine packet"))
        }
        TransportConfig::Aerotp(aerotp) => Ok(How::Aerotp(Box::new(aerotp.clone()))),
        TransportConfig::Udp(udp) if udp.correction.is_some() || udp.copies.whole() > 1 => {
            let what = "sockets send each datagram once and without a code";
            Err(ConfigError::new(table, what, "remove copies and correction, or use the engine packet"))
        }
        TransportConfig::Udp(_) => Ok(How::Udp),
        _ => {
            let what = "neither the kernel nor farlink-net has this transport";
            Err(ConfigError::new(format!("{table}.kind"), what, "give tcp, aerotp or udp, or use the engine packet"))
        }
    }
}

/// The kernel's TCP always has selective acknowledgements, RACK and delayed acknowledgements.
fn kernel_tcp(tcp: &TcpConfig) -> Result<How, ConfigError> {
    let control = match tcp.congestion_control {
        CongestionControl::Reno => "reno",
        CongestionControl::Cubic => "cubic",
        CongestionControl::Bbr => "bbr",
        other => {
            let what = format!("the engine live plays the kernel's reno, cubic and bbr, not {}", other.name());
            return Err(ConfigError::new("congestion_control", what, "give one of these, or use the engine packet"));
        }
    };
    if !matches!(tcp.variant, Variant::Sack | Variant::Rack) {
        let what = format!("the kernel repairs losses by SACK and RACK, not as {} does", tcp.variant.name());
        return Err(ConfigError::new("variant", what, "give variant = \"rack\" or \"sack\", or use the engine packet"));
    }
    if !tcp.delayed_ack {
        let what = "the kernel delays acknowledgements";
        return Err(ConfigError::new("delayed_ack", what, "remove it, or use the engine packet"));
    }
    let segment_bytes = tcp.segment_bytes.whole();
    // The kernel takes the timestamps from the bytes that TCP_MAXSEG allows.
    let with_options = if tcp.timestamps { segment_bytes + TIMESTAMP_BYTES } else { segment_bytes };
    if !(LEAST_SEGMENT..=MOST_SEGMENT).contains(&with_options) {
        let most = MOST_SEGMENT + segment_bytes - with_options;
        let what = format!(
            "packets have up to 1500 bytes, so that segments have {LEAST_SEGMENT} to {most}, not {segment_bytes}"
        );
        return Err(ConfigError::new("segment_bytes", what, "give a number between them"));
    }
    Ok(How::Tcp { control, segment_bytes: with_options as u32 })
}

fn traffic(kind: &TrafficKind, how: &How) -> Result<Traffic, ConfigError> {
    let traffic = match kind {
        TrafficKind::Bulk(_) => Traffic::Bulk,
        TrafficKind::File(file) => Traffic::File { bytes: file.bytes.whole() },
        TrafficKind::Cbr(cbr) => {
            let bytes = cbr.payload_bytes.whole();
            Traffic::Cbr {
                every: Duration::from_secs_f64(8.0 * bytes as f64 / cbr.rate_bps.get()),
                bytes: bytes as usize,
                messages: cbr.bytes.map(|all| all.whole().div_ceil(bytes)),
                last_bytes: cbr.bytes.map_or(0, |all| all.whole() - (all.whole().div_ceil(bytes) - 1) * bytes) as usize,
            }
        }
        TrafficKind::Transfers(_) => {
            let what = "a live run has no transfers at random";
            return Err(ConfigError::new("kind", what, "give bulk, file or cbr, or use the engine packet"));
        }
    };
    match (how, traffic) {
        (How::Udp, Traffic::Cbr { messages: Some(_), last_bytes, .. }) if last_bytes < UDP_HEAD_BYTES => {
            let what = format!(
                "the last datagram would have {last_bytes} bytes, and one of a live run has {UDP_HEAD_BYTES} at least"
            );
            Err(ConfigError::new("bytes", what, "give a multiple of payload_bytes"))
        }
        (How::Udp, Traffic::Cbr { bytes, .. }) if (UDP_HEAD_BYTES..=MOST_UDP_BYTES).contains(&bytes) => Ok(traffic),
        (How::Udp, Traffic::Cbr { bytes, .. }) => {
            let what = format!("a datagram of a live run has {UDP_HEAD_BYTES} to {MOST_UDP_BYTES} bytes, not {bytes}");
            Err(ConfigError::new("payload_bytes", what, "give a number between them"))
        }
        (How::Udp, _) => {
            let what = "without a rate, a socket of UDP would send as fast as the machine can";
            Err(ConfigError::new("kind", what, "give kind = \"cbr\" with a rate"))
        }
        _ => Ok(traffic),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn plan(transport: Value, flow: Value) -> Result<Plan, ConfigError> {
        let mut scenario = json!({
            "duration_s": 10,
            "link": {"rate_bps": 1e7, "delay_s": 0.05},
            "transport": {"t": transport},
            "flow": {"f": {"transport": "t", "traffic": {"kind": "bulk"}}},
        });
        if let (Some(f), Value::Object(more)) = (scenario["flow"]["f"].as_object_mut(), flow) {
            f.extend(more);
        }
        let expanded = farlink_core::scenario::expand(&scenario)?;
        Plan::of(&expanded.points[0].scenario)
    }

    #[test]
    fn flows_have_names_and_ports_of_their_own() {
        let tcp = json!({"kind": "tcp", "variant": "rack", "congestion_control": "cubic"});
        let plan = plan(tcp, json!({"count": 2, "start_s": 1.5})).unwrap();
        let flows: Vec<_> = plan.flows.iter().map(|flow| (flow.name.as_str(), flow.port)).collect();
        assert_eq!(flows, [("f.1", 5001), ("f.2", 5002)]);
        assert_eq!((plan.flows[0].start, plan.duration), (Duration::from_millis(1500), Duration::from_secs(10)));
        assert!(matches!(plan.flows[0].how, How::Tcp { control: "cubic", segment_bytes: 1460 }));
    }

    #[test]
    fn what_no_socket_plays_is_refused_by_name() {
        let cases = [
            (json!({"kind": "tcp", "variant": "tahoe"}), json!({}), "transport.t.variant"),
            (json!({"kind": "tcp", "variant": "sack", "congestion_control": "vegas"}), json!({}), "congestion_control"),
            (json!({"kind": "stp"}), json!({}), "transport.t.kind"),
            (json!({"kind": "udp"}), json!({}), "flow.f.traffic.kind"),
            (
                json!({"kind": "udp"}),
                json!({"traffic": {"kind": "cbr", "rate_bps": 1e6, "payload_bytes": 5000}}),
                "flow.f.traffic.payload_bytes",
            ),
            (json!({"kind": "tcp", "variant": "sack"}), json!({"start_spread_s": 1}), "flow.f.start_spread_s"),
            (json!({"kind": "tcp", "variant": "sack"}), json!({"count": 1000}), "flow.f.count"),
            (json!({"kind": "tcp", "variant": "sack", "segment_bytes": 8960}), json!({}), "transport.t.segment_bytes"),
            (
                json!({"kind": "tcp", "variant": "sack", "segment_bytes": 1449, "timestamps": true}),
                json!({}),
                "transport.t.segment_bytes",
            ),
            (json!({"kind": "aerotp", "rate_bps": 1e6, "packet_bytes": 600}), json!({}), "transport.t.packet_bytes"),
            (
                json!({"kind": "udp"}),
                json!({"traffic": {"kind": "cbr", "rate_bps": 1e6, "payload_bytes": 300, "bytes": 301}}),
                "flow.f.traffic.bytes",
            ),
        ];
        for (transport, flow, key) in cases {
            let error = plan(transport.clone(), flow).unwrap_err();
            assert!(error.message().contains(key), "{transport}: {}", error.message());
        }
    }
}

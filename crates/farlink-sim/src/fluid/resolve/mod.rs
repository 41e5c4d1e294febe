//! Conversion of a checked scenario to an operating point.

mod losses;

use farlink_core::ConfigError;
use farlink_core::link::QueueLimit;
use farlink_core::link::setting::{RateKind, Setting};
use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::tcp::{CongestionControl, TcpConfig, Variant};
use farlink_core::scenario::{Direction, Fluid, Scenario, TrafficKind};
use farlink_core::trace::{Trace, TraceSource};

use super::law::{Constants, Growth};
use super::point::{Point, Repair, Rule, Span, Timeouts};
use losses::{Losses, losses, together};

/// The timeout of RFC 6298 in round trips: one, and the variation over a sawtooth.
const ROUND_TRIPS_OF_TIMER: f64 = 1.5;

/// The flows of one name in a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// The name of its transport.
    pub transport: String,
    /// Number of these flows.
    pub count: usize,
}

/// A point of a scenario, ready to be simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The simulated point: all flows, or one if each has a buffer of its own.
    pub point: Point,
    /// When the simulation ends.
    pub rule: Rule,
    /// The flows in the order of `point`.
    pub kinds: Vec<Kind>,
    /// Whether each flow has a share of the bottleneck for itself.
    pub has_own_buffers: bool,
    /// Payload of a segment, bytes.
    pub payload_bytes: f64,
    /// A segment on the wire, bytes.
    pub packet_bytes: f64,
    /// Rate of the bottleneck, in bit/s.
    pub rate_bps: f64,
}

/// Resolves one grid point.
///
/// # Errors
/// If a trace cannot be used, or the fluid engine cannot model the scenario.
pub fn resolve(scenario: &Scenario, traces: &dyn TraceSource) -> Result<Setup, ConfigError> {
    let tcp = transport(scenario)?;
    let (header, ack_bytes) = tcp.overhead_bytes();
    let payload_bytes = tcp.segment_bytes.get();
    let packet_bytes = payload_bytes + f64::from(header);
    let path = Path::new(scenario, packet_bytes, f64::from(ack_bytes), traces)?;
    let options = scenario.fluid.clone().unwrap_or_default();
    let kinds = kinds(scenario)?;
    let point = Point {
        rate: path.rate_bps / (8.0 * packet_bytes),
        spans: path.spans,
        round_trips_s: round_trips(&kinds, &options, path.round_trip_s),
        buffer: path.buffer,
        loss: path.loss,
        segments_per_ack: if tcp.delayed_ack { 2.0 } else { 1.0 },
        counts_bytes: tcp.counts_bytes(),
        growth: growth(tcp)?,
        max_window: tcp.most_in_flight_segments() as f64,
        repair: repair(scenario, tcp)?,
        duplicate_acks: if options.multiple_losses { tcp.duplicate_ack_threshold.get() } else { 0.0 },
        limited_transmit: tcp.limited_transmit,
        multiple_losses: options.multiple_losses,
        timeouts: options.timeouts.then(|| Timeouts {
            least_s: tcp.rto.least_s(),
            round_trips: ROUND_TRIPS_OF_TIMER,
            most_s: tcp.rto.most_s(),
        }),
    };
    Ok(Setup {
        point,
        rule: rule(scenario, &options)?,
        kinds,
        has_own_buffers: options.own_buffers,
        payload_bytes,
        packet_bytes,
        rate_bps: path.rate_bps,
    })
}

/// The one transport that all flows have.
fn transport(scenario: &Scenario) -> Result<&TcpConfig, ConfigError> {
    let mut found: Option<(&str, &TcpConfig)> = None;
    for (name, flow) in &scenario.flow {
        let TransportConfig::Tcp(tcp) = scenario.transport_of(flow) else {
            let what = format!("the engine \"fluid\" knows tcp, and {:?} is another transport", flow.transport);
            return Err(ConfigError::new(
                format!("flow.{name}.transport"),
                what,
                "give a tcp transport, or take the engine \"packet\"",
            ));
        };
        match found {
            Some((other, config)) if config != tcp => {
                let what = format!(
                    "{:?} differs from {other:?}: the engine \"fluid\" has one transport for all flows",
                    flow.transport
                );
                return Err(ConfigError::new(
                    format!("flow.{name}.transport"),
                    what,
                    "give all flows the same settings, or take the engine \"packet\"",
                ));
            }
            Some(_) => {}
            None => found = Some((&flow.transport, tcp)),
        }
    }
    Ok(found.expect("a checked scenario has a flow").1)
}

fn kinds(scenario: &Scenario) -> Result<Vec<Kind>, ConfigError> {
    let kind = |(name, flow): (&String, &farlink_core::scenario::Flow)| {
        if !matches!(flow.traffic, TrafficKind::Bulk(_)) {
            let what = format!(
                "traffic of kind {:?} ends or pauses, and the engine \"fluid\" is for the long run",
                flow.traffic.kind()
            );
            return Err(ConfigError::new(
                format!("flow.{name}.traffic.kind"),
                what,
                "give kind = \"bulk\", or take the engine \"packet\"",
            ));
        }
        Ok(Kind { name: name.clone(), transport: flow.transport.clone(), count: flow.count.whole() as usize })
    };
    scenario.flow.iter().map(kind).collect()
}

fn round_trips(kinds: &[Kind], options: &Fluid, path_s: f64) -> Vec<f64> {
    let extra_s = |name: &str| options.extra_round_trip_s.get(name).map_or(0.0, |extra| extra.get());
    kinds.iter().flat_map(|kind| std::iter::repeat_n(path_s + extra_s(&kind.name), kind.count)).collect()
}

fn growth(tcp: &TcpConfig) -> Result<Growth, ConfigError> {
    match tcp.congestion_control {
        CongestionControl::Reno => Ok(Growth::Reno),
        CongestionControl::Cubic => {
            let constants = tcp.cubic.unwrap_or_default();
            Ok(Growth::Cubic(Constants {
                beta: constants.beta.get(),
                c: constants.c.get(),
                fast_convergence: constants.fast_convergence,
                reno_friendly: constants.reno_friendly,
            }))
        }
        other => {
            let what = format!("the engine \"fluid\" does not know {:?}", other.name());
            Err(ConfigError::new(
                "transport.congestion_control",
                what,
                "give \"reno\" or \"cubic\", or take the engine \"packet\"",
            ))
        }
    }
}

fn repair(scenario: &Scenario, tcp: &TcpConfig) -> Result<Repair, ConfigError> {
    match tcp.variant {
        Variant::Reno => Ok(Repair::Reno),
        Variant::NewReno => Ok(Repair::NewReno),
        Variant::Sack => Ok(Repair::Sack),
        Variant::Rack => Ok(Repair::Rack),
        other => {
            let name = scenario.flow.values().next().map_or("", |flow| &flow.transport);
            let what = format!("the engine \"fluid\" does not know {:?}", other.name());
            let remedy = "give \"reno\", \"newreno\", \"sack\" or \"rack\", or take the engine \"packet\"";
            Err(ConfigError::new(format!("transport.{name}.variant"), what, remedy))
        }
    }
}

fn rule(scenario: &Scenario, options: &Fluid) -> Result<Rule, ConfigError> {
    let max_time_s = options.max_time_s.get();
    let Some(precision) = &scenario.precision else { return Ok(Rule { max_time_s, ..Rule::default() }) };
    if !matches!(precision.quantity.as_str(), "goodput_bps" | "goodput_fraction") {
        let what = format!("the engine \"fluid\" knows intervals of the goodput, not of {:?}", precision.quantity);
        return Err(ConfigError::new("precision.quantity", what, "give \"goodput_bps\""));
    }
    Ok(Rule { bound: precision.ci.get(), level: precision.level.get(), max_time_s })
}

/// The combination of all hops.
struct Path {
    rate_bps: f64,
    spans: Vec<Span>,
    /// Segments.
    buffer: f64,
    loss: f64,
    round_trip_s: f64,
}

impl Path {
    fn new(
        scenario: &Scenario,
        packet_bytes: f64,
        ack_bytes: f64,
        traces: &dyn TraceSource,
    ) -> Result<Self, ConfigError> {
        let packet_bits = 8.0 * packet_bytes;
        let mut path =
            Path { rate_bps: f64::INFINITY, spans: Vec::new(), buffer: f64::INFINITY, loss: 0.0, round_trip_s: 0.0 };
        let mut arrives = 1.0;
        let mut changing = None;
        for (name, hop) in scenario.hops() {
            let table = scenario.table_of(name);
            let (forward, back) = (hop.forward(), hop.back());
            let (rate_bps, spans) = rates(&forward, &table, packet_bits, traces)?;
            let (back_bps, _) = rates(&back, &format!("{table}.return"), packet_bits, traces)?;
            path.round_trip_s += delay_s(&forward, &table)? + packet_bits / rate_bps;
            path.round_trip_s += delay_s(&back, &format!("{table}.return"))? + 8.0 * ack_bytes / back_bps;
            match losses(forward.channel, &table, packet_bits, traces)? {
                Losses::Constant(loss) => arrives *= 1.0 - loss,
                Losses::Series(series) if changing.is_none() => changing = Some((table.clone(), series)),
                Losses::Series(_) => {
                    let what = "losses vary on two hops, and the engine \"fluid\" knows one such";
                    return Err(ConfigError::new(format!("{table}.channel"), what, "take the engine \"packet\""));
                }
            }
            if rate_bps < path.rate_bps {
                path.buffer = match forward.queue {
                    QueueLimit::Bytes(bytes) => bytes as f64 / packet_bytes,
                    QueueLimit::Packets(packets) => packets as f64,
                    QueueLimit::Unlimited => f64::INFINITY,
                };
                (path.rate_bps, path.spans) = (rate_bps, spans);
            }
        }
        path.loss = 1.0 - arrives;
        if let Some((table, series)) = changing {
            path.spans = together(&path, &series, &table, packet_bits)?;
            let carried = |span: &Span| span.seconds * span.rate;
            let all: f64 = path.spans.iter().map(carried).sum();
            let lost: f64 = path.spans.iter().map(|span| carried(span) * span.loss).sum();
            if all <= 0.0 {
                let what = "nothing ever arrives";
                return Err(ConfigError::new(format!("{table}.channel"), what, "give a trace of a better channel"));
            }
            path.loss = lost / all;
            path.rate_bps = all / path.spans.iter().map(|span| span.seconds).sum::<f64>() * packet_bits;
        } else {
            path.spans.iter_mut().for_each(|span| span.loss = path.loss);
        }
        Ok(path)
    }
}

/// Mean rate of a direction, bit/s, and if it varies its spans in segments.
fn rates(
    direction: &Direction<'_>,
    table: &str,
    packet_bits: f64,
    traces: &dyn TraceSource,
) -> Result<(f64, Vec<Span>), ConfigError> {
    let config = match direction.rate {
        Setting::Constant(rate) => return Ok((rate.get(), Vec::new())),
        Setting::Varying(RateKind::Trace(config)) => config,
    };
    let here = format!("{table}.rate_bps.file");
    let trace = traces.load(&config.file).map_err(|error| error.at(&here))?;
    let Trace::Rate { time_s, rate_bps, duration_s } = &*trace else {
        let what = format!("{:?} is a trace of kind {:?}", config.file, trace.kind());
        return Err(ConfigError::new(here, what, "give one of kind \"rate\", or take the engine \"packet\""));
    };
    let ends = time_s.iter().skip(1).chain(std::iter::once(duration_s));
    let span = |((&start_s, &end_s), &bps): ((&f64, &f64), &f64)| Span {
        seconds: end_s - start_s,
        rate: bps / packet_bits,
        loss: 0.0,
    };
    let spans: Vec<Span> = time_s.iter().zip(ends).zip(rate_bps).map(span).filter(|span| span.seconds > 0.0).collect();
    let mean = spans.iter().map(|span| span.seconds * span.rate).sum::<f64>() * packet_bits / duration_s;
    Ok((mean, spans))
}

fn delay_s(direction: &Direction<'_>, table: &str) -> Result<f64, ConfigError> {
    match direction.delay {
        Setting::Constant(delay) => Ok(delay.get() + direction.processing.as_secs_f64()),
        Setting::Varying(_) => {
            let what = "it varies, and the engine \"fluid\" knows one round trip";
            Err(ConfigError::new(format!("{table}.delay_s"), what, "give a number, or take the engine \"packet\""))
        }
    }
}

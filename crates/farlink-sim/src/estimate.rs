//! Estimates the cost of a study before it begins: studies that are too long are refused, long ones are announced.
//!
//! A run's work grows with its packets, messages and connections. Their numbers are limited by the offered traffic, by windows
//! and rates, and by the capacity of the path. Losses that limit a window are not considered, so that with losses the estimate is
//! too high. The costs of a packet and of a connection are means of the release build (see `examples/estimates.rs`).

use farlink_core::ConfigError;
use farlink_core::Time;
use farlink_core::hop::HopSetup;
use farlink_core::link::QueueLimit;
use farlink_core::protocol::tcp::CongestionControl;
use farlink_core::protocol::{Pace, TransportConfig};
use farlink_core::scenario::Limits;
use farlink_core::scenario::quantity::QUANTITIES;

use crate::engine::{FlowSetup, Setup, TrafficSetup};
use crate::layout::MOST_FLOW_ROWS;

/// CPU time in ns: of a packet over a link, including its part of the endpoint's work; of a message; of a connection; of a run.
const LINK_NS: f64 = 40.0;
const MESSAGE_NS: f64 = 60.0;
const CONNECTION_NS: f64 = 5e3;
const RUN_NS: f64 = 5e4;
/// At this multiple of RTT0, 1,024 packets are sent for one acknowledgement.
const BURST_ROUND_TRIPS: f64 = 10.0;
/// CPU time of each fragment in a bundle, ns.
const FRAGMENT_NS: f64 = 400.0;
/// CPU time of a packet over a bundle of paths, with its part of acknowledgements, ns.
const PATHS_NS: f64 = 3e3;
/// Memory in bytes of a connection, and of a packet that is queued or in flight.
const CONNECTION_BYTES: f64 = 3e3;
const PACKET_BYTES: f64 = 72.0;
/// Memory of a flow in the engine `fluid`.
const FLUID_FLOW_BYTES: f64 = 500.0;
/// Memory of a row of the result, including its text.
const ROW_BYTES: f64 = 250.0 + 16.0 * QUANTITIES.len() as f64;
/// Shorter studies are not announced.
const LONG_CPU_S: f64 = 600.0;
const MUCH_MEMORY_BYTES: f64 = 2e9;

/// The estimated cost of a study.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// CPU time on one core, s.
    pub cpu_s: f64,
    /// Largest memory at any time, bytes.
    pub memory_bytes: f64,
    /// The flow with the largest cost: its point, and its index there.
    heaviest: (usize, usize),
    heaviest_ns: f64,
    heaviest_is_memory: bool,
}

/// The cost of one run of a point.
struct Run {
    ns: f64,
    bytes: f64,
    /// The flow with the largest cost, and that cost.
    heaviest: (usize, f64),
    fattest: (usize, f64),
}

/// The cost of all runs of all points, each with its smallest number of runs, on `threads` threads. Either the rows of all runs
/// are stored, or only the entries of the summary.
pub(crate) fn of_study<'a>(
    points: impl Iterator<Item = (&'a Setup, u64)>,
    threads: usize,
    keeps_rows: bool,
) -> Estimate {
    let mut sum = Estimate::default();
    let (mut rows, mut at_once, mut fattest) = (0.0, 0.0_f64, ((0, 0), 0.0));
    for (point, (setup, runs)) in points.enumerate() {
        let run = of_run(setup);
        let runs = runs as f64;
        sum.cpu_s += runs * (run.ns + RUN_NS) / 1e9;
        let runs_kept = if keeps_rows { runs } else { 1.0 };
        rows += runs_kept * (1.0 + setup.flows.iter().map(|flow| flow.count.min(MOST_FLOW_ROWS) as f64).sum::<f64>());
        at_once = at_once.max(run.bytes * runs.min(threads as f64));
        if runs * run.heaviest.1 > sum.heaviest_ns {
            (sum.heaviest, sum.heaviest_ns) = ((point, run.heaviest.0), runs * run.heaviest.1);
        }
        if run.fattest.1 > fattest.1 {
            fattest = ((point, run.fattest.0), run.fattest.1);
        }
    }
    sum.memory_bytes = at_once + rows * ROW_BYTES;
    if sum.memory_bytes > MUCH_MEMORY_BYTES && sum.cpu_s < LONG_CPU_S {
        (sum.heaviest, sum.heaviest_is_memory) = (fattest.0, true);
    }
    sum
}

/// The cost of all points of the engine `fluid`, from their numbers of flows. The time until a goodput is known is not estimated.
pub(crate) fn of_fluid(flows: impl Iterator<Item = usize>, threads: usize) -> Estimate {
    let (mut most, mut rows) = (0, 0);
    for count in flows {
        most = most.max(count);
        rows += 1 + count.min(MOST_FLOW_ROWS as usize);
    }
    let memory_bytes = most as f64 * FLUID_FLOW_BYTES * threads as f64 + rows as f64 * ROW_BYTES;
    Estimate { memory_bytes, ..Estimate::default() }
}

/// The cost of one run of a scenario.
fn of_run(setup: &Setup) -> Run {
    let duration_s = if setup.duration == Time::NEVER { f64::INFINITY } else { setup.duration.as_secs_f64() };
    let slowest_bps = slowest_bps(setup, duration_s);
    let round_trip_s =
        setup.forward.iter().chain(&setup.back).map(|hop| hop.delay.longest().as_secs_f64()).sum::<f64>();
    let flows: Vec<Offer> =
        setup.flows.iter().map(|flow| Offer::new(flow, duration_s, slowest_bps, round_trip_s)).collect();
    // Transports that adapt to the path share it.
    let carried_bits = slowest_bps * duration_s;
    let adapting: f64 = flows.iter().filter(|offer| offer.pace.adapts).map(Offer::bits).sum();
    let share = if adapting > carried_bits { carried_bits / adapting } else { 1.0 };
    let mut run = Run { ns: 0.0, bytes: 0.0, heaviest: (0, 0.0), fattest: (0, 0.0) };
    for (index, (flow, offer)) in setup.flows.iter().zip(&flows).enumerate() {
        let sent = offer.packets * if offer.pace.adapts { share } else { 1.0 };
        let (ns, bytes) = offer.cost(flow, setup, sent, duration_s);
        run.ns += ns;
        run.bytes += bytes;
        if ns > run.heaviest.1 {
            run.heaviest = (index, ns);
        }
        if bytes > run.fattest.1 {
            run.fattest = (index, bytes);
        }
    }
    run
}

/// The traffic of the flows of one name over a path of their own.
struct Offer {
    pace: Pace,
    connections: f64,
    messages: f64,
    packets: f64,
}

impl Offer {
    fn new(flow: &FlowSetup, duration_s: f64, slowest_bps: f64, round_trip_s: f64) -> Self {
        let pace = flow.transport.as_dyn().pace();
        let start_s = flow.start.as_secs_f64() + flow.start_spread.as_secs_f64() / 2.0;
        let active_s = (duration_s - start_s).max(0.0);
        let whole = |bytes: u64| (bytes as f64 / pace.payload_bytes).ceil();
        let each = |connections: f64, messages: f64, packets: f64| (connections, messages, packets);
        let (connections, messages, packets) = match &flow.traffic {
            TrafficSetup::Bulk => each(1.0, 0.0, f64::INFINITY),
            TrafficSetup::File { bytes } => each(1.0, 0.0, whole(*bytes)),
            TrafficSetup::Cbr { interval, payload_bytes, limit_bytes } => {
                let interval_s = interval.as_secs_f64().max(1e-12);
                let last = limit_bytes.map_or(f64::INFINITY, |bytes| (bytes as f64 / f64::from(*payload_bytes)).ceil());
                let messages = (active_s / interval_s).min(last);
                each(1.0, messages, messages * whole(u64::from(*payload_bytes)))
            }
            TrafficSetup::List(list) => {
                let packets: f64 = list.iter().map(|&(_, bytes)| whole(bytes)).sum();
                each(list.len() as f64, 0.0, packets / list.len().max(1) as f64)
            }
            TrafficSetup::Poisson { mean_interval, bytes } => {
                each(active_s / mean_interval.as_secs_f64().max(1e-12), 0.0, whole(*bytes))
            }
        };
        let window_bps = pace.window_bytes * 8.0 / (round_trip_s + 1e-9) * pace.wire_bytes / pace.payload_bytes;
        let bound_bps = if pace.adapts { slowest_bps.min(window_bps) } else { pace.rate_bps };
        let most = bound_bps * active_s / (8.0 * pace.wire_bytes) + 10.0;
        let count = flow.count as f64 * connections;
        // Without a duration all traffic is sent, however long that takes.
        let packets = if most.is_nan() { packets } else { packets.min(most) };
        Offer {
            pace,
            connections: count,
            messages: flow.count as f64 * messages,
            packets: count * packets * pace.copies,
        }
    }

    fn bits(&self) -> f64 {
        self.packets * self.pace.wire_bytes * 8.0
    }

    /// Time in ns and memory in bytes, if `sent` packets are sent.
    fn cost(&self, flow: &FlowSetup, setup: &Setup, sent: f64, duration_s: f64) -> (f64, f64) {
        let Pace { wire_bytes, answers, asks_every_s, .. } = self.pace;
        let endpoint = match flow.transport {
            TransportConfig::Udp(_) => 10.0,
            TransportConfig::Tcp(_) | TransportConfig::ScpsTp(_) => 80.0,
            TransportConfig::Aerotp(_) => 300.0,
            _ => 150.0,
        };
        let mut ns = self.connections * CONNECTION_NS + self.messages * MESSAGE_NS + sent * endpoint;
        let mut bytes = self.connections * CONNECTION_BYTES;
        let slowest_bps = slowest_bps(setup, duration_s);
        let windows = self.connections * self.pace.window_bytes / self.pace.payload_bytes;
        if bursts(&flow.transport, setup) {
            ns += windows * LINK_NS;
            bytes += windows * PACKET_BYTES;
        }
        let mut left = sent;
        for hop in &setup.forward {
            left = left.min(hop.policed_bps(duration_s) * duration_s / (8.0 * wire_bytes));
            let carried = (hop.most_bps() * duration_s / (8.0 * wire_bytes)).min(left);
            let waits = match hop.limit {
                // Nothing is ever dropped: the window grows with each acknowledgement, up to its maximum.
                QueueLimit::Unlimited if self.pace.adapts && hop.most_bps() <= slowest_bps => windows.min(carried),
                QueueLimit::Unlimited => left - carried,
                QueueLimit::Packets(most) => (left - carried).min(most as f64),
                QueueLimit::Bytes(most) => (left - carried).min(most as f64 / wire_bytes),
            };
            let under_way = (hop.most_bps() * hop.delay.longest().as_secs_f64() / (8.0 * wire_bytes)).min(carried);
            ns += (carried + waits.max(0.0)) * link_ns(hop, wire_bytes); // dropped packets cost almost nothing
            bytes += (waits.max(0.0) + under_way) * PACKET_BYTES;
            left = carried;
        }
        let asked = if duration_s.is_finite() { self.connections * duration_s / asks_every_s } else { 0.0 };
        let back = left * answers + 2.0 * asked;
        ns += back * (endpoint + setup.back.iter().map(|hop| link_ns(hop, 40.0)).sum::<f64>());
        (ns, bytes)
    }
}

/// The most that a forward hop passes on average over a run, bit/s: the least of all hops.
fn slowest_bps(setup: &Setup, duration_s: f64) -> f64 {
    let of_hop = |hop: &HopSetup| hop.most_bps().min(hop.policed_bps(duration_s));
    setup.forward.iter().map(of_hop).fold(f64::INFINITY, f64::min)
}

/// Whether a whole window is sent at once. This applies to Hybla, which grows by 2^(round trip / RTT0) packets per
/// acknowledgement in a slow start without a limit. Most of these packets are dropped or queued.
fn bursts(transport: &TransportConfig, setup: &Setup) -> bool {
    let (control, threshold, hybla) = match transport {
        TransportConfig::Tcp(tcp) => (tcp.congestion_control, tcp.initial_ssthresh_segments, tcp.hybla),
        TransportConfig::ScpsTp(scps) => (scps.congestion_control, scps.initial_ssthresh_segments, None),
        _ => return false,
    };
    let rtt0_s = hybla.unwrap_or_default().rtt0_s.get();
    let round_trip_s =
        setup.forward.iter().chain(&setup.back).map(|hop| hop.delay.shortest().as_secs_f64()).sum::<f64>();
    control == CongestionControl::Hybla && threshold.is_none() && round_trip_s > BURST_ROUND_TRIPS * rtt0_s
}

/// The cost of a packet on a hop, ns.
fn link_ns(hop: &HopSetup, wire_bytes: f64) -> f64 {
    if let Some(paths) = &hop.paths {
        // Of each packet, its copies and pieces on the slowest path are at most so many.
        return LINK_NS + PATHS_NS * paths.members.len().min(2) as f64;
    }
    match &hop.bundle {
        None => LINK_NS,
        Some(bundle) => {
            let lines = bundle.lines.len() as f64;
            let least = bundle.config.min_fragment_bytes.get();
            let fragments = (wire_bytes / least).ceil().clamp(1.0, lines);
            LINK_NS + FRAGMENT_NS * (1.0 + fragments)
        }
    }
}

impl Estimate {
    /// Refuses a study that costs too much.
    ///
    /// # Errors
    /// If it costs more than the limits allow; the error names the key that causes it, and how to run the study nevertheless.
    pub(crate) fn check(&self, limits: Limits, setups: &[Setup]) -> Result<(), ConfigError> {
        let most_bytes = limits.memory_bytes.map(|bytes| bytes.get()).or_else(machine_bytes);
        let too_long = self.cpu_s > limits.cpu_s.get();
        let too_large = most_bytes.is_some_and(|most| self.memory_bytes > most);
        if !too_long && !too_large {
            return Ok(());
        }
        let (limit, value) = match most_bytes {
            Some(most) if !too_long => ("limits.memory_bytes", most),
            _ => ("limits.cpu_s", limits.cpu_s.get()),
        };
        let what = format!("the study would take {}, more than {limit} = {value} allows", self.cost());
        let remedy = "lower it (or a key that goes with it); if the estimate is wrong, raise that limit";
        Err(ConfigError::new(self.key(setups), what, remedy))
    }

    /// The announcement of a study that will take long.
    pub(crate) fn announcement(&self, setups: &[Setup], threads: usize) -> Option<String> {
        let is_long = self.cpu_s > LONG_CPU_S || self.memory_bytes > MUCH_MEMORY_BYTES;
        is_long.then(|| {
            let per_thread = span(self.cpu_s / threads.max(1) as f64);
            format!(
                "this may take {}: {per_thread} on {threads} threads. It is an estimate, and may be several times too high where \
                 losses keep windows small; most of it is for {}",
                self.cost(),
                self.key(setups),
            )
        })
    }

    fn cost(&self) -> String {
        let bytes = self.memory_bytes;
        let memory = if bytes < 1e9 { format!("{:.0} MB", bytes / 1e6) } else { format!("{:.1e} GB", bytes / 1e9) };
        format!("about {} of CPU time and {memory} of memory", span(self.cpu_s))
    }

    /// The key that causes most of the work.
    fn key(&self, setups: &[Setup]) -> String {
        let (point, flow) = self.heaviest;
        let Some(flow) = setups.get(point).and_then(|setup| setup.flows.get(flow)) else { return "runs".into() };
        let key = match flow.traffic {
            _ if self.heaviest_is_memory && flow.count >= 1000 => "count",
            TrafficSetup::Bulk if flow.count >= 1000 => "count",
            TrafficSetup::Bulk => return "duration_s".into(),
            TrafficSetup::File { .. } => "traffic.bytes",
            TrafficSetup::Cbr { .. } => "traffic.rate_bps",
            TrafficSetup::List(_) => "traffic.list",
            TrafficSetup::Poisson { .. } => "traffic.rate_per_s",
        };
        format!("flow.{}.{key}", flow.name)
    }
}

fn span(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} minutes", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} hours", s / 3600.0),
        s if s < 1e8 => format!("{:.0} days", s / 86_400.0),
        s => format!("{:.0e} years", s / 31_557_600.0),
    }
}

/// Four fifths of the machine's memory, if it is known.
fn machine_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?;
    Some(0.8 * 1024.0 * kilobytes.parse::<f64>().ok()?)
}

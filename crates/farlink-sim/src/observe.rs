//! Observation of one run: time series of the sender's state, and a capture of its packets.

use std::sync::Arc;

use farlink_core::ConfigError;
use farlink_core::endpoint::Probe;
use farlink_core::scenario::Expanded;
use farlink_core::wire::Codec;
use farlink_core::{Ecn, Time};

use crate::engine::{FlowResult, RunResult, Setup, Tracer, UNTRACED, simulate};
use crate::error_events::Sources;
use crate::estimate::of_study;
use crate::options::RunError;
use crate::pcap::{Direction, PcapWriter};
use crate::resolve::resolve;
use crate::table::Series;

/// One run, observed.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    /// Every packet at the sender's interface, as a pcapng file.
    pub pcapng: Option<Vec<u8>>,
    /// The state over time.
    pub series: Series,
}

/// Largest number of flows whose series are stored; these are the first ones.
const MOST_FLOWS: usize = 16;

/// Repeats one run and observes it, until `is_stopped` returns `true`.
///
/// # Errors
/// As [`crate::run`], and if there is no such point or the run was stopped.
pub fn trace_run(
    points: &Expanded,
    point: usize,
    run: u64,
    want_series: bool,
    want_pcap: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Traced, RunError> {
    let Some(chosen) = points.points.get(point) else {
        let what = format!("there is no grid point {point}");
        return Err(ConfigError::new("", what, format!("give one from 0 to {}", points.points.len() - 1)).into());
    };
    let scenario = &chosen.scenario;
    let setup = resolve(scenario, &Sources::new(None))?;
    of_study(std::iter::once((&setup, 1)), 1, false).check(scenario.limits, std::slice::from_ref(&setup))?;
    let mut observer = Observer {
        wanted: if want_series {
            scenario.measure.series.iter().map(|quantity| quantity.name()).collect()
        } else {
            vec![]
        },
        series: Series::default(),
        flows: Vec::new(),
        pcap: want_pcap.then(|| PcapWriter::new(&scenario.title, env!("CARGO_PKG_VERSION"))),
        last: Vec::new(),
    };
    let result = simulate(&setup, scenario.seed.whole(), run, &mut observer, is_stopped).ok_or(RunError::Stopped)?;
    let names = flow_names(&setup, &result);
    let mut series = observer.series;
    series.flow = observer.flows.iter().map(|&flow| Arc::clone(&names[flow as usize])).collect();
    Ok(Traced { pcapng: observer.pcap.map(PcapWriter::finish), series })
}

/// Names of the observed flows, in the engine's order. Their number is known only after the run, because transfers start at
/// random.
fn flow_names(setup: &Setup, result: &RunResult) -> Vec<Arc<str>> {
    let name = |flow: &FlowResult| {
        let spec = &setup.flows[flow.spec];
        let is_alone = spec.count == 1 && !spec.is_transfers();
        if is_alone { Arc::from(&*spec.name) } else { format!("{}.{}", spec.name, flow.number + 1).into() }
    };
    result.flows.iter().take(MOST_FLOWS).map(name).collect()
}

struct Observer {
    wanted: Vec<&'static str>,
    /// The series, without the flows' names.
    series: Series,
    /// The flow of each observation, as the engine counts them.
    flows: Vec<u32>,
    pcap: Option<PcapWriter>,
    /// Last recorded state per flow, so that only changes are stored.
    last: Vec<Last>,
}

/// The latest recorded values of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    probe: Probe,
    /// The highest position sent, with its offset.
    highest: Option<(u32, i64)>,
    sent_packets: u64,
    dropped_packets: u64,
}

impl Observer {
    fn record(&mut self, flow: u32, quantity: &'static str, now: Time, value: f64) {
        if (flow as usize) < MOST_FLOWS && self.wanted.contains(&quantity) && value.is_finite() {
            self.flows.push(flow);
            self.series.quantity.push(quantity);
            self.series.time_s.push(now.as_secs_f64());
            self.series.value.push(value);
        }
    }

    fn last(&mut self, flow: u32) -> &mut Last {
        let index = flow as usize;
        if self.last.len() <= index {
            self.last.resize(index + 1, Default::default());
        }
        &mut self.last[index]
    }
}

impl Tracer for Observer {
    fn packet<P: Codec + 'static>(&mut self, now: Time, direction: usize, flow: u32, packet: &P, ecn: Ecn) {
        if flow == UNTRACED {
            return;
        }
        if direction == 1
            && let Some(position) = packet.stream_position()
        {
            // Offsets count from the stream's first byte, as acknowledged positions do; sequence positions start anywhere and
            // wrap. The highest position so far distinguishes a retransmission from a first transmission.
            let highest = &mut self.last(flow).highest;
            let (offset, is_new) = match *highest {
                None => (0, true),
                Some((last, offset)) => {
                    let ahead = position.wrapping_sub(last) as i32;
                    (offset + i64::from(ahead), ahead > 0)
                }
            };
            if is_new {
                *highest = Some((position, offset));
            }
            let quantity = if is_new { "sent_sequence" } else { "retransmitted_sequence" };
            self.record(flow, quantity, now, offset as f64);
        }
        let Some(pcap) = &mut self.pcap else { return };
        let direction = if direction == 1 { Direction::Outbound } else { Direction::Inbound };
        pcap.packet(now, direction, packet, ecn, flow);
    }

    fn probe(&mut self, now: Time, flow: u32, probe: impl FnOnce() -> Probe) {
        if self.wanted.is_empty() || flow == UNTRACED {
            return;
        }
        let probe = probe();
        let last = std::mem::replace(&mut self.last(flow).probe, probe);
        let seconds = |time: Option<Time>| time.map(Time::as_secs_f64);
        let bytes = |count: Option<u64>| count.map(|count| count as f64);
        for (quantity, before, after) in [
            ("cwnd", last.cwnd_bytes, probe.cwnd_bytes),
            ("ssthresh", last.ssthresh_bytes, probe.ssthresh_bytes),
            ("rtt", seconds(last.rtt), seconds(probe.rtt)),
            ("in_flight", bytes(last.in_flight_bytes), bytes(probe.in_flight_bytes)),
            ("acknowledged", bytes(last.acknowledged_bytes), bytes(probe.acknowledged_bytes)),
            ("pacing_rate", last.pacing_bps, probe.pacing_bps),
            ("bandwidth", last.bandwidth_bps, probe.bandwidth_bps),
        ] {
            if let Some(value) = after.filter(|_| before != after) {
                self.record(flow, quantity, now, value);
            }
        }
    }

    fn packets(&mut self, now: Time, flow: u32, sent: u64, dropped: u64) {
        if self.wanted.is_empty() || flow == UNTRACED {
            return;
        }
        let last = self.last(flow);
        let before =
            (std::mem::replace(&mut last.sent_packets, sent), std::mem::replace(&mut last.dropped_packets, dropped));
        for (quantity, before, after) in [("sent_packets", before.0, sent), ("dropped_packets", before.1, dropped)] {
            if before != after {
                self.record(flow, quantity, now, after as f64);
            }
        }
    }
}

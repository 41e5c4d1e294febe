//! A resolved grid point of a scenario: everything read, converted and checked, ready for any number of runs.

use farlink_core::hop::{HopSetup, MemberSetup, PathsSetup};
use farlink_core::protocol::TransportConfig;
use farlink_core::{Rng, Time};

use super::source::Source;
use crate::layout::{Layout, Name};

/// One grid point, ready to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Latest end of a run.
    pub duration: Time,
    /// A run ends early if nothing was delivered for this long.
    pub give_up_after: Time,
    /// Results leave out everything before this time.
    pub warmup: Time,
    /// Links from client to server.
    pub forward: Vec<HopSetup>,
    /// Links from server to client, in the order in which a packet passes them.
    pub back: Vec<HopSetup>,
    /// Gateways at the ends of one of them.
    pub gateway: Option<GatewaySetup>,
    /// Flows by name.
    pub flows: Vec<FlowSetup>,
}

impl Setup {
    /// Index in `back` of the hop whose load is measured: the one between the gateways, otherwise the slowest (the
    /// first of several).
    pub fn measured_back(&self) -> usize {
        let slowest = |hops: &[HopSetup]| {
            let rates = hops.iter().map(|hop| hop.rate.mean_bps()).enumerate();
            rates.min_by(|one, other| one.1.total_cmp(&other.1)).map_or(0, |(hop, _)| hop)
        };
        self.gateway.as_ref().map_or_else(|| slowest(&self.back), |gateway| self.back.len() - 1 - gateway.hop)
    }
}

impl Setup {
    /// The names of the rows of paths, with the bundle and the index of each.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (String, (&PathsSetup, usize))> {
        self.forward.iter().filter_map(|hop| hop.paths.as_deref().map(|paths| (hop, paths))).flat_map(|(hop, paths)| {
            let of_path =
                move |(at, path): (usize, &MemberSetup)| (format!("{}.paths.{}", hop.name, path.name), (paths, at));
            paths.members.iter().enumerate().map(of_path)
        })
    }
}

impl Layout {
    /// The layout of a grid point of the packet engine.
    pub(crate) fn of(setup: &Setup) -> Self {
        Layout::new(setup.flows.iter().map(|flow| Name {
            name: &flow.name,
            transport: &flow.transport_name,
            count: flow.count,
            connections: flow.connections(),
            is_together: flow.is_transfers(),
        }))
        .with_paths(setup.paths().map(|(name, _)| name))
    }
}

/// Gateways at both ends of a hop.
#[derive(Clone, Debug)]
pub struct GatewaySetup {
    /// Index of the hop in the path.
    pub hop: usize,
    /// The transport on the hops before and after it.
    pub edge: TransportConfig,
    /// Bytes of a flow that a gateway holds before it stops reading.
    pub buffer_bytes: u64,
    /// The disk of each gateway, as a link that packets pass before they are acknowledged; `None` for a store in
    /// memory.
    pub spool: Option<HopSetup>,
    /// A crash of one of the gateways.
    pub crash: Option<RestartSetup>,
}

/// A restart of an endpoint or a gateway.
#[derive(Clone, Copy, Debug)]
pub struct RestartSetup {
    /// The sender's side (0) or the receiver's (1).
    pub side: usize,
    /// When it goes down.
    pub down: Time,
    /// When it comes back up.
    pub up: Time,
}

/// The flows of one name.
#[derive(Clone, Debug)]
pub struct FlowSetup {
    /// Their name.
    pub name: String,
    /// The transport's name.
    pub transport_name: String,
    /// The transport.
    pub transport: TransportConfig,
    /// Class of service of their packets.
    pub class: u8,
    /// Number of flows.
    pub count: u64,
    /// When they start.
    pub start: Time,
    /// Each starts at a random instant within this span after `start`.
    pub start_spread: Time,
    /// Whether gateways, if there are any, split them.
    pub is_split: bool,
    /// A restart of one end of each flow.
    pub restart: Option<RestartSetup>,
    /// Their traffic.
    pub traffic: TrafficSetup,
}

/// Traffic of a flow.
#[derive(Clone, Debug)]
pub enum TrafficSetup {
    /// As much as the transport accepts.
    Bulk,
    /// A file.
    File {
        /// Size.
        bytes: u64,
    },
    /// A constant bit rate.
    Cbr {
        /// Time between two writes.
        interval: Time,
        /// Bytes per write.
        payload_bytes: u32,
        /// Total bytes after which the source stops.
        limit_bytes: Option<u64>,
    },
    /// Files at given instants after the flow's start, each a connection of its own.
    List(Vec<(Time, u64)>),
    /// Files at random instants, each a connection of its own.
    Poisson {
        /// Mean time between two.
        mean_interval: Time,
        /// Size of each.
        bytes: u64,
    },
}

impl FlowSetup {
    /// Whether the flow comes to an end by itself.
    pub fn is_finite(&self) -> bool {
        match self.traffic {
            TrafficSetup::Bulk | TrafficSetup::Poisson { .. } => false,
            TrafficSetup::Cbr { limit_bytes, .. } => limit_bytes.is_some(),
            TrafficSetup::File { .. } | TrafficSetup::List(_) => true,
        }
    }

    /// Whether it consists of many transfers, each a connection of its own.
    pub fn is_transfers(&self) -> bool {
        matches!(self.traffic, TrafficSetup::List(_) | TrafficSetup::Poisson { .. })
    }

    /// Number of connections of all flows of this name in a run; `None` if it is random.
    pub fn connections(&self) -> Option<u64> {
        match &self.traffic {
            TrafficSetup::Bulk | TrafficSetup::File { .. } | TrafficSetup::Cbr { .. } => Some(self.count),
            TrafficSetup::List(files) => Some(self.count * files.len() as u64),
            TrafficSetup::Poisson { .. } => None,
        }
    }

    /// Whether it carries anything finite: a file, or any number of transfers.
    pub fn has_transfers(&self) -> bool {
        self.is_finite() || self.is_transfers()
    }

    /// The source of the flow's only connection; `None` if it has several with sources of their own.
    pub(super) fn source(&self) -> Option<Source> {
        match &self.traffic {
            TrafficSetup::Bulk => Some(Source::Bulk),
            TrafficSetup::File { bytes } => Some(Source::File { left: *bytes }),
            TrafficSetup::Cbr { interval, payload_bytes, limit_bytes } => Some(Source::Cbr {
                interval: *interval,
                payload_bytes: *payload_bytes,
                left: limit_bytes.unwrap_or(u64::MAX),
            }),
            TrafficSetup::List(_) | TrafficSetup::Poisson { .. } => None,
        }
    }

    /// All connections of this name in one run: number, start and source.
    pub(super) fn instances(&self, end: Time, rng: &mut Rng) -> Vec<(u64, Time, Source)> {
        let mut all = Vec::new();
        for _ in 0..self.count {
            let start = self.start + Time::from_secs_f64(self.start_spread.as_secs_f64() * rng.uniform());
            let mut add = |at: Time, source| all.push((all.len() as u64, at, source));
            match &self.traffic {
                TrafficSetup::Bulk | TrafficSetup::File { .. } | TrafficSetup::Cbr { .. } => {
                    self.source().into_iter().for_each(|source| add(start, source));
                }
                TrafficSetup::List(files) => {
                    for &(at, bytes) in files {
                        add(start + at, Source::File { left: bytes });
                    }
                }
                TrafficSetup::Poisson { mean_interval, bytes } => {
                    let mean_s = mean_interval.as_secs_f64();
                    let mut at = start + Time::from_secs_f64(rng.exponential(mean_s));
                    while at < end {
                        add(at, Source::File { left: *bytes });
                        at += Time::from_secs_f64(rng.exponential(mean_s));
                    }
                }
            }
        }
        all
    }
}

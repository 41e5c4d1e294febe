//! The path of a scenario: its hops in both directions, ready for any number of runs. The simulator and the emulator build theirs
//! here, and begin a run by [`Hop::start`](crate::hop::Hop::start), so that the same seed gives both the same random numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ConfigError;
use crate::channel::Prepared;
use crate::hop::{BundleSetup, HopSetup, MemberSetup, PathsSetup};
use crate::link::QueueLimit;
use crate::link::setting::RateSetting;
use crate::scenario::{Direction, Hop, Ordering, PathMember, Paths, Scenario};
use crate::time::Time;
use crate::trace::TraceSource;

/// Prepared channels, by everything that determines them. Both directions of a hop and the points of a grid often have the same
/// channel, and preparing a long recording takes a tenth of a second.
pub type Channels = BTreeMap<String, Arc<dyn Prepared>>;

/// The hops of a path.
#[derive(Clone, Debug)]
pub struct PathSetup {
    /// Hops from sender to receiver.
    pub forward: Vec<HopSetup>,
    /// Hops from receiver to sender, in the order in which a packet passes them.
    pub back: Vec<HopSetup>,
}

impl PathSetup {
    /// Resolves the hops of a scenario for runs that end after `duration` at the latest: reads traces, converts units, lays out the
    /// way back. Channels that were already prepared from the same traces are taken from `channels`.
    ///
    /// # Errors
    /// If a trace cannot be used.
    pub fn resolve(
        scenario: &Scenario,
        duration: Option<Time>,
        traces: &dyn TraceSource,
        channels: &mut Channels,
    ) -> Result<Self, ConfigError> {
        let (mut forward, mut back) = (Vec::new(), Vec::new());
        for (name, hop) in &scenario.hops() {
            let table = scenario.table_of(name);
            let bundle = match &hop.bundle {
                None => None,
                Some(config) => {
                    let lines = hop.lines(config).map_err(|error| error.within("bundle").within(&table))?;
                    Some(BundleSetup { config: config.clone(), lines })
                }
            };
            let reversed = bundle.as_ref().map(BundleSetup::reversed);
            let of_time = (traces, duration);
            forward.push(resolve_direction(name, &table, (&hop.forward(), bundle), of_time, channels)?);
            back.push(resolve_direction(name, &format!("{table}.return"), (&hop.back(), reversed), of_time, channels)?);
            if let (Some(paths), [.., there], [.., back]) = (&hop.paths, &mut forward[..], &mut back[..]) {
                let setup = Arc::new(resolve_paths(hop, paths, (name, &table), of_time, channels)?);
                for (end, direction) in [there, back].into_iter().enumerate() {
                    replace_by_paths(direction, &setup, end);
                }
            }
        }
        back.reverse();
        Ok(PathSetup { forward, back })
    }
}

/// The links of a bundle's paths.
fn resolve_paths(
    hop: &Hop,
    paths: &Paths,
    (name, table): (&str, &str),
    of_time: (&dyn TraceSource, Option<Time>),
    channels: &mut Channels,
) -> Result<PathsSetup, ConfigError> {
    let mut members = Vec::new();
    for (at, member) in paths.members.iter().enumerate() {
        let PathMember { name: path, unplugged, .. } = member;
        let (link, name) = (hop.of_path(member), format!("{name}.paths.{path}"));
        let table = format!("{table}.paths.members[{at}]");
        let mut resolve = |table: &str, direction: &Direction<'_>| {
            resolve_direction(&name, table, (direction, None), of_time, channels)
        };
        let there = resolve(&table, &link.forward())?;
        let back = resolve(&format!("{table}.return"), &link.back())?;
        members.push(MemberSetup {
            name: path.clone(),
            rules: member.rules(at as u8),
            links: [there, back],
            unplugged: unplugged
                .iter()
                .map(|span| (span.from_s.time(), span.to_s.time(), span.noticed_by.ends()))
                .collect(),
        });
    }
    Ok(PathsSetup { config: paths.bundle(), members })
}

/// A hop whose link is a bundle of paths has the rate and delay of all together, and the bundle's queue.
fn replace_by_paths(direction: &mut HopSetup, setup: &Arc<PathsSetup>, end: usize) {
    direction.rate = setup.rate(end).into();
    direction.delay = setup.delay(end).into();
    direction.limit = QueueLimit::Bytes(setup.config.queue_bytes as u64);
    direction.paths = Some(Arc::clone(setup));
}

fn resolve_direction(
    name: &str,
    table: &str,
    (direction, bundle): (&Direction<'_>, Option<BundleSetup>),
    (traces, duration): (&dyn TraceSource, Option<Time>),
    channels: &mut Channels,
) -> Result<HopSetup, ConfigError> {
    let within = |key: &str| format!("{table}.{key}");
    let decided_by = direction.decides_channel(duration);
    let channel = match channels.get(&decided_by) {
        Some(channel) => Arc::clone(channel),
        None => {
            let channel = direction.prepare_channel(traces, duration).map_err(|(key, error)| error.at(&within(key)))?;
            channels.insert(decided_by, Arc::clone(&channel));
            channel
        }
    };
    let total = bundle.as_ref().map(|bundle| RateSetting::Constant(bundle.rate()));
    Ok(HopSetup {
        name: name.to_owned(),
        rate: total
            .as_ref()
            .unwrap_or(direction.rate)
            .prepare(traces)
            .map_err(|error| error.at(&within("rate_bps.file")))?,
        delay: direction
            .delay
            .prepare(traces)
            .map_err(|error| error.at(&within("delay_s.file")))?
            .later(direction.processing),
        policer: direction.policer,
        limit: direction.queue,
        mark_from: direction.ecn_threshold,
        weights: direction.service.weights(),
        overtakes: direction.ordering == Ordering::Overtake,
        channel,
        bundle: bundle.map(Arc::new),
        paths: None,
    })
}

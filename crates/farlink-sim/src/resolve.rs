//! Converts a checked scenario to the engine's setup: reads traces, converts units, lays out the way back.

use farlink_core::ConfigError;
use farlink_core::Time;
use farlink_core::channel::{ChannelKind, Site};
use farlink_core::hop::HopSetup;
use farlink_core::link::QueueLimit;
use farlink_core::link::setting::{DelaySetting, RateSetting};
use farlink_core::path::{Channels, PathSetup};
use farlink_core::protocol::TransportConfig;
use farlink_core::scenario::traffic::Arrivals;
use farlink_core::scenario::{Flow, Gateway, Restart, Scenario, Side, TrafficKind};
use farlink_core::trace::{TraceError, TraceSource};
use farlink_core::units::{BitRate, Seconds};

use crate::engine::{FlowSetup, GatewaySetup, RestartSetup, Setup, TrafficSetup};
use crate::notes::check_timers;

/// Resolves one grid point.
///
/// # Errors
/// If a trace cannot be used, or a flow cannot be run by this engine.
pub fn resolve(scenario: &Scenario, traces: &dyn TraceSource) -> Result<Setup, ConfigError> {
    resolve_with(scenario, traces, &mut Channels::default())
}

/// As [`resolve`], with the channels that were already prepared from the same traces.
pub(crate) fn resolve_with(
    scenario: &Scenario,
    traces: &dyn TraceSource,
    channels: &mut Channels,
) -> Result<Setup, ConfigError> {
    let duration = scenario.duration_s.map(|duration| duration.time());
    let PathSetup { mut forward, mut back } = PathSetup::resolve(scenario, duration, traces, channels)?;
    let flows: Vec<FlowSetup> =
        scenario.flow.iter().map(|(name, flow)| resolve_flow(name, flow, scenario)).collect::<Result<_, _>>()?;
    if flows.windows(2).all(|two| two[0].class == two[1].class) {
        // Packets of one class stay in order, so that departures can be computed ahead.
        forward.iter_mut().chain(&mut back).for_each(|hop| hop.weights = None);
    }
    let setup = Setup {
        duration: duration.unwrap_or(Time::NEVER),
        give_up_after: scenario.give_up_after(),
        warmup: scenario.measure.warmup_s.time(),
        forward,
        back,
        gateway: scenario.gateway().map(|gateway| resolve_gateway(gateway, scenario, traces)).transpose()?,
        flows,
    };
    check_timers(scenario, &setup)?;
    Ok(setup)
}

fn resolve_gateway(
    (hop, name, gateway): (usize, &str, &Gateway),
    scenario: &Scenario,
    traces: &dyn TraceSource,
) -> Result<GatewaySetup, ConfigError> {
    let spool = gateway.write_time().map(|write| spool(name, write, traces)).transpose()?;
    Ok(GatewaySetup {
        hop,
        edge: gateway.edge(scenario),
        buffer_bytes: gateway.buffer_bytes.whole(),
        spool,
        crash: gateway.crash.map(resolve_restart),
    })
}

/// A disk as a link: all data is on it after the same time.
fn spool(hop: &str, write: Seconds, traces: &dyn TraceSource) -> Result<HopSetup, ConfigError> {
    let refused = |error: TraceError| error.at(&format!("hop.{hop}.gateway"));
    let rate = RateSetting::Constant(BitRate::new(SPOOL_BPS).expect("a constant within its range"));
    let channel = ChannelKind::default()
        .prepare(&Site { traces, rate: None, duration: None })
        .map_err(|error| error.at(&format!("hop.{hop}.gateway")))?;
    Ok(HopSetup {
        name: format!("{hop}.spool"),
        rate: rate.prepare(traces).map_err(refused)?,
        delay: DelaySetting::Constant(write).prepare(traces).map_err(refused)?,
        policer: None,
        limit: QueueLimit::Unlimited,
        mark_from: QueueLimit::Unlimited,
        weights: None,
        overtakes: false,
        channel,
        bundle: None,
        paths: None,
    })
}

/// The fastest rate of a link, because a write takes a time that does not depend on its length.
const SPOOL_BPS: f64 = 1e13;

fn resolve_restart(restart: Restart) -> RestartSetup {
    let side = match restart.side {
        Side::Sender => 0,
        Side::Receiver => 1,
    };
    let down = restart.at_s.time();
    RestartSetup { side, down, up: down + restart.down_for_s.time() }
}

fn resolve_flow(name: &str, flow: &Flow, scenario: &Scenario) -> Result<FlowSetup, ConfigError> {
    let mut transport = scenario.transport_of_class(flow);
    let is_only = scenario.flow.len() == 1 && flow.count.whole() == 1;
    if is_only
        && !matches!(flow.traffic, TrafficKind::Transfers(_))
        && let TransportConfig::Aerotp(aerotp) = transport.to_mut()
    {
        aerotp.suppose_alone();
    }
    let traffic = match &flow.traffic {
        TrafficKind::Bulk(_) if !transport.as_dyn().is_bounded() => {
            let kind = transport.kind();
            return Err(ConfigError::new(
                format!("flow.{name}.traffic"),
                format!(
                    "bulk traffic over {kind} would send without end at one instant: {kind} has no rate of its own"
                ),
                "use kind = \"cbr\" with a rate_bps, or a tcp transport",
            ));
        }
        TrafficKind::Bulk(_) => TrafficSetup::Bulk,
        TrafficKind::File(file) => TrafficSetup::File { bytes: file.bytes.whole() },
        TrafficKind::Cbr(cbr) => TrafficSetup::Cbr {
            interval: Time::from_secs_f64(cbr.payload_bytes.get() * 8.0 / cbr.rate_bps.get()),
            payload_bytes: u32::try_from(cbr.payload_bytes.whole()).unwrap_or(u32::MAX),
            limit_bytes: cbr.bytes.map(|bytes| bytes.whole()),
        },
        TrafficKind::Transfers(transfers) => match transfers.arrivals() {
            Arrivals::Listed(list) => {
                TrafficSetup::List(list.iter().map(|transfer| (transfer.at_s.time(), transfer.bytes.whole())).collect())
            }
            Arrivals::Poisson { rate_per_s, bytes } => {
                TrafficSetup::Poisson { mean_interval: Time::from_secs_f64(1.0 / rate_per_s), bytes }
            }
        },
    };
    Ok(FlowSetup {
        name: name.to_owned(),
        transport_name: flow.transport.clone(),
        transport: transport.into_owned(),
        class: flow.class.whole(),
        count: flow.count.whole(),
        start: flow.start_s.time(),
        start_spread: flow.start_spread_s.time(),
        is_split: scenario.is_split(flow),
        restart: flow.restart.map(resolve_restart),
        traffic,
    })
}

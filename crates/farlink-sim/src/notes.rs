//! What a user should know of a scenario that can be run but hardly means what it says, and what cannot be run for that.

use farlink_core::Time;
use farlink_core::protocol::tcp::CongestionControl;
use farlink_core::protocol::{LongestTimeout, TransportConfig};
use farlink_core::scenario::{Flow, Hop, Scenario, ScenarioError, TrafficKind};

use crate::engine::{HopSetup, Setup};

/// So often may a timer expire in a round trip before anything was answered.
const MOST_TIMEOUTS: u64 = 1000;

/// Notes on all points of a study, each once.
pub(crate) fn notes(study: &[(&Scenario, &Setup)]) -> Vec<String> {
    let mut all = Vec::new();
    for (scenario, setup) in study {
        let channels = setup.forward.iter().chain(&setup.back).flat_map(|hop| hop.channel.notes());
        let of_rates = rates_above_the_bottleneck(scenario, setup);
        for note in timeouts_below_the_round_trip(scenario, setup).into_iter().chain(of_rates).chain(channels) {
            if !all.contains(&note) {
                all.push(note);
            }
        }
    }
    all.extend(idle_classes(study));
    all
}

/// Classes without a queue that serves them, or such a queue without classes, at all points.
fn idle_classes(study: &[(&Scenario, &Setup)]) -> Option<String> {
    let mut scenarios = study.iter().map(|(scenario, _)| scenario);
    let flows = || study.iter().flat_map(|(scenario, _)| &scenario.flow);
    let hops = || study.iter().flat_map(|(scenario, _)| scenario.hops());
    let serves = |hop: &Hop| [hop.forward(), hop.back()].iter().any(|way| way.service.weights().is_some());
    let serving = hops().find(|(_, hop)| serves(hop));
    let class = |flow: &Flow| flow.class.whole();
    let is_one_class = |scenario: &&Scenario| {
        let mut classes = scenario.flow.values().map(class);
        let first = classes.next();
        classes.all(|class| Some(class) == first)
    };
    match (serving, flows().find(|(_, flow)| class(flow) > 0)) {
        (None, Some((name, flow))) => Some(format!(
            "flow.{name}.class = {} makes no difference: no hop serves classes; give one service = \"strict\", or weights",
            class(flow),
        )),
        (Some((name, _)), _) if scenarios.all(is_one_class) => {
            let table = if study.iter().any(|(scenario, _)| scenario.link.is_some()) {
                name.to_owned()
            } else {
                format!("hop.{name}")
            };
            Some(format!(
                "{table}.service makes no difference: all flows are of one class; give some a class of their own"
            ))
        }
        _ => None,
    }
}

/// Timers that always expire before the acknowledgement can be there.
fn timeouts_below_the_round_trip(scenario: &Scenario, setup: &Setup) -> Vec<String> {
    let note = |(name, longest): (&String, LongestTimeout)| {
        let LongestTimeout { key, value, ever, otherwise, .. } = longest;
        let round_trip = least_round_trip(scenario, setup, name);
        (ever <= round_trip).then(|| {
            let back_off =
                if ever == value { String::new() } else { format!(" ({} s with back-off)", ever.as_secs_f64()) };
            format!(
                "transport.{name}.{key} = {} s{back_off} is below the path's round trip of {} s: {otherwise}",
                value.as_secs_f64(),
                round_trip.as_secs_f64(),
            )
        })
    };
    timeouts(scenario).filter_map(note).collect()
}

/// Refuses timers that would expire so often before the first answer can be there that a run hardly gets to its end.
///
/// # Errors
/// The first such timer.
pub(crate) fn check_timers(scenario: &Scenario, setup: &Setup) -> Result<(), ScenarioError> {
    for (name, longest) in timeouts(scenario) {
        let LongestTimeout { unanswered, .. } = longest;
        let round_trip = least_round_trip(scenario, setup, name);
        if unanswered.times(MOST_TIMEOUTS) < round_trip {
            let what = format!(
                "until something is answered the timer waits {:e} s at most, back-off included, and would expire more than \
                 {MOST_TIMEOUTS} times in the path's round trip of {} s",
                unanswered.as_secs_f64(),
                round_trip.as_secs_f64(),
            );
            let remedy = "give about the round trip, and rto.maximum_s no less";
            return Err(ScenarioError::new(format!("transport.{name}.rto.initial_s"), what, remedy));
        }
    }
    Ok(())
}

/// The timers of the transports in use, with their names.
fn timeouts(scenario: &Scenario) -> impl Iterator<Item = (&String, LongestTimeout)> {
    let edge = scenario.gateway().and_then(|(_, _, gateway)| gateway.edge_transport.as_ref());
    let is_used = move |name: &String| edge == Some(name) || scenario.flow.values().any(|flow| flow.transport == *name);
    let used = scenario.transport.iter().filter(move |(name, _)| is_used(name));
    used.filter_map(|(name, transport)| Some((name, transport.as_dyn().longest_timeout()?)))
}

/// The shortest way that a transport is used on, there and back: the whole path, or the hops that gateways leave it.
fn least_round_trip(scenario: &Scenario, setup: &Setup, transport: &str) -> Time {
    let hops = setup.forward.len();
    let round_trip = |range: std::ops::Range<usize>| {
        let back = hops - range.end..hops - range.start;
        propagation(&setup.forward[range]) + propagation(&setup.back[back])
    };
    let mut least = Time::NEVER;
    for flow in scenario.flow.values().filter(|flow| flow.transport == transport) {
        least = least.min(match scenario.gateway() {
            Some((at, ..)) if scenario.is_split(flow) => round_trip(at..at + 1),
            _ => round_trip(0..hops),
        });
    }
    match scenario.gateway() {
        Some((at, _, gateway)) if gateway.edge_transport.as_deref() == Some(transport) => {
            least.min(round_trip(0..at)).min(round_trip(at + 1..hops))
        }
        _ => least,
    }
}

/// A fixed rate that the path cannot carry.
fn rates_above_the_bottleneck(scenario: &Scenario, setup: &Setup) -> Vec<String> {
    let rates = setup.forward.iter().map(|hop| hop.rate.constant().map_or(f64::INFINITY, |rate| rate.get()));
    let bottleneck_bps = rates.fold(f64::INFINITY, f64::min);
    let note = |(name, flow): (&String, &Flow)| {
        let (key, each_bps, consequence) = fixed_rate(scenario, name, flow)?;
        let count = flow.count.get();
        let flows = if count > 1.0 { format!(", {count} times,") } else { String::new() };
        (each_bps * count > bottleneck_bps).then(|| {
            format!("{key} = {each_bps} bit/s{flows} is above the {bottleneck_bps} bit/s that the path carries: {consequence}")
        })
    };
    scenario.flow.iter().filter_map(note).collect()
}

/// The rate at which a flow sends whatever happens: its key, bit/s, and what comes of more than the path carries.
fn fixed_rate(scenario: &Scenario, name: &str, flow: &Flow) -> Option<(String, f64, &'static str)> {
    let of_transport = |rate_bps: f64| {
        // With a window without bound, the receiver may hold nearly all that it has behind the first gap.
        let consequence = "its queue drops the rest, and most of what arrives may wait behind a gap until the end; give a \
                           lower rate, or a max_window_segments of a few times what the path holds";
        (format!("transport.{}.rate_bps", flow.transport), rate_bps, consequence)
    };
    match (scenario.transport.get(&flow.transport)?, &flow.traffic) {
        (TransportConfig::Stp(stp), _) => stp.rate_bps.map(|rate| of_transport(rate.get())),
        (TransportConfig::ScpsTp(scps), _) if scps.congestion_control == CongestionControl::None => {
            scps.rate_bps.map(|rate| of_transport(rate.get()))
        }
        (TransportConfig::Udp(_), TrafficKind::Cbr(cbr)) => {
            let consequence = "what exceeds it is dropped, or waits ever longer where the queue has no limit";
            Some((format!("flow.{name}.traffic.rate_bps"), cbr.rate_bps.get(), consequence))
        }
        _ => None,
    }
}

/// The delays of a direction; of those that vary, nothing is known for sure.
fn propagation(hops: &[HopSetup]) -> Time {
    hops.iter().filter_map(|hop| hop.delay.constant()).fold(Time::ZERO, |sum, delay| sum + delay)
}

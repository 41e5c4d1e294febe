//! Rules that the types of single keys cannot express: keys that contradict each other, or name things that do not exist.

use super::flow::Flow;
use super::gateway::Gateway;
use super::near_names::suggest;
use super::{Hop, Scenario, TrafficKind, WholePath, longest_packets};
use crate::ConfigError;
use crate::bundle::OnDrop;
use crate::protocol::TransportConfig;

/// Names that result tables use for something else.
const ALL_FLOWS: &str = "all";

pub(super) fn check(scenario: &Scenario) -> Result<(), ConfigError> {
    engines(scenario)?;
    precision(scenario)?;
    names(scenario)?;
    path(scenario)?;
    for (name, transport) in &scenario.transport {
        transport.as_dyn().check().map_err(|error| error.within(&format!("transport.{name}")))?;
    }
    if scenario.flow.is_empty() {
        let remedy = "add [flow.NAME] with transport = \"...\" and traffic = { kind = \"bulk\" }";
        return Err(ConfigError::new("flow", "there is no flow", remedy));
    }
    for (name, flow) in &scenario.flow {
        self::flow(scenario, name, flow)?;
    }
    duplicates(scenario)?;
    longest_packets::check(scenario)?;
    scenario.fluid.as_ref().map_or(Ok(()), |fluid| fluid.check(scenario)).map_err(|error| error.within("fluid"))?;
    time(scenario)
}

/// A bundle that makes duplicate acknowledgements needs a flow whose transport reacts to them.
fn duplicates(scenario: &Scenario) -> Result<(), ConfigError> {
    let makes = |hop: &Hop| hop.bundle.as_ref().is_some_and(|bundle| bundle.what_on_drop() == OnDrop::DuplicateAcks);
    let link = scenario.link.iter().map(|hop| ("link".to_owned(), hop));
    let hops = scenario.hop.iter().map(|(name, hop)| (format!("hop.{name}"), hop));
    let Some((place, _)) = link.chain(hops).find(|(_, hop)| makes(hop)) else { return Ok(()) };
    let hears = |flow: &Flow| {
        matches!(scenario.transport.get(&flow.transport), Some(TransportConfig::Tcp(_) | TransportConfig::ScpsTp(_)))
    };
    if scenario.flow.values().any(hears) {
        return Ok(());
    }
    Err(ConfigError::new(
        format!("{place}.bundle.on_drop"),
        "no flow's transport reacts to duplicate acknowledgements",
        "use \"requeue\" or \"lose\", or a transport of kind \"tcp\" or \"scps-tp\"",
    ))
}

fn engines(scenario: &Scenario) -> Result<(), ConfigError> {
    if scenario.engines.is_empty() {
        return Err(ConfigError::new("engines", "there is no engine", "give engines = [\"packet\"], or leave it out"));
    }
    for (at, engine) in scenario.engines.iter().enumerate() {
        if scenario.engines[..at].contains(engine) {
            let what = format!("{:?} is named twice", engine.engine().name);
            return Err(ConfigError::new(format!("engines[{at}]"), what, "name each engine once"));
        }
    }
    Ok(())
}

fn precision(scenario: &Scenario) -> Result<(), ConfigError> {
    let Some(precision) = &scenario.precision else { return Ok(()) };
    if scenario.runs.is_some() {
        let what = "runs and precision are both given";
        return Err(ConfigError::new("runs", what, "keep one of them; precision has min_runs and max_runs"));
    }
    precision.check().map_err(|error| error.within("precision"))
}

fn names(scenario: &Scenario) -> Result<(), ConfigError> {
    let flows = scenario.flow.keys().map(|name| ("flow", name));
    let transports = scenario.transport.keys().map(|name| ("transport", name));
    let hops = scenario.hop.keys().map(|name| ("hop", name));
    for (family, name) in flows.chain(transports).chain(hops) {
        if name.is_empty() || name.chars().any(|c| c == '.' || c.is_control()) {
            let what = format!("{name:?} cannot be a name");
            return Err(ConfigError::new(
                family,
                what,
                "use letters, digits, - and _; dots stand between names in paths",
            ));
        }
    }
    if scenario.flow.contains_key(ALL_FLOWS) {
        let what = "\"all\" stands for all flows together in the results";
        return Err(ConfigError::new("flow.all", what, "give the flow another name"));
    }
    Ok(())
}

fn path(scenario: &Scenario) -> Result<(), ConfigError> {
    const FORMS: &str = "give [link], or path = [\"a\", \"b\"] with [hop.a] and [hop.b]";
    match (&scenario.link, &scenario.path) {
        (Some(_), Some(_)) => return Err(ConfigError::new("path", "link and path are both given", FORMS)),
        (None, None) if scenario.hop.is_empty() => return Err(ConfigError::new("link", "there is no link", FORMS)),
        (None, None) => {
            let names: Vec<_> = scenario.hop.keys().map(|name| format!("{name:?}")).collect();
            let remedy = format!("add path = [{}], in the order from sender to receiver", names.join(", "));
            return Err(ConfigError::new("path", "there are hops but no path", remedy));
        }
        (Some(_), None) if !scenario.hop.is_empty() => {
            return Err(ConfigError::new("hop", "link and hops are both given", FORMS));
        }
        (Some(link), None) => {
            if link.gateway.is_some() {
                let what = "a gateway joins two connections, and there is nothing before and behind the link";
                let remedy =
                    "give path = [\"lan\", \"space\", \"ground\"] with a table each, and gateway = true in [hop.space]";
                return Err(ConfigError::new("link.gateway", what, remedy));
            }
            return link.check().map_err(|error| error.within("link"));
        }
        (None, Some(_)) => {}
    }
    let path = scenario.path.as_deref().unwrap_or_default();
    if path.is_empty() {
        return Err(ConfigError::new("path", "the path has no hop", FORMS));
    }
    for (at, name) in path.iter().enumerate() {
        let here = format!("path[{at}]");
        let Some(hop) = scenario.hop.get(name) else {
            let remedy = suggest(name, "hops", scenario.hop.keys().map(String::as_str));
            return Err(ConfigError::new(here, format_args!("there is no [hop.{name}]"), remedy));
        };
        if path[..at].contains(name) {
            let what = format!("{name:?} is on the path twice");
            return Err(ConfigError::new(here, what, "give the second hop a name and a table of its own"));
        }
        hop.check().map_err(|error| error.within(&format!("hop.{name}")))?;
    }
    gateways(scenario, path)
}

fn gateways(scenario: &Scenario, path: &[String]) -> Result<(), ConfigError> {
    let mut found: Option<&str> = None;
    for (at, name) in path.iter().enumerate() {
        let Some(gateway) = scenario.hop.get(name).and_then(|hop| hop.gateway.as_ref()) else { continue };
        let here = format!("hop.{name}.gateway");
        if let Some(other) = found.replace(name) {
            let what = format!("hop.{other} has gateways already, and one hop of a path has them");
            return Err(ConfigError::new(here, what, "remove one of them"));
        }
        let missing = match at {
            0 => Some("before"),
            _ if at + 1 == path.len() => Some("behind"),
            _ => None,
        };
        if let Some(missing) = missing {
            let what = format!("a gateway joins two connections, and there is no hop {missing} {name:?}");
            let remedy = format!("add one {missing} it to path; rate_bps = 1e10 and delay_s = 0 make it a short cable");
            return Err(ConfigError::new(here, what, remedy));
        }
        gateway.check(scenario).map_err(|error| error.within(&here))?;
        if gateway.crash.is_some() {
            let of_flows = scenario.flow.values().filter(|flow| scenario.is_split(flow)).map(|flow| &flow.transport);
            for transport in of_flows.chain(&gateway.edge_transport) {
                can_begin_anew(scenario, transport).map_err(|error| error.within(&format!("{here}.crash")))?;
            }
        }
    }
    Ok(())
}

fn flow(scenario: &Scenario, name: &str, flow: &Flow) -> Result<(), ConfigError> {
    let here = format!("flow.{name}");
    if !scenario.transport.contains_key(&flow.transport) {
        let what = format!("there is no [transport.{}]", flow.transport);
        let remedy = suggest(&flow.transport, "transports", scenario.transport.keys().map(String::as_str));
        return Err(ConfigError::new(format!("{here}.transport"), what, remedy));
    }
    flow.check().map_err(|error| error.within(&here))?;
    class(scenario, flow).map_err(|error| error.within(&here))?;
    restart(scenario, flow).map_err(|error| error.within(&format!("{here}.restart")))
}

/// Checks that hops with service by weight have a weight for the flow's class.
fn class(scenario: &Scenario, flow: &Flow) -> Result<(), ConfigError> {
    let class = usize::from(flow.class.whole());
    for (name, hop) in scenario.hops() {
        let table = scenario.table_of(name);
        for (direction, service) in [("", hop.forward().service), (".return", hop.back().service)] {
            let classes = service.classes();
            if class >= classes {
                let what =
                    format!("class {class} has no weight: {table}{direction}.service has {classes}, from class 0 on");
                let remedy = format!("give a class up to {}, or {} weights", classes - 1, class + 1);
                return Err(ConfigError::new("class", what, remedy));
            }
        }
    }
    Ok(())
}

/// Checks that a restart happens to a connection that lasts for the whole flow.
fn restart(scenario: &Scenario, flow: &Flow) -> Result<(), ConfigError> {
    let Some(restart) = flow.restart else { return Ok(()) };
    restart.check(scenario.duration_s)?;
    if let (Some((_, hop, _)), true) = (scenario.gateway(), scenario.is_split(flow)) {
        let what = "gateways on the path split the flow, and its ends are no longer those of one connection";
        let remedy = format!("give hop.{hop}.gateway.crash instead, or split = false");
        return Err(ConfigError::new("", what, remedy));
    }
    if matches!(flow.traffic, TrafficKind::Transfers(_)) {
        let what = "each transfer is a connection of its own, and most are not open at that moment";
        return Err(ConfigError::new("", what, "give traffic of kind file, bulk or cbr"));
    }
    let latest_start = flow.start_s.get() + flow.start_spread_s.get();
    if restart.at_s.get() < latest_start {
        let what = format!("{} s may be before the flow starts", restart.at_s.get());
        return Err(ConfigError::new("at_s", what, format!("give {latest_start} or more")));
    }
    can_begin_anew(scenario, &flow.transport)
}

/// Refuses restarts without a handshake for receivers that give up missing data: such a receiver would take the jump from the old
/// connection's sequence numbers to the new ones for lost data.
fn can_begin_anew(scenario: &Scenario, transport: &str) -> Result<(), ConfigError> {
    match scenario.transport.get(transport) {
        Some(TransportConfig::ScpsTp(scps)) if scps.hold_time_s.is_some() && !scps.handshake => {
            let what = format!(
                "transport.{transport} has hold_time_s and handshake = false: its receiver would take the sequence numbers of \
                 the new connection for a gap in the old one"
            );
            let remedy = "give it a handshake, or leave out hold_time_s, restart and crash";
            Err(ConfigError::new("", what, remedy))
        }
        _ => Ok(()),
    }
}

fn time(scenario: &Scenario) -> Result<(), ConfigError> {
    let Some(duration) = scenario.duration_s else {
        if scenario.engines.iter().all(|engine| engine.engine().is_of_long_run) {
            return Ok(());
        }
        return match scenario.flow.iter().find(|(_, flow)| flow.traffic.as_dyn().is_endless()) {
            Some((name, flow)) => Err(ConfigError::new(
                "duration_s",
                format_args!("it is missing, and flow.{name} ({}) never ends", flow.traffic.kind()),
                "add duration_s = ..., or give only traffic that ends (file, a list of transfers)",
            )),
            None => Ok(()),
        };
    };
    if scenario.give_up_after_s.is_some() {
        let what = format!("duration_s = {} already ends the run", duration.get());
        return Err(ConfigError::new("give_up_after_s", what, "keep one of them"));
    }
    for (name, transport) in &scenario.transport {
        transport.as_dyn().check_duration(duration).map_err(|error| error.within(&format!("transport.{name}")))?;
    }
    let duration = duration.get();
    let warmup = scenario.measure.warmup_s.get();
    if warmup >= duration {
        let what = format!("{warmup} s of warm-up leave no time to measure in duration_s = {duration}");
        return Err(ConfigError::new("measure.warmup_s", what, format!("give less than {duration}")));
    }
    for (name, flow) in &scenario.flow {
        let start = flow.start_s.get();
        if start >= duration {
            let what = format!("it starts at {start} s, after the end at duration_s = {duration}");
            return Err(ConfigError::new(format!("flow.{name}.start_s"), what, format!("give less than {duration}")));
        }
    }
    Ok(())
}

impl Scenario {
    /// The hop with gateways at its ends, if there is one: its index in the path, its name, and the gateways' keys.
    pub fn gateway(&self) -> Option<(usize, &str, &Gateway)> {
        let mut hops = self.hops().into_iter().enumerate();
        hops.find_map(|(at, (name, hop))| Some((at, name, hop.gateway.as_ref()?)))
    }

    /// Whether gateways split a flow, if there are any.
    ///
    /// # Panics
    /// If its transport does not exist; a scenario from [`expand`](super::expand) has it.
    pub fn is_split(&self, flow: &Flow) -> bool {
        flow.split && !self.transport_of_class(flow).as_dyn().carries_datagrams()
    }

    /// The table of the hop of this name, for paths of keys.
    pub fn table_of(&self, hop: &str) -> String {
        if self.link.is_some() { "link".to_owned() } else { format!("hop.{hop}") }
    }

    /// The hops from sender to receiver, with their names. `[link]` is a path of one hop named `link`.
    ///
    /// A scenario from [`expand`](super::expand) has at least one.
    pub fn hops(&self) -> WholePath<'_> {
        match (&self.link, &self.path) {
            (Some(link), _) => vec![("link", link)],
            (None, path) => path
                .iter()
                .flatten()
                .filter_map(|name| self.hop.get_key_value(name).map(|(name, hop)| (name.as_str(), hop)))
                .collect(),
        }
    }
}

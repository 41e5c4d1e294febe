//! The keys of a scenario that describe a bundle of IP paths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::channel::ChannelKind;
use crate::link::setting::{DelaySetting, RateSetting};
use crate::paths::{ClassRules, MOST_PATHS, PathBundleConfig, PathRules, Policy, SEAL_BYTES};
use crate::units::{ClassNumber, Count, PositiveSeconds, Price, Seconds, Whole};

/// A bundle of IP paths, as `farlink bundle carry` runs it: packets of flows go over 1 to 16 paths, sealed, with acknowledgements and
/// probes of each path. Simulated is the code that is deployed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paths {
    /// The paths, at least one.
    pub members: Vec<PathMember>,
    /// Classes that are not treated as usual. The class of a packet is that of its flow (`class`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<PathClass>,
    /// Limits of the bundle, the same at both ends.
    #[serde(default, skip_serializing_if = "PathLimits::is_empty")]
    pub limits: PathLimits,
}

/// A path of a bundle: a link in each direction, and what the bundle may use it for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathMember {
    /// Its name, which the row of the path has as well: letters, digits, `-` and `_`.
    pub name: String,
    /// Rate from the near end to the far one: a number, or a table with the trace to replay. Defaults to the hop's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<RateSetting>,
    /// One-way delay: a number, or a table with the trace to replay. Defaults to the hop's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<DelaySetting>,
    /// Limit of the path's own queue, in bytes. Defaults to that of the hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<Count>,
    /// Limit of the path's own queue in packets, instead of `queue_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<Count>,
    /// How datagrams are lost on the way forward; one with a wrong bit is lost, since its seal does not open. An outage here is one
    /// that neither end is told of.
    #[serde(default)]
    pub channel: ChannelKind,
    /// The return direction, where it differs.
    #[serde(default, rename = "return")]
    pub back: PathReturn,
    /// When the path is unplugged; both directions carry nothing meanwhile. Spans in the order of time, without overlap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unplugged: Vec<Unplugged>,
    /// Whether it carries packets only while no other path can carry their class.
    #[serde(default, skip_serializing_if = "is_false")]
    pub standby: bool,
    /// The classes that it may carry. Defaults to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<ClassNumber>>,
    /// Cost of a byte, in any unit, for classes with `policy = "cheapest"`. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Price>,
    /// Most bytes of data a day that each end sends, headers included; then the path carries only probes until the next day of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_a_day: Option<Count>,
    /// Most minutes a day in which each end sends data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes_a_day: Option<Count>,
    /// Budget of probes and of their answers, in bytes a day. Defaults to 20 MB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_bytes_a_day: Option<Whole>,
    /// Time between two probes of an idle path, in seconds, if the budget allows it. Defaults to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_interval_s: Option<Seconds>,
    /// Delay that packets may cause in the path's own queue, in seconds, unless jitter, round trip or slow packets ask for more.
    /// Defaults to 0.01.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_s: Option<Seconds>,
    /// Longest datagram, headers included, in bytes: 576 to 9000. Defaults to 1500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<Count>,
    /// Headers around a sealed datagram, in bytes: at most 200. Defaults to 28, those of IPv4 and UDP; IPv6 has 48, and a serial line
    /// has 6 (`serial` of `farlink bundle carry`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers_bytes: Option<Whole>,
}

/// The return direction of a path.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathReturn {
    /// Rate. Defaults to the path's `rate_bps`, and without that to the hop's `return.rate_bps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<RateSetting>,
    /// One-way delay. Defaults to the path's `delay_s`, and without that to the hop's `return.delay_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<DelaySetting>,
    /// Limit of the queue, in bytes. Defaults to that of the way forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<Count>,
    /// Limit of the queue in packets, instead of `queue_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<Count>,
    /// How datagrams are lost.
    pub channel: ChannelKind,
}

/// A time in which a path is unplugged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unplugged {
    /// When it begins, in seconds after the start of the run.
    pub from_s: Seconds,
    /// When it ends, in seconds after the start of the run.
    pub to_s: Seconds,
    /// The end that notices at once, as by an interface that is down.
    #[serde(default)]
    pub noticed_by: NoticedBy,
}

/// Which ends of a path are told that it is unplugged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoticedBy {
    /// The near end, where flows begin; the other one sees the silence.
    #[default]
    Near,
    /// The far end.
    Far,
    /// Both.
    Both,
    /// None.
    Nobody,
}

impl NoticedBy {
    /// The ends that are told: near, far.
    pub fn ends(self) -> [bool; 2] {
        [matches!(self, NoticedBy::Near | NoticedBy::Both), matches!(self, NoticedBy::Far | NoticedBy::Both)]
    }
}

/// How a class is treated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathClass {
    /// The class.
    pub number: ClassNumber,
    /// Which paths its packets take.
    #[serde(default)]
    pub policy: Policy,
    /// Whether packets of a flow come out in the order in which they went in. Defaults to true.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub ordered: bool,
}

/// Limits of a bundle of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathLimits {
    /// How long a small packet may wait on a slow path for a piece of a long one, in seconds. Defaults to 0.25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<PositiveSeconds>,
    /// Packets of a class with `policy = "cheapest"` that have waited for so long go over the next dearer path as well, in seconds.
    /// Defaults to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill_s: Option<PositiveSeconds>,
    /// How often a lost packet is sent again, at most 255 times. Defaults to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Whole>,
    /// A packet older than this is not sent again, in seconds. Defaults to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat_s: Option<PositiveSeconds>,
    /// Longest time that the receiver holds packets back because an earlier one is missing, in seconds. Defaults to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<PositiveSeconds>,
    /// Most bytes that wait in front of the paths: 10,000 to 2^30. Defaults to 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<Count>,
}

impl PathLimits {
    fn is_empty(&self) -> bool {
        *self == PathLimits::default()
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in a reference")]
fn is_yes(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Paths {
    /// Checks what the types of single keys cannot express; paths are relative to the table.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.members.is_empty() || self.members.len() > MOST_PATHS {
            let what = format!("there are {} paths, and a bundle has 1 to {MOST_PATHS}", self.members.len());
            return Err(ConfigError::new("members", what, "give a table with name for each path"));
        }
        for (at, member) in self.members.iter().enumerate() {
            let here = format!("members[{at}]");
            if self.members[..at].iter().any(|other| other.name == member.name) {
                let what = format!("{:?} is there twice", member.name);
                return Err(ConfigError::new(format!("{here}.name"), what, "give each path a name of its own"));
            }
            member.check().map_err(|error| error.within(&here))?;
        }
        for (at, class) in self.classes.iter().enumerate() {
            if self.classes[..at].iter().any(|other| other.number == class.number) {
                let what = format!("class {} is there twice", class.number.whole());
                return Err(ConfigError::new(format!("classes[{at}].number"), what, "give each class once"));
            }
        }
        let within = |key: &str, value: Option<f64>, least: f64, most: f64, remedy: &str| match value {
            Some(value) if !(least..=most).contains(&value) => {
                let what = format!("{value} is not within {least} and {most}");
                Err(ConfigError::new(format!("limits.{key}"), what, remedy))
            }
            _ => Ok(()),
        };
        let PathLimits { latency_s, spill_s, repeat, repeat_s, wait_s, queue_bytes } = self.limits;
        let times = [("latency_s", latency_s), ("spill_s", spill_s), ("repeat_s", repeat_s), ("wait_s", wait_s)];
        for (key, time) in times {
            within(key, time.map(PositiveSeconds::get), 0.001, 600.0, "give seconds, 0.001 to 600")?;
        }
        within("repeat", repeat.map(Whole::get), 0.0, 255.0, "give a number from 0 to 255")?;
        within("queue_bytes", queue_bytes.map(Count::get), 1e4, 1_073_741_824.0, "give 10000 to 1073741824")
    }

    /// What an end of the bundle is set to.
    pub fn bundle(&self) -> PathBundleConfig {
        let mut config = PathBundleConfig::default();
        for class in &self.classes {
            let rules = ClassRules { policy: class.policy, is_ordered: class.ordered };
            config.classes[usize::from(class.number.whole())] = rules;
        }
        let PathLimits { latency_s, spill_s, repeat, repeat_s, wait_s, queue_bytes } = self.limits;
        for (time, place) in [
            (latency_s, &mut config.latency),
            (spill_s, &mut config.spill),
            (repeat_s, &mut config.repeat_within),
            (wait_s, &mut config.longest_wait),
        ] {
            *place = time.map_or(*place, PositiveSeconds::time);
        }
        config.repeat = repeat.map_or(config.repeat, |times| times.whole() as u8);
        config.queue_bytes = queue_bytes.map_or(config.queue_bytes, |bytes| bytes.whole() as usize);
        config
    }
}

impl PathMember {
    fn check(&self) -> Result<(), ConfigError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if self.name.is_empty() || self.name.len() > 32 || !self.name.chars().all(is_plain) {
            let what = format!("{:?} cannot be a name", self.name);
            return Err(ConfigError::new("name", what, "give 1 to 32 letters, digits, - and _"));
        }
        for (at, span) in self.unplugged.iter().enumerate() {
            let (from, to) = (span.from_s.get(), span.to_s.get());
            let before = at.checked_sub(1).map_or(0.0, |before| self.unplugged[before].to_s.get());
            if from >= to || from < before {
                let what = format!("from_s = {from} and to_s = {to} are no span after {before} s");
                return Err(ConfigError::new(
                    format!("unplugged[{at}]"),
                    what,
                    "give spans in the order of time, without overlap",
                ));
            }
        }
        if self.classes.as_ref().is_some_and(Vec::is_empty) {
            return Err(ConfigError::new("classes", "the path may carry no class", "name some, or leave classes out"));
        }
        let within = |key: &str, value: Option<u64>, least: u64, most: u64| match value {
            Some(value) if !(least..=most).contains(&value) => {
                let what = format!("{value} is not within {least} and {most}");
                Err(ConfigError::new(key, what, format!("give {least} to {most}")))
            }
            _ => Ok(()),
        };
        within("minutes_a_day", self.minutes_a_day.map(Count::whole), 1, 1440)?;
        within("mtu_bytes", self.mtu_bytes.map(Count::whole), 576, 9000)?;
        within("headers_bytes", self.headers_bytes.map(Whole::whole), 0, 200)
    }

    /// What the bundle may use the path for, whose number is given.
    pub fn rules(&self, number: u8) -> PathRules {
        let usual = PathRules::DEFAULT;
        let overhead_bytes = self.headers_bytes.map_or(IP_AND_UDP_BYTES, |bytes| bytes.whole() as u32) + SEAL_BYTES;
        PathRules {
            number: Some(number),
            is_standby: self.standby,
            classes: self
                .classes
                .as_ref()
                .map_or(u8::MAX, |all| all.iter().fold(0, |bits, class| bits | 1 << class.whole())),
            cost: self.cost.map_or(usual.cost, Price::get),
            mtu: self.mtu_bytes.map_or(ETHERNET_BYTES, |bytes| bytes.whole() as u32) - overhead_bytes,
            overhead_bytes,
            bytes_a_day: self.bytes_a_day.map(Count::whole),
            minutes_a_day: self.minutes_a_day.map(|minutes| minutes.whole() as u32),
            probe_bytes_a_day: self.probe_bytes_a_day.map_or(usual.probe_bytes_a_day, Whole::whole),
            probe_interval: self.probe_interval_s.map_or(usual.probe_interval, Seconds::time),
            queue: self.queue_s.map_or(usual.queue, Seconds::time),
        }
    }
}

/// Headers of IPv4 and UDP.
const IP_AND_UDP_BYTES: u32 = 28;

/// Longest packet on Ethernet.
const ETHERNET_BYTES: u32 = 1500;

//! A hop: one link of the path, with its return direction.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gateway::{Gateway, SwitchOrTable, switch_or_table};
use super::paths::{PathMember, Paths};
use super::service::Service;
use crate::ConfigError;
use crate::bundle::{BundleConfig, LineConfig};
use crate::channel::{ChannelConfig, ChannelError, ChannelKind, Prepared, Site, chain};
use crate::coding::Coding;
use crate::hop::PolicerConfig;
use crate::link::QueueLimit;
use crate::link::setting::{DelaySetting, RateSetting};
use crate::time::Time;
use crate::trace::{Trace, TraceError, TraceSource};
use crate::units::{Count, Seconds};

/// One link of the path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Forward rate: a number, or a table with the trace to replay.
    pub rate_bps: RateSetting,
    /// One-way propagation delay: a number, or a table with the trace to replay. The transmission time is added to it.
    pub delay_s: DelaySetting,
    /// A policer in front of the queue of the forward direction: a table with its rate and burst. Packets that exceed both are
    /// dropped before they reach the queue. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policer: Option<PolicerConfig>,
    /// Limit of the queue in front of the link, in bytes, not counting the packet that is being sent. Unlimited by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<Count>,
    /// Limit of the queue in packets, instead of `queue_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<Count>,
    /// Marking threshold, in bytes: an ECN-capable packet that finds a backlog of this size or more is marked with congestion
    /// experienced (RFC 3168). By default no packets are marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_threshold_bytes: Option<Count>,
    /// Marking threshold in packets, instead of `ecn_threshold_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_threshold_packets: Option<Count>,
    /// Order in which waiting packets of several classes are sent: a name, or a table of weights. Defaults to `fifo`. With any
    /// other value each class has a queue of its own with the limit `queue_bytes` or `queue_packets`, and its own backlog decides
    /// on marking.
    #[serde(default, skip_serializing_if = "Service::is_fifo")]
    pub service: Service,
    /// Whether frames may overtake each other when the delay decreases.
    #[serde(default)]
    pub ordering: Ordering,
    /// Channel of the forward direction: how frames are lost or damaged.
    #[serde(default)]
    pub channel: ChannelKind,
    /// Modulation and coding of the forward direction; none by default. Its errors are added to those of `channel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding: Option<Coding>,
    /// Gateways at both ends, which split the connections of flows: `true`, or a table of their keys. None by default.
    #[serde(default, deserialize_with = "switch_or_table", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SwitchOrTable")]
    pub gateway: Option<Gateway>,
    /// A bundle of several lines instead of one link, in both directions. `rate_bps`, `return.rate_bps` and `delay_s` are then those
    /// of each line, and the queue is in front of all lines. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleConfig>,
    /// A bundle of IP paths instead of one link, in both directions. `rate_bps`, `delay_s`, the queue and those of `return` are then
    /// those of each path that gives none. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Paths>,
    /// The return direction, where it differs. Rate, delay and queue default to those of the forward direction; the channel and
    /// coding default to none.
    #[serde(default, rename = "return")]
    pub back: Return,
}

/// The return direction of a hop.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Return {
    /// Rate. Defaults to the forward rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<RateSetting>,
    /// One-way propagation delay. Defaults to the forward delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<DelaySetting>,
    /// Time that the far end of the link takes to process a packet before its answer leaves, in seconds: each packet of the return
    /// direction arrives later by it (Epple, eq. (4)). 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processing_s: Option<Seconds>,
    /// Limit of the queue, in bytes. Defaults to that of the forward direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<Count>,
    /// Limit of the queue in packets, instead of `queue_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<Count>,
    /// Marking threshold, in bytes. Defaults to that of the forward direction, unless the return direction has a queue limit of
    /// its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_threshold_bytes: Option<Count>,
    /// Marking threshold in packets, instead of `ecn_threshold_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_threshold_packets: Option<Count>,
    /// Order in which packets of several classes are sent. Defaults to that of the forward direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// Channel of the return direction: how frames are lost or damaged.
    pub channel: ChannelKind,
    /// Modulation and coding of the return direction; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coding: Option<Coding>,
}

/// What happens to the order of frames when the delay decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ordering {
    /// A frame never arrives before one that was sent earlier.
    #[default]
    Fifo,
    /// Each frame has the delay of the instant at which it is sent.
    Overtake,
}

/// One direction of a hop. For the return direction, values that are not given are those of the forward direction.
#[derive(Clone, Copy, Debug)]
pub struct Direction<'a> {
    /// Its rate.
    pub rate: &'a RateSetting,
    /// Its one-way delay,
    pub delay: &'a DelaySetting,
    /// and what processing at its beginning adds to it.
    pub processing: Time,
    /// The policer in front of its queue.
    pub policer: Option<PolicerConfig>,
    /// Its queue.
    pub queue: QueueLimit,
    /// The backlog from which on packets are marked; unlimited if none are.
    pub ecn_threshold: QueueLimit,
    /// Its service of classes.
    pub service: &'a Service,
    /// Whether its frames may overtake each other.
    pub ordering: Ordering,
    /// Its channel.
    pub channel: &'a ChannelKind,
    /// Its modulation and coding.
    pub coding: Option<&'a Coding>,
}

impl Direction<'_> {
    /// Prepares the channel of this direction for runs that end after `duration` at the latest. It is a chain of losses while a
    /// satellite is out of sight, the channel and the coding. The paths of errors are relative to the direction.
    ///
    /// # Errors
    /// If keys contradict each other, a trace is missing or of the wrong kind, or the error events of the coding are not
    /// available.
    pub fn prepare_channel(
        &self,
        traces: &dyn TraceSource,
        duration: Option<Time>,
    ) -> Result<Arc<dyn Prepared>, (&'static str, ChannelError)> {
        let site = self.site(traces, duration);
        let channel = self.channel.prepare(&site).map_err(|error| ("channel", error))?;
        let coding = self.coding.map(|coding| coding.prepare(&site)).transpose().map_err(|error| ("coding", error))?;
        let ready = match coding {
            None => channel,
            Some(coding) if matches!(self.channel, ChannelKind::None(_)) => coding,
            Some(coding) => chain::both(channel, coding),
        };
        Ok(match self.delay.outages(duration) {
            None => ready,
            Some(outages) => chain::both(outages, ready),
        })
    }

    /// A text that identifies the channel in runs that end after `duration`: it is the same for directions with the same channel.
    pub fn decides_channel(&self, duration: Option<Time>) -> String {
        let delay = match self.delay {
            DelaySetting::Constant(_) => None,
            DelaySetting::Varying(kind) => Some(kind),
        };
        let keys = (self.channel, self.coding, self.rate, duration.map(Time::as_ps), delay);
        serde_json::to_string(&keys).expect("keys are text")
    }

    fn site<'a>(&self, traces: &'a dyn TraceSource, duration: Option<Time>) -> Site<'a> {
        let rate = match self.rate {
            RateSetting::Constant(rate) => Some(*rate),
            RateSetting::Varying(_) => None,
        };
        Site { traces, rate, duration }
    }
}

impl Hop {
    /// The forward direction.
    pub fn forward(&self) -> Direction<'_> {
        Direction {
            rate: &self.rate_bps,
            delay: &self.delay_s,
            processing: Time::ZERO,
            policer: self.policer,
            queue: queue_limit(self.queue_bytes, self.queue_packets),
            ecn_threshold: queue_limit(self.ecn_threshold_bytes, self.ecn_threshold_packets),
            service: &self.service,
            ordering: self.ordering,
            channel: &self.channel,
            coding: self.coding.as_ref(),
        }
    }

    /// The return direction.
    pub fn back(&self) -> Direction<'_> {
        let own_queue = queue_limit(self.back.queue_bytes, self.back.queue_packets);
        let own_threshold = queue_limit(self.back.ecn_threshold_bytes, self.back.ecn_threshold_packets);
        let has_own = own_queue != QueueLimit::Unlimited || own_threshold != QueueLimit::Unlimited;
        Direction {
            rate: self.back.rate_bps.as_ref().unwrap_or(&self.rate_bps),
            delay: self.back.delay_s.as_ref().unwrap_or(&self.delay_s),
            processing: self.back.processing_s.map_or(Time::ZERO, Seconds::time),
            policer: None,
            queue: if own_queue == QueueLimit::Unlimited { self.forward().queue } else { own_queue },
            ecn_threshold: if has_own { own_threshold } else { self.forward().ecn_threshold },
            service: self.back.service.as_ref().unwrap_or(&self.service),
            ordering: self.ordering,
            channel: &self.back.channel,
            coding: self.back.coding.as_ref(),
        }
    }

    /// Checks the rules between keys that the types of single keys cannot express; paths are relative to the hop.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let one_limit = |path: &str, bytes: Option<Count>, packets: Option<Count>| match (bytes, packets) {
            (Some(_), Some(_)) => Err(ConfigError::new(
                path,
                "queue_bytes and queue_packets are both given",
                "keep one of them; a queue is limited in bytes or in packets",
            )),
            _ => Ok(()),
        };
        one_limit("", self.queue_bytes, self.queue_packets)?;
        one_limit("return", self.back.queue_bytes, self.back.queue_packets)?;
        let one_threshold = |path: &str, bytes: Option<Count>, packets: Option<Count>| match (bytes, packets) {
            (Some(_), Some(_)) => Err(ConfigError::new(
                path,
                "ecn_threshold_bytes and ecn_threshold_packets are both given",
                "keep one of them; a threshold is in bytes or in packets",
            )),
            _ => Ok(()),
        };
        one_threshold("", self.ecn_threshold_bytes, self.ecn_threshold_packets)?;
        one_threshold("return", self.back.ecn_threshold_bytes, self.back.ecn_threshold_packets)?;
        self.service.check()?;
        self.back.service.as_ref().map_or(Ok(()), Service::check).map_err(|error| error.within("return"))?;
        check_threshold(&self.forward())?;
        check_threshold(&self.back()).map_err(|error| error.within("return"))?;
        check_keys(&self.forward())?;
        check_keys(&self.back()).map_err(|error| error.within("return"))?;
        self.bundle.as_ref().map_or(Ok(()), |bundle| self.check_bundle(bundle))?;
        self.paths.as_ref().map_or(Ok(()), |paths| self.check_paths(paths))
    }

    /// Keys of a single link that are given, of those that a bundle replaces by its own.
    fn keys_of_link(&self) -> impl Iterator<Item = &'static str> {
        let of_link = [
            ("channel", !matches!(self.channel, ChannelKind::None(_))),
            ("coding", self.coding.is_some()),
            ("service", !self.service.is_fifo()),
            ("ordering", self.ordering != Ordering::Fifo),
            ("ecn_threshold_bytes", self.ecn_threshold_bytes.is_some()),
            ("ecn_threshold_packets", self.ecn_threshold_packets.is_some()),
            ("return.processing_s", self.back.processing_s.is_some()),
            ("return.channel", !matches!(self.back.channel, ChannelKind::None(_))),
            ("return.coding", self.back.coding.is_some()),
            ("return.service", self.back.service.is_some()),
            ("return.ecn_threshold_bytes", self.back.ecn_threshold_bytes.is_some()),
            ("return.ecn_threshold_packets", self.back.ecn_threshold_packets.is_some()),
        ];
        of_link.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key)
    }

    /// Refuses keys of a single link, or of a bundle of lines, beside paths.
    fn check_paths(&self, paths: &Paths) -> Result<(), ConfigError> {
        if self.bundle.is_some() {
            let what = "bundle and paths are both given";
            return Err(ConfigError::new("paths", what, "keep one of them: lines of PPP, or IP paths"));
        }
        let of_link = self.policer.map(|_| "policer").into_iter().chain(self.keys_of_link()).next();
        if let Some(key) = of_link {
            let what = "this key belongs to a single link, not to a bundle of paths";
            let remedy = match key {
                "channel" => "give it to a path, as paths.members[0].channel",
                "return.channel" => "give it to a path, as paths.members[0].return.channel",
                _ => "remove it, or paths",
            };
            return Err(ConfigError::new(key, what, remedy));
        }
        paths.check().map_err(|error| error.within("paths"))?;
        for (at, member) in paths.members.iter().enumerate() {
            self.of_path(member).check().map_err(|error| error.within(&format!("paths.members[{at}]")))?;
        }
        Ok(())
    }

    /// The link of a path, which has from this hop what it does not give.
    pub fn of_path(&self, member: &PathMember) -> Hop {
        let own = |bytes: Option<Count>, packets: Option<Count>| bytes.is_some() || packets.is_some();
        let mut link = Hop { paths: None, channel: member.channel.clone(), ..self.clone() };
        link.back.channel = member.back.channel.clone();
        if let Some(rate) = &member.rate_bps {
            (link.rate_bps, link.back.rate_bps) = (rate.clone(), None);
        }
        if let Some(delay) = &member.delay_s {
            (link.delay_s, link.back.delay_s) = (delay.clone(), None);
        }
        if own(member.queue_bytes, member.queue_packets) {
            (link.queue_bytes, link.queue_packets) = (member.queue_bytes, member.queue_packets);
            (link.back.queue_bytes, link.back.queue_packets) = (None, None);
        }
        link.back.rate_bps = member.back.rate_bps.clone().or(link.back.rate_bps);
        link.back.delay_s = member.back.delay_s.clone().or(link.back.delay_s);
        if own(member.back.queue_bytes, member.back.queue_packets) {
            (link.back.queue_bytes, link.back.queue_packets) = (member.back.queue_bytes, member.back.queue_packets);
        }
        link
    }

    /// Refuses keys of a single link that a bundle replaces by its own.
    fn check_bundle(&self, bundle: &BundleConfig) -> Result<(), ConfigError> {
        let own_delay = self.back.delay_s.as_ref().map(|_| "return.delay_s");
        if let Some(key) = self.keys_of_link().chain(own_delay).next() {
            let what = "this key belongs to a single link, not to a bundle of lines";
            return Err(ConfigError::new(key, what, format!("remove {key}, or bundle")));
        }
        let refused = |error: ConfigError| error.within("bundle");
        let lines = self.lines(bundle).map_err(refused)?;
        bundle.check(&lines).map_err(refused)
    }

    /// The lines of this hop's bundle in the forward direction.
    ///
    /// # Errors
    /// If keys of the bundle contradict each other or the hop; paths are relative to the bundle.
    pub fn lines(&self, bundle: &BundleConfig) -> Result<Vec<LineConfig>, ConfigError> {
        bundle.resolve([self.forward().rate, self.back().rate], &self.delay_s)
    }
}

/// A queue that drops before it marks never marks.
fn check_threshold(direction: &Direction<'_>) -> Result<(), ConfigError> {
    let (key, threshold, queue) = match (direction.ecn_threshold, direction.queue) {
        (QueueLimit::Bytes(threshold), QueueLimit::Bytes(queue)) => ("bytes", threshold, queue),
        (QueueLimit::Packets(threshold), QueueLimit::Packets(queue)) => ("packets", threshold, queue),
        _ => return Ok(()),
    };
    if threshold < queue {
        return Ok(());
    }
    let what = format!(
        "a queue with queue_{key} = {queue} is full before {threshold} {key} wait, so it drops packets instead of marking them"
    );
    Err(ConfigError::new(format!("ecn_threshold_{key}"), what, format!("give less than {queue}")))
}

/// Checks the keys of a channel and a coding against each other. Traces are read and error events are collected only when the
/// scenario is run.
fn check_keys(direction: &Direction<'_>) -> Result<(), ConfigError> {
    direction.delay.check().map_err(|error| error.within("delay_s"))?;
    let site = direction.site(&NoTraces, None);
    let parts = [
        ("channel", Some(direction.channel.prepare(&site))),
        ("coding", direction.coding.map(|coding| coding.prepare(&site))),
    ];
    for (path, prepared) in parts {
        if let Some(Err(error @ ChannelError::Key(_))) = prepared {
            return Err(error.at(path));
        }
    }
    Ok(())
}

/// A source without any traces.
struct NoTraces;

impl TraceSource for NoTraces {
    fn load(&self, file: &str) -> Result<Arc<Trace>, TraceError> {
        Err(TraceError::Unreadable { file: file.to_owned(), reason: "nothing is read yet".to_owned() })
    }
}

fn queue_limit(bytes: Option<Count>, packets: Option<Count>) -> QueueLimit {
    match (bytes, packets) {
        (Some(bytes), _) => QueueLimit::Bytes(bytes.whole()),
        (None, Some(packets)) => QueueLimit::Packets(packets.whole()),
        (None, None) => QueueLimit::Unlimited,
    }
}

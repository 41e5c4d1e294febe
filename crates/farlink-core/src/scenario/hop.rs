//! A hop: one link of the path, with its way back.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gateway::{Gateway, SwitchOrTable, switch_or_table};
use super::service::Service;
use crate::ConfigError;
use crate::bundle::BundleConfig;
use crate::channel::{ChannelConfig, ChannelError, ChannelKind, Prepared, Site, chain};
use crate::coding::Coding;
use crate::link::QueueLimit;
use crate::link::setting::{DelaySetting, RateSetting};
use crate::time::Time;
use crate::trace::{Trace, TraceError, TraceSource};
use crate::units::Count;

/// One link of the path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Rate of the way forward: a number, or a table with the trace to replay.
    pub rate_bps: RateSetting,
    /// One-way propagation delay: a number, or a table with the trace to replay. Transmission comes on top.
    pub delay_s: DelaySetting,
    /// Room in the queue in front of the link, in bytes; unlimited unless given. The packet being sent does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<Count>,
    /// Room in the queue in packets, instead of `queue_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<Count>,
    /// Mark packets with congestion (RFC 3168) that find this many bytes waiting or more, if they are ECN-capable; none are
    /// marked unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_threshold_bytes: Option<Count>,
    /// The threshold of marking in packets, instead of `ecn_threshold_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_threshold_packets: Option<Count>,
    /// Who goes first where packets of several classes wait: a name, or a table of weights; `fifo` unless given. With any other,
    /// each class has all the room of `queue_bytes` or `queue_packets` for itself, and what waits of it decides on marks.
    #[serde(default, skip_serializing_if = "Service::is_fifo")]
    pub service: Service,
    /// Whether frames may pass each other when the delay falls.
    #[serde(default)]
    pub ordering: Ordering,
    /// What happens to frames on the way forward.
    #[serde(default)]
    pub channel: ChannelKind,
    /// Modulation and coding on the way forward; none unless given. Its errors come on top of those of `channel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding: Option<Coding>,
    /// Gateways at both ends, which split the flows over it: `true`, or a table of their keys; none unless given.
    #[serde(default, deserialize_with = "switch_or_table", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SwitchOrTable")]
    pub gateway: Option<Gateway>,
    /// Several lines in place of the one link, both ways; none unless given. Rate and delay are then those of each line, and the queue
    /// stands in front of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleConfig>,
    /// The way back, where it differs: same rate, delay and queue unless given, and no errors.
    #[serde(default, rename = "return")]
    pub back: Return,
}

/// The way back of a hop.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Return {
    /// Rate; that of the way forward unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<RateSetting>,
    /// One-way propagation delay; that of the way forward unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<DelaySetting>,
    /// Room in the queue, in bytes; that of the way forward unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<Count>,
    /// Room in the queue in packets, instead of `queue_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<Count>,
    /// Threshold of marking, in bytes; that of the way forward unless it or a queue is given here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_threshold_bytes: Option<Count>,
    /// Threshold of marking in packets, instead of `ecn_threshold_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_threshold_packets: Option<Count>,
    /// Who goes first of several classes; as on the way forward unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// What happens to frames on the way back.
    pub channel: ChannelKind,
    /// Modulation and coding on the way back; none unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coding: Option<Coding>,
}

/// What becomes of the order of frames when the delay falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ordering {
    /// A frame never arrives before one that was sent earlier.
    #[default]
    Fifo,
    /// Each frame takes the delay of the instant it is sent.
    Overtake,
}

/// One direction of a hop, with what the way back takes over from the way forward.
#[derive(Clone, Copy, Debug)]
pub struct Direction<'a> {
    /// Its rate.
    pub rate: &'a RateSetting,
    /// Its one-way delay.
    pub delay: &'a DelaySetting,
    /// Its queue.
    pub queue: QueueLimit,
    /// What a packet must find waiting to be marked; unlimited if none ever is.
    pub ecn_threshold: QueueLimit,
    /// How it serves classes.
    pub service: &'a Service,
    /// Its order.
    pub ordering: Ordering,
    /// Its channel.
    pub channel: &'a ChannelKind,
    /// Its modulation and coding.
    pub coding: Option<&'a Coding>,
    /// The lines in place of one link.
    pub bundle: Option<&'a BundleConfig>,
}

impl Direction<'_> {
    /// What happens to its frames in runs that end at the latest after `duration`: they are lost while a satellite is out of
    /// sight, then come its channel and its coding. The paths of errors are relative to the direction.
    ///
    /// # Errors
    /// If keys do not fit, a trace is missing or unfit, or there are no error events of the coding.
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

    /// A text that is the same for directions whose channels are, in runs that end after the same `duration`.
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
    /// The way forward.
    pub fn forward(&self) -> Direction<'_> {
        Direction {
            rate: &self.rate_bps,
            delay: &self.delay_s,
            queue: queue_limit(self.queue_bytes, self.queue_packets),
            ecn_threshold: queue_limit(self.ecn_threshold_bytes, self.ecn_threshold_packets),
            service: &self.service,
            ordering: self.ordering,
            channel: &self.channel,
            coding: self.coding.as_ref(),
            bundle: self.bundle.as_ref(),
        }
    }

    /// The way back.
    pub fn back(&self) -> Direction<'_> {
        let own_queue = queue_limit(self.back.queue_bytes, self.back.queue_packets);
        let own_threshold = queue_limit(self.back.ecn_threshold_bytes, self.back.ecn_threshold_packets);
        let has_own = own_queue != QueueLimit::Unlimited || own_threshold != QueueLimit::Unlimited;
        Direction {
            rate: self.back.rate_bps.as_ref().unwrap_or(&self.rate_bps),
            delay: self.back.delay_s.as_ref().unwrap_or(&self.delay_s),
            queue: if own_queue == QueueLimit::Unlimited { self.forward().queue } else { own_queue },
            ecn_threshold: if has_own { own_threshold } else { self.forward().ecn_threshold },
            service: self.back.service.as_ref().unwrap_or(&self.service),
            ordering: self.ordering,
            channel: &self.back.channel,
            coding: self.back.coding.as_ref(),
            bundle: self.bundle.as_ref(),
        }
    }

    /// Checks what the types cannot; paths are relative to the hop.
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
                "keep one of them; a queue marks from so many bytes or from so many packets on",
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
        self.bundle.as_ref().map_or(Ok(()), |bundle| self.check_bundle(bundle))
    }

    /// A bundle decides for itself what a link would be told.
    fn check_bundle(&self, bundle: &BundleConfig) -> Result<(), ConfigError> {
        let of_link = [
            ("channel", !matches!(self.channel, ChannelKind::None(_))),
            ("coding", self.coding.is_some()),
            ("service", !self.service.is_fifo()),
            ("ordering", self.ordering != Ordering::Fifo),
            ("ecn_threshold_bytes", self.ecn_threshold_bytes.is_some()),
            ("ecn_threshold_packets", self.ecn_threshold_packets.is_some()),
            ("return.rate_bps", self.back.rate_bps.is_some()),
            ("return.delay_s", self.back.delay_s.is_some()),
            ("return.channel", !matches!(self.back.channel, ChannelKind::None(_))),
            ("return.coding", self.back.coding.is_some()),
            ("return.service", self.back.service.is_some()),
            ("return.ecn_threshold_bytes", self.back.ecn_threshold_bytes.is_some()),
            ("return.ecn_threshold_packets", self.back.ecn_threshold_packets.is_some()),
        ];
        if let Some((key, _)) = of_link.into_iter().find(|(_, is_given)| *is_given) {
            let what = "a bundle of lines has no such key of a single link";
            return Err(ConfigError::new(key, what, format!("remove {key}, or bundle")));
        }
        let refused = |error: ConfigError| error.within("bundle");
        let lines = bundle.resolve(&self.rate_bps, &self.delay_s).map_err(refused)?;
        bundle.check(&lines).map_err(refused)
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
    let what = format!("a queue of queue_{key} = {queue} is full before {threshold} {key} wait, and drops instead");
    Err(ConfigError::new(format!("ecn_threshold_{key}"), what, format!("give less than {queue}")))
}

/// Checks the keys of a channel and a coding against each other. Traces are read, and error events collected, by who runs
/// the scenario.
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

/// Has no trace at all.
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

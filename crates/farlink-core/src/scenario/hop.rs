//! A hop: one link of the path, with its way back.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ScenarioError;
use crate::channel::{ChannelError, ChannelKind};
use crate::link::QueueLimit;
use crate::link::setting::{DelaySetting, RateSetting};
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
    /// Whether frames may pass each other when the delay falls.
    #[serde(default)]
    pub ordering: Ordering,
    /// What happens to frames on the way forward.
    #[serde(default)]
    pub channel: ChannelKind,
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
    /// What happens to frames on the way back.
    pub channel: ChannelKind,
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
    /// Its order.
    pub ordering: Ordering,
    /// Its channel.
    pub channel: &'a ChannelKind,
}

impl Hop {
    /// The way forward.
    pub fn forward(&self) -> Direction<'_> {
        Direction {
            rate: &self.rate_bps,
            delay: &self.delay_s,
            queue: queue_limit(self.queue_bytes, self.queue_packets),
            ordering: self.ordering,
            channel: &self.channel,
        }
    }

    /// The way back.
    pub fn back(&self) -> Direction<'_> {
        let own_queue = queue_limit(self.back.queue_bytes, self.back.queue_packets);
        Direction {
            rate: self.back.rate_bps.as_ref().unwrap_or(&self.rate_bps),
            delay: self.back.delay_s.as_ref().unwrap_or(&self.delay_s),
            queue: if own_queue == QueueLimit::Unlimited { self.forward().queue } else { own_queue },
            ordering: self.ordering,
            channel: &self.back.channel,
        }
    }

    /// Checks what the types cannot; paths are relative to the hop.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let one_limit = |path: &str, bytes: Option<Count>, packets: Option<Count>| match (bytes, packets) {
            (Some(_), Some(_)) => Err(ScenarioError::new(
                path,
                "queue_bytes and queue_packets are both given",
                "keep one of them; a queue is limited in bytes or in packets",
            )),
            _ => Ok(()),
        };
        one_limit("", self.queue_bytes, self.queue_packets)?;
        one_limit("return", self.back.queue_bytes, self.back.queue_packets)?;
        check_keys("channel", &self.channel)?;
        check_keys("return.channel", &self.back.channel)
    }
}

/// Checks a channel's keys against each other. Its traces are read by who runs the scenario.
fn check_keys(path: &str, channel: &ChannelKind) -> Result<(), ScenarioError> {
    match channel.prepare(&NoTraces) {
        Err(error @ ChannelError::Keys { .. }) => Err(ScenarioError::from_channel(path, &error)),
        _ => Ok(()),
    }
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

//! What became of the packets of each flow, and how late they were.

use std::collections::BTreeMap;

use farlink_core::Time;
use serde_json::{Value, json};

use crate::packet::Flow;

/// Packets of a flow on one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) came: u64,
    pub(crate) came_bytes: u64,
    /// By a full queue or a policer.
    pub(crate) dropped: u64,
    pub(crate) lost: u64,
    pub(crate) damaged: u64,
    pub(crate) marked: u64,
    pub(crate) longest_bytes: u64,
}

/// Flows beyond so many are counted together, so that nobody can fill the memory.
const MOST_FLOWS: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Flows(BTreeMap<Flow, Counts>);

impl Flows {
    pub(crate) fn of(&mut self, packet: &[u8]) -> &mut Counts {
        let mut flow = Flow::of(packet).unwrap_or_else(|| Flow::unknown(packet));
        if self.0.len() >= MOST_FLOWS && !self.0.contains_key(&flow) {
            flow = Flow::unknown(packet);
        }
        self.0.entry(flow).or_default()
    }

    pub(crate) fn to_json(&self) -> Value {
        let rows = self.0.iter().map(|(flow, counts)| {
            let &Counts { came, came_bytes, dropped, lost, damaged, marked, longest_bytes } = counts;
            let row = json!({
                "came": came, "came_bytes": came_bytes, "dropped": dropped, "lost": lost, "damaged": damaged,
                "marked": marked, "longest_bytes": longest_bytes,
            });
            (flow.to_string(), row)
        });
        Value::Object(rows.collect())
    }
}

/// How long after they were due packets left the relay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lateness {
    packets: u64,
    worst: Time,
    beyond_200_us: u64,
    beyond_1_ms: u64,
    /// Packets that the device did not take.
    refused: u64,
}

impl Lateness {
    pub(crate) fn add(&mut self, late: Time) {
        self.packets += 1;
        self.worst = self.worst.max(late);
        self.beyond_200_us += u64::from(late > Time::from_ps(200_000_000));
        self.beyond_1_ms += u64::from(late > Time::from_millis(1));
    }

    pub(crate) fn refuse(&mut self) {
        self.refused += 1;
    }

    pub(crate) fn to_json(self) -> Value {
        let Lateness { packets, worst, beyond_200_us, beyond_1_ms, refused } = self;
        json!({
            "packets": packets, "worst_s": worst.as_secs_f64(), "beyond_200_us": beyond_200_us,
            "beyond_1_ms": beyond_1_ms, "refused": refused,
        })
    }
}

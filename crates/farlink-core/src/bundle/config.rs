//! What a scenario says about a bundle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Framing;
use super::arq::LinkArq;
use super::calls::CallsConfig;
use super::fragment::Numbering;
use super::schedule::Scheduler;
use crate::coding::Unfit;
use crate::link::setting::{DelaySetting, RateSetting};
use crate::units::{BitRate, Count, CountToMillion, PositiveSeconds, Seconds};

/// Several lines that carry packets as one link: PPP Multilink (RFC 1990). Each line has the hop's `rate_bps` and `delay_s` unless
/// `members` say otherwise; both directions of the hop have the same lines, and their calls drop together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleConfig {
    /// How many lines, all alike; or `members`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<CountToMillion>,
    /// Kinds of lines, instead of `lines`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// Which line takes the next packet.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// Whether packets are cut into fragments.
    #[serde(default)]
    pub packets: Cut,
    /// Sequence numbers around each fragment; without them packets come out as they arrive, in any order.
    #[serde(default)]
    pub header: Header,
    /// The longest packet that the receiver puts together (MRRU); longer ones are dropped there.
    #[serde(default = "default_mrru")]
    pub mrru_bytes: Count,
    /// No fragment is shorter, unless the packet is.
    #[serde(default = "default_least_fragment")]
    pub min_fragment_bytes: Count,
    /// How many fragments a line takes, the one being sent included; what finds no line with room waits in the queue of the hop.
    #[serde(default = "default_line_packets")]
    pub line_packets: Count,
    /// Room in a line's modem, which is filled before the serial line stops; as much as there is unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modem_bytes: Option<Count>,
    /// Room in the buffer of a line's serial port, on top of `modem_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_bytes: Option<Count>,
    /// Rate of the serial lines between hosts and modems; without end unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_bps: Option<BitRate>,
    /// Repetition on each line; none unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arq: Option<LinkArq>,
    /// Calls that drop; the lines are always up unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallsConfig>,
    /// What becomes of what a line held when its call drops.
    #[serde(default)]
    pub on_drop: OnDrop,
    /// Longest time that the receiver waits for a missing fragment while others wait behind it; only the rules of RFC 1990 say that
    /// one is lost unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder_timeout_s: Option<PositiveSeconds>,
}

/// Lines of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// How many of them.
    #[serde(default = "one")]
    pub count: CountToMillion,
    /// Rate of each, both ways; the hop's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<BitRate>,
    /// One-way delay of each, both ways; the hop's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Seconds>,
}

/// Whether packets are cut into fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// Each goes over one line, as Linux does where only one has room.
    #[default]
    Whole,
    /// Each is cut into fragments for all lines that have room.
    Fragmented,
}

/// Sequence numbers around each fragment (RFC 1990, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Header {
    /// Of 24 bits: 4 bytes.
    #[default]
    Long,
    /// Of 12 bits: 2 bytes.
    Short,
    /// None at all: lines side by side without multilink.
    None,
}

/// What becomes of what a line held when its call drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnDrop {
    /// It is lost.
    #[default]
    Lose,
    /// What has not arrived is sent again over other lines, before what waits. The sender is taken to know what has arrived: the
    /// best that any scheme can do.
    Requeue,
}

/// One line of a bundle, both ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineConfig {
    /// Its rate.
    pub rate: BitRate,
    /// Its one-way delay.
    pub delay: Seconds,
}

const MOST_LINES: u64 = 256;

fn one() -> CountToMillion {
    CountToMillion::new(1.0).expect("a constant within its range")
}

fn count(value: f64) -> Count {
    Count::new(value).expect("a constant within its range")
}

fn default_mrru() -> Count {
    count(1500.0)
}

fn default_least_fragment() -> Count {
    count(64.0)
}

fn default_line_packets() -> Count {
    count(3.0)
}

impl Default for BundleConfig {
    fn default() -> Self {
        BundleConfig {
            lines: None,
            members: Vec::new(),
            scheduler: Scheduler::default(),
            packets: Cut::default(),
            header: Header::default(),
            mrru_bytes: default_mrru(),
            min_fragment_bytes: default_least_fragment(),
            line_packets: default_line_packets(),
            modem_bytes: None,
            serial_bytes: None,
            serial_bps: None,
            arq: None,
            calls: None,
            on_drop: OnDrop::default(),
            reorder_timeout_s: None,
        }
    }
}

impl BundleConfig {
    /// Its lines, of a hop with that rate and delay.
    ///
    /// # Errors
    /// If keys contradict each other or the hop.
    pub fn resolve(&self, rate: &RateSetting, delay: &DelaySetting) -> Result<Vec<LineConfig>, Unfit> {
        let RateSetting::Constant(rate) = rate else {
            return Err(Unfit::new(
                "",
                "the lines of a bundle have constant rates, and rate_bps is a recording",
                "give a number as rate_bps",
            ));
        };
        let DelaySetting::Constant(delay) = delay else {
            return Err(Unfit::new(
                "",
                "the lines of a bundle have constant delays, and delay_s varies",
                "give a number as delay_s",
            ));
        };
        let lines: Vec<LineConfig> = match (self.lines, &self.members[..]) {
            (Some(_), [_, ..]) => {
                return Err(Unfit::new("", "lines and members are both given", "keep one of them"));
            }
            (None, []) => {
                return Err(Unfit::new("", "a bundle has no lines", "say how many with lines = 8, or give members"));
            }
            (Some(lines), []) => {
                (0..lines.whole().min(MOST_LINES + 1)).map(|_| LineConfig { rate: *rate, delay: *delay }).collect()
            }
            (None, members) => members
                .iter()
                .flat_map(|member| {
                    let line =
                        LineConfig { rate: member.rate_bps.unwrap_or(*rate), delay: member.delay_s.unwrap_or(*delay) };
                    (0..member.count.whole().min(MOST_LINES + 1)).map(move |_| line)
                })
                .collect(),
        };
        if lines.len() as u64 > MOST_LINES {
            let what = format!("a bundle of more than {MOST_LINES} lines");
            return Err(Unfit::new(if self.members.is_empty() { "lines" } else { "members" }, what, "give fewer"));
        }
        Ok(lines)
    }

    /// Checks what the types cannot, for so many lines.
    ///
    /// # Errors
    /// If keys contradict each other.
    pub fn check(&self, lines: usize) -> Result<(), Unfit> {
        if self.header == Header::None && self.packets == Cut::Fragmented {
            return Err(Unfit::new(
                "header",
                "fragments without sequence numbers cannot be put together",
                "use header = \"long\" or \"short\", or packets = \"whole\"",
            ));
        }
        if self.header == Header::None && self.reorder_timeout_s.is_some() {
            return Err(Unfit::new(
                "reorder_timeout_s",
                "without sequence numbers nobody waits for anything",
                "remove reorder_timeout_s, or use header = \"long\"",
            ));
        }
        if self.scheduler == Scheduler::Redundant && self.packets == Cut::Fragmented {
            return Err(Unfit::new(
                "scheduler",
                "what goes over all lines is not cut into fragments",
                "use packets = \"whole\", or another scheduler",
            ));
        }
        if self.scheduler == Scheduler::Redundant && self.header == Header::None {
            return Err(Unfit::new(
                "scheduler",
                "copies without sequence numbers would all be delivered",
                "use header = \"long\" or \"short\"",
            ));
        }
        if self.min_fragment_bytes > self.mrru_bytes {
            return Err(Unfit::new(
                "min_fragment_bytes",
                format!(
                    "no packet of up to mrru_bytes = {} has a fragment of {}",
                    self.mrru_bytes.get(),
                    self.min_fragment_bytes.get()
                ),
                "give at most mrru_bytes",
            ));
        }
        if self.serial_bytes.is_some() && self.modem_bytes.is_none() {
            return Err(Unfit::new(
                "serial_bytes",
                "the buffer of the serial port never fills while the modem takes everything",
                "give modem_bytes too",
            ));
        }
        if self.arq.is_some_and(|arq| arq.never_ends()) {
            return Err(Unfit::new("arq.loss", "no frame ever gets through", "give less than 1, or attempts"));
        }
        match &self.calls {
            Some(calls) => calls.check(lines).map_err(|unfit| unfit.within("calls")),
            None if self.on_drop == OnDrop::Requeue => {
                Err(Unfit::new("on_drop", "no call ever drops", "remove on_drop, or give calls"))
            }
            None if self.scheduler == Scheduler::DropAware => {
                Err(Unfit::new("scheduler", "no call ever drops", "use \"earliest-delivery\", or give calls"))
            }
            None => Ok(()),
        }
    }

    /// How fragments look on a line; none if they have no numbers.
    pub(super) fn framing(&self) -> Framing {
        let numbering = if self.header == Header::Short { Numbering::Short } else { Numbering::Long };
        Framing { numbering, ..Framing::default() }
    }
}

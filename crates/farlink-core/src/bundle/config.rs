//! What a scenario says about a bundle.

mod check;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Framing;
use super::arq::LinkArq;
use super::calls::CallsConfig;
use super::fragment::Numbering;
use super::line_config::LineConfig;
use super::schedule::Scheduler;
use crate::ConfigError;
use crate::channel::spell::Spell;
use crate::link::setting::{DelaySetting, RateSetting};
use crate::time::Time;
use crate::units::{BitRate, Count, LineCount, OrNever, PositiveSeconds, Seconds};

/// Several lines that carry packets as one link: PPP Multilink (RFC 1990). Each line has the hop's `rate_bps` and `delay_s` unless
/// `members` say otherwise; both directions of the hop have the same lines, and their calls drop together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleConfig {
    /// How many lines, all alike; or `members`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineCount>,
    /// Kinds of lines, instead of `lines`; of all kinds together 256 at most.
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
    /// The longest packet that the receiver puts together (MRRU). Transports whose full packets are longer are refused.
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
    /// With `scheduler = "linux"`: room in the buffer of a line's serial port; 4096 (a UART) unless given. A pseudo-terminal has 12288.
    /// Three fragments wait in front of it, and a buffer that was full is filled again when fewer than 256 bytes are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tty_bytes: Option<Count>,
    /// Repetition on each line; none unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arq: Option<LinkArq>,
    /// Calls that drop; the lines are always up unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallsConfig>,
    /// What becomes of what a line held when its call drops. Unless given, `requeue` where both ends can do it; `lose` with
    /// `header = "none"`, and with the scheduler or the receiver of Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_drop: Option<OnDrop>,
    /// Who is at the other end, to whom `on_drop = "requeue"` sends again.
    #[serde(default, skip_serializing_if = "Peer::is_farlink")]
    pub peer: Peer,
    /// By which rule the receiver takes a missing fragment for lost; `linux` with `scheduler = "linux"`, else `rfc1990`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<ReceiverRule>,
    /// Longest time that the receiver waits for a missing fragment while others wait behind it; with `"never"` only the rules of
    /// RFC 1990 say that one is lost. Unless given, the delay of a line and twice the time that it needs for a packet of `mrru_bytes`,
    /// its mean repetitions included, of the line with the longest; with `on_drop = "requeue"`, and in the receiver of Linux, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder_timeout_s: Option<OrNever<PositiveSeconds>>,
    /// How many fragments the receiver lets wait for missing ones; with more it gives those up. Linux: 128.
    #[serde(default = "default_most_held")]
    pub reorder_fragments: Count,
}

/// Lines of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// How many of them.
    #[serde(default = "one")]
    pub count: LineCount,
    /// Rate of each, both ways; the hop's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<BitRate>,
    /// One-way delay of each, both ways; the hop's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Seconds>,
    /// As in the bundle, whose value they have unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modem_bytes: Option<Count>,
    /// As in the bundle, whose value they have unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_bytes: Option<Count>,
    /// As in the bundle, whose value they have unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_bps: Option<BitRate>,
    /// As in the bundle, whose value they have unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arq: Option<LinkArq>,
    /// How long their calls last; as in `calls` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<Spell>,
    /// How long dialling takes on them; as in `calls` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redial: Option<Spell>,
}

/// Whether packets are cut into fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// Each goes over one line.
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

/// When a receiver takes a missing fragment for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceiverRule {
    /// When every line that is up has delivered a later one (section 4.1), after `reorder_timeout_s`, or when more than
    /// `reorder_fragments` wait: then the oldest gap is given up, wherever it is.
    Rfc1990,
    /// As Linux 6.1 does. When every line that is up has delivered a later one, which is looked at as fragments come and not as lines
    /// go; a line that has just come up has delivered none. When `reorder_fragments` wait, what is missing before the first of them is
    /// given up, and nothing behind it: a hole inside a packet is waited for until the lines have passed it. There is no timer.
    Linux,
}

/// What becomes of what a line held when its call drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnDrop {
    /// It is lost.
    Lose,
    /// It is lost, and each TCP sender that lost something hears its last acknowledgement three times more, so that it recovers
    /// without a timeout (Zaghloul, chapters 6 and 8). The end of the bundle reads the acknowledgements that pass. SACK and RACK take
    /// no notice of duplicates that report nothing new (RFC 6675, section 2).
    DuplicateAcks,
    /// What has not arrived is sent again over other lines, before what waits. The sender is taken to know what has arrived: the
    /// best that any scheme can do. `peer` says under which numbers.
    Requeue,
}

/// Who is at the other end of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// One that is told what goes again: it does so under its number, and the receiver takes no number for lost but by
    /// `reorder_timeout_s` and `reorder_fragments`.
    #[default]
    Farlink,
    /// A receiver by RFC 1990, section 4.1, for which numbers must rise on each line: packets go again under new ones. So that it
    /// learns at once that the old ones are lost, the sender gives each line that is up an empty fragment then, and each line that
    /// is connected its first one.
    Rfc1990,
}

impl Peer {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in a reference")]
    fn is_farlink(&self) -> bool {
        *self == Peer::Farlink
    }
}

/// The buffer of a UART in Linux: a page.
const UART_BYTES: f64 = 4096.0;

fn one() -> LineCount {
    LineCount::new(1.0).expect("a constant within its range")
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

fn default_most_held() -> Count {
    count(128.0)
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
            tty_bytes: None,
            arq: None,
            calls: None,
            on_drop: None,
            peer: Peer::default(),
            receiver: None,
            reorder_timeout_s: None,
            reorder_fragments: default_most_held(),
        }
    }
}

impl BundleConfig {
    /// Its lines, of a hop with that rate and delay.
    ///
    /// # Errors
    /// If keys contradict each other or the hop.
    pub fn resolve(&self, rate: &RateSetting, delay: &DelaySetting) -> Result<Vec<LineConfig>, ConfigError> {
        let RateSetting::Constant(rate) = rate else {
            return Err(ConfigError::new(
                "",
                "the lines of a bundle have constant rates, and rate_bps is a recording",
                "give a number as rate_bps",
            ));
        };
        let DelaySetting::Constant(delay) = delay else {
            return Err(ConfigError::new(
                "",
                "the lines of a bundle have constant delays, and delay_s varies",
                "give a number as delay_s",
            ));
        };
        let calls = self.calls.as_ref();
        let line = |member: Option<&Member>| LineConfig {
            rate: member.and_then(|member| member.rate_bps).unwrap_or(*rate),
            delay: member.and_then(|member| member.delay_s).unwrap_or(*delay),
            modem_bytes: member.and_then(|member| member.modem_bytes).or(self.modem_bytes),
            serial_bytes: member.and_then(|member| member.serial_bytes).or(self.serial_bytes),
            serial_bps: member.and_then(|member| member.serial_bps).or(self.serial_bps),
            arq: member.and_then(|member| member.arq).or(self.arq),
            up: member.and_then(|member| member.up).or(calls.and_then(|calls| calls.up)),
            redial: member.and_then(|member| member.redial).or(calls.and_then(|calls| calls.redial)),
        };
        let lines: Vec<LineConfig> = match (self.lines, &self.members[..]) {
            (Some(_), [_, ..]) => {
                return Err(ConfigError::new("", "lines and members are both given", "keep one of them"));
            }
            (None, []) => {
                return Err(ConfigError::new(
                    "",
                    "a bundle has no lines",
                    "say how many with lines = 8, or give members",
                ));
            }
            (Some(lines), []) => (0..lines.whole()).map(|_| line(None)).collect(),
            (None, members) => {
                let all: u64 = members.iter().map(|member| member.count.whole()).sum();
                if all > LineCount::MOST {
                    let what = format!("{all} lines of all kinds together");
                    let remedy = format!("give at most {} in the sum of all count", LineCount::MOST);
                    return Err(ConfigError::new("members", what, remedy));
                }
                let of = |member: &Member| std::iter::repeat_n(line(Some(member)), member.count.whole() as usize);
                members.iter().flat_map(of).collect()
            }
        };
        Ok(lines)
    }

    /// What becomes of what a line held when its call drops.
    #[must_use]
    pub fn what_on_drop(&self) -> OnDrop {
        let is_numbered = self.header != Header::None;
        let is_of_linux = self.scheduler == Scheduler::Linux || self.receiver_rule() == ReceiverRule::Linux;
        let can_requeue = self.calls.is_some() && is_numbered && !is_of_linux;
        self.on_drop.unwrap_or(if can_requeue { OnDrop::Requeue } else { OnDrop::Lose })
    }

    /// By which rule its receiver waits.
    pub(super) fn receiver_rule(&self) -> ReceiverRule {
        let of_scheduler = if self.scheduler == Scheduler::Linux { ReceiverRule::Linux } else { ReceiverRule::Rfc1990 };
        self.receiver.unwrap_or(of_scheduler)
    }

    /// Room in the buffer of a serial port.
    pub(super) fn tty_bytes(&self) -> Count {
        self.tty_bytes.unwrap_or_else(|| count(UART_BYTES))
    }

    /// How long its receiver waits for a missing fragment; none if it has no timer.
    pub(super) fn patience(&self, lines: &[LineConfig]) -> Option<Time> {
        if let Some(timeout) = self.reorder_timeout_s {
            return timeout.value().map(PositiveSeconds::time);
        }
        // What is sent again is not missing: nothing but its turn is waited for.
        if self.what_on_drop() == OnDrop::Requeue {
            return None;
        }
        let packet_bytes = u64::from(self.framing().overhead_bytes(true)) + self.mrru_bytes.whole();
        lines.iter().map(|line| line.usual_wait(packet_bytes)).max()
    }

    /// How fragments look on a line; none if they have no numbers.
    pub(super) fn framing(&self) -> Framing {
        let numbering = if self.header == Header::Short { Numbering::Short } else { Numbering::Long };
        Framing { numbering, ..Framing::default() }
    }
}

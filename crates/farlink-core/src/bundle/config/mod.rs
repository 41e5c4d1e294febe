//! The keys of a scenario that describe a bundle.

mod check;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Framing;
use super::arq::LinkArq;
use super::calls::Calls;
use super::calls_config::CallsConfig;
use super::fragment::Numbering;
use super::line_config::LineConfig;
use super::schedule::Scheduler;
use crate::ConfigError;
use crate::channel::random_duration::RandomDuration;
use crate::link::setting::{DelaySetting, RateSetting};
use crate::rng::Rng;
use crate::time::Time;
use crate::units::{BitRate, Count, LineCount, OrNever, PositiveSeconds, Seconds};

/// Several lines that carry packets as one link: PPP Multilink (RFC 1990). Each line has the hop's `rate_bps`,
/// `return.rate_bps` and `delay_s` unless `members` gives others. Both directions of the hop use the same lines, so that a dropped call ends both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleConfig {
    /// Number of lines, all equal. Use `members` for lines of different kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineCount>,
    /// Kinds of lines, instead of `lines`; at most 256 lines of all kinds together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// Which line takes the next packet.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// Whether packets are cut into fragments.
    #[serde(default)]
    pub packets: Cut,
    /// Sequence numbers in the header of each fragment. Without them the receiver delivers packets as they arrive, in any order.
    #[serde(default)]
    pub header: Header,
    /// The longest packet that the receiver reassembles (MRRU), in bytes. Transports whose full packets are longer are refused.
    #[serde(default = "default_mrru")]
    pub mrru_bytes: Count,
    /// What the ends negotiate otherwise for the return direction.
    #[serde(default, rename = "return", skip_serializing_if = "BundleReturn::is_empty")]
    pub back: BundleReturn,
    /// Least length of a fragment, in bytes; only shorter packets have shorter ones.
    #[serde(default = "default_least_fragment")]
    pub min_fragment_bytes: Count,
    /// How many fragments a line holds, including the one being sent. Packets that find no line with room wait in the queue of
    /// the hop.
    #[serde(default = "default_line_packets")]
    pub line_packets: Count,
    /// Room in a line's modem, in bytes; once it is full, flow control stops the serial line. Defaults to no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modem_bytes: Option<Count>,
    /// Room in the buffer of a line's serial port, in bytes, in addition to `modem_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_bytes: Option<Count>,
    /// Rate of the serial lines between hosts and modems. Defaults to an infinite rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_bps: Option<BitRate>,
    /// With `scheduler = "linux"`: room in the buffer of a line's serial port, in bytes. Defaults to 4096 (a UART); a
    /// pseudo-terminal has 12288. Up to three more fragments wait in front of the buffer, and a buffer that was full is refilled
    /// when fewer than 256 bytes are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tty_bytes: Option<Count>,
    /// Link-layer ARQ on each line. By default there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arq: Option<LinkArq>,
    /// Calls that drop. By default the lines are always up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallsConfig>,
    /// What happens to the packets that a line held when its call drops. Defaults to `requeue` where both ends can do it, and to
    /// `lose` with `header = "none"`, with the scheduler of Linux, or with its receiver unless `peer` is not farlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_drop: Option<OnDrop>,
    /// The implementation at the other end, which decides what `on_drop = "requeue"` sends again, and under which numbers.
    #[serde(default, skip_serializing_if = "Peer::is_farlink")]
    pub peer: Peer,
    /// The rule by which the receiver declares a missing fragment lost. Defaults to `linux` with `scheduler = "linux"` or
    /// `peer = "linux"`, otherwise to `rfc1990`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<ReceiverRule>,
    /// Longest time that the receiver waits for a missing fragment while later ones wait behind it, in seconds. With `"never"`,
    /// only the rules of RFC 1990 declare one lost. The default is computed for each line, and the longest applies: its delay,
    /// and twice the time that it needs for a packet of `mrru_bytes` with the mean retransmissions. With `on_drop = "requeue"`,
    /// and for the receiver of Linux, the default is `"never"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder_timeout_s: Option<OrNever<PositiveSeconds>>,
    /// How many fragments the receiver holds while it waits for missing ones; with more, it gives the missing ones up. Linux:
    /// 128.
    #[serde(default = "default_most_held")]
    pub reorder_fragments: Count,
}

/// A kind of lines in a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Number of lines of this kind.
    #[serde(default = "one")]
    pub count: LineCount,
    /// Rate of each line in the forward direction. Defaults to the hop's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<BitRate>,
    /// Rate of each line in the return direction. Defaults to the member's `rate_bps`, and without that to the hop's
    /// `return.rate_bps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_rate_bps: Option<BitRate>,
    /// One-way delay of each line in both directions. Defaults to the hop's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Seconds>,
    /// As in the bundle, whose value is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modem_bytes: Option<Count>,
    /// As in the bundle, whose value is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_bytes: Option<Count>,
    /// As in the bundle, whose value is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_bps: Option<BitRate>,
    /// As in the bundle, whose value is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arq: Option<LinkArq>,
    /// How long calls of these lines last. Defaults to `up` of `calls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<RandomDuration>,
    /// How long dialling these lines takes. Defaults to `redial` of `calls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redial: Option<RandomDuration>,
}

/// What the ends of a bundle negotiate for the return direction, as each end asks for what it will receive (RFC 1990, sections
/// 5.1.1 and 5.1.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BundleReturn {
    /// Sequence numbers of the return direction. Defaults to the `header` of the bundle; `"none"` is for both directions or
    /// neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Header>,
    /// The longest packet that the near end reassembles (MRRU), in bytes; longer acknowledgements are lost. Defaults to the
    /// `mrru_bytes` of the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mrru_bytes: Option<Count>,
}

impl BundleReturn {
    fn is_empty(&self) -> bool {
        *self == BundleReturn::default()
    }
}

/// Whether packets are cut into fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// Each packet goes over one line.
    #[default]
    Whole,
    /// Each packet is cut into fragments for all lines that have room.
    Fragmented,
}

/// Sequence numbers in the header of each fragment (RFC 1990, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Header {
    /// Numbers of 24 bits in a header of 4 bytes.
    #[default]
    Long,
    /// Numbers of 12 bits in a header of 2 bytes.
    Short,
    /// No header: lines side by side without multilink.
    None,
}

impl Header {
    /// The name in a scenario.
    fn name(self) -> &'static str {
        match self {
            Header::Long => "long",
            Header::Short => "short",
            Header::None => "none",
        }
    }
}

/// When a receiver declares a missing fragment lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceiverRule {
    /// As RFC 1990: when every line that is up has delivered a later one (section 4.1), after `reorder_timeout_s`, or when more
    /// than `reorder_fragments` wait. Then the oldest gap is given up, wherever it is.
    Rfc1990,
    /// As Linux 6.1: when every line that is up has delivered a later one. This is checked only when a fragment arrives, not when
    /// a line goes down, and a line that has just come up has delivered none. When `reorder_fragments` wait, the fragments
    /// missing before the first of them are given up, but no later ones: the receiver waits for a gap inside a packet until the
    /// lines have passed it. There is no timer.
    Linux,
}

/// What happens to the packets that a line held when its call drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnDrop {
    /// They are lost.
    Lose,
    /// They are lost, and each TCP sender that lost a packet gets its last acknowledgement three more times, so that it recovers
    /// without a timeout (Zaghloul, chapters 6 and 8). For this the end of the bundle reads the acknowledgements that pass. SACK
    /// and RACK ignore duplicates that report nothing new (RFC 6675, section 2).
    DuplicateAcks,
    /// Those that are not known to have left the line are sent again over other lines, before the packets in the queue. `peer`
    /// decides what is known of them, and whether they keep their numbers.
    Requeue,
}

/// What tells the sender that it need not send a fragment again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The peer's acknowledgement.
    Acknowledged,
    /// The report of the line's driver that it has sent the fragment.
    Sent,
}

/// The implementation at the other end of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// farlink, whose receiver acknowledges each fragment over the way back of the line that brought it, and expects
    /// retransmissions: what is not acknowledged when a line goes down, or in twice the usual time, is sent again under its old
    /// number, and the receiver declares a fragment lost only by `reorder_timeout_s` and `reorder_fragments`. Without sequence
    /// numbers nothing is acknowledged, and the sender knows as much as with `rfc1990`.
    #[default]
    Farlink,
    /// A receiver by RFC 1990, which acknowledges nothing. What the near end had not sent when the line went down is sent again:
    /// what was in its serial port, or without `modem_bytes` in the modem. What the modem held, and what was in flight, is lost.
    /// Numbers rise on each line (section 4.1), so packets that are sent again get new ones. After each drop the sender sends an
    /// empty fragment over each line that is up, so that the receiver learns at once that the old numbers are lost; a line that is
    /// connected again begins with one as well.
    Rfc1990,
    /// As `rfc1990`, but for Linux, which ignores empty fragments: instead of one the sender sends the first byte of a packet that
    /// never ends. `receiver` is then `linux` by default.
    Linux,
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
            back: BundleReturn::default(),
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
    /// The lines of the bundle in the forward direction, on a hop with these rates, there and back, and this delay.
    ///
    /// # Errors
    /// If keys contradict each other or the hop.
    pub fn resolve(&self, rates: [&RateSetting; 2], delay: &DelaySetting) -> Result<Vec<LineConfig>, ConfigError> {
        let constant = |rate: &RateSetting, key: &str| match rate {
            RateSetting::Constant(rate) => Ok(*rate),
            RateSetting::Varying(_) => {
                let what = format!("the lines of a bundle have constant rates, and {key} is a recording");
                Err(ConfigError::new("", what, format!("give a number as {key}")))
            }
        };
        let rate = constant(rates[0], "rate_bps")?;
        let return_rate = constant(rates[1], "return.rate_bps")?;
        let DelaySetting::Constant(delay) = delay else {
            return Err(ConfigError::new(
                "",
                "the lines of a bundle have constant delays, and delay_s varies",
                "give a number as delay_s",
            ));
        };
        let calls = self.calls.as_ref();
        let line = |member: Option<&Member>| LineConfig {
            rate: member.and_then(|member| member.rate_bps).unwrap_or(rate),
            is_return: false,
            return_rate: member.and_then(|member| member.return_rate_bps.or(member.rate_bps)).unwrap_or(return_rate),
            delay: member.and_then(|member| member.delay_s).unwrap_or(*delay),
            modem_bytes: member.and_then(|member| member.modem_bytes).or(self.modem_bytes),
            serial_bytes: member.and_then(|member| member.serial_bytes).or(self.serial_bytes),
            serial_bps: member.and_then(|member| member.serial_bps).or(self.serial_bps),
            arq: member.and_then(|member| member.arq.clone()).or_else(|| self.arq.clone()),
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

    /// The same bundle as its return direction negotiates it.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let (header, mrru_bytes) = (Some(self.header), Some(self.mrru_bytes));
        BundleConfig {
            header: self.back.header.unwrap_or(self.header),
            mrru_bytes: self.back.mrru_bytes.unwrap_or(self.mrru_bytes),
            back: BundleReturn { header, mrru_bytes },
            ..self.clone()
        }
    }

    /// Begins the calls of a run, in the same way in both directions of a hop if `rng` is the same.
    pub(crate) fn start_calls(&self, lines: &[LineConfig], rng: &Rng) -> Option<Calls> {
        let calls = self.calls.as_ref()?.start(lines, rng);
        Some(if self.header == Header::None { calls.without_multilink() } else { calls })
    }

    /// What happens to the packets that a line held when its call drops.
    #[must_use]
    pub fn what_on_drop(&self) -> OnDrop {
        let is_numbered = self.header != Header::None;
        let is_for_linux = self.receiver_rule() == ReceiverRule::Linux && self.peer == Peer::Farlink;
        let can_requeue = self.calls.is_some() && is_numbered && self.scheduler != Scheduler::Linux && !is_for_linux;
        self.on_drop.unwrap_or(if can_requeue { OnDrop::Requeue } else { OnDrop::Lose })
    }

    /// The sign that a fragment need not be sent again; `None` if the sender sends nothing again.
    #[must_use]
    pub fn confirmation(&self) -> Option<Confirmation> {
        let is_acknowledged = self.header != Header::None && self.peer == Peer::Farlink;
        let confirmation = if is_acknowledged { Confirmation::Acknowledged } else { Confirmation::Sent };
        (self.what_on_drop() == OnDrop::Requeue).then_some(confirmation)
    }

    /// The rule by which the receiver declares a missing fragment lost.
    pub(super) fn receiver_rule(&self) -> ReceiverRule {
        let is_linux = self.scheduler == Scheduler::Linux || self.peer == Peer::Linux;
        self.receiver.unwrap_or(if is_linux { ReceiverRule::Linux } else { ReceiverRule::Rfc1990 })
    }

    /// Room in the buffer of a serial port, with the default.
    pub(super) fn tty_bytes(&self) -> Count {
        self.tty_bytes.unwrap_or_else(|| count(UART_BYTES))
    }

    /// How long the receiver waits for a missing fragment; `None` if it has no timer.
    pub(super) fn patience(&self, lines: &[LineConfig]) -> Option<Time> {
        if let Some(timeout) = self.reorder_timeout_s {
            return timeout.value().map(PositiveSeconds::time);
        }
        // A fragment that is sent again still arrives, so the receiver must not give it up by time.
        if self.what_on_drop() == OnDrop::Requeue {
            return None;
        }
        let packet_bytes = u64::from(self.framing().overhead_bytes(true)) + self.mrru_bytes.whole();
        lines.iter().map(|line| line.usual_wait(packet_bytes)).max()
    }

    /// Bytes that framing adds to fragments on a line, for the kind of header of this bundle.
    pub fn framing(&self) -> Framing {
        let numbering = if self.header == Header::Short { Numbering::Short } else { Numbering::Long };
        Framing { numbering, ..Framing::default() }
    }
}

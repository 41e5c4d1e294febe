//! The keys of an AeroTP transport in a scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::packet_size::LARGEST_PACKET;
use crate::protocol::Idle;
use crate::protocol::Pace;
use crate::protocol::parts::length::{AdaptiveLength, Estimate, Length, LengthRule};
use crate::time::Time;
use crate::turns::CLASSES;
use crate::units::{BitRate, Count, CountToMillion, Factor, Fraction, PositiveSeconds, Seconds, Whole};

use super::clock::Clock;
use super::coded::Coded;
use super::fec::CRC_BYTES;
use super::fec::MOST_WORDS;
use super::mode::Mode;
use super::mode_change::{self, ModeChange};
use super::open_loop::{AdaptiveFec, Erasure};
use super::packet_size::PacketSize;
use super::parity::Parity;
use super::rate_control::RateControl;
use super::segment::{OPENING_BYTES, REPAIR_BYTES};

/// Ratio of the longest interval of repetitions without an answer to the first. `[R9]`, `[U6]`
const LONGEST_REPETITION: u64 = 8;
/// Largest number of copies of a segment.
pub(super) const MOST_COPIES: u64 = 16;
/// Largest buffer: positions can be compared over half of the sequence space.
pub(super) const LARGEST_BUFFER: u64 = 1 << 30;
/// Words of parity in the quasi-reliable mode, if none are given.
const USUAL_WORDS: u16 = 16;
/// Initial window of a receiver whose window may grow. `[W1]`
const FIRST_BUFFER: u64 = 1 << 26;
/// Largest amount of data accepted from a peer that has not yet shown that it receives the answers; a quarter of it is the
/// longest block. `[B7]`, `[K2]`
pub(super) const LARGEST_HALF_OPEN: u64 = 1 << 24;

/// Which side opens the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Opens {
    /// The side that has data to send; the other one listens.
    #[default]
    Sender,
    /// Both sides, at the same time.
    Both,
}

/// The payload of a packet adapts to the bit error rate, between `min_bytes` and the payload of a full packet (`packet_bytes`),
/// by equation (11) of Epple, "Performance optimization of free-space optical communication protocols". Retransmitted data is cut
/// into packets anew.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacketLength {
    /// Source of the bit error rate: estimated from acknowledged and lost packets; or the true value, if the link knows it, at once
    /// or as late as a measurement of the receiver.
    pub estimate: Estimate,
    /// Payload of the shortest full packet, in bytes.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub min_bytes: Count,
    /// Time constant of the estimate, in seconds: the weight of a packet decays to 1/e in this time.
    pub memory_s: PositiveSeconds,
    /// Prior of the estimate: this many losses are assumed at the start, at the bit error rate for which the longest packet is
    /// optimal.
    pub prior_losses: Factor,
    /// Delay of a measurement until the sender uses it, in seconds; at least the one-way delay of the way back.
    pub measurement_delay_s: Seconds,
    /// Time between two measurements, in seconds.
    pub measurement_interval_s: PositiveSeconds,
}

impl Default for PacketLength {
    fn default() -> Self {
        let usual = AdaptiveLength::default();
        PacketLength {
            estimate: Estimate::default(),
            min_bytes: Count::new(100.0).expect("a constant within its range"),
            memory_s: PositiveSeconds::new(60.0).expect("a constant within its range"),
            prior_losses: Factor::new(0.1).expect("a constant within its range"),
            measurement_delay_s: usual.measurement_delay_s,
            measurement_interval_s: usual.measurement_interval_s,
        }
    }
}

impl PacketLength {
    fn rule(&self) -> AdaptiveLength {
        let PacketLength { estimate, min_bytes, memory_s, prior_losses, measurement_delay_s, measurement_interval_s } =
            *self;
        AdaptiveLength {
            estimate,
            rule: LengthRule::Optimal,
            min_bytes,
            memory_s,
            prior_losses,
            measurement_delay_s,
            measurement_interval_s,
            ..AdaptiveLength::default()
        }
    }
}

/// AeroTP: opens a connection with the first data packet, is paced, and has five modes of reliability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AerotpConfig {
    /// What the connection guarantees.
    pub mode: Mode,
    /// Mode of flows by their class, from class 0 on: `["reliable", "quasi-reliable"]`. Flows of further classes have `mode`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mode_by_class: Vec<Mode>,
    /// Changes of the mode under way, from quasi-reliable to unreliable and back: `[{ at_s = 10, mode = "unreliable" }]`, in the order
    /// of time. Each applies to segments sent from then on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mode_changes: Vec<ModeChange>,
    /// Largest packet on the wire, in bytes: headers, payload, parity and checksum.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub packet_bytes: Count,
    /// Headers on the wire, in bytes: those of lower layers and AeroTP's own 20 bytes, without optional fields.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub header_bytes: Count,
    /// Maximum sending rate, including headers.
    pub rate_bps: Option<BitRate>,
    /// How the sending rate is determined. Defaults to the fixed `rate_bps`. If that is not given either, modes with
    /// acknowledgements learn the rate, and modes without send data as it is written. Quasi-reliable and unreliable connections
    /// with a learnt rate have reports of how many segments have arrived, as often as acknowledgements; datagrams learn none.
    pub rate_control: Option<RateControl>,
    /// Whether the path is the connection's own. On such a path a learnt rate takes losses that do not grow with the rate for the
    /// channel's and leaves nothing to others, and a set rate stays as it is, however much is lost. On a path that others share, a
    /// learnt rate is above CUBIC's only where packets are lost at every rate, and a set rate of which more than a fifth is lost
    /// by congestion falls to what arrives. By default a learnt rate of the only flow of a scenario has its own path, and nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<bool>,
    /// Packets are ECN-capable, and a learnt rate decreases when queues mark them.
    pub ecn: bool,
    /// Number of segments per acknowledgement or report (MACK). By default it follows the rate at which segments arrive.
    pub acks_per_mack: Option<CountToMillion>,
    /// Longest delay of an acknowledgement or report, in seconds.
    pub mack_timeout_s: PositiveSeconds,
    /// How many times each segment is sent, including copies.
    #[schemars(extend("maximum" = MOST_COPIES))]
    pub copies: Count,
    /// At the end of a stream, segments that are likely to be lost are sent again before their loss is known, as far as the rate
    /// allows. Reliable modes only.
    pub spare_copies: bool,
    /// Coded blocks: repair symbols instead of retransmissions. Reliable modes only; off by default.
    pub coded: Option<Coded>,
    /// The payload of packets adapts to the bit error rate. Reliable modes only; by default all packets are full.
    pub adaptive_length: Option<PacketLength>,
    /// Receive buffer for data in and out of order, in bytes, which also limits the data in flight. By default it begins at 64
    /// MiB and grows as the sender needs it, up to 1 GiB, as long as the application reads the data.
    #[schemars(extend("maximum" = LARGEST_BUFFER))]
    pub receive_buffer_bytes: Option<Count>,
    /// Parity in each packet with data of the reliable and quasi-reliable modes, in 32-bit words. It counts toward
    /// `packet_bytes`. The receiver corrects errors with it before it requests a retransmission. Defaults to 16 in the
    /// quasi-reliable mode and to none in the others.
    #[schemars(extend("maximum" = MOST_WORDS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec_words: Option<Whole>,
    /// The same as bytes of parity per byte of data in the packet, instead of `fec_words`: short packets have less parity. Rounded
    /// up to whole 32-bit words, 256 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec_share: Option<Fraction>,
    /// Acknowledgements (MACKs) carry parity too, as much for their length as full packets of data. Defaults to true in the
    /// reliable modes and to false in the quasi-reliable one, whose MACKs are few and short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mack_parity: Option<bool>,
    /// The parity adapts to the bit error rate, beginning with `fec_words`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_fec: Option<AdaptiveFec>,
    /// Repair packets for blocks of packets, in the quasi-reliable mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erasure: Option<Erasure>,
    /// Lifetime of data, in seconds: data that was written longer ago is neither sent nor retransmitted, and both applications
    /// are told. Unlimited by default.
    pub deadline_s: Option<PositiveSeconds>,
    /// Modes without acknowledgements: how long received data waits for earlier missing data, in seconds, before the gap is
    /// skipped.
    pub hold_time_s: Seconds,
    /// Modes without acknowledgements: payload that cannot be corrected is delivered with its errors instead of dropped.
    pub deliver_damaged: bool,
    /// Retransmission timeout until the round-trip time is known, in seconds; it doubles with each retransmission.
    pub initial_rto_s: PositiveSeconds,
    /// Time without any packet from the peer, in seconds, after which a connection is given up while an answer is due. It must
    /// exceed the round-trip time. With values up to 4,278 s, timestamps count microseconds; up to 38 hours they are as coarse as
    /// needed, at most 32 microseconds.
    pub give_up_after_s: PositiveSeconds,
    /// Idle time, in seconds, after which the peer is asked whether it is still there. Never by default.
    pub keep_alive_s: Option<PositiveSeconds>,
    /// Time after the end of its own stream, in seconds, after which a connection is given up if the peer's stream has not ended
    /// as well. Never by default.
    pub close_timeout_s: Option<PositiveSeconds>,
    /// How long a closed connection still answers a peer that does not know that it is closed, in seconds. Defaults to
    /// `give_up_after_s`.
    pub listen_timeout_s: Option<PositiveSeconds>,
    /// How much data a receiver accepts from a peer that has not yet shown that it receives the answers, in bytes. Defaults to
    /// `receive_buffer_bytes` if that is given, otherwise to 16 MiB.
    #[schemars(extend("maximum" = LARGEST_BUFFER))]
    pub half_open_bytes: Option<Count>,
    /// Which side opens the connection.
    pub opens: Opens,
}

impl Default for AerotpConfig {
    fn default() -> Self {
        let count = |n: u32| Count::new(f64::from(n)).expect("a constant within its range");
        let seconds = |s| PositiveSeconds::new(s).expect("a constant within its range");
        AerotpConfig {
            mode: Mode::default(),
            mode_by_class: Vec::new(),
            mode_changes: Vec::new(),
            packet_bytes: count(1500),
            header_bytes: count(40),
            rate_bps: None,
            rate_control: None,
            alone: None,
            ecn: false,
            acks_per_mack: None,
            mack_timeout_s: seconds(0.05),
            copies: count(1),
            spare_copies: false,
            coded: None,
            adaptive_length: None,
            receive_buffer_bytes: None,
            fec_words: None,
            fec_share: None,
            mack_parity: None,
            adaptive_fec: None,
            erasure: None,
            deadline_s: None,
            hold_time_s: Seconds::default(),
            deliver_damaged: false,
            initial_rto_s: seconds(1.0),
            give_up_after_s: seconds(3600.0),
            keep_alive_s: None,
            close_timeout_s: None,
            listen_timeout_s: None,
            half_open_bytes: None,
            opens: Opens::default(),
        }
    }
}

impl crate::protocol::ProtocolConfig for AerotpConfig {
    fn pace(&self) -> Pace {
        let wire_bytes = self.packet_bytes.get();
        let is_acknowledged = self.mode.is_acknowledged();
        let answers = if is_acknowledged || self.has_rate_reports() { 0.5 } else { 0.0 };
        Pace {
            wire_bytes,
            rate_bps: self.rate_bps.map_or(f64::INFINITY, |rate| rate.get()),
            adapts: (is_acknowledged || self.has_rate_reports()) && self.rate_bps.is_none(),
            copies: self.copies.get(),
            answers,
            ..Pace::unbounded((wire_bytes - self.header_bytes.get() - 20.0).max(1.0), 0.0)
        }
    }

    fn longest_packet(&self) -> crate::protocol::LongestPacket {
        crate::protocol::LongestPacket { key: "packet_bytes", data_bytes: self.packet_bytes.whole(), overhead_bytes: 0 }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.mode_by_class.len() > CLASSES {
            let what = format!("{} modes for {CLASSES} classes", self.mode_by_class.len());
            return Err(ConfigError::new("mode_by_class", what, format!("give one for each class, at most {CLASSES}")));
        }
        for class in 0..self.mode_by_class.len() {
            let of_class = self.for_class(class as u8);
            of_class.check().map_err(|error| {
                let what = format!("{} (mode_by_class makes class {class} {})", error.what, of_class.mode.name());
                ConfigError { what, ..error }
            })?;
        }
        self.check_sizes()?;
        self.check_rate()?;
        self.check_protection()?;
        if self.copies.whole() > MOST_COPIES {
            let what = format!("{} copies of each segment are not sent", self.copies.get());
            return Err(ConfigError::new("copies", what, format!("give at most {MOST_COPIES}")));
        }
        self.check_buffers()?;
        self.erasure.map_or(Ok(()), |erasure| erasure.check())?;
        self.check_parity()?;
        mode_change::check(self.mode, &self.mode_changes)?;
        self.mode_changes.iter().try_for_each(|change| {
            let later = AerotpConfig { mode: change.mode, mode_changes: Vec::new(), ..self.clone() };
            later.check_parity()
        })
    }

    /// A key has no effect if it has none in any of the modes.
    fn idle(&self) -> Vec<Idle> {
        let mut idle = self.idle_in_mode();
        for class in 0..self.mode_by_class.len() {
            let of_class = self.for_class(class as u8).idle_in_mode();
            idle.retain(|idle| of_class.iter().any(|other| other.key == idle.key));
        }
        idle
    }

    fn carries_datagrams(&self) -> bool {
        self.carries_messages()
    }

    /// Without acknowledgements only the rate limits a sender.
    fn is_bounded(&self) -> bool {
        self.mode.is_acknowledged() || self.rate_bps.is_some() || self.has_rate_reports()
    }
}

impl AerotpConfig {
    fn idle_in_mode(&self) -> Vec<Idle> {
        let acknowledged = || "every byte is acknowledged and what is lost sent again";
        let open_loop = || "nothing is acknowledged or sent again";
        let datagrams = || "datagrams have no connection";
        let is_reliable = self.mode.is_acknowledged();
        let is_datagram = self.mode == Mode::Datagram;
        let has_macks = is_reliable || self.has_rate_reports();
        let stream = "mode = \"quasi-reliable\" or \"unreliable\"";
        let reliable = "mode = \"reliable\"";
        let quasi_reliable = "mode = \"quasi-reliable\"";
        let length = self.adaptive_length.map(|length| length.rule().idle()).unwrap_or_default().into_iter();
        [
            Idle::when(!self.has_parity(), "fec_words", "the mode has no parity", quasi_reliable),
            Idle::when(!self.has_parity(), "fec_share", "the mode has no parity", quasi_reliable),
            Idle::when(!self.has_parity(), "mack_parity", "the mode has no parity", quasi_reliable),
            Idle::when(
                is_reliable && self.packet_size().parity == Parity::NONE,
                "mack_parity",
                "no packet has parity",
                "fec_words = 16",
            ),
            Idle::when(
                !self.learns_rate(),
                "ecn",
                "the rate does not follow congestion marks",
                "rate_control = \"learnt\"",
            ),
            Idle::when(
                !self.has(Mode::QuasiReliable),
                "adaptive_fec",
                "the mode has no reports of corrected errors",
                quasi_reliable,
            ),
            Idle::when(!self.has(Mode::QuasiReliable), "erasure", "the mode has no codes", quasi_reliable),
            Idle::when(is_reliable, "hold_time_s", acknowledged(), stream),
            Idle::when(is_datagram, "hold_time_s", "datagrams have no order", stream),
            Idle::when(is_reliable, "deliver_damaged", acknowledged(), "mode = \"unreliable\""),
            Idle::when(!has_macks, "acks_per_mack", open_loop(), "mode = \"reliable\", or rate_control = \"learnt\""),
            Idle::when(!has_macks, "mack_timeout_s", open_loop(), "mode = \"reliable\", or rate_control = \"learnt\""),
            Idle::when(!is_reliable, "copies", open_loop(), reliable),
            Idle::when(!is_reliable, "spare_copies", open_loop(), reliable),
            Idle::when(
                is_reliable && self.rate_control().is_none(),
                "spare_copies",
                "without a rate the room that it leaves is unknown",
                "a rate_bps, or rate_control = \"learnt\"",
            ),
            Idle::when(
                self.alone.is_some() && (!has_macks || self.rate_control().is_none()),
                "alone",
                "no rate is learnt or watched",
                "rate_control = \"learnt\"",
            ),
            Idle::when(is_datagram, "initial_rto_s", datagrams(), reliable),
            Idle::when(is_datagram, "give_up_after_s", datagrams(), reliable),
            Idle::when(is_datagram, "keep_alive_s", datagrams(), reliable),
            Idle::when(is_datagram, "opens", datagrams(), reliable),
        ]
        .into_iter()
        .flatten()
        .chain(length)
        .collect()
    }

    /// As it is for flows of a class: in the mode of that class.
    #[must_use]
    pub fn for_class(&self, class: u8) -> AerotpConfig {
        let mode = self.mode_by_class.get(usize::from(class)).copied().unwrap_or(self.mode);
        AerotpConfig { mode, mode_by_class: Vec::new(), ..self.clone() }
    }

    /// The modes that connections may begin with.
    pub fn modes(&self) -> impl Iterator<Item = Mode> + '_ {
        self.mode_by_class.iter().copied().chain([self.mode])
    }

    /// Timestamps can measure only round trips shorter than this. `[L8]`
    pub const LONGEST_ROUND_TRIP: Time = Clock::LONGEST;

    /// The clock of its timestamps. It need not measure round trips longer than the time after which a connection is given up.
    /// `[L8]`
    pub(super) fn clock(&self) -> Clock {
        Clock::for_answers_within(self.give_up_after_s.time())
    }

    /// Whether each write is a message by itself, without acknowledgement.
    pub fn carries_messages(&self) -> bool {
        self.mode == Mode::Datagram
    }

    /// Whether a connection has a mode, from the beginning or after a change.
    pub(super) fn has(&self, mode: Mode) -> bool {
        self.mode == mode || self.mode_changes.iter().any(|change| change.mode == mode)
    }

    /// Whether segments may carry parity, from the beginning or after a change.
    fn has_parity(&self) -> bool {
        self.mode.has_parity() || self.has(Mode::QuasiReliable)
    }

    /// Payload of a full packet that opens no connection, in bytes.
    pub fn full_payload_bytes(&self) -> u64 {
        self.packet_size().room(false).into()
    }

    /// The packet size with which a connection begins.
    pub(super) fn packet_size(&self) -> PacketSize {
        let parity = if self.mode.has_parity() { self.parity() } else { Parity::NONE };
        PacketSize::new(self.packet_bytes.whole(), self.header_bytes.whole(), self.erasure.is_some(), parity)
    }

    /// Whether MACKs carry parity where data does. `[F8]`
    pub(super) fn has_mack_parity(&self) -> bool {
        self.mack_parity.unwrap_or(self.mode.is_acknowledged())
    }

    /// The configured parity of modes that have any.
    pub(super) fn parity(&self) -> Parity {
        match (self.fec_share, self.fec_words) {
            (Some(share), _) => Parity::Share(share.get()),
            (None, Some(words)) => Parity::Words(u16::try_from(words.whole()).unwrap_or(u16::MAX)),
            (None, None) if self.mode.is_acknowledged() => Parity::NONE,
            (None, None) => Parity::Words(USUAL_WORDS),
        }
    }

    /// The rule for the length of packets, if it varies.
    pub(super) fn length(&self, overhead_bytes: u64, most_bytes: u64) -> Option<Length> {
        self.adaptive_length.map(|length| Length::new(&length.rule(), overhead_bytes, most_bytes))
    }

    fn check_protection(&self) -> Result<(), ConfigError> {
        let given = [("coded", self.coded.is_some()), ("adaptive_length", self.adaptive_length.is_some())];
        if let Some((key, _)) = given.into_iter().find(|given| given.1 && !self.mode.is_acknowledged()) {
            let what = "it belongs to the reliable modes, whose receiver says what it wants";
            return Err(ConfigError::new(
                key,
                what,
                "choose mode = \"reliable\" or \"near-reliable\", or leave it out",
            ));
        }
        if let Some(length) = self.adaptive_length
            && length.min_bytes.whole() > self.packet_size().payload_bytes()
        {
            let what = format!("{} bytes of data fit into no packet", length.min_bytes.get());
            let remedy = format!("give at most {}, or longer packets", self.packet_size().payload_bytes());
            return Err(ConfigError::new("adaptive_length.min_bytes", what, remedy));
        }
        self.adaptive_length
            .map_or(Ok(()), |length| length.rule().check_measurement())
            .map_err(|error| error.within("adaptive_length"))?;
        if self.spare_copies && self.copies.whole() > 1 {
            let what = format!("{} copies go out anyhow, and these would be more of the same", self.copies.get());
            return Err(ConfigError::new("spare_copies", what, "leave out copies or spare_copies"));
        }
        let Some(coded) = self.coded else { return Ok(()) };
        if self.spare_copies {
            let what = "any repair symbol makes good what a copy would";
            return Err(ConfigError::new("spare_copies", what, "leave out spare_copies or coded"));
        }
        coded.check().map_err(|error| error.within("coded"))?;
        if self.copies.whole() > 1 {
            let what = format!("{} copies: any repair symbol makes good what any other would", self.copies.get());
            return Err(ConfigError::new("copies", what, "leave out copies or coded"));
        }
        if self.packet_size().symbol_bytes() == 0 {
            let what = format!("{} leave no room for a symbol and what describes it", self.packet_bytes.get());
            return Err(ConfigError::new("packet_bytes", what, "give longer packets"));
        }
        Ok(())
    }

    /// Whether segments that are likely to be lost are sent again at the end of a stream.
    pub(super) fn has_spare_copies(&self) -> bool {
        self.spare_copies && self.rate_control().is_some()
    }

    /// How much data is accepted from a peer that has not yet shown that it receives the answers.
    pub(super) fn half_open(&self) -> u64 {
        self.half_open_bytes.or(self.receive_buffer_bytes).map_or(LARGEST_HALF_OPEN, |bytes| bytes.whole())
    }

    /// The receive buffer at the start of a connection. `[W1]`
    pub(super) fn first_buffer_bytes(&self) -> u64 {
        self.receive_buffer_bytes.map_or(FIRST_BUFFER, |bytes| bytes.whole())
    }

    /// The largest receive buffer, which is also the largest amount of data in flight. `[W1]`
    pub fn most_buffer_bytes(&self) -> u64 {
        self.receive_buffer_bytes.map_or(LARGEST_BUFFER, |bytes| bytes.whole())
    }

    /// The longest interval of repetitions without an answer. `[R9]`, `[U6]`
    pub(super) fn longest_repetition(&self) -> Time {
        self.initial_rto_s.time().times(LONGEST_REPETITION)
    }

    pub(super) fn listen_timeout(&self) -> Time {
        self.listen_timeout_s.unwrap_or(self.give_up_after_s).time()
    }

    /// Whether a learnt rate may take the path for its own.
    pub(super) fn is_alone(&self) -> bool {
        self.alone.unwrap_or(false)
    }

    /// The path is known to be the connection's own, so that a rate for such a path is learnt unless the settings say otherwise.
    pub fn suppose_alone(&mut self) {
        if self.rate_control() == Some(RateControl::Learnt) {
            self.alone = self.alone.or(Some(true));
        }
    }

    /// How the sending rate is determined; `None` without a rate.
    pub(super) fn rate_control(&self) -> Option<RateControl> {
        let usual = match self.rate_bps {
            Some(_) => RateControl::Fixed,
            None if self.mode.is_acknowledged() => RateControl::Learnt,
            None => RateControl::None,
        };
        Some(self.rate_control.unwrap_or(usual)).filter(|&control| control != RateControl::None)
    }

    /// Whether the rate is learnt.
    fn learns_rate(&self) -> bool {
        matches!(self.rate_control(), Some(RateControl::Learnt | RateControl::Friendly))
    }

    /// Whether a receiver in a mode without acknowledgements reports what arrives, so that the rate is learnt. `[U10]`
    pub(super) fn has_rate_reports(&self) -> bool {
        self.mode.may_change() && self.learns_rate()
    }

    fn check_buffers(&self) -> Result<(), ConfigError> {
        if let Some(buffer) = self.receive_buffer_bytes {
            if buffer.whole() > LARGEST_BUFFER {
                let what = format!("{} bytes are more than sequence numbers tell apart", buffer.get());
                return Err(ConfigError::new("receive_buffer_bytes", what, format!("give at most {LARGEST_BUFFER}")));
            }
            if buffer.whole() < self.packet_bytes.whole() {
                let what = format!("{} bytes hold no packet of {}", buffer.get(), self.packet_bytes.get());
                return Err(ConfigError::new("receive_buffer_bytes", what, "give at least packet_bytes"));
            }
        }
        if let Some(half_open) = self.half_open_bytes
            && !(self.packet_bytes.whole()..=self.first_buffer_bytes()).contains(&half_open.whole())
        {
            let what = format!("{} bytes are not between a packet and the receive buffer", half_open.get());
            let remedy = "give at least packet_bytes and at most receive_buffer_bytes";
            return Err(ConfigError::new("half_open_bytes", what, remedy));
        }
        Ok(())
    }

    fn check_rate(&self) -> Result<(), ConfigError> {
        match self.rate_control {
            Some(RateControl::Fixed) if self.rate_bps.is_none() => {
                let what = "\"fixed\" needs a rate, and rate_bps is not given";
                Err(ConfigError::new("rate_control", what, "give rate_bps = 5e6, or choose \"learnt\""))
            }
            Some(RateControl::None) if self.rate_bps.is_some() => {
                let what = "\"none\" keeps to no rate, and rate_bps is given";
                Err(ConfigError::new("rate_control", what, "leave one of them out"))
            }
            Some(RateControl::Friendly) if self.is_alone() => {
                let what = "\"friendly\" leaves room for others, and alone = true says that there are none";
                Err(ConfigError::new("rate_control", what, "choose \"learnt\", or leave out alone"))
            }
            Some(RateControl::Learnt | RateControl::Friendly) if self.mode == Mode::Datagram => {
                let what = "a rate is learnt from what the receiver reports, and datagrams are never answered";
                let remedy = "give rate_bps alone, or choose mode = \"unreliable\", which has a connection";
                Err(ConfigError::new("rate_control", what, remedy))
            }
            _ => Ok(()),
        }
    }

    fn check_parity(&self) -> Result<(), ConfigError> {
        let size = self.packet_size();
        let (words, most) = (self.fec_words.map_or(0, |words| words.whole()), u64::from(size.most_fec_words()));
        let has_parity = size.parity != Parity::NONE;
        if let (Some(words), Some(share)) = (self.fec_words, self.fec_share) {
            let what =
                format!("{} of the data, and fec_words = {}, are two amounts of parity", share.get(), words.get());
            return Err(ConfigError::new("fec_share", what, "leave out fec_words or fec_share"));
        }
        if self.fec_share.is_some() && self.adaptive_fec.is_some() {
            let what = "adaptive_fec chooses words of parity, so that a share of the data means nothing";
            return Err(ConfigError::new("fec_share", what, "leave out fec_share or adaptive_fec"));
        }
        if self.coded.is_some() && has_parity {
            let key = if self.fec_share.is_some() { "fec_share" } else { "fec_words" };
            let what = "the symbols of coded blocks carry no parity of their own";
            return Err(ConfigError::new(key, what, "leave it out, or leave out coded"));
        }
        if self.adaptive_length.is_some() && has_parity {
            let what = "its rule takes every packet with a bit error for lost, and parity corrects some";
            return Err(ConfigError::new("adaptive_length", what, "leave it out, or leave out the parity"));
        }
        if words > u64::from(MOST_WORDS) {
            let what = format!("{words} words of parity are more than the code has");
            return Err(ConfigError::new("fec_words", what, format!("give at most {MOST_WORDS}")));
        }
        if self.erasure.is_some() && self.packet_size().payload_bytes() <= u64::from(REPAIR_BYTES) {
            let what = format!("{} bytes have no room for what describes a repair packet", self.packet_bytes.get());
            return Err(ConfigError::new("packet_bytes", what, "give longer packets"));
        }
        if self.fec_share.is_some() && !size.has_room() {
            let what = format!("{} bytes leave no room for data and its parity", self.packet_bytes.get());
            return Err(ConfigError::new("packet_bytes", what, "give longer packets"));
        }
        if let Parity::Words(words) = size.parity
            && u64::from(words) > most
        {
            let what = format!("{words} words of parity leave no room for data in {} bytes", self.packet_bytes.get());
            return Err(ConfigError::new("fec_words", what, format!("give at most {most}, or longer packets")));
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), ConfigError> {
        if self.packet_bytes.whole() > LARGEST_PACKET {
            let what = format!("packets have at most {LARGEST_PACKET} bytes, not {}", self.packet_bytes.get());
            return Err(ConfigError::new("packet_bytes", what, format!("give at most {LARGEST_PACKET}")));
        }
        if self.packet_size().payload_bytes() == 0 {
            let what = format!(
                "{} leave no room for data behind {} bytes of headers and {} of checks",
                self.packet_bytes.get(),
                self.header_bytes.get(),
                u64::from(OPENING_BYTES) + u64::from(CRC_BYTES)
            );
            return Err(ConfigError::new("packet_bytes", what, "give longer packets"));
        }
        Ok(())
    }
}

//! The configuration of a TCP transport.

mod ack_timeout;
mod owned_keys;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::correction::Correction;
use crate::packet_size::LARGEST_PACKET;
use crate::protocol::Pace;
use crate::protocol::parts::rto::RtoConfig;
use crate::protocol::parts::windows::{MOST_SEGMENTS, check_windows};
use crate::protocol::{Acknowledgements, Flight, Idle, LongestTimeout};
use crate::units::{Count, PositiveSeconds};

use super::congestion::{BbrConfig, CongestionControl, CubicConfig, HyblaConfig, VegasConfig};
use super::variant::Variant;

pub use ack_timeout::{AckTimeout, UniformSeconds};

/// Largest total length of a segment's options (RFC 9293, section 3.1: the data offset has four bits).
const MOST_OPTION_BYTES: u16 = 40;
/// Largest length of the headers without options.
pub(in crate::protocol) const LARGEST_HEADER: u64 = LARGEST_PACKET - MOST_OPTION_BYTES as u64;
/// Bytes that the timestamps option adds, with padding (RFC 7323, appendix A).
const TIMESTAMPS_BYTES: u16 = 12;

/// Largest window that RFC 7323 can express.
const MAX_WINDOW_BYTES: u64 = 0xffff << 14;
/// Largest window without it.
const MAX_UNSCALED_BYTES: u64 = 0xffff;

/// Which timestamp an acknowledgement echoes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimestampEcho {
    /// That of the oldest segment it covers, as RFC 7323 demands: a round-trip sample includes the delay of the acknowledgement.
    #[default]
    Oldest,
    /// The latest received: samples leave that delay out, so that the timer may be shorter than the wait for an acknowledgement
    /// (Epple, section 3.3.2, warns of it).
    Latest,
}

/// A TCP transport. Every key has a default, mostly that of the RFCs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpConfig {
    /// How it reacts to loss.
    pub variant: Variant,
    /// How the window grows and shrinks; with `none`, a window must be given.
    pub congestion_control: CongestionControl,
    /// Constants of `cubic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cubic: Option<CubicConfig>,
    /// Constants of `hybla`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hybla: Option<HyblaConfig>,
    /// Constants of `vegas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vegas: Option<VegasConfig>,
    /// Let the window grow by the bytes that an acknowledgement reports and not by the number of acknowledgements (appropriate
    /// byte counting, RFC 3465): in slow start by at most two segments per acknowledgement, after a timeout by one (section 2.3).
    /// Linux counts bytes, ns-2 and the older papers do not. It matters with `delayed_ack`. On with `rack` unless given. It
    /// applies to `reno`, to the slow start of `cubic`, and to the parts of `vegas`, `westwood` and `hybla` that follow Reno.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_counting: Option<bool>,
    /// End the first slow start when round trips grow longer (HyStart++, RFC 9406), unless `initial_ssthresh_segments` ends it.
    /// On with `cubic` and off with `reno`, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hystart: Option<bool>,
    /// Payload of a full segment.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub segment_bytes: Count,
    /// TCP and IP headers of a data segment on the wire.
    #[schemars(extend("maximum" = LARGEST_HEADER))]
    pub header_bytes: Count,
    /// Bytes of a segment without data on the wire, before SACK blocks; `header_bytes` unless given.
    #[schemars(extend("maximum" = LARGEST_HEADER))]
    pub ack_bytes: Option<Count>,
    /// Initial congestion window (RFC 6928 allows 10, RFC 5681 2 to 4).
    #[schemars(extend("maximum" = MOST_SEGMENTS))]
    pub initial_window_segments: Count,
    /// Initial slow-start threshold; arbitrarily high unless given (RFC 5681, section 3.1).
    pub initial_ssthresh_segments: Option<Count>,
    /// Largest congestion window; as much as a receiver can offer (RFC 7323, section 2.3: 1 GiB) unless given.
    #[schemars(extend("maximum" = MOST_SEGMENTS))]
    pub max_window_segments: Option<Count>,
    /// Window that the receiver offers; the largest congestion window unless given.
    pub receive_window_segments: Option<Count>,
    /// Duplicate acknowledgements that mean a loss (RFC 5681, section 3.2).
    pub duplicate_ack_threshold: Count,
    /// Send new data on the first duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Acknowledge every second full segment (RFC 1122, section 4.2.3.2).
    pub delayed_ack: bool,
    /// Longest delay of an acknowledgement; RFC 1122 allows up to 0.5 s. A pair `[least, most]` stands for a timer that is drawn
    /// anew for each acknowledgement, uniformly between the two: `[0, 0.2]` for BSD, whose timer runs out at the next beat of a
    /// clock of 0.2 s, `[0.1, 0.2]` for Windows NT 4 and 95 (Zaghloul, section 4.1.4).
    pub delayed_ack_timeout_s: AckTimeout,
    /// Begin with SYN and SYN-ACK; otherwise both sides start established.
    pub handshake: bool,
    /// End with FIN.
    pub fin: bool,
    /// Timestamps on every segment (RFC 7323): 12 more bytes, a round-trip sample from every acknowledgement.
    pub timestamps: bool,
    /// Which timestamp an acknowledgement echoes, with `timestamps`.
    pub timestamp_echo: TimestampEcho,
    /// Ignore duplicate acknowledgements of data sent before the last loss reaction (RFC 6582, section 3.2, step 1).
    pub recover_guard: bool,
    /// Slow start again after the connection was idle for longer than the RTO (RFC 5681, section 4.1).
    pub restart_after_idle: bool,
    /// Reduce the window proportionally to what is delivered during fast recovery (RFC 9937), with `rack` and `sack`; with
    /// `rack` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prr: Option<bool>,
    /// Send a probe when nothing is heard for two round trips (RFC 8985, section 7), with `rack`; on unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_loss_probe: Option<bool>,
    /// Report what was received twice (RFC 2883), where selective acknowledgements are used; with `rack` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsack: Option<bool>,
    /// Find out whether a retransmission timeout was spurious, and take it back (RFC 5682); with `rack` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f_rto: Option<bool>,
    /// Spread segments over the round trip, at the rate of the congestion control or, if it has none, at that of the window
    /// (twice the window per round trip in slow start, 1.2 times afterwards, as in Linux). Segments are sent in bursts of a
    /// millisecond's worth, and of at least two segments above 1.2 Mb/s. Without pacing, a whole window may be sent at once. On
    /// with `bbr` and `bbr3`, which need it, off with others, unless given.
    pub pacing: Option<bool>,
    /// Constants of BBR; for `bbr` and `bbr3` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bbr: Option<BbrConfig>,
    /// Explicit congestion notification (RFC 3168): queues with an `ecn_threshold_..` may mark data instead of dropping it, and
    /// the sender reacts to a mark as to a loss, without a retransmission. `bbr` and `bbr3` echo marks but do not slow down for
    /// them, as in Linux's version 1 and in the draft of version 3; RFC 3168 asks for more.
    pub ecn: bool,
    /// Scale the window field (RFC 7323). Without it, the receiver offers a window of at most 65,535 bytes.
    pub window_scaling: bool,
    /// Give the connection up after so many retransmissions of the same segment, or of the SYN, on timeouts without an answer (R2
    /// of RFC 9293, section 3.8.3); never unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retransmissions: Option<Count>,
    /// A code around each segment that corrects bit errors; none unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
    /// The retransmission timer.
    pub rto: RtoConfig,
}

impl Default for TcpConfig {
    fn default() -> Self {
        let count = |n: u32| Count::new(f64::from(n)).expect("a constant within its range");
        TcpConfig {
            variant: Variant::Sack,
            congestion_control: CongestionControl::Reno,
            cubic: None,
            hybla: None,
            vegas: None,
            byte_counting: None,
            hystart: None,
            segment_bytes: count(1460),
            header_bytes: count(40),
            ack_bytes: None,
            initial_window_segments: count(10),
            initial_ssthresh_segments: None,
            max_window_segments: None,
            receive_window_segments: None,
            duplicate_ack_threshold: count(3),
            limited_transmit: true,
            delayed_ack: true,
            delayed_ack_timeout_s: AckTimeout::Fixed(PositiveSeconds::new(0.2).expect("a constant within its range")),
            handshake: true,
            fin: true,
            timestamps: false,
            timestamp_echo: TimestampEcho::Oldest,
            recover_guard: true,
            restart_after_idle: true,
            pacing: None,
            bbr: None,
            prr: None,
            tail_loss_probe: None,
            dsack: None,
            f_rto: None,
            ecn: false,
            window_scaling: true,
            max_retransmissions: None,
            correction: None,
            rto: RtoConfig::default(),
        }
    }
}

impl crate::protocol::ProtocolConfig for TcpConfig {
    fn pace(&self) -> Pace {
        let segment_bytes = self.segment_bytes.get();
        let window_bytes = self.most_in_flight_segments() as f64 * segment_bytes;
        let answers = if self.delayed_ack { 0.5 } else { 1.0 };
        Pace { window_bytes, answers, ..Pace::unbounded(segment_bytes, self.header_bytes.get()) }
    }

    fn longest_packet(&self) -> crate::protocol::LongestPacket {
        let header_bytes = self.header_bytes.whole() + self.option_bytes();
        crate::protocol::LongestPacket::of_segments(header_bytes, self.segment_bytes, self.correction)
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.check_all_but_bounds()?;
        let windows = [self.max_window_segments, self.receive_window_segments];
        let has_bound = windows.iter().any(Option::is_some) || !self.window_scaling;
        if self.congestion_control == CongestionControl::None && !has_bound {
            return Err(ConfigError::new(
                "congestion_control",
                "without congestion control only the window limits the sender, and no window is given",
                "give max_window_segments: about the path's rate times its round trip",
            ));
        }
        Ok(())
    }

    fn idle(&self) -> Vec<Idle> {
        let (variant, control) = (self.variant.name(), self.congestion_control.name());
        let counts = !matches!(self.variant, Variant::None | Variant::Rack);
        let not_counted = format!("variant = \"{variant}\" does not find losses by duplicate acknowledgements");
        let own = format!("congestion_control = \"{control}\" sets the window itself");
        let rules = self.congestion_control.measures_rates();
        let is_free = self.congestion_control == CongestionControl::None;
        let other_variant = "another variant";
        let other_control = "another congestion_control";
        let of_ssthresh = "initial_ssthresh_segments ends slow start";
        let keys = [
            Idle::when(!counts, "limited_transmit", &not_counted, other_variant),
            Idle::when(!counts, "recover_guard", &not_counted, other_variant),
            Idle::when(self.variant == Variant::None, "duplicate_ack_threshold", &not_counted, other_variant),
            Idle::when(
                !self.delayed_ack,
                "delayed_ack_timeout_s",
                "acknowledgements are not delayed",
                "delayed_ack = true",
            ),
            Idle::when(!self.timestamps, "timestamp_echo", "segments have no timestamps", "timestamps = true"),
            Idle::when(rules || is_free, "byte_counting", &own, other_control),
            Idle::when(rules, "initial_ssthresh_segments", &own, other_control),
            Idle::when(rules, "restart_after_idle", &own, other_control),
            Idle::when(rules || is_free, "prr", &own, other_control),
            Idle::when(
                self.initial_ssthresh_segments.is_some(),
                "hystart",
                of_ssthresh,
                "no initial_ssthresh_segments",
            ),
        ];
        let rto = self.rto.idle().into_iter().map(|idle| idle.within("rto"));
        keys.into_iter().flatten().chain(rto).collect()
    }

    fn correction(&self) -> Option<Correction> {
        self.correction
    }

    fn flight(&self) -> Option<Flight> {
        let offered = self.receive_window_segments.map_or(self.largest_window(), Count::whole);
        let window_packets = self.most_in_flight_segments();
        let key = match () {
            () if window_packets < offered.min(self.largest_window()) => "window_scaling",
            () if offered < self.largest_window() => "receive_window_segments",
            () => "max_window_segments",
        };
        let more = if self.timestamps { u64::from(TIMESTAMPS_BYTES) } else { 0 };
        Some(Flight {
            key,
            window_packets,
            payload_bytes: self.segment_bytes.whole(),
            packet_bytes: self.segment_bytes.whole() + self.header_bytes.whole() + more,
            acknowledgements: Some(Acknowledgements {
                every_packets: if self.delayed_ack { 2.0 } else { 1.0 },
                bytes: self.ack_bytes.unwrap_or(self.header_bytes).whole() + more,
            }),
        })
    }

    fn longest_timeout(&self) -> Option<LongestTimeout> {
        // If a timer expired on the SYN, the RTO starts again from 3 s (RFC 6298, section 5.7).
        let learns = self.timestamps || self.handshake;
        let otherwise = "the timer expires before any acknowledgement can arrive, and everything is sent again";
        Some(self.rto.longest(learns, otherwise).within("rto"))
    }
}

impl TcpConfig {
    /// Whether the window grows by bytes and not by acknowledgements.
    pub fn counts_bytes(&self) -> bool {
        self.byte_counting.unwrap_or(self.variant == Variant::Rack)
    }

    /// Checks that hold for SCPS-TP too, whose sending may be limited by a rate instead of a window.
    pub(in crate::protocol) fn check_all_but_bounds(&self) -> Result<(), ConfigError> {
        crate::packet_size::check(self.header_bytes, self.segment_bytes)?;
        self.check_options()?;
        owned_keys::check(self)?;
        self.check_congestion_control()?;
        if self.bbr.is_some_and(|bbr| bbr.pacing_margin.get() >= 1.0) {
            let what = "1 is not allowed: the pacing rate would be 0";
            return Err(ConfigError::new("bbr.pacing_margin", what, "give a share below 1; BBR's own is 0.01"));
        }
        self.check_recovery()?;
        self.check_ecn()?;
        self.check_scaling()?;
        let windows = [
            ("max_window_segments", self.max_window_segments),
            ("initial_window_segments", Some(self.initial_window_segments)),
        ];
        check_windows(&windows, self.segment_bytes, "TCP's sequence numbers")?;
        self.rto.check().map_err(|error| error.within("rto"))
    }

    /// Largest congestion window in segments; at least one.
    pub(super) fn largest_window(&self) -> u64 {
        let most = MAX_WINDOW_BYTES / self.segment_bytes.whole();
        self.max_window_segments.map_or(most.max(1), Count::whole)
    }

    /// Largest number of segments in flight that the windows of sender and receiver allow.
    pub fn most_in_flight_segments(&self) -> u64 {
        self.largest_window().min((self.offered_bytes() / self.segment_bytes.whole()).max(1))
    }

    /// The largest window as a number of segments.
    pub(in crate::protocol) fn all_segments(&self) -> Count {
        Count::new(self.largest_window() as f64).unwrap_or(self.segment_bytes)
    }

    /// Window that the receiver offers, bytes.
    pub(super) fn offered_bytes(&self) -> u64 {
        let segments = self.receive_window_segments.map_or(self.largest_window(), Count::whole);
        let most = if self.window_scaling { MAX_WINDOW_BYTES } else { MAX_UNSCALED_BYTES };
        segments.saturating_mul(self.segment_bytes.whole()).min(most)
    }

    /// Number of retransmissions of the same segment on timeouts after which the connection is given up.
    pub(super) fn most_retransmissions(&self) -> u32 {
        self.max_retransmissions.map_or(u32::MAX, |most| u32::try_from(most.whole()).unwrap_or(u32::MAX))
    }

    fn check_ecn(&self) -> Result<(), ConfigError> {
        //= https://www.rfc-editor.org/rfc/rfc3168#section-5
        //# the congestion control algorithms followed at the end-systems MUST be essentially the same as the congestion
        //# control response to a *single* dropped packet.
        if self.ecn && self.congestion_control == CongestionControl::None {
            let what = "a sender without congestion control does not react to marks, as RFC 3168 requires";
            return Err(ConfigError::new("ecn", what, "choose another congestion_control, or leave ecn out"));
        }
        Ok(())
    }

    fn check_scaling(&self) -> Result<(), ConfigError> {
        if self.window_scaling {
            return Ok(());
        }
        for (key, window) in [
            ("receive_window_segments", self.receive_window_segments),
            ("max_window_segments", self.max_window_segments),
        ] {
            let bytes = window.map_or(0, |window| window.whole().saturating_mul(self.segment_bytes.whole()));
            if bytes > MAX_UNSCALED_BYTES {
                let what = format!(
                    "a window of {bytes} bytes does not fit the field of 16 bits without window_scaling (RFC 7323)"
                );
                let most = MAX_UNSCALED_BYTES / self.segment_bytes.whole();
                let remedy = format!("give at most {most}, or window_scaling = true");
                return Err(ConfigError::new(key, what, remedy));
            }
        }
        Ok(())
    }

    /// Whether segments are paced.
    pub(in crate::protocol) fn paces(&self) -> bool {
        self.pacing.unwrap_or(self.congestion_control.measures_rates())
    }

    /// A congestion control that measures rates needs selective acknowledgements and pacing.
    fn check_congestion_control(&self) -> Result<(), ConfigError> {
        let name = self.congestion_control.name();
        if self.congestion_control.measures_rates() && !self.variant.uses_sack() {
            let what =
                format!("{name:?} needs selective acknowledgements, which {:?} does not use", self.variant.name());
            return Err(ConfigError::new("variant", what, "give a variant that has them, such as \"sack\""));
        }
        if self.congestion_control.measures_rates() && self.pacing == Some(false) {
            let what = format!("{name:?} sends at the rate that it measured, which needs pacing");
            return Err(ConfigError::new("pacing", what, "leave the key out"));
        }
        Ok(())
    }

    /// Checks that the variant supports the keys that are given.
    fn check_recovery(&self) -> Result<(), ConfigError> {
        let name = self.variant.name();
        for (key, is_asked) in [("prr", self.prr), ("dsack", self.dsack)] {
            if is_asked == Some(true) && !self.variant.uses_sack() {
                let what = format!("variant = \"{name}\" has no selective acknowledgements");
                return Err(ConfigError::new(key, what, "set variant = \"sack\" or \"rack\", or leave it out"));
            }
        }
        if self.tail_loss_probe == Some(true) && self.variant != Variant::Rack {
            let what = format!("variant = \"{name}\" does not find losses by time");
            return Err(ConfigError::new("tail_loss_probe", what, "set variant = \"rack\", or leave it out"));
        }
        Ok(())
    }

    fn has_by_default(&self, key: Option<bool>) -> bool {
        key.unwrap_or(self.variant == Variant::Rack)
    }

    /// Whether proportional rate reduction is used.
    pub(super) fn reduces_proportionally(&self) -> bool {
        self.has_by_default(self.prr)
    }

    /// Whether tail loss probes are sent.
    pub(super) fn probes_tails(&self) -> bool {
        self.has_by_default(self.tail_loss_probe)
    }

    /// Whether duplicates are reported.
    pub(super) fn reports_duplicates(&self) -> bool {
        self.has_by_default(self.dsack)
    }

    /// Whether F-RTO checks if a timeout was spurious.
    pub(super) fn tests_timeouts(&self) -> bool {
        self.has_by_default(self.f_rto)
    }

    /// Checks the space for options, which are added to the headers that a scenario gives: timestamps to every segment, SACK
    /// blocks as needed.
    fn check_options(&self) -> Result<(), ConfigError> {
        let ack = self.ack_bytes.unwrap_or(self.header_bytes);
        for (key, header) in [("header_bytes", self.header_bytes), ("ack_bytes", ack)] {
            if header.whole() > LARGEST_HEADER {
                let what = format!("{} leaves no room for TCP's options in a packet", header.get());
                return Err(ConfigError::new(key, what, format!("give at most {LARGEST_HEADER}")));
            }
        }
        let bytes = self.full_bytes();
        if bytes > LARGEST_PACKET {
            let what =
                format!("{} with headers and timestamps make a packet of {bytes} bytes", self.segment_bytes.get());
            let remedy = format!("packets have at most {LARGEST_PACKET} bytes");
            return Err(ConfigError::new("segment_bytes", what, remedy));
        }
        // Segments without data may have longer headers than those with data.
        let most = bytes.max(ack.whole() + self.option_bytes()) + u64::from(MOST_OPTION_BYTES);
        self.correction.map_or(Ok(()), |correction| correction.check(most).map_err(|error| error.within("correction")))
    }

    /// Header bytes on the wire of a data segment and of a segment without data: with timestamps, and with the parity of the code
    /// around a full segment, but without SACK blocks.
    pub fn overhead_bytes(&self) -> (u16, u16) {
        let ack = self.ack_bytes.unwrap_or(self.header_bytes).whole() + self.option_bytes();
        let full = self.full_bytes();
        let parity = |bytes: u64| {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.correction.map_or(0, |correction| u64::from(correction.parity_bytes(bytes)))
        };
        let whole = |bytes: u64| u16::try_from(bytes).unwrap_or(u16::MAX);
        (whole(full - self.segment_bytes.whole() + parity(full)), whole(ack + parity(ack)))
    }

    /// Length of a full segment without its code.
    fn full_bytes(&self) -> u64 {
        self.header_bytes.whole() + self.option_bytes() + self.segment_bytes.whole()
    }

    fn option_bytes(&self) -> u64 {
        if self.timestamps { u64::from(TIMESTAMPS_BYTES) } else { 0 }
    }
}

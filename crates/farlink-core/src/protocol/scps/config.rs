//! The configuration of an SCPS-TP transport.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::correction::Correction;
use crate::packet_size::LARGEST_PACKET;
use crate::payload::Payload;
use crate::protocol::Pace;
use crate::protocol::parts::rto::RtoConfig;
use crate::protocol::parts::windows::MOST_SEGMENTS;
use crate::protocol::tcp::congestion::CongestionControl;
use crate::protocol::tcp::variant::Variant;
use crate::protocol::tcp::{
    BestEffort, Compressed, ExtensionsConfig, LARGEST_HEADER, LossMeans, MOST_SNACK_BYTES, TcpConfig, TcpConnection,
};
use crate::protocol::{Acknowledgements, Flight, Idle, LongestTimeout, Pairs, ProtocolConfig};
use crate::time::Time;
use crate::units::{BitRate, Count, PositiveSeconds, Seconds};

/// Length of IP's header, which SCPS-TP does not compress.
const NETWORK_BYTES: u16 = 20;
/// Connection identifier, flags, sequence number and checksum.
const COMPRESSED_DATA_BYTES: u16 = 8;
/// Connection identifier, flags, window, acknowledgement number and checksum.
const COMPRESSED_ACK_BYTES: u16 = 10;
/// Largest number of copies of a segment; more would leave no capacity for other data.
const MOST_COPIES: u64 = 100;
/// Largest number of segments per acknowledgement; an acknowledgement of more would come too late.
const MOST_SEGMENTS_PER_ACK: u64 = u16::MAX as u64 - 1;
/// Default length of the bit vector in octets, for 128 blocks.
const SNACK_VECTOR_BYTES: u32 = 16;

/// An SCPS-TP transport (CCSDS 714.0-B-2): TCP with extensions for space links, each of which can be used alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScpsConfig {
    /// How it reacts to loss; selective negative acknowledgements (SNACK) are the characteristic of SCPS-TP.
    pub variant: Variant,
    /// Octets of bit vector in a selective negative acknowledgement: each octet reports for eight segments after the first hole
    /// whether they have arrived; 16 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = MOST_SNACK_BYTES))]
    pub snack_vector_bytes: Option<Count>,
    /// How the window grows and shrinks; with `none`, a rate or a window must be given.
    pub congestion_control: CongestionControl,
    /// Fixed sending rate, headers included; without it, only the window limits the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<BitRate>,
    /// What the sender concludes from a loss: `congestion`, `corruption` (a loss never reduces the window) or `signalled`
    /// (corruption while the receiver reports that its link delivers damaged packets, congestion otherwise).
    pub loss_means: LossMeans,
    /// For how long the receiver reports corruption after a damaged packet, with `loss_means = "signalled"`; 1 s unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corruption_hold_s: Option<PositiveSeconds>,
    /// Explicit congestion notification (RFC 3168): queues with an `ecn_threshold_..` may mark data instead of dropping it. A
    /// mark reduces the window even if losses count as corruption, because bit errors cause no marks.
    pub ecn: bool,
    /// Largest number of transmissions of a segment before it is given up (best-effort transport); no limit unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_transmissions: Option<Count>,
    /// How long the receiver waits for missing data before it gives it up (best-effort transport); without limit unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_time_s: Option<PositiveSeconds>,
    /// Leave out header fields that the peer knows.
    pub header_compression: bool,
    /// Compressed header of a data segment with that of the network, before options; 28 unless given (8 of SCPS-TP, 20 of
    /// IP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressed_header_bytes: Option<Count>,
    /// Compressed header of a segment without data with that of the network, before options; 30 unless given (10 of SCPS-TP,
    /// 20 of IP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressed_ack_bytes: Option<Count>,
    /// Number of transmissions of every data segment, without waiting for a loss; the second and later ones count as
    /// retransmitted.
    #[schemars(extend("maximum" = MOST_COPIES))]
    pub copies: Count,
    /// Time between two copies of a segment.
    pub copy_spacing_s: Seconds,
    /// Acknowledge every so many segments (and a new hole at once); 2 unless given. If only `ack_interval_s` is given,
    /// acknowledgements are sent at that interval only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = MOST_SEGMENTS_PER_ACK))]
    pub ack_every_segments: Option<Count>,
    /// Longest delay of an acknowledgement; 0.2 s unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_interval_s: Option<PositiveSeconds>,
    /// Payload of a full segment.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub segment_bytes: Count,
    /// TCP and IP headers of a data segment on the wire.
    #[schemars(extend("maximum" = LARGEST_HEADER))]
    pub header_bytes: Count,
    /// Bytes of a segment without data on the wire, before options; `header_bytes` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = LARGEST_HEADER))]
    pub ack_bytes: Option<Count>,
    /// Initial congestion window; 10 unless given, the largest without congestion control.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = MOST_SEGMENTS))]
    pub initial_window_segments: Option<Count>,
    /// Initial slow-start threshold; arbitrarily high unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh_segments: Option<Count>,
    /// Largest congestion window; as much as a receiver can offer (RFC 7323, section 2.3: 1 GiB) unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = MOST_SEGMENTS))]
    pub max_window_segments: Option<Count>,
    /// Window that the receiver offers; the largest congestion window unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_window_segments: Option<Count>,
    /// Begin with SYN and SYN-ACK; otherwise both sides start established.
    pub handshake: bool,
    /// Timestamps on every segment (RFC 7323): 12 more bytes (8 in a compressed header), a round-trip sample from every
    /// acknowledgement.
    pub timestamps: bool,
    /// A code around each segment that corrects bit errors, not with `header_compression`; none unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
    /// The retransmission timer.
    pub rto: RtoConfig,
}

impl Default for ScpsConfig {
    fn default() -> Self {
        let tcp = TcpConfig::default();
        ScpsConfig {
            variant: Variant::Snack,
            snack_vector_bytes: None,
            congestion_control: CongestionControl::Reno,
            rate_bps: None,
            loss_means: LossMeans::Congestion,
            corruption_hold_s: None,
            ecn: tcp.ecn,
            max_transmissions: None,
            hold_time_s: None,
            header_compression: false,
            compressed_header_bytes: None,
            compressed_ack_bytes: None,
            copies: count(1),
            copy_spacing_s: Seconds::new(0.0).expect("a constant within its range"),
            ack_every_segments: None,
            ack_interval_s: None,
            segment_bytes: tcp.segment_bytes,
            header_bytes: tcp.header_bytes,
            ack_bytes: None,
            initial_window_segments: None,
            initial_ssthresh_segments: None,
            max_window_segments: None,
            receive_window_segments: None,
            handshake: tcp.handshake,
            timestamps: tcp.timestamps,
            correction: None,
            rto: tcp.rto,
        }
    }
}

fn count(n: u32) -> Count {
    Count::new(f64::from(n)).expect("a constant within its range")
}

impl ProtocolConfig for ScpsConfig {
    fn pace(&self) -> Pace {
        let own = self.rate_bps.filter(|_| self.congestion_control == CongestionControl::None);
        let segment_bytes = self.segment_bytes.get();
        let every = self.ack_every_segments.map_or(2.0, |segments| segments.get());
        Pace {
            rate_bps: own.map_or(f64::INFINITY, |rate| rate.get()),
            window_bytes: self.max_window_segments.map_or(f64::INFINITY, |most| most.get() * segment_bytes),
            adapts: own.is_none(),
            copies: self.copies.get(),
            answers: 1.0 / every,
            ..Pace::unbounded(segment_bytes, self.header_bytes.get())
        }
    }

    fn longest_packet(&self) -> crate::protocol::LongestPacket {
        self.tcp().longest_packet()
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.check_bounds()?;
        self.check_acknowledgements()?;
        self.check_best_effort()?;
        self.check_copies()?;
        self.check_compression()?;
        self.tcp().check_all_but_bounds()
    }

    fn idle(&self) -> Vec<Idle> {
        self.tcp().idle()
    }

    fn flight(&self) -> Option<Flight> {
        let flight = self.tcp().flight()?;
        let extensions = self.extensions();
        let is_counted = extensions.ack_every < u16::MAX;
        let ack_bytes = |plain: u64| extensions.compression.as_ref().map_or(plain, |short| u64::from(short.ack));
        let acknowledgements = flight.acknowledgements.filter(|_| is_counted).map(|plain| Acknowledgements {
            every_packets: f64::from(extensions.ack_every),
            bytes: ack_bytes(plain.bytes),
        });
        Some(Flight { acknowledgements, ..flight })
    }

    fn longest_timeout(&self) -> Option<LongestTimeout> {
        self.tcp().longest_timeout()
    }

    fn correction(&self) -> Option<Correction> {
        self.correction
    }
}

impl<D: Payload> Pairs<D> for ScpsConfig {
    type End = TcpConnection<D>;

    fn pair(&self, seed: u64) -> (TcpConnection<D>, TcpConnection<D>) {
        TcpConnection::extended(&self.tcp(), &self.extensions(), seed)
    }
}

impl ScpsConfig {
    /// The underlying TCP.
    fn tcp(&self) -> TcpConfig {
        let tcp = TcpConfig {
            variant: self.variant,
            congestion_control: self.congestion_control,
            segment_bytes: self.segment_bytes,
            header_bytes: self.header_bytes,
            ack_bytes: self.ack_bytes,
            initial_ssthresh_segments: self.initial_ssthresh_segments,
            max_window_segments: self.max_window_segments,
            receive_window_segments: self.receive_window_segments,
            handshake: self.handshake,
            timestamps: self.timestamps,
            ecn: self.ecn,
            restart_after_idle: self.has_congestion_control(),
            correction: self.correction,
            rto: self.rto,
            ..TcpConfig::default()
        };
        let all = if self.has_congestion_control() { tcp.initial_window_segments } else { tcp.all_segments() };
        TcpConfig { initial_window_segments: self.initial_window_segments.unwrap_or(all), ..tcp }
    }

    fn extensions(&self) -> ExtensionsConfig {
        let whole = |count: Count| u32::try_from(count.whole()).unwrap_or(u32::MAX);
        let short = |bytes: Option<Count>, other: u16| {
            bytes.map_or(other, |bytes| u16::try_from(bytes.whole()).unwrap_or(u16::MAX))
        };
        let hold = self.hold_time_s.map(|hold| hold.time());
        let tcp = TcpConfig::default();
        ExtensionsConfig {
            snack_vector_bytes: self.vector_bytes().whole() as usize,
            ack_every: match (self.ack_every_segments, self.ack_interval_s) {
                (Some(every), _) => short(Some(every), u16::MAX),
                (None, Some(_)) => u16::MAX,
                (None, None) => 2,
            },
            ack_delay: self.ack_interval_s.map_or(tcp.delayed_ack_timeout_s.longest(), |interval| interval.time()),
            rate: self.rate_bps,
            loss_means: self.loss_means,
            corruption_hold: self.corruption_hold_s.map_or(Time::from_secs(1), |hold| hold.time()),
            best_effort: hold.map(|hold| BestEffort { max_transmissions: self.max_transmissions.map(whole), hold }),
            compression: self.header_compression.then(|| Compressed {
                data: short(self.compressed_header_bytes, NETWORK_BYTES + COMPRESSED_DATA_BYTES),
                ack: short(self.compressed_ack_bytes, NETWORK_BYTES + COMPRESSED_ACK_BYTES),
            }),
            copies: whole(self.copies),
            copy_spacing: self.copy_spacing_s.time(),
        }
    }

    fn has_congestion_control(&self) -> bool {
        self.congestion_control != CongestionControl::None
    }

    fn vector_bytes(&self) -> Count {
        self.snack_vector_bytes.unwrap_or(count(SNACK_VECTOR_BYTES))
    }

    fn check_bounds(&self) -> Result<(), ConfigError> {
        let windows = [self.max_window_segments, self.receive_window_segments];
        if !self.has_congestion_control() && self.rate_bps.is_none() && windows.iter().all(Option::is_none) {
            return Err(ConfigError::new(
                "congestion_control",
                "without congestion control a rate or a window must limit the sender, and neither is given",
                "give a rate_bps, or a max_window_segments",
            ));
        }
        if self.rate_bps.is_some() && self.tcp().paces() {
            let name = self.congestion_control.name();
            return Err(ConfigError::new(
                "rate_bps",
                format!("{name} sets the rate itself"),
                "leave rate_bps out, or choose another congestion_control",
            ));
        }
        if self.corruption_hold_s.is_some() && self.loss_means != LossMeans::Signalled {
            return Err(ConfigError::new(
                "corruption_hold_s",
                "reports of damaged packets are not used",
                "give loss_means = \"signalled\", or leave corruption_hold_s out",
            ));
        }
        Ok(())
    }

    fn check_acknowledgements(&self) -> Result<(), ConfigError> {
        if self.snack_vector_bytes.is_some() && !self.variant.uses_snack() {
            let what = format!("variant = \"{}\" has no negative acknowledgements", self.variant.name());
            let remedy = "give variant = \"snack\", or leave snack_vector_bytes out";
            return Err(ConfigError::new("snack_vector_bytes", what, remedy));
        }
        if self.vector_bytes().whole() > MOST_SNACK_BYTES as u64 {
            let what = format!("{} octets do not fit into the options of a segment", self.vector_bytes().get());
            return Err(ConfigError::new("snack_vector_bytes", what, format!("give at most {MOST_SNACK_BYTES}")));
        }
        if let Some(every) = self.ack_every_segments.filter(|every| every.whole() > MOST_SEGMENTS_PER_ACK) {
            let what = format!("an acknowledgement of {} segments would come too late", every.get());
            let remedy = format!("give at most {MOST_SEGMENTS_PER_ACK}, or an ack_interval_s alone");
            return Err(ConfigError::new("ack_every_segments", what, remedy));
        }
        Ok(())
    }

    fn check_best_effort(&self) -> Result<(), ConfigError> {
        if self.max_transmissions.is_some() && self.hold_time_s.is_none() {
            return Err(ConfigError::new(
                "max_transmissions",
                "the receiver would wait without end for data that the sender has given up",
                "give a hold_time_s, too",
            ));
        }
        Ok(())
    }

    fn check_copies(&self) -> Result<(), ConfigError> {
        if self.copies.whole() == 1 && self.copy_spacing_s.get() > 0.0 {
            return Err(ConfigError::new(
                "copy_spacing_s",
                "there are no copies to space",
                "give copies = 2 or more, or leave copy_spacing_s out",
            ));
        }
        if self.copies.whole() > MOST_COPIES {
            let what = format!("{} copies of each segment leave no capacity for anything else", self.copies.get());
            return Err(ConfigError::new("copies", what, format!("give at most {MOST_COPIES}")));
        }
        Ok(())
    }

    fn check_compression(&self) -> Result<(), ConfigError> {
        // The parity is that of the longest segment, and compressed headers have many lengths.
        if self.header_compression && self.correction.is_some() {
            let what = "a code around packets whose headers are compressed is not modelled";
            return Err(ConfigError::new("correction", what, "leave it out, or give header_compression = false"));
        }
        let ack_bytes = self.ack_bytes.unwrap_or(self.header_bytes);
        let default_of = |compressed: u16| count(u32::from(NETWORK_BYTES + compressed));
        for (key, given, default, of, plain) in [
            (
                "compressed_header_bytes",
                self.compressed_header_bytes,
                COMPRESSED_DATA_BYTES,
                "header_bytes",
                self.header_bytes,
            ),
            ("compressed_ack_bytes", self.compressed_ack_bytes, COMPRESSED_ACK_BYTES, "ack_bytes", ack_bytes),
        ] {
            if given.is_some() && !self.header_compression {
                let remedy = format!("give header_compression = true, or leave {key} out");
                return Err(ConfigError::new(key, "headers are not compressed", remedy));
            }
            let compressed = given.unwrap_or(default_of(default));
            if self.header_compression && compressed.whole() > plain.whole() {
                let what = format!(
                    "the compressed header of {} bytes is larger than the header itself ({of} = {})",
                    compressed.get(),
                    plain.get()
                );
                return Err(ConfigError::new(key, what, format!("give at most {}", plain.get())));
            }
        }
        Ok(())
    }
}

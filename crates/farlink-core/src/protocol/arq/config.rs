//! The keys of an ARQ transport in a scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::correction::Correction;
use crate::packet_size::LARGEST_PACKET;
use crate::protocol::Pace;
use crate::protocol::parts::length::{AdaptiveLength, Length};
use crate::protocol::parts::rto::{RtoAlgorithm, RtoConfig};
use crate::protocol::{Acknowledgements, Flight, Idle, LongestTimeout};
use crate::units::{BitRate, Count, Seconds, Whole};

use super::frame::Blocks;

/// Room for options in a TCP header (RFC 9293, section 3.1).
const OPTION_BYTES: u64 = 40;
/// Bytes that timestamps add (RFC 7323, section 3.2).
const TIMESTAMPS_BYTES: u64 = 10;
/// Largest number of parts of the mother code's parity.
const MOST_INCREMENTS: u64 = 31;
/// Largest number of bits of a frame number, enough for any window.
const MOST_SEQUENCE_BITS: u64 = 32;
/// Default window of modes with a window: that of HDLC with extended numbers (ISO/IEC 13239).
const USUAL_WINDOW: u64 = 127;
/// Largest window: the state of each frame is kept in memory, and more frames would not fit.
const LARGEST_WINDOW: u64 = 1 << 24;

/// Which frames are retransmitted after a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One frame at a time, which is retransmitted until it is acknowledged.
    StopAndWait,
    /// A window of frames. After a loss, the lost frame and all later ones are retransmitted; the receiver drops frames out of
    /// order.
    GoBackN,
    /// A window of frames, of which only the lost ones are retransmitted. The receiver reorders them.
    #[default]
    SelectiveRepeat,
}

/// What an acknowledgement reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledgement {
    /// The arrival of a single frame. If the acknowledgement is lost, the frame is retransmitted.
    PerPacket,
    /// The next expected frame and, with selective repeat, blocks of later frames that have arrived.
    #[default]
    Cumulative,
}

/// Which side has the timer for lost frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimerSide {
    /// The sender retransmits a frame whose acknowledgement does not arrive in time.
    #[default]
    Sender,
    /// The receiver repeats its negative acknowledgement if the frame does not arrive in time. The sender retransmits only
    /// requested frames; if it receives nothing for the same time, it asks the receiver which frames have arrived.
    Receiver,
}

/// Type II hybrid ARQ (incremental redundancy): for a damaged frame the sender does not retransmit the data but sends more parity
/// of its code, until the receiver can decode the frame from all parts. The code is Reed-Solomon over 16-bit symbols with one
/// codeword per frame.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Incremental {
    /// Parity sent with the data, in bytes; even.
    pub first_parity_bytes: Whole,
    /// Parity in each retransmission, in bytes; even.
    pub parity_bytes: Count,
    /// Number of such parts of the code; after the last one the data itself is retransmitted.
    #[schemars(extend("maximum" = MOST_INCREMENTS))]
    pub increments: Count,
}

impl Default for Incremental {
    fn default() -> Self {
        Incremental {
            first_parity_bytes: Whole::new(0.0).expect("a constant within its range"),
            parity_bytes: count(32),
            increments: count(8),
        }
    }
}

/// Automatic repeat request as in a link layer, without congestion control or handshake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArqConfig {
    /// Which frames are retransmitted after a loss.
    pub mode: Mode,
    /// Data of a full frame, in bytes.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub segment_bytes: Count,
    /// Headers of a data frame on the wire without timestamps and blocks, in bytes. The default is that of a lean link layer;
    /// farlink's own layout in captures takes 61 bytes, including IPv4.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub header_bytes: Count,
    /// Length of a frame without data on the wire, without timestamps and blocks, in bytes. Defaults to `header_bytes`.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub ack_bytes: Option<Count>,
    /// Window: the largest number of unacknowledged frames. Defaults to 127, and to 1 with stop-and-wait.
    #[schemars(extend("maximum" = LARGEST_WINDOW))]
    pub window_frames: Option<Count>,
    /// Receive buffer, in frames in and out of order; it limits how far the sender may be ahead of the first unacknowledged frame
    /// (selective repeat only). Defaults to `window_frames`.
    #[schemars(extend("maximum" = LARGEST_WINDOW))]
    pub buffer_frames: Option<Count>,
    /// Number of bits of a frame number. Defaults to 32.
    #[schemars(extend("maximum" = MOST_SEQUENCE_BITS))]
    pub sequence_bits: Option<Count>,
    /// Maximum sending rate, including headers. By default the sender sends the whole window at once, so that a queue shorter
    /// than the window drops the rest of it.
    pub rate_bps: Option<BitRate>,
    /// What an acknowledgement reports.
    pub ack: Acknowledgement,
    /// Longest time that an acknowledgement waits to be piggybacked on data of the other direction, in seconds; with 0 it uses
    /// only a frame that is sent at that instant. By default acknowledgements are frames of their own.
    pub piggyback_timeout_s: Option<Seconds>,
    /// Largest number of blocks of out-of-order frames in an acknowledgement, which take 8 bytes each and 2 more. The receiver
    /// drops frames that it cannot report, unless it has the timer. Defaults to as many as fit into a packet, and with
    /// `compatible` into TCP's options.
    pub sack_blocks: Option<Whole>,
    /// Limit blocks and timestamps to the 40 bytes of TCP's options: four blocks, or three with timestamps.
    pub compatible: bool,
    /// Timestamps of 10 bytes on every frame, so that every acknowledgement gives a round-trip sample, also of a retransmitted
    /// frame.
    pub timestamps: bool,
    /// The receiver requests frames that are missing or damaged with negative acknowledgements.
    pub nak: bool,
    /// Which side has the timer for lost frames; `receiver` requires `nak`.
    pub timer: TimerSide,
    /// Give up a frame's data after it was lost this many times. Never by default. In go-back-N, only losses of the frame itself
    /// count, not those of an earlier one.
    pub max_transmissions: Option<Count>,
    /// Give up the connection after this many timeouts in a row without an acknowledgement of new data. Never by default.
    pub give_up_after_timeouts: Option<Count>,
    /// A code around each frame that corrects wrong bits (type I hybrid ARQ). None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
    /// Retransmissions carry parity instead of data (type II hybrid ARQ). Off by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incremental: Option<Incremental>,
    /// The length of new frames adapts to the bit error rate. By default all full frames have `segment_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_length: Option<AdaptiveLength>,
    /// The retransmission timer.
    pub rto: RtoConfig,
}

impl Default for ArqConfig {
    fn default() -> Self {
        ArqConfig {
            mode: Mode::default(),
            segment_bytes: count(1000),
            header_bytes: count(20),
            ack_bytes: None,
            window_frames: None,
            buffer_frames: None,
            sequence_bits: None,
            rate_bps: None,
            ack: Acknowledgement::default(),
            piggyback_timeout_s: None,
            sack_blocks: None,
            compatible: false,
            timestamps: false,
            nak: false,
            timer: TimerSide::default(),
            max_transmissions: None,
            give_up_after_timeouts: None,
            correction: None,
            incremental: None,
            adaptive_length: None,
            rto: RtoConfig::default(),
        }
    }
}

impl crate::protocol::ProtocolConfig for ArqConfig {
    fn pace(&self) -> Pace {
        let segment_bytes = self.segment_bytes.get();
        let frames = if self.mode == Mode::StopAndWait { Some(1.0) } else { self.window_frames.map(|most| most.get()) };
        Pace {
            rate_bps: self.rate_bps.map_or(f64::INFINITY, |rate| rate.get()),
            window_bytes: frames.map_or(f64::INFINITY, |frames| frames * segment_bytes),
            adapts: self.rate_bps.is_none(),
            ..Pace::unbounded(segment_bytes, self.header_bytes.get())
        }
    }

    fn longest_packet(&self) -> crate::protocol::LongestPacket {
        let header_bytes =
            self.header_bytes.whole() + self.timestamps_bytes() + self.data_bytes() - self.segment_bytes.whole();
        crate::protocol::LongestPacket::of_segments(header_bytes, self.segment_bytes, self.correction)
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.check_window()?;
        self.check_numbers()?;
        self.check_acknowledgements()?;
        self.check_hybrid()?;
        self.check_sizes()?;
        self.check_length()?;
        self.rto.check().map_err(|error| error.within("rto"))
    }

    fn idle(&self) -> Vec<Idle> {
        let what = "acknowledgements list no blocks, which alone it would bound";
        let needs = "mode = \"selective-repeat\" and ack = \"cumulative\"";
        let rto = self.rto.idle().into_iter().map(|idle| idle.within("rto"));
        let length = self.adaptive_length.iter().flat_map(AdaptiveLength::idle);
        Idle::when(!self.has_blocks(), "compatible", what, needs).into_iter().chain(rto).chain(length).collect()
    }

    fn correction(&self) -> Option<Correction> {
        self.correction
    }

    fn flight(&self) -> Option<Flight> {
        let more = self.timestamps_bytes();
        let is_by_itself = self.piggyback_timeout_s.is_none();
        Some(Flight {
            key: if self.mode == Mode::StopAndWait { "mode" } else { "window_frames" },
            window_packets: self.window(),
            payload_bytes: self.segment_bytes.whole(),
            packet_bytes: self.segment_bytes.whole() + self.header_bytes.whole() + more,
            acknowledgements: is_by_itself.then(|| Acknowledgements {
                every_packets: 1.0,
                bytes: self.ack_bytes.unwrap_or(self.header_bytes).whole() + more,
            }),
        })
    }

    fn longest_timeout(&self) -> Option<LongestTimeout> {
        let otherwise = match self.timer {
            TimerSide::Sender => {
                "the timer expires before any acknowledgement can arrive, and everything is sent again"
            }
            TimerSide::Receiver => {
                "the timers expire before any answer can arrive: the sender asks what is there and the receiver for what is \
                 missing, again and again"
            }
        };
        Some(self.rto.longest(self.timestamps, otherwise).within("rto"))
    }
}

impl ArqConfig {
    /// Largest number of unacknowledged frames.
    pub(super) fn window(&self) -> u64 {
        match self.mode {
            Mode::StopAndWait => 1,
            Mode::GoBackN | Mode::SelectiveRepeat => self.window_frames.map_or(USUAL_WINDOW, Count::whole),
        }
    }

    /// How far the sender may be ahead of the first unacknowledged frame.
    pub(super) fn span(&self) -> u64 {
        self.buffer_frames.map_or(self.window(), Count::whole)
    }

    /// Whether acknowledgements list blocks.
    pub(super) fn has_blocks(&self) -> bool {
        self.mode == Mode::SelectiveRepeat && self.ack == Acknowledgement::Cumulative
    }

    /// Blocks that an acknowledgement can list.
    pub(super) fn most_blocks(&self) -> u64 {
        let ack =
            self.ack_bytes.unwrap_or(self.header_bytes).whole().max(self.header_bytes.whole() + self.data_bytes());
        let room = LARGEST_PACKET.saturating_sub(ack + self.timestamps_bytes() + 2) / 8;
        let usual = if self.compatible { self.compatible_blocks() } else { room };
        self.sack_blocks.map_or(usual, |blocks| blocks.whole().min(room))
    }

    pub(super) fn timestamps_bytes(&self) -> u64 {
        if self.timestamps { TIMESTAMPS_BYTES } else { 0 }
    }

    /// The rule for the length of frames, if it varies.
    pub(super) fn length(&self) -> Option<Length> {
        let header = self.header_bytes.whole() + self.timestamps_bytes();
        self.adaptive_length.map(|config| Length::new(&config, header, self.segment_bytes.whole()))
    }

    /// Whether the data of retransmitted frames may be cut into frames of another length. With selective repeat it may not,
    /// because the receiver may hold later frames by their numbers; nor if frames may be given up, which keep their numbers.
    pub(super) fn cuts_again(&self) -> bool {
        self.adaptive_length.is_some() && self.mode != Mode::SelectiveRepeat && self.max_transmissions.is_none()
    }

    /// Blocks that fit into TCP's options.
    fn compatible_blocks(&self) -> u64 {
        (OPTION_BYTES - self.timestamps_bytes() - 2) / 8
    }

    /// Data of a full frame with the parity that is sent with it.
    fn data_bytes(&self) -> u64 {
        let longest = |parts: Incremental| {
            (self.segment_bytes.whole() + parts.first_parity_bytes.whole()).max(parts.parity_bytes.whole())
        };
        self.incremental.map_or(self.segment_bytes.whole(), longest)
    }

    fn check_window(&self) -> Result<(), ConfigError> {
        if let (Mode::StopAndWait, Some(window)) = (self.mode, self.window_frames)
            && window.whole() > 1
        {
            let what = format!("stop-and-wait has one frame under way, not {}", window.get());
            return Err(ConfigError::new("window_frames", what, "leave it out, or choose mode = \"go-back-n\""));
        }
        if let Some(buffer) = self.buffer_frames {
            if self.mode != Mode::SelectiveRepeat {
                let what = "the receiver keeps frames out of order with selective repeat only";
                return Err(ConfigError::new(
                    "buffer_frames",
                    what,
                    "leave it out, or choose mode = \"selective-repeat\"",
                ));
            }
            if buffer.whole() < self.window() {
                let what = format!("{} is less than the window of {}", buffer.get(), self.window());
                return Err(ConfigError::new("buffer_frames", what, "give at least window_frames, or leave it out"));
            }
        }
        for (key, frames) in [("window_frames", self.window_frames), ("buffer_frames", self.buffer_frames)] {
            if frames.is_some_and(|frames| frames.whole() > LARGEST_WINDOW) {
                let what =
                    format!("{} frames are not kept: each takes memory of its own", frames.map_or(0.0, Count::get));
                return Err(ConfigError::new(key, what, format!("give at most {LARGEST_WINDOW}")));
            }
        }
        Ok(())
    }

    /// Checks that the receiver cannot mistake old frames for new ones (Schwartz, section 4-2).
    fn check_numbers(&self) -> Result<(), ConfigError> {
        let Some(bits) = self.sequence_bits else { return Ok(()) };
        let bits = bits.whole();
        if bits > MOST_SEQUENCE_BITS {
            let what = format!("{bits} is not allowed; allowed: a whole number from 1 to {MOST_SEQUENCE_BITS}");
            return Err(ConfigError::new("sequence_bits", what, "numbers of 32 bits are enough for any window"));
        }
        // In these cases the receiver must tell frames ahead of the expected one from those behind it.
        let names_single = self.mode == Mode::SelectiveRepeat || self.ack == Acknowledgement::PerPacket || self.nak;
        let (most, rule) = if names_single && self.mode != Mode::StopAndWait {
            (1_u64 << (bits - 1), "half of the numbers, for new frames to be told from old ones")
        } else {
            ((1_u64 << bits) - 1, "all numbers but one")
        };
        if self.span() > most {
            let key = if self.buffer_frames.is_some() { "buffer_frames" } else { "window_frames" };
            let what =
                format!("{} frames need more than {bits} bits: a window is at most {rule}, here {most}", self.span());
            return Err(ConfigError::new(key, what, format!("give at most {most}, or more sequence_bits")));
        }
        Ok(())
    }

    fn check_acknowledgements(&self) -> Result<(), ConfigError> {
        if let Some(blocks) = self.sack_blocks {
            if !self.has_blocks() {
                let what = "blocks belong to cumulative acknowledgements with selective repeat";
                let remedy = "leave it out, or choose mode = \"selective-repeat\" and ack = \"cumulative\"";
                return Err(ConfigError::new("sack_blocks", what, remedy));
            }
            let most = self.compatible_blocks();
            if self.compatible && blocks.whole() > most {
                let beside = if self.timestamps { " beside timestamps" } else { "" };
                let what = format!(
                    "{} blocks of 8 bytes and 2 more do not fit into TCP's {OPTION_BYTES} bytes of options{beside}",
                    blocks.get()
                );
                return Err(ConfigError::new(
                    "sack_blocks",
                    what,
                    format!("give at most {most}, or compatible = false"),
                ));
            }
        }
        if self.timer == TimerSide::Receiver {
            if !self.nak {
                let what = "a timer at the receiver repeats negative acknowledgements, and there are none";
                return Err(ConfigError::new("timer", what, "set nak = true, or timer = \"sender\""));
            }
            if self.ack == Acknowledgement::PerPacket {
                let what =
                    "without a timer at the sender, nothing makes up for the lost acknowledgement of a single frame";
                return Err(ConfigError::new("timer", what, "set ack = \"cumulative\", or timer = \"sender\""));
            }
        }
        let wait = self.piggyback_timeout_s.map_or(0.0, Seconds::get);
        if self.rto.algorithm == RtoAlgorithm::Fixed && wait > 0.0 && wait >= self.rto.initial_s.get() {
            let what = format!("{wait} is no less than the fixed timeout: every frame would be sent again before");
            return Err(ConfigError::new("piggyback_timeout_s", what, "give less than rto.initial_s"));
        }
        Ok(())
    }

    fn check_hybrid(&self) -> Result<(), ConfigError> {
        let Some(parts) = self.incremental else { return Ok(()) };
        if self.correction.is_some() {
            let what = "correction and incremental are both given";
            return Err(ConfigError::new("incremental", what, "give one of them: a frame has one code"));
        }
        if !self.nak {
            let what = "the sender must learn that a frame arrived damaged, not lost";
            return Err(ConfigError::new("incremental", what, "set nak = true"));
        }
        let sizes =
            [("first_parity_bytes", parts.first_parity_bytes.whole()), ("parity_bytes", parts.parity_bytes.whole())];
        for (key, bytes) in sizes {
            if bytes % 2 == 1 {
                let what = format!("{bytes} is odd: the code's symbols have two bytes");
                return Err(ConfigError::new(format!("incremental.{key}"), what, "give an even number"));
            }
        }
        if parts.increments.whole() > MOST_INCREMENTS {
            let what = format!("{} is not allowed; allowed: 1 to {MOST_INCREMENTS}", parts.increments.get());
            return Err(ConfigError::new("incremental.increments", what, "make each part longer instead"));
        }
        // 2^16 - 1 symbols of two bytes in a codeword.
        let codeword = self.segment_bytes.whole().saturating_add(parts.first_parity_bytes.whole()) as f64
            + parts.parity_bytes.get() * parts.increments.get();
        if codeword > 2.0 * 65_535.0 {
            let what = format!("the code has {codeword} bytes with all its parity, and a codeword at most 131,070");
            return Err(ConfigError::new("incremental.parity_bytes", what, "give less parity, or shorter frames"));
        }
        Ok(())
    }

    fn check_length(&self) -> Result<(), ConfigError> {
        let Some(length) = &self.adaptive_length else { return Ok(()) };
        length.check(self.segment_bytes).map_err(|error| error.within("adaptive_length"))?;
        let code = if self.incremental.is_some() { "incremental" } else { "correction" };
        if self.incremental.is_some() || self.correction.is_some() {
            let what = format!("its rules hold where any wrong bit loses the frame, and {code} mends some");
            return Err(ConfigError::new("adaptive_length", what, format!("leave one out: adaptive_length or {code}")));
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), ConfigError> {
        // A piggybacked acknowledgement takes its options along, so they must fit into a data frame as well.
        let blocks = if self.has_blocks() { self.sack_blocks.map_or(0, Whole::whole).min(LARGEST_PACKET) } else { 0 };
        let options = self.timestamps_bytes() + Blocks::option_bytes(blocks);
        let header = self.header_bytes.whole().max(self.ack_bytes.map_or(0, Count::whole));
        if header + options > LARGEST_PACKET {
            let key = if self.ack_bytes.is_some() { "ack_bytes" } else { "header_bytes" };
            let what = format!("{header} with options of {options} bytes make a header of {} bytes", header + options);
            return Err(ConfigError::new(key, what, format!("packets have at most {LARGEST_PACKET} bytes")));
        }
        let bytes = self.header_bytes.whole() + options + self.data_bytes();
        if bytes > LARGEST_PACKET {
            let what = format!("{} with headers and parity make a packet of {bytes} bytes", self.segment_bytes.get());
            return Err(ConfigError::new(
                "segment_bytes",
                what,
                format!("packets have at most {LARGEST_PACKET} bytes"),
            ));
        }
        let most = bytes.max(header + options);
        self.correction.map_or(Ok(()), |correction| correction.check(most).map_err(|error| error.within("correction")))
    }
}

fn count(n: u32) -> Count {
    Count::new(f64::from(n)).expect("a constant within its range")
}

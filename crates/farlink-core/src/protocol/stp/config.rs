//! The keys of an STP transport in a scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::correction::Correction;
use crate::packet_size::LARGEST_PACKET;
use crate::protocol::Pace;
use crate::protocol::parts::rto::RtoConfig;
use crate::protocol::parts::windows::{MOST_SEGMENTS, check_windows};
use crate::protocol::{Flight, Idle, LongestTimeout, ProtocolConfig};
use crate::units::{BitRate, Count, PositiveSeconds};

use super::pdu::{COVER_BYTES, RANGE_BYTES};

/// Window of a sender without `max_window_segments`: half of the distance over which positions can be compared.
const UNLIMITED_WINDOW_BYTES: u64 = 1 << 30;

/// Least interval of POLLs: with more than one per microsecond a run would take too long.
const LEAST_POLL_INTERVAL_S: f64 = 1e-6;

/// How an STP sender determines its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RateControl {
    /// Slow start and congestion avoidance as in TCP (RFC 5681), driven by the losses that STATs and USTATs report.
    #[default]
    Tcp,
    /// A fixed maximum rate, which does not react to losses.
    Rate,
}

/// An STP transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StpConfig {
    /// Payload of a full packet, in bytes.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub segment_bytes: Count,
    /// STP and IP headers of a data packet on the wire, in bytes. Defaults to the 12 + 20 bytes of farlink's own layout.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub header_bytes: Count,
    /// Length of a POLL on the wire, in bytes, and of the packets that open and close a connection.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub poll_bytes: Count,
    /// Length of a STAT on the wire, in bytes, without 8 bytes for the range that it covers and 8 for each missing range; also
    /// the length of a USTAT.
    #[schemars(extend("maximum" = LARGEST_PACKET))]
    pub stat_bytes: Count,
    /// Largest number of missing ranges in one STAT; further ranges are sent in further STATs.
    pub stat_ranges: Count,
    /// Time between two POLLs while data is unacknowledged, in seconds. A sender that can send no more data polls sooner.
    #[schemars(extend("minimum" = LEAST_POLL_INTERVAL_S))]
    pub poll_interval_s: PositiveSeconds,
    /// Largest number of data packets between two POLLs (MaxPD of SSCOP), so that a window is acknowledged in several parts and
    /// the next one is not sent as a single burst. Defaults to a quarter of the outstanding packets, but at least 25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_every_segments: Option<Count>,
    /// The receiver reports a gap with a USTAT as soon as it opens; otherwise the next POLL reveals it.
    pub ustat: bool,
    /// Congestion control: `tcp`, or `rate`, which needs `rate_bps`.
    pub congestion: RateControl,
    /// Maximum rate with `congestion = "rate"`, including headers and POLLs; retransmissions go first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<BitRate>,
    /// Initial congestion window with `congestion = "tcp"`, in segments.
    #[schemars(extend("maximum" = MOST_SEGMENTS))]
    pub initial_window_segments: Count,
    /// Initial slow-start threshold with `congestion = "tcp"`, in segments. Unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh_segments: Option<Count>,
    /// Send window beyond the first missing byte, which is also the largest congestion window, in segments. Defaults to 1 GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = MOST_SEGMENTS))]
    pub max_window_segments: Option<Count>,
    /// Receive buffer for reordering and for data that the application has not read, in segments. Defaults to the sender's
    /// largest window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = MOST_SEGMENTS))]
    pub receive_window_segments: Option<Count>,
    /// Open connections with BEGIN and BEGIN-ACK and close them with END and END-ACK. Otherwise both sides start open, and a side
    /// is done when all data that it wrote is acknowledged.
    pub handshake: bool,
    /// Give the connection up after this time without an answer, in seconds. Never by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub give_up_s: Option<PositiveSeconds>,
    /// A code around each packet that corrects wrong bits. None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
    /// The retransmission timer, which runs while an answer is due. A POLL without an answer is repeated at increasing intervals.
    pub rto: RtoConfig,
}

impl Default for StpConfig {
    fn default() -> Self {
        let count = |n: u32| Count::new(f64::from(n)).expect("a constant within its range");
        StpConfig {
            segment_bytes: count(1460),
            header_bytes: count(32),
            poll_bytes: count(40),
            stat_bytes: count(44),
            stat_ranges: count(100),
            poll_interval_s: PositiveSeconds::new(0.25).expect("a constant within its range"),
            poll_every_segments: None,
            ustat: true,
            congestion: RateControl::Tcp,
            rate_bps: None,
            initial_window_segments: count(10),
            initial_ssthresh_segments: None,
            max_window_segments: None,
            receive_window_segments: None,
            handshake: true,
            give_up_s: None,
            correction: None,
            rto: RtoConfig::default(),
        }
    }
}

impl ProtocolConfig for StpConfig {
    fn pace(&self) -> Pace {
        let segment_bytes = self.segment_bytes.get();
        Pace {
            rate_bps: self.rate_bps.map_or(f64::INFINITY, |rate| rate.get()),
            window_bytes: self.max_window_segments.map_or(f64::INFINITY, |most| most.get() * segment_bytes),
            adapts: self.rate_bps.is_none(),
            answers: self.poll_every_segments.map_or(0.1, |segments| 1.0 / segments.get()),
            asks_every_s: self.poll_interval_s.get(),
            ..Pace::unbounded(segment_bytes, self.header_bytes.get())
        }
    }

    fn longest_packet(&self) -> crate::protocol::LongestPacket {
        crate::protocol::LongestPacket::of_segments(self.header_bytes.whole(), self.segment_bytes, self.correction)
    }

    fn check(&self) -> Result<(), ConfigError> {
        crate::packet_size::check(self.header_bytes, self.segment_bytes)?;
        let interval = self.poll_interval_s.get();
        if interval < LEAST_POLL_INTERVAL_S {
            let what = format!("{interval:e} s is too short: more than a million POLLs a second");
            let remedy = format!("give at least {LEAST_POLL_INTERVAL_S:e}");
            return Err(ConfigError::new("poll_interval_s", what, remedy));
        }
        self.check_congestion()?;
        self.check_reports()?;
        let windows = [
            ("max_window_segments", self.max_window_segments),
            ("receive_window_segments", self.receive_window_segments),
            ("initial_window_segments", Some(self.initial_window_segments)),
        ];
        check_windows(&windows, self.segment_bytes, "32-bit positions")?;
        if let Some(correction) = self.correction {
            let largest = self.full_bytes().max(self.largest_stat_bytes());
            correction.check(largest).map_err(|error| error.within("correction"))?;
        }
        self.rto.check().map_err(|error| error.within("rto"))
    }

    fn check_duration(&self, duration: PositiveSeconds) -> Result<(), ConfigError> {
        for (key, span) in [("poll_interval_s", Some(self.poll_interval_s)), ("give_up_s", self.give_up_s)] {
            if let Some(span) = span.filter(|span| span.get() >= duration.get()) {
                let what = format!("{} s is no shorter than the run (duration_s = {})", span.get(), duration.get());
                let remedy = if key == "give_up_s" { "leave it out, or run for longer" } else { "ask more often" };
                return Err(ConfigError::new(key, what, remedy));
            }
        }
        Ok(())
    }

    fn idle(&self) -> Vec<Idle> {
        let is_rate = self.congestion == RateControl::Rate;
        let by_rate = |key| Idle::when(is_rate, key, "a rate has no congestion window", "congestion = \"tcp\"");
        let keys = [by_rate("initial_window_segments"), by_rate("initial_ssthresh_segments")];
        let rto = self.rto.idle().into_iter().map(|idle| idle.within("rto"));
        keys.into_iter().flatten().chain(rto).collect()
    }

    fn correction(&self) -> Option<Correction> {
        self.correction
    }

    fn flight(&self) -> Option<Flight> {
        let is_of_receiver = self.buffer_bytes() < self.window_bytes();
        let window = self.buffer_bytes().min(self.window_bytes());
        Some(Flight {
            key: if is_of_receiver { "receive_window_segments" } else { "max_window_segments" },
            window_packets: (window / self.segment_bytes.whole()).max(1),
            payload_bytes: self.segment_bytes.whole(),
            packet_bytes: self.full_bytes(),
            acknowledgements: None,
        })
    }

    fn longest_timeout(&self) -> Option<LongestTimeout> {
        // A STAT carries the number of the POLL that it answers, and the time of that POLL.
        let otherwise = match self.congestion {
            RateControl::Tcp => {
                "the timer expires before any STAT can arrive, and the window shrinks as if all had been lost"
            }
            RateControl::Rate => "the timer expires before any STAT can arrive, and POLLs are sent again and again",
        };
        Some(self.rto.longest(true, otherwise).within("rto"))
    }
}

impl StpConfig {
    fn check_congestion(&self) -> Result<(), ConfigError> {
        match (self.congestion, self.rate_bps) {
            (RateControl::Rate, None) => {
                let what = "congestion = \"rate\" needs a rate, and none is given";
                Err(ConfigError::new("rate_bps", what, "give rate_bps, or take congestion = \"tcp\""))
            }
            (RateControl::Tcp, Some(rate)) => {
                let what = format!("a rate ({rate}) is given, but congestion = \"tcp\" finds its own");
                Err(ConfigError::new("rate_bps", what, "leave it out, or take congestion = \"rate\""))
            }
            _ => Ok(()),
        }
    }

    /// A STAT with all its ranges must fit into a packet as well.
    fn check_reports(&self) -> Result<(), ConfigError> {
        let longest = |key, bytes: u64, what: &str| {
            let what = format!("{what} make a packet of {bytes} bytes");
            let refusal = ConfigError::new(key, what, format!("packets have at most {LARGEST_PACKET} bytes"));
            if bytes > LARGEST_PACKET { Err(refusal) } else { Ok(()) }
        };
        longest("poll_bytes", self.poll_bytes.whole(), "the headers of a POLL")?;
        longest("stat_bytes", self.stat_bytes.whole(), "the headers of a STAT")?;
        let what = format!("{} ranges of {RANGE_BYTES} bytes and the rest of a STAT", self.stat_ranges.get());
        longest("stat_ranges", self.largest_stat_bytes(), &what)
    }

    fn full_bytes(&self) -> u64 {
        self.header_bytes.whole() + self.segment_bytes.whole()
    }

    fn largest_stat_bytes(&self) -> u64 {
        self.stat_bytes.whole() + u64::from(COVER_BYTES) + u64::from(RANGE_BYTES) * self.stat_ranges.whole()
    }

    /// The sender's window beyond the first missing byte, in bytes.
    pub(super) fn window_bytes(&self) -> u64 {
        let mss = self.segment_bytes.whole();
        self.max_window_segments.map_or(UNLIMITED_WINDOW_BYTES.max(mss), |segments| segments.whole() * mss)
    }

    /// The receive buffer, in bytes.
    pub(super) fn buffer_bytes(&self) -> u64 {
        let mss = self.segment_bytes.whole();
        self.receive_window_segments.map_or(self.window_bytes(), |segments| segments.whole() * mss)
    }

    /// Headers on the wire with the parity of the code around the packet, for a full data packet, a POLL, and a STAT without
    /// ranges.
    pub(super) fn overhead_bytes(&self) -> [u16; 3] {
        let parity = |bytes: u64| {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.correction.map_or(0, |correction| u64::from(correction.parity_bytes(bytes)))
        };
        let whole = |bytes: u64| u16::try_from(bytes).unwrap_or(u16::MAX);
        let control = |bytes: Count| whole(bytes.whole() + parity(bytes.whole()));
        let data = whole(self.header_bytes.whole() + parity(self.full_bytes()));
        [data, control(self.poll_bytes), control(self.stat_bytes)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(config: &StpConfig, key: &str) -> bool {
        config.check().is_err_and(|error| error.path == key)
    }

    fn count(n: f64) -> Count {
        Count::new(n).unwrap()
    }

    #[test]
    fn rate_control_needs_a_rate_and_nothing_else_does() {
        let rate = Some(BitRate::new(960e3).unwrap());
        let (tcp, by_rate) = (RateControl::Tcp, RateControl::Rate);
        for (congestion, rate_bps, is_refused) in
            [(tcp, None, false), (tcp, rate, true), (by_rate, None, true), (by_rate, rate, false)]
        {
            let config = StpConfig { congestion, rate_bps, ..StpConfig::default() };
            assert_eq!(refused(&config, "rate_bps"), is_refused, "{congestion:?} {rate_bps:?}");
            assert_eq!(config.check().is_err(), is_refused);
        }
    }

    #[test]
    fn packets_and_windows_have_their_limits() {
        let default = StpConfig::default();
        assert!(refused(&StpConfig { segment_bytes: count(65_504.0), ..default.clone() }, "segment_bytes"));
        assert!(refused(&StpConfig { poll_bytes: count(65_536.0), ..default.clone() }, "poll_bytes"));
        assert!(refused(&StpConfig { stat_bytes: count(65_536.0), ..default.clone() }, "stat_bytes"));
        assert!(refused(&StpConfig { stat_ranges: count(8186.0), ..default.clone() }, "stat_ranges"));
        assert_eq!(StpConfig { stat_ranges: count(8185.0), ..default.clone() }.check(), Ok(()));
        let most = (1_u64 << 31).div_ceil(1460) as f64;
        assert!(refused(
            &StpConfig { max_window_segments: Some(count(most)), ..default.clone() },
            "max_window_segments"
        ));
        let config = StpConfig { receive_window_segments: Some(count(most)), ..default };
        assert!(refused(&config, "receive_window_segments"));
    }

    #[test]
    fn timers_not_shorter_than_the_duration_are_refused() {
        let second = PositiveSeconds::new(1.0).unwrap();
        let path = |config: StpConfig| config.check_duration(second).map_err(|error| error.path);
        assert_eq!(path(StpConfig::default()), Ok(()));
        let config = StpConfig { poll_interval_s: second, ..StpConfig::default() };
        assert_eq!(path(config), Err("poll_interval_s".into()));
        assert_eq!(path(StpConfig { give_up_s: Some(second), ..StpConfig::default() }), Err("give_up_s".into()));
    }

    #[test]
    fn a_code_adds_its_parity_to_every_packet() {
        let correction = Some(Correction { bits: Some(count(1.0)), ..Correction::default() });
        let config = StpConfig { correction, ..StpConfig::default() };
        // BCH over GF(2^m), m bits for one error: 14 for 11,936 and more bits, 9 for 320 and 352.
        assert_eq!(config.overhead_bytes(), [34, 42, 46]);
    }
}

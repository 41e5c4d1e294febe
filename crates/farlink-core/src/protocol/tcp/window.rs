//! The state that all TCP variants share: the send window, the congestion window and the choice of the next segment.

use crate::time::Time;

use super::config::TcpConfig;
use super::flight::Flight;
use super::span::Span;
use super::variant::Variant;

/// The phase of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No loss is being repaired.
    Open,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout, until everything sent before it is acknowledged.
    Loss,
}

/// Round-trip times measured so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrips {
    /// The latest; `None` before the first.
    pub(super) latest: Option<Time>,
    /// Smoothed, as in the retransmission timer; zero before the first.
    pub(super) smoothed: Time,
    /// The least; `Time::NEVER` before the first.
    pub(super) least: Time,
    /// Number of samples.
    pub(super) count: u64,
    /// The retransmission timeout, counted from when the oldest segment was sent, before which a tail loss probe after new data
    /// comes; `None` without that rule of Linux.
    pub(super) limit_of_probes: Option<Time>,
}

impl Default for RoundTrips {
    fn default() -> Self {
        RoundTrips { latest: None, smoothed: Time::ZERO, least: Time::NEVER, count: 0, limit_of_probes: None }
    }
}

/// The kind of an acknowledgement, after the window was updated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    /// Whether it advances the cumulative acknowledgement.
    pub(super) is_new: bool,
    /// Whether it is a duplicate while data is outstanding.
    pub(super) is_duplicate: bool,
    /// Whether it has no other content: no data, no change of the receiver's window, no FIN.
    pub(super) is_pure: bool,
}

/// The time at which loss detection is to be called, and the purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alarm {
    /// `Time::NEVER` if there is none.
    pub(super) at: Time,
    /// Whether it is for a tail loss probe, which also replaces a retransmission timeout that comes first.
    pub(super) is_probe: bool,
}

impl Alarm {
    pub(super) const NONE: Alarm = Alarm { at: Time::NEVER, is_probe: false };
}

/// Send window and congestion window. Offsets count this side's stream: 0 is the SYN, 1 the first byte, and the FIN follows the
/// last byte.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Oldest unacknowledged offset (SND.UNA).
    pub(super) una: u64,
    /// Next offset to send (SND.NXT); returns to `una` when all data is sent again.
    pub(super) nxt: u64,
    /// Highest offset ever sent, plus one.
    pub(super) max: u64,
    /// End of the data that the application allows to send: written data, and the FIN.
    pub(super) end: u64,
    /// End of the window that the peer offers.
    pub(super) peer_end: u64,
    /// Congestion window, bytes. A float, because congestion avoidance adds fractions of a byte.
    pub(super) cwnd: f64,
    /// Initial congestion window.
    pub(super) initial_cwnd: f64,
    /// Slow-start threshold, bytes.
    pub(super) ssthresh: f64,
    /// Whether a timeout during a recovery leaves the threshold that the recovery set, as in Linux.
    pub(super) is_one_loss: bool,
    /// Largest congestion window, bytes.
    pub(super) cwnd_cap: f64,
    pub(super) mss: u32,
    /// Consecutive duplicate acknowledgements.
    pub(super) dup_acks: u32,
    pub(super) dup_ack_threshold: u32,
    /// Bytes in flight when the first of them arrived, before limited transmit added to it.
    pub(super) flight_before_dup_acks: u64,
    /// Bytes that limited transmit allows beyond the congestion window.
    pub(super) extra: u64,
    /// Highest offset sent when the last loss was found ("recover" of RFC 6582, RecoveryPoint of RFC 6675).
    pub(super) recover: u64,
    pub(super) phase: Phase,
    /// Whether the segment at `una` is sent again, regardless of the window.
    pub(super) retransmit_first: bool,
    /// Whether missing data is to be sent again before new data.
    pub(super) has_holes_due: bool,
    /// Whether losses count as bit errors at present, not as congestion, so that the window stays as it is.
    pub(super) is_corruption: bool,
    /// Whether the latest loss counted as a bit error, so that its repair leaves the window as it is.
    pub(super) is_spared: bool,
    /// The slow-start threshold to restore after the repair of such a loss.
    pub(super) kept_ssthresh: Option<f64>,
    /// Whether the peer's window has no room for a segment; then a smaller one, of at least a byte, is sent as a probe.
    pub(super) is_probing: bool,
    /// Whether the present acknowledgement leaves the retransmission timer as it is.
    pub(super) keeps_timer: bool,
    /// Whether the congestion window limited the sender since the last acknowledgement.
    pub(super) is_cwnd_limited: bool,
    pub(super) is_limited_transmit: bool,
    /// Whether the window grows by bytes and not by acknowledgements (RFC 3465).
    pub(super) counts_bytes: bool,
    pub(super) has_recover_guard: bool,
    pub(super) fast_retransmits: u64,
    /// Whether the congestion window was reduced and no new data was sent since.
    pub(super) has_reduced: bool,
    /// Highest offset sent when the window was last reduced because a packet was marked (RFC 3168).
    pub(super) marked: u64,
    /// When the present acknowledgement arrived.
    pub(super) now: Time,
    pub(super) rtt: RoundTrips,
    pub(super) records: Flight,
    pub(super) alarm: Alarm,
    /// Whether the next segment sent is the first one, with which the retransmission timer is restarted.
    pub(super) restarts_timer: bool,
    /// Whether a probe repeats a segment, so that an acknowledgement matters although nothing is outstanding.
    pub(super) expects_echo: bool,
    /// Whether only new data is sent, regardless of losses.
    pub(super) sends_new_only: bool,
    /// Congestion window and threshold before the first of the latest consecutive retransmission timeouts.
    pub(super) before_timeout: (f64, f64),
    /// Full segments of new data may be sent up to here without further checks; 0 if a check is needed.
    clear_until: u64,
    /// Whether something other than full segments of new data may be due.
    pub(super) needs_look: bool,
}

/// The smaller of two numbers in one instruction; `f64::min` takes more because of NaN.
#[inline(always)]
pub(super) fn least(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}

impl Window {
    pub(super) fn new(config: &TcpConfig, start: u64, peer_window: u64, keeps_flight: bool) -> Self {
        let mss = u32::try_from(config.segment_bytes.whole()).unwrap_or(u32::MAX);
        let bytes = |segments: u64| segments as f64 * f64::from(mss);
        let cwnd_cap = bytes(config.largest_window());
        let initial_cwnd = bytes(config.initial_window_segments.whole()).min(cwnd_cap);
        Window {
            una: start,
            nxt: start,
            max: start,
            end: start,
            peer_end: start + peer_window,
            cwnd: initial_cwnd,
            initial_cwnd,
            ssthresh: config.initial_ssthresh_segments.map_or(f64::INFINITY, |n| bytes(n.whole())),
            is_one_loss: config.variant == Variant::Rack,
            cwnd_cap,
            mss,
            dup_acks: 0,
            dup_ack_threshold: u32::try_from(config.duplicate_ack_threshold.whole()).unwrap_or(u32::MAX),
            flight_before_dup_acks: 0,
            extra: 0,
            // Nothing is lost yet, and nothing below this offset was sent.
            recover: 0,
            phase: Phase::Open,
            retransmit_first: false,
            has_holes_due: false,
            is_corruption: false,
            is_spared: false,
            kept_ssthresh: None,
            is_probing: false,
            keeps_timer: false,
            is_cwnd_limited: false,
            is_limited_transmit: config.limited_transmit,
            counts_bytes: config.counts_bytes(),
            has_recover_guard: config.recover_guard,
            fast_retransmits: 0,
            has_reduced: false,
            marked: 0,
            now: Time::ZERO,
            rtt: RoundTrips::default(),
            records: Flight::new(keeps_flight),
            alarm: Alarm::NONE,
            restarts_timer: false,
            expects_echo: false,
            sends_new_only: false,
            before_timeout: (initial_cwnd, f64::INFINITY),
            clear_until: 0,
            needs_look: true,
        }
    }

    /// Updates the fields that sending depends on; `data_end` is the end of the written data, without the FIN. Called after every
    /// change other than sending, so that sending takes one comparison.
    #[inline(always)]
    pub(super) fn update(&mut self, data_end: u64) {
        let repairs_nothing = self.phase == Phase::Open && !self.retransmit_first && !self.has_holes_due;
        self.update_limits(data_end, repairs_nothing);
    }

    /// As [`update`](Self::update); `repairs_nothing` says whether there is no loss to repair.
    #[inline(always)]
    fn update_limits(&mut self, data_end: u64, repairs_nothing: bool) {
        let mss = u64::from(self.mss);
        let by_congestion = self.una + self.cwnd as i64 as u64 + self.extra;
        let by_others = self.peer_end.min(data_end);
        self.is_cwnd_limited = by_congestion <= by_others;
        let window_end = by_congestion.min(self.peer_end);
        let is_usual = repairs_nothing && self.end > window_end + mss && self.peer_end >= self.una + mss;
        if is_usual {
            (self.needs_look, self.clear_until) = (false, window_end.min(data_end));
        } else {
            (self.needs_look, self.clear_until) = (self.una < self.end, 0);
        }
    }

    /// As [`update`](Self::update), after an acknowledgement of new data outside recovery, if nothing was to be repaired before it.
    #[inline(always)]
    #[cfg(feature = "trains")]
    pub(super) fn update_open(&mut self, data_end: u64) {
        debug_assert!(self.phase == Phase::Open && !self.retransmit_first && !self.has_holes_due);
        self.update_limits(data_end, true);
    }

    /// Stops all sending.
    pub(super) fn halt(&mut self) {
        self.alarm = Alarm::NONE;
        self.clear_until = 0;
        self.needs_look = false;
    }

    /// The next full segment of new data, if it may be sent without further checks.
    #[inline(always)]
    pub(super) fn next_clear(&self) -> Option<Span> {
        if self.nxt + u64::from(self.mss) <= self.clear_until {
            Some(Span { start: self.nxt, len: self.mss })
        } else {
            None
        }
    }

    /// The rate that spreads the window over a round trip, bytes per second; infinite before the first measurement.
    pub(super) fn pacing_rate(&self) -> f64 {
        // `sysctl_tcp_pacing_ss_ratio` and `sysctl_tcp_pacing_ca_ratio` of Linux (net/ipv4/tcp_input.c, tcp_update_pacing_rate):
        // fast enough for a window that grows.
        let ratio = if self.cwnd < self.ssthresh / 2.0 { 2.0 } else { 1.2 };
        ratio * self.cwnd / self.rtt.smoothed.as_secs_f64()
    }

    #[inline]
    pub(super) fn mss_f64(&self) -> f64 {
        f64::from(self.mss)
    }

    /// Bytes sent and not acknowledged, according to the send pointer.
    #[inline]
    pub(super) fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// Length of the segment that would start at `start`. The SYN (offset 0) is sent alone.
    #[inline]
    pub(super) fn segment_len(&self, start: u64) -> u32 {
        let most = if start == 0 { 1 } else { u64::from(self.mss) };
        self.end.saturating_sub(start).min(most) as u32
    }

    /// End of the first segment in flight, as it is sent again.
    pub(super) fn first_end(&self) -> u64 {
        let recorded = if self.records.is_ordered() { self.records.first_end() } else { None };
        recorded.unwrap_or(self.una + u64::from(self.segment_len(self.una)))
    }

    /// The next segment: a retransmission, or the one at the send pointer if the window has room for it.
    #[inline(always)]
    pub(super) fn next_in_window(&mut self) -> Option<Span> {
        if self.retransmit_first {
            self.retransmit_first = false;
            return Some(Span { start: self.una, len: self.segment_len(self.una) });
        }
        let len = self.segment_len(self.nxt);
        if len == 0 {
            return None;
        }
        let after = self.nxt + u64::from(len);
        if after > self.una + self.cwnd as u64 + self.extra {
            return None;
        }
        if after > self.peer_end {
            return self.probe();
        }
        Some(Span { start: self.nxt, len })
    }

    /// A segment that is sent although the peer's window has no room for a full one: only what fits, and alone, either as a probe
    /// or because it was sent before and is missing.
    #[cold]
    fn probe(&self) -> Option<Span> {
        let room = self.peer_end.saturating_sub(self.nxt) as u32;
        let is_due = self.is_probing || self.nxt < self.max;
        (is_due && self.nxt == self.una && room > 0).then_some(Span { start: self.nxt, len: room })
    }

    /// A segment is sent.
    #[inline]
    pub(super) fn on_sent(&mut self, span: Span) {
        let after = span.start + u64::from(span.len);
        if after > self.nxt {
            self.nxt = after;
            self.max = self.max.max(after);
        }
    }

    /// Whether an acknowledgement of new data may make the congestion window larger.
    #[inline]
    pub(super) fn may_grow(&self) -> bool {
        // Only a window that was used is known to be safe (RFC 7661 gives the reasons).
        self.is_cwnd_limited && self.cwnd < self.cwnd_cap
    }

    /// Whether duplicate acknowledgements may still be due to the loss that was already reacted to.
    pub(super) fn is_guarded(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc6582#section-3.2
        //# If the Cumulative Acknowledgment field covers more than recover
        self.has_recover_guard && self.una <= self.recover && self.recover > 0
    }

    /// Counts a duplicate acknowledgement outside recovery; returns `true` if it is the one that means a loss.
    pub(super) fn is_loss_found(&mut self) -> bool {
        self.count_duplicate();
        self.dup_acks == self.dup_ack_threshold && !self.is_guarded()
    }

    /// Counts a duplicate acknowledgement outside recovery.
    pub(super) fn count_duplicate(&mut self) {
        if self.dup_acks == 0 {
            self.flight_before_dup_acks = self.flight();
        }
        self.dup_acks += 1;
        if self.is_limited_transmit && self.dup_acks < self.dup_ack_threshold.min(3) {
            //= https://www.rfc-editor.org/rfc/rfc3042#section-2
            //# The amount of outstanding data would remain less than or equal to the congestion window plus 2
            //# segments.
            self.extra = u64::from(self.dup_acks) * u64::from(self.mss);
        }
    }

    /// The receiver has reported `left..right` for the first time.
    pub(super) fn on_reported(&mut self, left: u64, right: u64) {
        if self.records.is_kept() {
            self.records.on_sacked(self.now, left, right);
        }
    }

    /// As [`advance`](Self::advance), while no loss is being repaired, no segments are recorded and there is no limited transmit.
    #[inline(always)]
    #[cfg(feature = "trains")]
    pub(super) fn advance_open(&mut self, una: u64) {
        debug_assert!(self.phase == Phase::Open && !self.records.is_kept() && !self.is_probing && self.extra == 0);
        self.una = una;
        self.nxt = self.nxt.max(una);
    }

    /// An acknowledgement advanced `una`: keeps the pointers consistent and ends the loss phase when it is over.
    #[inline(always)]
    pub(super) fn advance(&mut self, una: u64) {
        self.una = una;
        self.nxt = self.nxt.max(una);
        if self.records.is_kept() {
            self.records.on_acknowledged(self.now, una);
        }
        self.is_probing = false;
        self.extra = 0;
        if self.phase == Phase::Loss && una >= self.recover {
            self.phase = Phase::Open;
        }
    }
}

//! One operating point: the bottleneck, the flows over it, and the parts of TCP that are modelled.

use super::law::Growth;

/// Long-lived flows over one bottleneck. Lengths are in segments, times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Rate of the bottleneck, segments per second.
    pub rate: f64,
    /// Spans of constant rate and loss, instead of `rate` and `loss`; they follow each other and repeat. Empty if neither
    /// changes. A rate of 0 means that the link is down.
    pub spans: Vec<Span>,
    /// Round trip of each flow without queueing, including the service time of a segment: one entry per flow.
    pub round_trips_s: Vec<f64>,
    /// Limit of the queue, without the segment in service; infinite if there is none.
    pub buffer: f64,
    /// Probability that the channel loses a segment, from 0 to below 1; with spans, their mean.
    pub loss: f64,
    /// Segments per acknowledgement (b).
    pub segments_per_ack: f64,
    /// Whether windows grow by the segments acknowledged and not by the acknowledgements (RFC 3465).
    pub counts_bytes: bool,
    /// How windows grow in congestion avoidance.
    pub growth: Growth,
    /// Largest window; infinite if there is none.
    pub max_window: f64,
    /// How losses are repaired.
    pub repair: Repair,
    /// Number of duplicate acknowledgements that signal a loss; 0 if a loss is detected after one round trip.
    pub duplicate_acks: f64,
    /// Whether the first two of them send new data (RFC 3042).
    pub limited_transmit: bool,
    /// Whether several losses may happen within one round trip. If not, a loss within a round trip of another one is delayed
    /// until that one is repaired, as in TGEP.
    pub multiple_losses: bool,
    /// Retransmission timeouts; `None` if they are not modelled.
    pub timeouts: Option<Timeouts>,
}

/// A period of constant rate and loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Duration, in seconds, above 0.
    pub seconds: f64,
    /// Segments per second; 0 if the link is down.
    pub rate: f64,
    /// Probability that the channel loses a segment, from 0 to below 1.
    pub loss: f64,
}

/// When the retransmission timer expires: `max(least_s, round_trips * RTT)`, doubled for each expiry in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeouts {
    /// Least timeout, seconds.
    pub least_s: f64,
    /// Factor on the present round trip.
    pub round_trips: f64,
    /// Largest timeout, seconds.
    pub most_s: f64,
}

impl Timeouts {
    /// The timeout at a round trip, without back-off, s.
    pub(super) fn after(&self, round_trip_s: f64) -> f64 {
        self.least_s.max(self.round_trips * round_trip_s)
    }
}

/// How several losses in one window are repaired (Fall and Floyd 1996).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The window is halved for each loss; three losses, or two in a window below ten segments, need a timeout.
    Reno,
    /// The window is halved once, and each loss takes a round trip; if that takes longer than the timer, there is a timeout.
    NewReno,
    /// The window is halved once, and the repair takes one round trip.
    Sack,
    /// As `Sack`, but lost retransmissions are detected as well (RFC 8985).
    Rack,
}

/// When a simulation ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Half-width of the interval of the goodput of all flows, as a fraction of it.
    pub bound: f64,
    /// Level of that interval.
    pub level: f64,
    /// Longest simulated time, seconds.
    pub max_time_s: f64,
}

impl Default for Rule {
    fn default() -> Self {
        Rule { bound: 0.01, level: 0.99, max_time_s: 1e9 }
    }
}

impl Point {
    /// Flows of equal round trip with Reno's growth that halve the window once per loss and never time out, as modelled by TGEP.
    pub fn new(rate: f64, round_trip_s: f64, buffer: f64, loss: f64, flows: usize) -> Self {
        Point {
            rate,
            spans: Vec::new(),
            round_trips_s: vec![round_trip_s; flows],
            buffer,
            loss,
            segments_per_ack: 1.0,
            counts_bytes: false,
            growth: Growth::Reno,
            max_window: f64::INFINITY,
            repair: Repair::Sack,
            duplicate_acks: 0.0,
            limited_transmit: true,
            multiple_losses: false,
            timeouts: None,
        }
    }

    /// Number of segments that make a window grow as much as one acknowledgement does.
    pub(super) fn segments_per_increase(&self) -> f64 {
        if self.counts_bytes { 1.0 } else { self.segments_per_ack }
    }

    /// The point of one flow alone, with an equal share of the bottleneck's rate and queue.
    pub fn share(&self, flow: usize) -> Point {
        let count = self.round_trips_s.len() as f64;
        let spans = self.spans.iter().map(|span| Span { rate: span.rate / count, ..*span }).collect();
        Point {
            rate: self.rate / count,
            spans,
            round_trips_s: vec![self.round_trips_s[flow]],
            buffer: self.buffer / count,
            ..self.clone()
        }
    }
}

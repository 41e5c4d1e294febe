//! One operating point: the bottleneck, the flows over it, and what of TCP is to be modelled.

use super::law::Growth;

/// Long-lived flows over one bottleneck. Lengths are in segments, times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Rate of the bottleneck, segments per second.
    pub rate: f64,
    /// Instead of the one rate and loss: spans in which both are constant, one after the other and then from the start again; empty if
    /// they never change. A rate of 0 is a link that is down.
    pub spans: Vec<Span>,
    /// Round trip of each flow without queueing, the service time of a segment included: one entry per flow.
    pub round_trips_s: Vec<f64>,
    /// Room of the queue, the segment in service not counted; infinite if it has no limit.
    pub buffer: f64,
    /// Probability that the channel loses a segment, from 0 to below 1; of spans, their mean.
    pub loss: f64,
    /// Segments that one acknowledgement stands for (b).
    pub segments_per_ack: f64,
    /// Whether windows grow by the segments acknowledged and not by the acknowledgements (RFC 3465).
    pub counts_bytes: bool,
    /// How windows grow in congestion avoidance.
    pub growth: Growth,
    /// Largest window; infinite if there is none.
    pub max_window: f64,
    /// How losses are repaired.
    pub repair: Repair,
    /// Duplicate acknowledgements that tell of a loss; 0 if a loss is known a round trip after it.
    pub duplicate_acks: f64,
    /// Whether the first two of them send new data (RFC 3042).
    pub limited_transmit: bool,
    /// Whether losses that a round trip cannot tell apart happen as they come; if not, a loss less than that after another
    /// waits until that one is repaired, which is how TGEP has it.
    pub multiple_losses: bool,
    /// Retransmission timeouts; none unless given.
    pub timeouts: Option<Timeouts>,
}

/// A rate and a loss that hold for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// How long, seconds; above 0.
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
    /// Round trips, at their present length.
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

/// What several losses in one window cost (Fall and Floyd 1996).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The window is halved for each; three, or two in a window below ten segments, wait for the timer.
    Reno,
    /// One halving, and a round trip for each; if that takes longer than the timer, a timeout.
    NewReno,
    /// One halving and one round trip.
    Sack,
    /// As `Sack`, and a retransmission that is lost is noticed too (RFC 8985).
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
    /// Flows of equal round trip with Reno's growth, which halve once per loss and never time out; what TGEP models.
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

    /// Segments for which a window grows as much as for one acknowledgement.
    pub(super) fn segments_per_increase(&self) -> f64 {
        if self.counts_bytes { 1.0 } else { self.segments_per_ack }
    }

    /// An equal share of the bottleneck, of its rate and its queue, for one of the flows.
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

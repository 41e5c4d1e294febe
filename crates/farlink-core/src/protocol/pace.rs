//! The largest load of a transport, known before a run, from which the work of the run is estimated.

/// Sizes and limits of one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Payload of a full packet, bytes.
    pub payload_bytes: f64,
    /// Size of a full packet on the wire, bytes.
    pub wire_bytes: f64,
    /// Its own sending rate on the wire, bit/s; infinite if it has none.
    pub rate_bps: f64,
    /// Largest payload in flight, bytes; infinite if there is no limit.
    pub window_bytes: f64,
    /// Whether it adapts to the path; if not, it sends at the rate of the application, or at its own.
    pub adapts: bool,
    /// Number of transmissions of each packet.
    pub copies: f64,
    /// Number of answers to a packet.
    pub answers: f64,
    /// Longest interval between its requests, seconds; infinite if it sends none.
    pub asks_every_s: f64,
}

impl Pace {
    /// The load of packets with this payload and these headers without other limits, each answered by one packet.
    pub(super) fn unbounded(payload_bytes: f64, header_bytes: f64) -> Self {
        Pace {
            payload_bytes,
            wire_bytes: payload_bytes + header_bytes,
            rate_bps: f64::INFINITY,
            window_bytes: f64::INFINITY,
            adapts: true,
            copies: 1.0,
            answers: 1.0,
            asks_every_s: f64::INFINITY,
        }
    }
}

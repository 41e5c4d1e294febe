//! The largest load of a transport, known before a run, from which the work of the run is estimated.

use super::TransportConfig;
use super::arq::Mode as ArqMode;
use super::tcp::CongestionControl;

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

impl TransportConfig {
    /// The largest load of one connection.
    pub fn pace(&self) -> Pace {
        let usual = |payload_bytes: f64, header_bytes: f64| Pace {
            payload_bytes,
            wire_bytes: payload_bytes + header_bytes,
            rate_bps: f64::INFINITY,
            window_bytes: f64::INFINITY,
            adapts: self.as_dyn().is_bounded(),
            copies: 1.0,
            answers: 1.0,
            asks_every_s: f64::INFINITY,
        };
        match self {
            TransportConfig::Tcp(tcp) => {
                let segment_bytes = tcp.segment_bytes.get();
                let window_bytes = tcp.most_in_flight_segments() as f64 * segment_bytes;
                let answers = if tcp.delayed_ack { 0.5 } else { 1.0 };
                Pace { window_bytes, answers, ..usual(segment_bytes, tcp.header_bytes.get()) }
            }
            TransportConfig::ScpsTp(scps) => {
                let own = scps.rate_bps.filter(|_| scps.congestion_control == CongestionControl::None);
                let segment_bytes = scps.segment_bytes.get();
                let every = scps.ack_every_segments.map_or(2.0, |segments| segments.get());
                Pace {
                    rate_bps: own.map_or(f64::INFINITY, |rate| rate.get()),
                    window_bytes: scps.max_window_segments.map_or(f64::INFINITY, |most| most.get() * segment_bytes),
                    adapts: own.is_none(),
                    copies: scps.copies.get(),
                    answers: 1.0 / every,
                    ..usual(segment_bytes, scps.header_bytes.get())
                }
            }
            TransportConfig::Stp(stp) => {
                let segment_bytes = stp.segment_bytes.get();
                Pace {
                    rate_bps: stp.rate_bps.map_or(f64::INFINITY, |rate| rate.get()),
                    window_bytes: stp.max_window_segments.map_or(f64::INFINITY, |most| most.get() * segment_bytes),
                    adapts: stp.rate_bps.is_none(),
                    answers: stp.poll_every_segments.map_or(0.1, |segments| 1.0 / segments.get()),
                    asks_every_s: stp.poll_interval_s.get(),
                    ..usual(segment_bytes, stp.header_bytes.get())
                }
            }
            TransportConfig::Udp(udp) => {
                Pace { answers: 0.0, ..usual(udp.segment_bytes.get(), udp.header_bytes.get()) }
            }
            TransportConfig::Arq(arq) => {
                let segment_bytes = arq.segment_bytes.get();
                let frames =
                    if arq.mode == ArqMode::StopAndWait { Some(1.0) } else { arq.window_frames.map(|most| most.get()) };
                Pace {
                    rate_bps: arq.rate_bps.map_or(f64::INFINITY, |rate| rate.get()),
                    window_bytes: frames.map_or(f64::INFINITY, |frames| frames * segment_bytes),
                    adapts: arq.rate_bps.is_none(),
                    ..usual(segment_bytes, arq.header_bytes.get())
                }
            }
            TransportConfig::Aerotp(aerotp) => {
                let wire_bytes = aerotp.packet_bytes.get();
                let answers = if aerotp.mode.is_acknowledged() { 0.5 } else { 0.0 };
                Pace {
                    wire_bytes,
                    rate_bps: aerotp.rate_bps.map_or(f64::INFINITY, |rate| rate.get()),
                    adapts: aerotp.mode.is_acknowledged() && aerotp.rate_bps.is_none(),
                    copies: aerotp.copies.get(),
                    answers,
                    ..usual((wire_bytes - aerotp.header_bytes.get() - 20.0).max(1.0), 0.0)
                }
            }
        }
    }
}

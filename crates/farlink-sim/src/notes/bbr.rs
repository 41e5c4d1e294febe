//! BBR settings with which it does little but measure.

use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::tcp::TcpConfig;

use super::legs::{Leg, digits, legs};
use super::{Point, Remark};

/// The largest margin: a probe sends 1.25 times the estimated bandwidth, so a larger margin keeps even the probe below that
/// bandwidth.
const LARGEST_MARGIN: f64 = 1.0 - 1.0 / 1.25;

/// A minimum round trip that is valid for less than a round trip, or hardly longer than its measurement takes.
pub(super) fn measures_all_the_time(point: Point<'_>) -> Vec<Remark> {
    let remark = |leg: &Leg<'_>| {
        let TransportConfig::Tcp(tcp) = leg.config else { return None };
        if !tcp.congestion_control.measures_rates() {
            return None;
        }
        let (window_s, probe_s) = times(tcp);
        let round_trip_s = leg.round_trip().as_secs_f64();
        let name = tcp.congestion_control.name();
        let (key, value_s, what) = if window_s < 2.0 * round_trip_s {
            let what = format!(
                "is below two of the path's round trips of {} s: {name} all but stops to measure again before it has its answer",
                digits(round_trip_s)
            );
            ("min_rtt_window_s", window_s, what)
        } else if probe_s > 0.5 * window_s {
            let what = format!(
                "is more than half of min_rtt_window_s = {window_s}: {name} all but stops to measure the round trip for most of \
                 the time"
            );
            ("probe_rtt_s", probe_s, what)
        } else if let Some(margin) = margin(tcp).filter(|&margin| margin > LARGEST_MARGIN) {
            let rest = format!(
                "= {margin} leaves less than the bandwidth measured even of the probe for more, which has 1.25 times that: each \
                 measurement finds less than the one before; give {LARGEST_MARGIN:.1} at most, 0.01 as {name} has it"
            );
            return Some(Remark::new(format!("transport.{}.bbr.pacing_margin", leg.transport), rest));
        } else {
            return None;
        };
        let remedy = if key == "probe_rtt_s" {
            "give 0.2, or a longer min_rtt_window_s".to_owned()
        } else {
            format!("give ten round trips, {}", digits(10.0 * round_trip_s))
        };
        Some(Remark::new(format!("transport.{}.bbr.{key}", leg.transport), format!("= {value_s} s {what}; {remedy}")))
    };
    legs(point).iter().filter_map(remark).collect()
}

/// How long a minimum round trip stays valid, and how long its measurement takes, in s.
fn times(tcp: &TcpConfig) -> (f64, f64) {
    let bbr = tcp.bbr.unwrap_or_default();
    (bbr.min_rtt_window_s.get(), bbr.probe_rtt_s.get())
}

/// The fraction by which it paces below the bandwidth.
fn margin(tcp: &TcpConfig) -> Option<f64> {
    tcp.bbr.map(|bbr| bbr.pacing_margin.get())
}

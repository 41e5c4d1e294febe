//! Growth and reduction of the window as in RFC 5681, which other congestion controls use too.

use crate::protocol::tcp::window::{Phase, Window, least};

/// Slow start below the threshold, congestion avoidance above it.
pub(super) fn grow(window: &mut Window, acked: u64) {
    if window.may_grow() {
        let increase = if window.cwnd < window.ssthresh { slow_start(window, acked) } else { avoidance(window, acked) };
        window.cwnd = least(window.cwnd + increase, window.cwnd_cap);
    }
}

/// Growth of the window in slow start, bytes.
#[inline]
pub(super) fn slow_start(window: &Window, acked: u64) -> f64 {
    //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
    //# cwnd += min (N, SMSS)
    // No further than the threshold, because congestion avoidance applies beyond it.
    least(least(most_counted(window), acked as f64), window.ssthresh - window.cwnd)
}

/// Largest number of bytes that one acknowledgement may add in slow start.
#[inline]
fn most_counted(window: &Window) -> f64 {
    //= https://www.rfc-editor.org/rfc/rfc3465#section-2.2
    //# an initial value of L=2*SMSS
    //= https://www.rfc-editor.org/rfc/rfc3465#section-2.3
    //# during slow start phases that follow an RTO [...] a TCP implementation [...] MUST use L=1*SMSS
    if window.counts_bytes && window.phase != Phase::Loss { 2.0 * window.mss_f64() } else { window.mss_f64() }
}

/// Growth of the window in congestion avoidance, bytes.
#[inline]
pub(super) fn avoidance(window: &Window, acked: u64) -> f64 {
    //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
    //# cwnd += SMSS*SMSS/cwnd
    let mss = window.mss_f64();
    if !window.counts_bytes {
        return mss * mss / window.cwnd;
    }
    //= https://www.rfc-editor.org/rfc/rfc3465#section-2.1
    //# cwnd is incremented by one full-sized segment [...] when bytes_acked becomes greater than or equal to the value of the
    //# congestion window
    // The acknowledged share of the window, at most all of it: one segment per window, without rounding.
    mss * least(acked as f64 / window.cwnd, 1.0)
}

/// The threshold after a loss, bytes.
pub(super) fn half(window: &Window, flight: u64) -> f64 {
    //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
    //# ssthresh = max (FlightSize / 2, 2*SMSS)
    (flight as f64 / 2.0).max(2.0 * window.mss_f64())
}

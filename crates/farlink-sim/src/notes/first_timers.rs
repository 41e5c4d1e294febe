//! Timers that expire before the first data can be answered. The opening packet was sent again, so its answer gave no round-trip
//! sample.

use farlink_core::Time;
use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::parts::rto::RtoConfig;
use farlink_core::protocol::stp::RateControl;
use farlink_core::protocol::tcp::{CongestionControl, Variant};

use super::legs::{Leg, digits, legs};
use super::{Point, Remark};

/// A window that shrinks because the timer of its first data expires without a loss.
pub(super) fn before_the_first_answer(point: Point<'_>) -> Vec<Remark> {
    let remark = |leg: &Leg<'_>| {
        let first = First::of(leg.config)?;
        let round_trip = leg.round_trip();
        // Timers that never become long enough have a remark by another rule.
        if leg.config.as_dyn().longest_timeout()?.ever <= round_trip {
            return None;
        }
        let of_data = first.of_data(round_trip)?;
        (of_data <= round_trip).then(|| {
            let initial = first.rto.initial_s.get();
            let again = if first.opens { format!(", and what follows, {} s, too", of_data.as_secs_f64()) } else { String::new() };
            let seconds = round_trip.as_secs_f64();
            let rest = format!(
                "= {initial} s is below the path's round trip of {} s{again}: the timer of the first data expires before an answer \
                 can be there, and the window grows by hardly more than a packet in a round trip from then on; give {}, and \
                 maximum_s no less",
                digits(seconds),
                digits(1.5 * seconds),
            );
            Remark::new(format!("transport.{}.rto.initial_s", leg.transport), rest)
        })
    };
    legs(point).iter().filter_map(remark).collect()
}

/// The start of a connection with a congestion window.
struct First {
    rto: RtoConfig,
    /// Whether it begins with a handshake.
    opens: bool,
    /// Least timeout after a lost SYN (RFC 6298, section 5.7).
    after_syn: Option<Time>,
}

impl First {
    /// `None` where an early timeout does little harm: without a window, if spurious timeouts are detected, or if the window
    /// follows the rate at which data arrives.
    fn of(config: &TransportConfig) -> Option<Self> {
        let after_syn = Some(Time::from_secs(3));
        match config {
            TransportConfig::Tcp(tcp) => {
                let finds_out = tcp.timestamps || tcp.f_rto.unwrap_or(tcp.variant == Variant::Rack);
                let shrinks = !finds_out && shrinks(tcp.congestion_control);
                shrinks.then_some(First { rto: tcp.rto, opens: tcp.handshake, after_syn })
            }
            TransportConfig::ScpsTp(scps) => {
                let finds_out = scps.timestamps || scps.variant == Variant::Rack;
                let shrinks = !finds_out && shrinks(scps.congestion_control);
                shrinks.then_some(First { rto: scps.rto, opens: scps.handshake, after_syn })
            }
            TransportConfig::Stp(stp) => (stp.congestion == RateControl::Tcp).then_some(First {
                rto: stp.rto,
                opens: stp.handshake,
                after_syn: None,
            }),
            _ => None,
        }
    }

    /// The timeout of the first data, unless the answer to the opening packet gave a round-trip sample.
    fn of_data(&self, round_trip: Time) -> Option<Time> {
        let most = Time::from_secs_f64(self.rto.most_s());
        let initial = self.rto.initial_s.time().min(most);
        if !self.opens {
            return Some(initial);
        }
        if initial > round_trip {
            return None;
        }
        // The timeout doubles with each expiry.
        let (mut wait, mut expires) = (initial, initial);
        while expires <= round_trip && wait < most {
            wait = wait.times(2).min(most);
            expires += wait;
        }
        Some(match self.after_syn {
            Some(least) if initial < least => least.min(most),
            _ => wait,
        })
    }
}

/// Whether a timeout leaves a window of a packet and a threshold of two.
fn shrinks(control: CongestionControl) -> bool {
    control != CongestionControl::None && !control.measures_rates()
}

//! Packets that consist mostly of headers.

use farlink_core::protocol::TransportConfig;
use farlink_core::scenario::TrafficKind;

use super::legs::{Leg, digits, legs};
use super::{Point, Remark};

/// A share of data in a packet below this gives a remark.
const LEAST_SHARE: f64 = 0.3;

/// Packets that are mostly headers, in flows with enough data for larger ones.
pub(super) fn mostly_headers(point: Point<'_>) -> Vec<Remark> {
    let remark = |leg: &Leg<'_>| {
        let (key, data, all) = match (leg.config, &leg.flow.traffic) {
            // An application such as a call may need small messages.
            (_, TrafficKind::Cbr(_)) => return None,
            (TransportConfig::Udp(udp), _) => {
                let data = udp.segment_bytes.get();
                ("segment_bytes", data, data + udp.header_bytes.get())
            }
            (config, _) => {
                let flight = config.as_dyn().flight()?;
                ("segment_bytes", flight.payload_bytes as f64, flight.packet_bytes as f64)
            }
        };
        let share = data / all;
        (share < LEAST_SHARE).then(|| {
            let rest = format!(
                "= {data} leaves {} % of each packet of {all} bytes to data: the rest are headers; give some hundred bytes \
                 more, unless bit errors ask for short packets",
                digits(100.0 * share),
            );
            Remark::new(format!("transport.{}.{key}", leg.transport), rest)
        })
    };
    legs(point).iter().filter_map(remark).collect()
}

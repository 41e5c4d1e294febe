//! Lines that are limited by their serial ports.

use super::legs::rate;
use super::{Point, Remark};

/// Serial ports that are slower than their line, in either direction.
pub(super) fn slow_ports(point: Point<'_>) -> Vec<Remark> {
    let mut all = Vec::new();
    for hop in &point.setup.forward {
        let lines = hop.bundle.iter().flat_map(|bundle| &bundle.lines);
        let slow = lines.filter_map(|line| {
            let serial_bps = line.serial_bps?.get();
            let line_bps = line.rate.get().max(line.return_rate.get());
            (serial_bps < line_bps).then_some((serial_bps, line_bps))
        });
        if let Some((serial_bps, line_bps)) = slow.min_by(|one, other| one.0.total_cmp(&other.0)) {
            let rest = format!(
                "= {serial_bps} is below the {} of its line, which is never full: modems are given less than they can send; give \
                 more than the line carries, {line_bps} or more",
                rate(line_bps),
            );
            all.push(Remark::new(format!("{}.bundle.serial_bps", point.table(hop)), rest));
        }
    }
    all
}

//! Satellites that set before a run is over.

use farlink_core::link::setting::{DelayKind, DelaySetting};
use farlink_core::{Time, scenario::Direction};

use super::legs::digits;
use super::{Point, Remark};

/// A pass that ends before the run does, without another satellite afterwards.
pub(super) fn over_before_the_end(Point { scenario, setup }: Point<'_>) -> Vec<Remark> {
    if setup.duration == Time::NEVER {
        return Vec::new();
    }
    let remark = |table: String, way: Direction<'_>| {
        let DelaySetting::Varying(DelayKind::Pass(pass)) = way.delay else { return None };
        let ends_at = pass.passes().ok()?.ends_at();
        (ends_at < setup.duration).then(|| {
            let rest = format!(
                "ends {} s after the start of a run of {} s, when the satellite is below {} degrees: the link is down from then on; \
                 give revisit_s or handover_s for the next satellite, or a duration_s no longer than the pass",
                digits(ends_at.as_secs_f64()),
                setup.duration.as_secs_f64(),
                digits(pass.lowest_deg()),
            );
            Remark::new(format!("{table}.delay_s"), rest)
        })
    };
    let mut all = Vec::new();
    for (name, hop) in scenario.hops() {
        let table = scenario.table_of(name);
        all.extend(remark(table.clone(), hop.forward()));
        all.extend(hop.back.delay_s.as_ref().and_then(|_| remark(format!("{table}.return"), hop.back())));
    }
    all
}

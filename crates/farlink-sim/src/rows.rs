//! Converts the results of flows to rows of quantities.

use farlink_core::Time;
use farlink_core::hop::{HopSetup, PathCounts, PathsSetup};
use farlink_core::scenario::quantity::QUANTITIES;

use crate::engine::{BundleResult, DelaySum, FlowResult, FlowSetup, Histogram, RunResult, Setup};
use crate::layout::Layout;
use crate::verdict::{Verdict, verdict};

/// The results of one flow, or of several together, in one run; the layout says which flows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Whether it reached its end.
    pub(crate) verdict: Verdict,
    /// In the order of [`QUANTITIES`]; NaN where unknown.
    pub(crate) values: Vec<f64>,
}

/// The rows of one run, according to the layout of its grid point.
pub(crate) fn rows(layout: &Layout, setup: &Setup, run: &RunResult) -> Vec<Row> {
    let figures = PathFigures::new(setup, run);
    let mut flows: Vec<Vec<&FlowResult>> = vec![Vec::new(); layout.rows.len()];
    for flow in &run.flows {
        flows[layout.row_of(flow.spec, flow.number)].push(flow);
    }
    flows[layout.all()] = run.flows.iter().collect();
    let specs = setup.flows.iter().enumerate().flat_map(|(index, spec)| {
        let end = setup.flows.get(index + 1).map_or(layout.all(), |_| layout.row_of(index + 1, 0));
        std::iter::repeat_n(Some(spec), end - layout.row_of(index, 0))
    });
    let of_rows = layout.rows.iter().zip(&flows).zip(specs.chain([None]));
    let mut rows: Vec<Row> =
        of_rows.map(|((of, flows), spec)| row(of.is_single, flows, &figures, (spec, setup), run)).collect();
    let verdicts = layout.rows.iter().zip(&rows).map(|(of, row)| (of.flow.as_str(), &row.verdict));
    rows[layout.all()].verdict = Verdict::worst(verdicts);
    rows.extend(setup.paths().zip(&run.over_paths).map(|((_, path), counts)| of_path(path, counts, &figures)));
    rows
}

/// The capacity of the path, and its use.
struct PathFigures<'a> {
    run: &'a RunResult,
    /// NaN if a queue does not track its length.
    peak_queue_bytes: f64,
    measured_s: f64,
    warmup: Time,
    bundles: Option<BundleResult>,
    /// Lines of the first bundle.
    lines: usize,
}

impl<'a> PathFigures<'a> {
    fn new(setup: &Setup, run: &'a RunResult) -> Self {
        PathFigures {
            run,
            peak_queue_bytes: run.peak_queue_bytes.unwrap_or(f64::NAN),
            measured_s: run.end.since(setup.warmup).as_secs_f64(),
            warmup: setup.warmup,
            bundles: run.bundles,
            lines: setup.forward.iter().find_map(lines_of).unwrap_or(0),
        }
    }
}

/// How many lines or paths the bundle of a hop has.
fn lines_of(hop: &HopSetup) -> Option<usize> {
    let of_paths = || hop.paths.as_ref().map(|paths| paths.members.len());
    hop.bundle.as_ref().map(|bundle| bundle.lines.len()).or_else(of_paths)
}

impl PathFigures<'_> {
    /// The mean rate of the slowest hop forward from one time to another, bit/s.
    fn slowest_bps(&self, from: Time, to: Time) -> f64 {
        self.run.forward.iter().map(|hop| hop.mean_bps(from, to)).fold(f64::INFINITY, f64::min)
    }
}

/// The row of a path of a bundle of paths: what it carried forward, and of the return direction its load.
fn of_path((paths, at): (&PathsSetup, usize), [there, back]: &[PathCounts; 2], path: &PathFigures<'_>) -> Row {
    let ratio = |over: f64, under: f64| if under > 0.0 { over / under } else { f64::NAN };
    let [rate_bps, back_bps] = [0, 1].map(|end| paths.members[at].links[end].rate.mean_bps());
    let goodput_bps = ratio(there.data_bytes as f64 * 8.0, path.measured_s);
    let value = |name: &str| match name {
        "goodput_bps" => goodput_bps,
        "goodput_fraction" => at_most_one(ratio(goodput_bps, rate_bps)),
        "delivered_bytes" => there.data_bytes as f64,
        "sent_bytes" => there.sent_bytes as f64,
        "overhead_bytes" => (there.sent_bytes - there.sent_data_bytes) as f64,
        "back_channel_fraction" => at_most_one(ratio(ratio(back.sent_bytes as f64 * 8.0, path.measured_s), back_bps)),
        "arrival_delay_mean_s" => ratio(there.delay_s, there.arrived as f64),
        "delivered_packets" => there.arrived as f64,
        "loss_fraction" => ratio((there.lost + there.dropped) as f64, there.sent as f64),
        "duration_s" => path.measured_s,
        "lines_up_fraction" => at_most_one(ratio(there.up_s, path.measured_s)),
        "call_drops" => there.failures as f64,
        _ => f64::NAN,
    };
    Row { verdict: Verdict::Ok, values: QUANTITIES.iter().map(|quantity| value(quantity.name)).collect() }
}

/// A quantity of bundles.
fn of_bundles(name: &str, bundles: &BundleResult, path: &PathFigures<'_>) -> f64 {
    let BundleResult { availability, out_of_order, requeued } = bundles;
    match name {
        "all_lines_up_fraction" => at_most_one(availability.all_s / path.measured_s),
        "any_line_up_fraction" => at_most_one(availability.any_s / path.measured_s),
        "lines_up_fraction" => at_most_one(availability.lines_s / path.measured_s / path.lines as f64),
        "call_drops" => availability.drops as f64,
        "out_of_order_fragments" => *out_of_order as f64,
        "requeued_packets" => *requeued as f64,
        _ => f64::NAN,
    }
}

fn row(
    is_single: bool,
    flows: &[&FlowResult],
    path: &PathFigures<'_>,
    (spec, setup): (Option<&FlowSetup>, &Setup),
    run: &RunResult,
) -> Row {
    let sum = |count: fn(&FlowResult) -> u64| flows.iter().map(|flow| count(flow)).sum::<u64>() as f64;
    let most = |size: fn(&FlowResult) -> u64| flows.iter().map(|flow| size(flow)).max().unwrap_or(0) as f64;
    let ratio = |over: f64, under: f64| if under > 0.0 { over / under } else { f64::NAN };

    // One flow is measured over its own time, several over the run's time. This is the same in all runs, regardless of random
    // numbers.
    let only = flows.first().filter(|_| is_single);
    let from = only.map_or(path.warmup, |only| only.start.max(path.warmup));
    let measured = only.map_or(run.end.since(path.warmup), |only| only.measured);
    let duration_s = measured.as_secs_f64();
    // Acknowledgements still arrive, and are counted, after the last byte was delivered.
    let answered_s = run.back_end.since(from).as_secs_f64();
    let delivered = sum(|flow| flow.delivered_bytes);
    let sent = sum(|flow| flow.sent_bytes);
    let retransmitted = sum(|flow| flow.retransmitted_bytes);
    let goodput_bps = ratio(delivered * 8.0, duration_s);
    let delay = merged(flows, |flow| &flow.delay);
    let arrival_delay = merged(flows, |flow| &flow.arrival_delay);
    let histogram = merged_histogram(flows);
    let quantile = |q: f64| histogram.as_ref().and_then(|histogram| histogram.quantile(q)).unwrap_or(f64::NAN);
    let transfer_times: Vec<f64> = flows
        .iter()
        .filter(|flow| flow.is_finite)
        .filter_map(|flow| flow.finished.filter(|&finished| finished >= path.warmup).map(|at| at.since(flow.start)))
        .map(Time::as_secs_f64)
        .collect();
    let has_transfers = spec.map_or_else(|| setup.flows.iter().any(FlowSetup::has_transfers), FlowSetup::has_transfers);

    let value = |name: &str| match name {
        "goodput_bps" => goodput_bps,
        // After a warm-up, data may be delivered that passed this hop before: after a gap is closed, or from a later queue.
        "goodput_fraction" => at_most_one(goodput_bps / path.slowest_bps(from, from + measured)),
        "delivered_bytes" => delivered,
        "delivered_packets" => sum(|flow| flow.delivered_packets),
        "sent_bytes" => sent,
        "overhead_bytes" => sum(|flow| flow.overhead_bytes) + retransmitted,
        "retransmitted_bytes" => retransmitted,
        "skipped_bytes" => sum(|flow| flow.skipped_bytes),
        "discarded_bytes" => sum(|flow| flow.discarded_bytes),
        "lost_in_custody_bytes" => sum(|flow| flow.lost_in_custody_bytes),
        "peak_custody_bytes" => most(|flow| flow.peak_custody_bytes),
        "back_channel_fraction" => {
            let carried_bps = ratio(sum(|flow| flow.carried_back_bytes) * 8.0, answered_s);
            at_most_one(carried_bps / run.back.mean_bps(from, run.back_end))
        }
        "arrival_delay_mean_s" => arrival_delay.mean().unwrap_or(f64::NAN),
        "delay_mean_s" => delay.mean().unwrap_or(f64::NAN),
        "delay_p50_s" => quantile(0.5),
        "delay_p99_s" => quantile(0.99),
        "loss_fraction" => ratio(sum(|flow| flow.lost_packets), sum(|flow| flow.sent_packets)),
        "mended_fraction" => ratio(sum(|flow| flow.mended_packets), sum(|flow| flow.sent_packets)),
        "marked_fraction" => ratio(sum(|flow| flow.marked_packets), sum(|flow| flow.sent_packets)),
        "timeouts" => sum(|flow| flow.timeouts),
        "duration_s" => duration_s,
        "peak_reorder_bytes" => most(|flow| flow.peak_reorder_bytes),
        "peak_send_buffer_bytes" => most(|flow| flow.peak_send_buffer_bytes),
        "transfer_time_mean_s" => ratio(transfer_times.iter().sum(), transfer_times.len() as f64),
        "transfers_done" if has_transfers => transfer_times.len() as f64,
        "peak_queue_bytes" if spec.is_none() => path.peak_queue_bytes,
        _ if spec.is_none() => path.bundles.map_or(f64::NAN, |bundles| of_bundles(name, &bundles, path)),
        _ => f64::NAN,
    };
    Row {
        verdict: spec.map_or(Verdict::Ok, |spec| verdict(setup, spec, flows, run)),
        values: QUANTITIES.iter().map(|quantity| value(quantity.name)).collect(),
    }
}

/// A share without rounding errors above 1; NaN stays the same.
fn at_most_one(share: f64) -> f64 {
    if share > 1.0 { 1.0 } else { share }
}

fn merged(flows: &[&FlowResult], of: fn(&FlowResult) -> &DelaySum) -> DelaySum {
    let mut sum = DelaySum::default();
    flows.iter().for_each(|flow| sum.merge(of(flow)));
    sum
}

fn merged_histogram(flows: &[&FlowResult]) -> Option<Histogram> {
    let mut known = flows.iter().filter_map(|flow| flow.histogram.as_ref());
    let mut sum = known.next()?.clone();
    known.for_each(|histogram| sum.merge(histogram));
    Some(sum)
}

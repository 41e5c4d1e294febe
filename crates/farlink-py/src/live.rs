//! The flows of a scenario for real.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Mutex;

use farlink_core::Time;
use farlink_core::emulator::{check_playable, classes_of};
use farlink_core::scenario::{expand, from_json};
use farlink_net::emulate::{Classes, Settings, Tunnel, Watch};
use farlink_net::live::{EndPlace, LiveError, Machine, Plan, Row, Run, play};
use farlink_sim::{Options, played_path};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::BoundaryError;
use crate::net::raised;
use crate::waits::lock;

/// Bytes of packets that each way holds.
const MOST_BYTES: u64 = 1 << 30;
/// Before a packet is due the emulator looks at the clock instead of sleeping, for so long.
const SPIN: std::time::Duration = std::time::Duration::from_micros(50);

/// One run of a point, ready to be played once: open the tunnel, then play on a thread of its own.
#[pyclass(frozen, module = "farlink._core")]
pub(crate) struct LiveRun {
    plan: Plan,
    settings: Settings,
    classes: usize,
    watch: Watch,
    line: Mutex<Option<Tunnel>>,
    /// Messages to the user.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Whether the kernel's TCP sends timestamps.
    #[pyo3(get)]
    timestamps: bool,
    /// The rate of the slowest hop forward, bit/s.
    #[pyo3(get)]
    slowest_bps: f64,
    /// How long it takes, s.
    #[pyo3(get)]
    duration_s: f64,
}

/// Lays out the flows of a grid point and prepares its path.
#[pyfunction]
pub(crate) fn prepare_live(
    py: Python<'_>,
    scenario_json: &str,
    point: usize,
    run: u64,
) -> Result<LiveRun, BoundaryError> {
    py.detach(|| {
        let expanded = expand(&from_json(scenario_json)?)?;
        let scenario = &expanded.points[point].scenario;
        check_playable(scenario)?;
        let plan = Plan::of(scenario)?;
        let (path, notes) = played_path(
            &expanded,
            point,
            Some(Time::from_secs_f64(plan.duration.as_secs_f64())),
            &Options::default(),
            &|_, _| std::ops::ControlFlow::Continue(()),
        )?;
        let slowest_bps = path.forward.iter().map(|hop| hop.most_bps()).fold(f64::MAX, f64::min);
        let settings =
            Settings { path, seed: scenario.seed.whole(), run, duration: None, most_bytes: MOST_BYTES, spin: SPIN };
        Ok(LiveRun {
            timestamps: plan.timestamps,
            duration_s: plan.duration.as_secs_f64(),
            plan,
            settings,
            classes: classes_of(scenario),
            watch: Watch::default(),
            line: Mutex::default(),
            notes,
            slowest_bps,
        })
    })
}

#[pymethods]
impl LiveRun {
    /// Opens a tunnel between two new devices, and returns their names.
    fn tunnel(&self) -> PyResult<(String, String)> {
        let tunnel = Tunnel::open(None, Classes::by_number(self.classes));
        let tunnel = tunnel.map_err(|error| raised(&error.to_string(), 2))?;
        let [near, far] = tunnel.names()?;
        *lock(&self.line) = Some(tunnel);
        Ok((near, far))
    }

    /// Plays the flows between two ends, each the file of its namespace and its address, on this thread; returns rows and faults as JSON.
    fn play(&self, py: Python<'_>, near: (PathBuf, String), far: (PathBuf, String)) -> PyResult<String> {
        let tunnel = lock(&self.line).take();
        let mut tunnel = tunnel.ok_or_else(|| raised("there is no tunnel; open one first", 2))?;
        let machine = Machine { near: end(near)?, far: end(far)? };
        let run = py.detach(|| play(&self.plan, &machine, &self.settings, &mut tunnel, &self.watch));
        // Devices stay until they were asked what nobody has read.
        *lock(&self.line) = Some(tunnel);
        run.map(|run| to_json(&run).to_string()).map_err(from_live)
    }

    /// Gives back the devices.
    fn close(&self) {
        *lock(&self.line) = None;
    }

    /// Ends the run, from any thread.
    fn stop(&self) {
        self.watch.stop();
    }
}

fn end((namespace, address): (PathBuf, String)) -> PyResult<EndPlace> {
    let address: IpAddr =
        address.parse().map_err(|_| raised(&format!("{address:?} is no address; give an IP address"), 2))?;
    Ok(EndPlace { namespace: Some(namespace), address })
}

fn from_live(error: LiveError) -> PyErr {
    let exit_code = if matches!(error, LiveError::Emulate(_)) { 1 } else { 2 };
    raised(&error.to_string(), exit_code)
}

fn to_json(run: &Run) -> Value {
    let [forward, back] = &run.report.ways;
    json!({
        "rows": run.rows.iter().map(row_to_json).collect::<Vec<_>>(),
        "faults": run.report.faults(),
        "late_p99_s": [forward.p99_s(), back.p99_s()],
        "late_max_s": [forward.lateness.max.as_secs_f64(), back.lateness.max.as_secs_f64()],
    })
}

fn row_to_json(row: &Row) -> Value {
    json!({
        "flow": row.flow,
        "transport": row.transport,
        "status": if row.is_done { "ok" } else { "unfinished" },
        "reason": row.reason,
        "delivered_bytes": row.delivered_bytes,
        "sent_bytes": row.sent_bytes,
        "retransmitted_bytes": row.retransmitted_bytes,
        "arrival_delay_mean_s": row.arrival_delay_mean_s,
        "delay_mean_s": row.delay_mean_s,
        "delay_p50_s": row.delay_p50_s,
        "delay_p99_s": row.delay_p99_s,
        "loss_fraction": row.loss_fraction,
        "marked_fraction": row.marked_fraction,
        "duration_s": row.duration_s,
        "transfer_time_mean_s": row.transfer_time_s,
    })
}

//! The path of a scenario in real time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use farlink_core::Time;
use farlink_core::emulator::classes_of;
use farlink_core::scenario::{expand, from_json};
#[cfg(target_os = "linux")]
use farlink_net::emulate::{Classes, Tunnel};
use farlink_net::emulate::{EmulateError, Line, Relay, RelaySettings, Report, Settings, Watch, WayReport, run};
use farlink_sim::{Options, played_path};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::BoundaryError;
use crate::net::{address, raised};
use crate::waits::lock;
use crate::watch::watched;

/// A path that is ready to be played, once: open a line, then run it on a thread of its own, while others look at it.
#[pyclass(frozen, module = "farlink._core")]
pub(crate) struct Emulation {
    settings: Settings,
    #[cfg(target_os = "linux")]
    classes: usize,
    watch: Arc<Watch>,
    line: Mutex<Option<Opened>>,
    /// Messages to the user.
    #[pyo3(get)]
    notes: Vec<String>,
}

enum Opened {
    Relay(Box<Relay>),
    #[cfg(target_os = "linux")]
    Tunnel(Tunnel),
}

/// Prepares the path of a grid point: reads its traces and collects the error events of its codings.
#[pyfunction]
#[pyo3(signature = (scenario_json, point, run, *, duration_s=None, most_bytes=1 << 30, spin_s=50e-6, threads=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn prepare_emulation(
    py: Python<'_>,
    scenario_json: &str,
    point: usize,
    run: u64,
    duration_s: Option<f64>,
    most_bytes: u64,
    spin_s: f64,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Emulation, BoundaryError> {
    let expanded = py.detach(|| expand(&from_json(scenario_json)?))?;
    let options = Options { threads, ..Options::default() };
    let (path, notes) = watched(py, progress, |progress| {
        played_path(&expanded, point, duration_s.map(Time::from_secs_f64), &options, progress)
    })??;
    let scenario = &expanded.points[point].scenario;
    let seconds = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| raised(&format!("{seconds} s is no duration; give seconds, 0 or more"), 2))
    };
    Ok(Emulation {
        settings: Settings {
            path,
            seed: scenario.seed.whole(),
            run,
            duration: duration_s.map(seconds).transpose()?,
            most_bytes,
            spin: seconds(spin_s)?,
        },
        #[cfg(target_os = "linux")]
        classes: classes_of(scenario),
        watch: Arc::default(),
        line: Mutex::default(),
        notes,
    })
}

#[pymethods]
impl Emulation {
    /// Opens a relay of UDP; returns the address for clients.
    fn relay(&self, listen: &str, to: &str, delivers_damaged: bool) -> PyResult<String> {
        let settings = RelaySettings { listen: address(listen)?, to: address(to)?, delivers_damaged };
        let relay = Relay::new(settings).map_err(from_emulator)?;
        let own = relay.local_addr()?.to_string();
        *lock(&self.line) = Some(Opened::Relay(Box::new(relay)));
        Ok(own)
    }

    /// Opens a tunnel between TUN devices: those of two names, or new ones. `classes` has pairs of a DSCP and its class. Returns the names.
    #[cfg(target_os = "linux")]
    #[pyo3(signature = (names, classes))]
    fn tunnel(&self, names: Option<(String, String)>, classes: Vec<(u8, u8)>) -> PyResult<(String, String)> {
        let mut map = Classes::by_number(self.classes);
        for (dscp, class) in classes {
            if dscp > 63 || usize::from(class) >= self.classes {
                let text = format!(
                    "DSCP {dscp} cannot be class {class}; give a DSCP from 0 to 63 and a class from 0 to {}",
                    self.classes - 1
                );
                return Err(raised(&text, 2));
            }
            map.set(dscp, class);
        }
        let names = names.as_ref().map(|(near, far)| [near.as_str(), far.as_str()]);
        let tunnel = Tunnel::open(names, map).map_err(from_emulator)?;
        let [near, far] = tunnel.names()?;
        *lock(&self.line) = Some(Opened::Tunnel(tunnel));
        Ok((near, far))
    }

    /// Plays the path on this thread until its end, or until it is stopped; returns the report as JSON.
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        let opened = lock(&self.line).take();
        let mut opened = opened.ok_or_else(|| raised("there is no line; open a relay or a tunnel first", 2))?;
        let report = py.detach(|| match &mut opened {
            Opened::Relay(relay) => self.play(&mut **relay),
            #[cfg(target_os = "linux")]
            Opened::Tunnel(tunnel) => self.play(tunnel),
        });
        // Devices stay until nobody looks at them any more.
        *lock(&self.line) = Some(opened);
        report.map(|report| to_json(&report).to_string()).map_err(from_emulator)
    }

    /// Ends the run, from any thread.
    fn stop(&self) {
        self.watch.stop();
    }

    /// The report so far, as JSON.
    fn latest(&self, py: Python<'_>) -> String {
        py.detach(|| to_json(&self.watch.latest()).to_string())
    }
}

impl Emulation {
    fn play<L: Line>(&self, line: &mut L) -> Result<Report, EmulateError> {
        run(&self.settings, line, &self.watch)
    }
}

fn from_emulator(error: EmulateError) -> PyErr {
    let exit_code = if matches!(error, EmulateError::Device { .. } | EmulateError::Wait(_)) { 1 } else { 2 };
    raised(&error.to_string(), exit_code)
}

fn to_json(report: &Report) -> Value {
    let [forward, back] = report.ways.each_ref().map(way_to_json);
    json!({
        "started_unix_s": report.started.as_secs_f64(),
        "elapsed_s": report.elapsed.as_secs_f64(),
        "faults": report.faults(),
        "clients": report.clients,
        "forward": forward,
        "return": back,
    })
}

fn way_to_json(way: &WayReport) -> Value {
    let counts = &way.counts;
    let late = |q| way.lateness.all.quantile(q);
    json!({
        "in_packets": counts.in_packets,
        "in_bytes": counts.in_bytes,
        "out_packets": counts.out_packets,
        "out_bytes": counts.out_bytes,
        "dropped": counts.dropped,
        "lost": counts.lost,
        "ruined": counts.ruined,
        "damaged": counts.damaged,
        "marked": counts.marked,
        "refused": counts.refused,
        "untaken": way.untaken,
        "held_bytes": way.held_bytes,
        "is_up": way.is_up,
        "delay_mean_s": counts.mean_delay_s(),
        "delay_p50_s": counts.delays.quantile(0.5),
        "delay_p99_s": counts.delays.quantile(0.99),
        "late_p50_s": late(0.5),
        "late_p99_s": late(0.99),
        "late_max_s": (way.lateness.all.count() > 0).then(|| way.lateness.max.as_secs_f64()),
        "late_allowed_s": way.allowed().as_secs_f64(),
    })
}

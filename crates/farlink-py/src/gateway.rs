//! Gateways: run until a signal, and what they would do.

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use farlink_net::gateway::{self, Config, Control, Destination, Event, GatewayError, NoDestination};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::net::raised;

/// Interval at which Python is asked for signals.
const INTERVAL: Duration = Duration::from_millis(100);
/// Threads that carry connections; more would wait for the one that drives the socket.
const THREADS: usize = 4;

fn from_gateway(error: &GatewayError) -> PyErr {
    raised(&error.to_string(), error.exit_code())
}

fn runtime() -> PyResult<Runtime> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    runtime.map_err(|error| raised(&format!("the runtime cannot start: {error}; close other programs"), 2))
}

/// Runs a gateway until SIGTERM or Ctrl-C, after which it drains, or a second one of these; SIGHUP reloads its configuration.
/// `tell` is called with events as JSON.
#[pyfunction]
pub(crate) fn run_gateway(py: Python<'_>, config: PathBuf, tell: Py<PyAny>) -> PyResult<()> {
    let runtime = runtime()?;
    let (control, told) = unbounded_channel();
    let failure: Mutex<Option<PyErr>> = Mutex::new(None);
    let watcher = thread::current();
    let ended = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let ended = runtime.block_on(async {
                // Before anybody is told that the gateway runs: an unheard SIGHUP would end it.
                let hangups = signal(SignalKind::hangup());
                let reloading = hangups.map(|hangups| tokio::spawn(reload_on(hangups, control.clone())));
                let ended = gateway::run(&config, told, |event| {
                    let event = event_to_json(&event);
                    if let Err(error) = Python::attach(|py| tell.call1(py, (event,)).map(drop)) {
                        failure.lock().expect("nothing panics").get_or_insert(error);
                        let _ = control.send(Control::Stop);
                    }
                });
                let ended = ended.await;
                if let Ok(reloading) = reloading {
                    reloading.abort();
                }
                ended
            });
            watcher.unpark();
            ended
        });
        let mut is_draining = false;
        while !worker.is_finished() {
            py.detach(|| thread::park_timeout(INTERVAL));
            if let Err(error) = py.check_signals() {
                let is_interrupt = error.is_instance_of::<PyKeyboardInterrupt>(py);
                if !is_interrupt {
                    failure.lock().expect("nothing panics").get_or_insert(error);
                }
                let _ = control.send(if is_draining || !is_interrupt { Control::Stop } else { Control::Drain });
                is_draining = true;
            }
        }
        py.detach(|| worker.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    // Streams that are left are reset.
    py.detach(|| runtime.shutdown_timeout(Duration::from_secs(2)));
    match failure.into_inner().expect("nothing panics") {
        Some(error) => Err(error),
        None => ended.map_err(|error| from_gateway(&error)),
    }
}

async fn reload_on(mut hangups: Signal, control: UnboundedSender<Control>) {
    while hangups.recv().await.is_some() {
        if control.send(Control::Reload).is_err() {
            return;
        }
    }
}

fn event_to_json(event: &Event) -> String {
    let event = match event {
        Event::Listening { sessions, clients, metrics } => json!({
            "kind": "listening",
            "sessions": sessions.to_string(),
            "clients": clients.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "metrics": metrics.map(|at| at.to_string()),
        }),
        Event::Reloaded => json!({"kind": "reloaded"}),
        Event::NotReloaded(error) => json!({"kind": "not-reloaded", "reason": error.to_string()}),
        Event::Draining => json!({"kind": "draining"}),
    };
    event.to_string()
}

/// Checks a configuration; says in lines what it does, and what would happen to a connection to `destination`.
#[pyfunction]
#[pyo3(signature = (config, destination=None))]
pub(crate) fn check_gateway(py: Python<'_>, config: PathBuf, destination: Option<&str>) -> PyResult<Vec<String>> {
    let destination = destination.map(str::parse::<Destination>).transpose();
    let destination = destination.map_err(|error: NoDestination| raised(&error.to_string(), 2))?;
    let config = py.detach(|| Config::read(&config)).map_err(|error| from_gateway(&error))?;
    let Some(destination) = destination else { return Ok(config.lines()) };
    let runtime = runtime()?;
    let verdict = py.detach(|| runtime.block_on(gateway::check(&config, &destination)));
    Ok(verdict.lines(&config, &destination))
}

//! Bundles of IP paths: run until a signal, what they would do, and the helper process of one.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use farlink_net::bundle::{Bundle, BundleError, Config, Control, Event};
use farlink_net::privileged;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::net::raised;

/// Interval at which Python is asked for signals.
const INTERVAL: Duration = Duration::from_millis(100);

fn from_bundle(error: &BundleError) -> PyErr {
    raised(&error.to_string(), error.exit_code())
}

/// Runs bundles, one for each configuration, until SIGTERM or Ctrl-C, or until one of them has ended; SIGHUP makes them read their
/// configurations again. `helper` is the command of a process that calls `serve_bundle_helper`; `tell` is called with events as JSON. This
/// thread has no capability afterwards.
#[pyfunction]
#[pyo3(signature = (configs, helper, tell, capture=None))]
pub(crate) fn run_ip_bundles(
    py: Python<'_>,
    configs: Vec<PathBuf>,
    helper: Vec<String>,
    tell: Py<PyAny>,
    capture: Option<PathBuf>,
) -> PyResult<()> {
    let command = command_of(&helper)?;
    let bundles = py.detach(|| {
        let configs = configs.iter().map(|config| Config::read(config)).collect::<Result<Vec<_>, _>>()?;
        Bundle::prepare_all(configs, command, capture.as_deref())
    });
    let bundles = bundles.map_err(|error| from_bundle(&error))?;
    let ended = until_signal(py, tell, move |runtime, mut stopped, tell| {
        let has_peers = bundles.len() > 1;
        let (say, mut said) = unbounded_channel::<(Option<String>, Event)>();
        let (mut controls, mut threads) = (Vec::new(), Vec::new());
        // A thread for each peer: the kernel divides the processor among them, whatever one of them has to do.
        for bundle in bundles {
            let (control, told) = unbounded_channel();
            controls.push(control);
            let (say, peer) = (say.clone(), has_peers.then(|| bundle.peer().to_owned()));
            threads.push(thread::spawn(move || {
                let runtime = Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(bundle.run(told, |event| drop(say.send((peer.clone(), event)))))
            }));
        }
        drop(say);
        let to_all = |what: Control| controls.iter().for_each(|control| control.send(what).unwrap_or(()));
        runtime.block_on(async {
            let mut hangups = signal(SignalKind::hangup()).ok();
            let mut look = tokio::time::interval(INTERVAL);
            loop {
                tokio::select! {
                    event = said.recv() => match event {
                        Some((peer, event)) => tell(event_to_json(peer.as_deref(), &event)),
                        None => break,
                    },
                    _ = stopped.recv() => to_all(Control::Stop),
                    () = hangup(hangups.as_mut()) => to_all(Control::Reload),
                    // The supervisor of the process starts all of them again.
                    _ = look.tick() => if threads.iter().any(thread::JoinHandle::is_finished) { to_all(Control::Stop) },
                }
            }
        });
        let ends = threads.into_iter().map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ends.collect::<Vec<Result<(), BundleError>>>().into_iter().collect()
    })?;
    ended.map_err(|error: BundleError| from_bundle(&error))
}

async fn hangup(hangups: Option<&mut Signal>) {
    match hangups {
        Some(hangups) => drop(hangups.recv().await),
        None => std::future::pending().await,
    }
}

/// The command of a helper process.
pub(crate) fn command_of(helper: &[String]) -> PyResult<Command> {
    let [program, arguments @ ..] = helper else {
        return Err(raised("the helper has no command; give one", 2));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Runs a bundle in a thread of its own until it has ended, or a signal tells it to. `tell` is called with events as JSON.
pub(crate) fn until_signal<E: Send>(
    py: Python<'_>,
    tell: Py<PyAny>,
    run: impl FnOnce(Runtime, UnboundedReceiver<()>, &mut dyn FnMut(String)) -> Result<(), E> + Send,
) -> PyResult<Result<(), E>> {
    // Threads that begin now have no capability either.
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| raised(&format!("the runtime cannot start: {error}; close other programs"), 2))?;
    let (stop, stopped) = unbounded_channel();
    let failure: Mutex<Option<PyErr>> = Mutex::new(None);
    let watcher = thread::current();
    let ended = thread::scope(|scope| {
        let (failure, stop_now) = (&failure, stop.clone());
        let worker = scope.spawn(move || {
            let ended = run(runtime, stopped, &mut |event| {
                if let Err(error) = Python::attach(|py| tell.call1(py, (event,)).map(drop)) {
                    failure.lock().expect("nothing panics").get_or_insert(error);
                    let _ = stop_now.send(());
                }
            });
            watcher.unpark();
            ended
        });
        while !worker.is_finished() {
            py.detach(|| thread::park_timeout(INTERVAL));
            if let Err(error) = py.check_signals() {
                if !error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    failure.lock().expect("nothing panics").get_or_insert(error);
                }
                let _ = stop.send(());
            }
        }
        py.detach(|| worker.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match failure.into_inner().expect("nothing panics") {
        Some(error) => Err(error),
        None => Ok(ended),
    }
}

fn event_to_json(peer: Option<&str>, event: &Event) -> String {
    json!({"peer": peer, "kind": event.kind, "path": event.path, "text": event.text}).to_string()
}

/// Checks configurations, and whether they can be together; says in lines what they do.
#[pyfunction]
pub(crate) fn check_ip_bundles(py: Python<'_>, configs: Vec<PathBuf>) -> PyResult<Vec<String>> {
    let lines = py.detach(|| {
        let configs = configs.iter().map(|config| Config::read(config)).collect::<Result<Vec<_>, _>>()?;
        farlink_net::bundle::check_together(&configs)?;
        Ok(configs.iter().flat_map(Config::lines).collect())
    });
    lines.map_err(|error: BundleError| from_bundle(&error))
}

/// The helper process of a bundle: does what is asked for over standard input, until its other end is gone.
#[pyfunction]
pub(crate) fn serve_bundle_helper(py: Python<'_>) -> PyResult<()> {
    py.detach(privileged::serve).map_err(|error| raised(&error.to_string(), 1))
}

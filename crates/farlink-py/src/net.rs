//! Keys of a host, and files from one host to another.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use farlink_core::BitRate;
use farlink_net::files::{Progress, ReceiveOptions, SendOptions, SpecialFiles, Summary};
use farlink_net::seal::{NoKey, PresharedKey, PublicKey};
use farlink_net::state::{StateError, StateFolder};
use farlink_net::transfer::{self, ReceiveSettings, Received, SendSettings, TransferError};
use farlink_net::{Insecure, PathSettings};
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::tell::{call, until_failure};
use crate::watch::watched;

create_exception!(
    farlink._core,
    NetError,
    PyRuntimeError,
    "Nothing can be transferred: `message` says why, `remedy` what to do, `exit_code` is 1 if the network failed and 2 otherwise."
);

/// How often Ctrl-C and the progress are looked after.
const INTERVAL: Duration = Duration::from_millis(100);

/// Texts of errors have what is wrong, "; " and what to do.
pub(crate) fn raised(text: &str, exit_code: u8) -> PyErr {
    let (message, remedy) =
        text.rsplit_once("; ").unwrap_or((text, "see farlink send --help and farlink receive --help"));
    Python::attach(|py| {
        let raised = NetError::new_err(message.to_owned());
        let value = raised.value(py);
        let set = value
            .setattr("message", message)
            .and_then(|()| value.setattr("remedy", remedy))
            .and_then(|()| value.setattr("exit_code", exit_code));
        set.map_or_else(|failure| failure, |()| raised)
    })
}

fn from_state(error: StateError) -> PyErr {
    raised(&error.to_string(), 2)
}

pub(crate) fn from_transfer(error: &TransferError) -> PyErr {
    raised(&error.to_string(), error.exit_code())
}

pub(crate) fn folder(path: Option<PathBuf>) -> PyResult<StateFolder> {
    path.map_or_else(StateFolder::usual, |path| Ok(StateFolder::new(path))).map_err(from_state)
}

pub(crate) fn key(text: &str) -> PyResult<PublicKey> {
    text.parse().map_err(|error: NoKey| raised(&format!("{text:?}: {error}"), 2))
}

fn shared(text: Option<&str>) -> PyResult<PresharedKey> {
    // Its text is never shown.
    text.map_or_else(|| Ok(PresharedKey::default()), str::parse)
        .map_err(|error: NoKey| raised(&format!("the pre-shared key: {error}"), 2))
}

pub(crate) fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse()
        .map_err(|_| raised(&format!("{text:?} is no address with a port; write for example 127.0.0.1:47470"), 2))
}

pub(crate) fn path_settings(
    rate_bps: Option<f64>,
    psk: Option<&str>,
    packet_bytes: u16,
    damaged_links: bool,
    insecure: Option<&str>,
) -> PyResult<PathSettings> {
    let rate = rate_bps.map(BitRate::new).transpose();
    let rate = rate.map_err(|error| raised(&format!("the rate: {error}; give it in bit/s, for example 10e6"), 2))?;
    let insecure = match insecure {
        None => Insecure::No,
        Some("loopback") => Insecure::Loopback,
        Some("anywhere") => Insecure::Anywhere,
        Some(other) => {
            return Err(raised(&format!("insecure is {other:?}; it is None, \"loopback\" or \"anywhere\""), 2));
        }
    };
    Ok(PathSettings { rate, shared: shared(psk)?, packet_bytes, damaged_links, insecure })
}

pub(crate) fn patience(patience_s: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(patience_s)
        .map_err(|_| raised(&format!("a patience of {patience_s} s cannot be; give seconds, 0 or more"), 2))
}

/// Makes the key of this host and returns the public one.
#[pyfunction]
#[pyo3(signature = (keys=None))]
pub(crate) fn generate_key(keys: Option<PathBuf>) -> PyResult<String> {
    folder(keys)?.generate_key().map(|key| key.public().to_string()).map_err(from_state)
}

/// The public key of this host.
#[pyfunction]
#[pyo3(signature = (keys=None))]
pub(crate) fn public_key(keys: Option<PathBuf>) -> PyResult<String> {
    folder(keys)?.key().map(|key| key.public().to_string()).map_err(from_state)
}

/// Names and public keys of the trusted hosts.
#[pyfunction]
#[pyo3(signature = (keys=None))]
pub(crate) fn trusted_hosts(keys: Option<PathBuf>) -> PyResult<Vec<(String, String)>> {
    let trusted = folder(keys)?.trusted().map_err(from_state)?;
    Ok(trusted.iter().map(|(key, name)| (name.to_owned(), key.to_string())).collect())
}

/// Trusts a host.
#[pyfunction]
#[pyo3(signature = (public_key, name, keys=None))]
pub(crate) fn trust_host(public_key: &str, name: &str, keys: Option<PathBuf>) -> PyResult<()> {
    let folder = folder(keys)?;
    let mut trusted = folder.trusted().map_err(from_state)?;
    trusted.add(key(public_key)?, name).map_err(|what| raised(&format!("{what}; farlink trust lists the hosts"), 2))?;
    folder.keep_trusted(&trusted).map_err(from_state)
}

/// Trusts a host no more; whether it was trusted.
#[pyfunction]
#[pyo3(signature = (name, keys=None))]
pub(crate) fn distrust_host(name: &str, keys: Option<PathBuf>) -> PyResult<bool> {
    let folder = folder(keys)?;
    let mut trusted = folder.trusted().map_err(from_state)?;
    let Some(key) = trusted.key(name) else { return Ok(false) };
    trusted.remove(&key);
    folder.keep_trusted(&trusted).map_err(from_state)?;
    Ok(true)
}

/// Sends files; returns the summary as JSON.
#[pyfunction]
#[pyo3(signature = (paths, peer, to, *, keys=None, psk=None, rate_bps=None, packet_bytes=1500, damaged_links=false, insecure=None, refuse_special=false, patience_s=60.0, progress=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn send_files(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    peer: &str,
    to: &str,
    keys: Option<PathBuf>,
    psk: Option<&str>,
    rate_bps: Option<f64>,
    packet_bytes: u16,
    damaged_links: bool,
    insecure: Option<&str>,
    refuse_special: bool,
    patience_s: f64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let folder = folder(keys)?;
    let settings = SendSettings {
        peer: key(peer)?,
        address: address(to)?,
        path: path_settings(rate_bps, psk, packet_bytes, damaged_links, insecure)?,
        options: SendOptions { special: if refuse_special { SpecialFiles::Refuse } else { SpecialFiles::Skip } },
        patience: patience(patience_s)?,
    };
    let summary = watched(py, progress, |report| {
        let now = Mutex::new((0, 0));
        let sent = transfer::send(&folder, &paths, &settings, |progress: Progress| {
            *now.lock().expect("nothing panics") = (progress.done_bytes, progress.total_bytes);
        });
        until_interrupted(sent, || {
            let (done, total) = *now.lock().expect("nothing panics");
            report(done, total)
        })
    })?;
    summary.map(|summary| summary_to_json(&summary).to_string())
}

/// Receives files until it is interrupted, or after one complete transfer. `tell` is called with events as JSON.
#[pyfunction]
#[pyo3(signature = (directory, listen, tell, *, keys=None, psk=None, packet_bytes=1500, damaged_links=false, insecure=None, overwrite=false, by_host=false, once=false, patience_s=300.0))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn receive_files(
    py: Python<'_>,
    directory: PathBuf,
    listen: &str,
    tell: Py<PyAny>,
    keys: Option<PathBuf>,
    psk: Option<&str>,
    packet_bytes: u16,
    damaged_links: bool,
    insecure: Option<&str>,
    overwrite: bool,
    by_host: bool,
    once: bool,
    patience_s: f64,
) -> PyResult<()> {
    let folder = folder(keys)?;
    let settings = ReceiveSettings {
        listen: address(listen)?,
        path: path_settings(None, psk, packet_bytes, damaged_links, insecure)?,
        options: ReceiveOptions { overwrite, ..ReceiveOptions::default() },
        by_host,
        once,
        patience: patience(patience_s)?,
    };
    let failure: Mutex<Option<PyErr>> = Mutex::new(None);
    let received = watched(py, None, |report| {
        let received = transfer::receive(&folder, &directory, &settings, |event| {
            call(Some(&tell), event_to_json(&event).to_string(), &failure);
        });
        until_interrupted(received, || until_failure(&failure, || report(0, 0)))
    })?;
    match failure.into_inner().expect("nothing panics") {
        Some(error) => Err(error),
        None => received,
    }
}

/// Runs a transfer on a runtime of its own until it ends or `report` asks it to stop. What is fsynced stays.
fn until_interrupted<T>(
    transfer: impl Future<Output = Result<T, TransferError>>,
    report: impl Fn() -> ControlFlow<()>,
) -> PyResult<T> {
    run_until_interrupted(transfer, report)?.map_err(|error| from_transfer(&error))
}

/// As [`until_interrupted`], with the result as it is.
pub(crate) fn run_until_interrupted<T>(
    transfer: impl Future<Output = T>,
    report: impl Fn() -> ControlFlow<()>,
) -> PyResult<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| raised(&format!("the runtime cannot start: {error}; close other programs"), 2))?;
    let interrupted = async {
        while report().is_continue() {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    let done = runtime.block_on(async {
        tokio::select! {
            done = transfer => Some(done),
            () = interrupted => None,
        }
    });
    // A file operation under way is finished, so that its state is kept.
    runtime.shutdown_timeout(Duration::from_secs(5));
    done.ok_or_else(|| PyKeyboardInterrupt::new_err(()))
}

fn summary_to_json(summary: &Summary) -> Value {
    let failed = summary.failed.first.iter().map(|it| json!({"path": it.path.to_string_lossy(), "reason": it.reason}));
    let left_out = summary.left_out.first.iter().map(|it| json!({"path": it.path.to_string_lossy(), "what": it.what}));
    json!({
        "placed": summary.placed,
        "already_there": summary.already_there,
        "carried_bytes": summary.carried_bytes,
        "resumed_bytes": summary.resumed_bytes,
        "failed_count": summary.failed.count,
        "failed": failed.collect::<Vec<_>>(),
        "left_out_count": summary.left_out.count,
        "left_out": left_out.collect::<Vec<_>>(),
    })
}

fn event_to_json(event: &Received) -> Value {
    match event {
        Received::Listening(address) => json!({"kind": "listening", "address": address.to_string()}),
        Received::Progress(host, progress) => json!({
            "kind": "progress",
            "host": &**host,
            "file": progress.file.to_string_lossy(),
            "done_bytes": progress.done_bytes,
            "total_bytes": progress.total_bytes,
        }),
        Received::Ended(host, Ok(summary)) => {
            json!({"kind": "done", "host": &**host, "summary": summary_to_json(summary)})
        }
        Received::Ended(host, Err(error)) => {
            json!({"kind": "failed", "host": &**host, "reason": error.to_string(), "exit_code": error.exit_code()})
        }
    }
}

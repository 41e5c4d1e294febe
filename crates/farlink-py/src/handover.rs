//! Streams handed to the custody of gateways, and received from there.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use farlink_net::handover::{self, HandoverError, ReceiveSettings, Received, SendSettings, Sending, Target};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::net::{address, folder, key, path_settings, patience, raised, run_until_interrupted};
use crate::tell::{call, until_failure};
use crate::watch::watched;

fn from_handover(error: &HandoverError) -> PyErr {
    raised(&error.to_string(), error.exit_code())
}

/// A file with its length, or standard input.
fn input(path: Option<&Path>) -> PyResult<(Box<dyn Read + Send>, u64)> {
    let Some(path) = path else { return Ok((Box::new(io::stdin()), 0)) };
    let opened = File::open(path).and_then(|file| {
        let about = file.metadata()?;
        match about.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => Ok((file, about.len())),
        }
    });
    let (file, bytes) = opened.map_err(|error| {
        let text = format!("{}: it cannot be read: {error}; give a file, or - for standard input", path.display());
        raised(&text, 2)
    })?;
    Ok((Box::new(file), bytes))
}

/// Hands a file, or standard input, to the custody of a gateway; returns a summary as JSON. `begun` is called with the number of the stream.
#[pyfunction]
#[pyo3(signature = (source, gateway, to, sink, *, stream=None, keys=None, psk=None, rate_bps=None, packet_bytes=1500, damaged_links=false, insecure=None, patience_s=300.0, begun=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn send_stream(
    py: Python<'_>,
    source: Option<PathBuf>,
    gateway: &str,
    to: &str,
    sink: &str,
    stream: Option<&str>,
    keys: Option<PathBuf>,
    psk: Option<&str>,
    rate_bps: Option<f64>,
    packet_bytes: u16,
    damaged_links: bool,
    insecure: Option<&str>,
    patience_s: f64,
    begun: Option<Py<PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let folder = folder(keys)?;
    let number = |text: &str| {
        let number = text.parse().ok().filter(|_| text.len() == 32);
        number.ok_or_else(|| raised(&format!("{text:?} is no number of a stream; give its 32 hexadecimal digits"), 2))
    };
    let settings = SendSettings {
        gateway: key(gateway)?,
        address: address(to)?,
        sink: sink.parse().map_err(|error| raised(&format!("{sink:?}: {error}"), 2))?,
        stream: stream.map(number).transpose()?,
        path: path_settings(rate_bps, psk, packet_bytes, damaged_links, insecure)?,
        patience: patience(patience_s)?,
    };
    let (input, total) = input(source.as_deref())?;
    let failure: Mutex<Option<PyErr>> = Mutex::new(None);
    let sent = watched(py, progress, |report| {
        let now = Mutex::new(0);
        let sent = handover::send(&folder, input, &settings, |event| match event {
            Sending::Begun(stream) => call(begun.as_ref(), stream.to_string(), &failure),
            Sending::Kept(bytes) => *now.lock().expect("nothing panics") = bytes,
        });
        run_until_interrupted(sent, || until_failure(&failure, || report(*now.lock().expect("nothing panics"), total)))
    })?;
    if let Some(error) = failure.into_inner().expect("nothing panics") {
        return Err(error);
    }
    let sent = sent?.map_err(|error| from_handover(&error))?;
    Ok(json!({"stream": sent.stream.to_string(), "bytes": sent.bytes}).to_string())
}

/// Receives streams until it is interrupted, or after one; without a folder the first one goes to standard output. `tell` is called with events
/// as JSON.
#[pyfunction]
#[pyo3(signature = (directory, listen, tell, *, keys=None, psk=None, packet_bytes=1500, damaged_links=false, insecure=None, once=false, patience_s=300.0))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn receive_streams(
    py: Python<'_>,
    directory: Option<PathBuf>,
    listen: &str,
    tell: Py<PyAny>,
    keys: Option<PathBuf>,
    psk: Option<&str>,
    packet_bytes: u16,
    damaged_links: bool,
    insecure: Option<&str>,
    once: bool,
    patience_s: f64,
) -> PyResult<()> {
    let folder = folder(keys)?;
    let settings = ReceiveSettings {
        listen: address(listen)?,
        path: path_settings(None, psk, packet_bytes, damaged_links, insecure)?,
        once,
        patience: patience(patience_s)?,
    };
    let target = directory.map_or_else(|| Target::Pipe(Box::new(io::stdout())), Target::Folder);
    let failure: Mutex<Option<PyErr>> = Mutex::new(None);
    let received = watched(py, None, |report| {
        let received = handover::receive(&folder, target, &settings, |event| {
            call(Some(&tell), event_to_json(&event).to_string(), &failure);
        });
        run_until_interrupted(received, || until_failure(&failure, || report(0, 0)))
    })?;
    match failure.into_inner().expect("nothing panics") {
        Some(error) => Err(error),
        None => received?.map_err(|error| from_handover(&error)),
    }
}

fn event_to_json(event: &Received) -> Value {
    match event {
        Received::Listening(address) => json!({"kind": "listening", "address": address.to_string()}),
        Received::Begun(stream, sink, bytes) => {
            json!({"kind": "begun", "stream": stream.to_string(), "sink": sink.as_str(), "bytes": bytes})
        }
        Received::Kept(stream, bytes) => json!({"kind": "kept", "stream": stream.to_string(), "bytes": bytes}),
        Received::Waits(stream, why) => {
            json!({"kind": "waits", "stream": stream.to_string(), "reason": why.to_string()})
        }
        Received::Ended(stream, Ok(outcome)) => json!({
            "kind": "done",
            "stream": stream.to_string(),
            "sink": outcome.label.as_str(),
            "host": outcome.from,
            "bytes": outcome.bytes,
            "lost_bytes": outcome.lost,
            "path": outcome.path.as_ref().map(|path| path.to_string_lossy()),
        }),
        Received::Ended(stream, Err(error)) => {
            json!({"kind": "failed", "stream": stream.to_string(), "reason": error.to_string(), "exit_code": error.exit_code()})
        }
    }
}

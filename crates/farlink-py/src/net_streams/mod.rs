//! Streams of bytes between hosts, for asyncio.
//!
//! A wait that asyncio cancels may have ended just before: if data were its result, they would be lost. So no wait has a result. Attempts
//! (`try_read` and so on) return at once, and waits (`until_readable`) only tell when another attempt is worthwhile.

mod connection;
mod listener;

use std::time::Duration;

use farlink_net::streams::StreamSettings;
use pyo3::prelude::*;
use tokio::sync::watch;

use crate::net::{path_settings, patience};

pub(crate) use connection::{NetConnection, connect_stream};
pub(crate) use listener::{NetListener, listen_for_streams};

/// The ends of connections and their last acknowledgements are waited for this long.
const LAST_WORDS: Duration = Duration::from_secs(10);

async fn until(is_so: &watch::Sender<bool>) {
    // The sender is there, so the only end is that it is so.
    let _ = is_so.subscribe().wait_for(|&it| it).await;
}

fn settings(
    port: u16,
    psk: Option<&str>,
    rate_bps: Option<f64>,
    packet_bytes: u16,
    damaged_links: bool,
    insecure: Option<&str>,
    patience_s: f64,
) -> PyResult<StreamSettings> {
    let path = path_settings(rate_bps, psk, packet_bytes, damaged_links, insecure)?;
    Ok(StreamSettings { port, path, patience: patience(patience_s)? })
}

//! What the network tells while it works, on stderr.

use pyo3::prelude::*;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::net::raised;

/// From now on tells on stderr what `filter` lets through: a level, or levels of parts. A second call changes nothing.
#[pyfunction]
pub(crate) fn show_log(filter: &str) -> PyResult<()> {
    let targets: Targets = filter.parse().map_err(|_| {
        let what = format!("{filter:?} is no level of a log");
        raised(&format!("{what}; give error, warn, info, debug or trace, or a part's level, as farlink_net=debug"), 2)
    })?;
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(targets);
    // It fails only if there is one already.
    let _ = tracing_subscriber::registry().with(layer).try_init();
    Ok(())
}

//! What the network tells while it works, on stderr.

use pyo3::prelude::*;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::net::raised;

/// From now on tells on stderr what `filter` lets through: a level, or levels of parts. A second call changes nothing.
#[pyfunction]
pub(crate) fn show_log(filter: &str) -> PyResult<()> {
    // A name without a level would be taken for a part that tells everything.
    let is_level = |part: &str| part.contains('=') || part.parse::<LevelFilter>().is_ok();
    let targets = filter.parse::<Targets>().ok().filter(|_| filter.split(',').all(is_level)).ok_or_else(|| {
        let what = format!("{filter:?} is no level of a log");
        raised(&format!("{what}; give error, warn, info, debug or trace, or a part's level, as farlink_net=debug"), 2)
    })?;
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(targets);
    // It fails only if there is one already.
    let _ = tracing_subscriber::registry().with(layer).try_init();
    Ok(())
}

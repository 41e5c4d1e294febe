//! The log of the network part, on stderr.

use pyo3::prelude::*;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::net::raised;

/// From now on tells on stderr what `filter` lets through: a level, or levels of parts; in lines of JSON if `as_json`. A second call
/// changes nothing.
#[pyfunction]
#[pyo3(signature = (filter, as_json=false))]
pub(crate) fn show_log(filter: &str, as_json: bool) -> PyResult<()> {
    // A name without a level would be taken for a part that tells everything.
    let is_level = |part: &str| part.contains('=') || part.parse::<LevelFilter>().is_ok();
    let targets = filter.parse::<Targets>().ok().filter(|_| filter.split(',').all(is_level)).ok_or_else(|| {
        let what = format!("{filter:?} is no level of a log");
        raised(&format!("{what}; give error, warn, info, debug or trace, or a part's level, as farlink_net=debug"), 2)
    })?;
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let layer = if as_json { layer.json().boxed() } else { layer.boxed() };
    // It fails only if there is one already.
    let _ = tracing_subscriber::registry().with(layer.with_filter(targets)).try_init();
    Ok(())
}

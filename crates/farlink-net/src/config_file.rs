//! Configurations: TOML files of a bounded length, and what is wrong with one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// A fault of a configuration. The text has the fault and the remedy, with "; " between.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}; {remedy}", path.display())]
pub struct ConfigFault {
    /// The file.
    pub path: PathBuf,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

impl ConfigFault {
    pub(crate) fn new(path: &Path, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        ConfigFault { path: path.to_owned(), what: what.into(), remedy: remedy.into() }
    }
}

/// The text of a file of at most `most_bytes` bytes.
pub(crate) fn read(path: &Path, most_bytes: u64) -> Result<String, ConfigFault> {
    let wrong = |what: String| ConfigFault::new(path, what, "give the path of a TOML file");
    let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
    if path.metadata().map_err(unreadable)?.len() > most_bytes {
        return Err(wrong(format!("has more than {most_bytes} bytes")));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// An address at which something is served that only this machine may read.
pub(crate) fn loopback(path: &Path, key: &str, at: Option<SocketAddr>) -> Result<Option<SocketAddr>, ConfigFault> {
    match at.filter(|at| !at.ip().is_loopback()) {
        None => Ok(at),
        Some(at) => {
            let what = format!("{key}: other machines reach {at}");
            Err(ConfigFault::new(path, what, format!("serve them at 127.0.0.1:{}", at.port())))
        }
    }
}

/// The tables of a file. `guide` is the page with an example of all keys.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, text: &str, guide: &str) -> Result<T, ConfigFault> {
    toml::from_str(text).map_err(|error| {
        let (what, remedy) = in_words(text, &error);
        ConfigFault::new(path, what, remedy.unwrap_or_else(|| format!("{guide} has an example with all keys")))
    })
}

/// The fault of its line, and the remedy if one is known.
fn in_words(text: &str, error: &toml::de::Error) -> (String, Option<String>) {
    let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    let message = error.message().replace('\n', " ");
    let (message, own_remedy) = match message.rsplit_once("; ") {
        Some((what, remedy)) => (what.to_owned(), Some(remedy.to_owned())),
        None => (message, None),
    };
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let near = quoted.split_first().filter(|_| message.starts_with("unknown")).and_then(|(given, known)| {
        let near = known.iter().map(|name| (strsim::jaro_winkler(given, name), name));
        near.filter(|(likeness, _)| *likeness > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| *name)
    });
    (format!("line {line}: {message}"), own_remedy.or_else(|| near.map(|near| format!("did you mean `{near}`?"))))
}

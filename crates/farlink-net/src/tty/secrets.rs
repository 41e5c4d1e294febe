//! Secrets of this end and of its peers, in a file that nobody else may read.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use farlink_core::ppp::{Credentials, Identities, Proof, Secret};
use serde::Deserialize;

use super::TtyError;

/// Of names and secrets: what PAP's and CHAP's packets have room for.
const LONGEST_NAME: usize = 255;

/// Content of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerKeys {
    /// The secret that proves this end.
    own: Option<String>,
    /// Secrets of peers, by name.
    #[serde(default)]
    peer: BTreeMap<String, String>,
}

impl PeerKeys {
    /// Errors show no secret.
    fn load(path: &Path) -> Result<Self, TtyError> {
        let failed =
            |error| TtyError::config(path, format!("cannot be read: {error}"), "give the file with own and [peer]");
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let what = format!("may be read by others than its owner (mode {mode:o})");
            return Err(TtyError::config(path, what, format!("chmod 600 {}", path.display())));
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        // The message of the parser alone: it would show the line otherwise.
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let remedy = "give own = \"SECRET\" and a table [peer] with NAME = \"SECRET\" for each peer";
            TtyError::config(path, error.message().replace('\n', " "), remedy)
        })
    }
}

/// Identities of both ends: this one by its name, others by the file of secrets. `config` is the file that names both.
pub(super) fn identities(
    config: &Path,
    name: &str,
    secrets: Option<&Path>,
    demands: Vec<Proof>,
    shows_password: bool,
) -> Result<Identities, TtyError> {
    check_length(config, "name", name)?;
    let Some(path) = secrets else {
        if demands.is_empty() {
            return Ok(Identities::default());
        }
        let what = "require: a peer that has to prove itself needs a secret, and there is no file `secrets`";
        return Err(TtyError::config(config, what, "give `secrets`, or require = [] to let anybody join"));
    };
    let keys = PeerKeys::load(path)?;
    if keys.peer.is_empty() && !demands.is_empty() {
        let what = "a peer has to prove itself, and no peer is known";
        return Err(TtyError::config(path, what, "give a table [peer] with NAME = \"SECRET\", or require = []"));
    }
    let credentials = |name: &str, secret: &str| {
        check_length(path, "a name", name)?;
        check_length(path, "a secret", secret)?;
        Ok::<_, TtyError>(Credentials { name: name.into(), secret: Secret::new(secret) })
    };
    Ok(Identities {
        own: keys.own.as_deref().map(|secret| credentials(name, secret)).transpose()?,
        peers: keys.peer.iter().map(|(name, secret)| credentials(name, secret)).collect::<Result<_, _>>()?,
        demands,
        shows_password,
    })
}

fn check_length(path: &Path, what: &str, text: &str) -> Result<(), TtyError> {
    if (1..=LONGEST_NAME).contains(&text.len()) {
        return Ok(());
    }
    let what = format!("{what} has {} bytes", text.len());
    Err(TtyError::config(path, what, format!("give one of 1 to {LONGEST_NAME} bytes")))
}

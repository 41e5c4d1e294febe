//! The file with the private key, as WireGuard has it: 32 bytes in base64.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use zeroize::Zeroizing;

use crate::seal::StaticKey;

use super::StateError;
use super::whole_file::sync_folder;

/// A key is shorter; a longer file is none.
const MOST_BYTES: u64 = 1024;

/// Keeps a new key in a new file.
pub(super) fn generate(path: &Path) -> Result<StaticKey, StateError> {
    let opened = File::options().write(true).create_new(true).mode(0o600).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let what = "there is a key already, which is the name of this host for its peers";
            StateError::new(path, what, "keep it, or move it away first")
        }
        _ => StateError::unwritable(path, &error),
    })?;
    let key = StaticKey::generate();
    let text = Zeroizing::new(format!("{}\n", key.to_private_text().as_str()));
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| sync_folder(path));
    if let Err(error) = written {
        let _ = std::fs::remove_file(path);
        return Err(StateError::unwritable(path, &error));
    }
    Ok(key)
}

pub(super) fn read(path: &Path) -> Result<StaticKey, StateError> {
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => StateError::new(path, "there is no key", "make one with \"farlink keygen\""),
        _ => StateError::unreadable(path, &error),
    };
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        let what = format!("others can read the private key (mode {:o})", mode & 0o777);
        return Err(StateError::new(path, what, "chmod 600 it, or make another key if others may have read it"));
    }
    let mut text = Zeroizing::new(String::new());
    let read = file.take(MOST_BYTES).read_to_string(&mut text);
    read.map_err(|_| StateError::new(path, "this is no key", "make one with \"farlink keygen\""))?;
    StaticKey::parse(&text).map_err(|_| StateError::new(path, "this is no key", "make one with \"farlink keygen\""))
}

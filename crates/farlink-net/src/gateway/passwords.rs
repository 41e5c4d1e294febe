//! Names and passwords of clients, in a file that only its owner can read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::error::GatewayError;

/// Users of a listener, each with a password.
#[derive(Clone, PartialEq)]
pub struct Passwords(BTreeMap<String, Zeroizing<String>>);

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Passwords of {} clients", self.0.len())
    }
}

/// Longest name and password that SOCKS5 carries (RFC 1929).
const LONGEST: usize = 255;

impl Passwords {
    /// Reads a file with a line `NAME:PASSWORD` for each client.
    pub(super) fn read(path: &Path) -> Result<Self, GatewayError> {
        let text = read_secret(path)?;
        let mut known = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            // The line is never shown.
            let wrong = |what: &str| {
                let what = format!("line {}: {what}", number + 1);
                GatewayError::config(path, what, "write NAME:PASSWORD, each of 1 to 255 bytes")
            };
            let (name, password) = line.split_once(':').ok_or_else(|| wrong("there is no colon"))?;
            if ![name, password].iter().all(|it| (1..=LONGEST).contains(&it.len())) {
                return Err(wrong("name or password is empty or too long"));
            }
            if known.insert(name.to_owned(), Zeroizing::new(password.to_owned())).is_some() {
                return Err(wrong("the name is there twice"));
            }
        }
        if known.is_empty() {
            return Err(GatewayError::config(
                path,
                "there are no passwords",
                "write a line NAME:PASSWORD for each client",
            ));
        }
        Ok(Passwords(known))
    }

    /// Whether this is the password of this client. Takes as long for each name.
    pub(super) fn has(&self, name: &str, password: &str) -> bool {
        self.0.iter().fold(false, |found, (known, secret)| {
            let is_it = known.as_bytes().ct_eq(name.as_bytes()) & secret.as_bytes().ct_eq(password.as_bytes());
            found | bool::from(is_it)
        })
    }
}

const MOST_BYTES: u64 = 1 << 20;

/// Reads a file that others than its owner must not read.
pub(crate) fn read_secret(path: &Path) -> Result<Zeroizing<String>, GatewayError> {
    let unreadable = |error: std::io::Error| {
        GatewayError::config(path, format!("cannot be read: {error}"), "check the path and the permissions")
    };
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        let what = format!("others can read the secrets (mode {:o})", mode & 0o777);
        return Err(GatewayError::config(path, what, "chmod 600 it, and change them if others may have read them"));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(MOST_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

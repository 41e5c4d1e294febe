//! Whom a host trusts.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::seal::PublicKey;

use super::{StateError, whole_file};

/// The trusted hosts and their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trusted(BTreeMap<PublicKey, String>);

impl Trusted {
    /// Trusts a host. Its name is for people, and for the folder of its files.
    ///
    /// # Errors
    /// Says what is wrong with the name: it has 1 to 64 letters, digits, `-`, `_` and `.`, does not begin with a dot, and is no other
    /// host's.
    pub fn add(&mut self, key: PublicKey, name: &str) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(is_plain) {
            let rule = "a name has 1 to 64 letters, digits, \"-\", \"_\" and \".\", and does not begin with a dot";
            return Err(format!("the name {name:?} cannot be used: {rule}"));
        }
        let is_other = |(other, known): (&PublicKey, &String)| *other != key && known.eq_ignore_ascii_case(name);
        if self.0.iter().any(is_other) {
            return Err(format!("the name {name:?} is that of another trusted host; choose another one"));
        }
        self.0.insert(key, name.to_owned());
        Ok(())
    }

    /// Trusts a host no more; whether it was trusted.
    pub fn remove(&mut self, key: &PublicKey) -> bool {
        self.0.remove(key).is_some()
    }

    /// The name of a trusted host.
    pub fn name(&self, key: &PublicKey) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The host of a name.
    pub fn key(&self, name: &str) -> Option<PublicKey> {
        self.0.iter().find(|(_, known)| *known == name).map(|(key, _)| *key)
    }

    /// All of them, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&PublicKey, &str)> {
        self.0.iter().map(|(key, name)| (key, name.as_str()))
    }

    /// Their keys.
    pub fn keys(&self) -> BTreeSet<PublicKey> {
        self.0.keys().copied().collect()
    }

    pub(super) fn read(path: &Path) -> Result<Self, StateError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(StateError::unreadable(path, &error)),
        };
        let mut trusted = Self::default();
        for (number, line) in text.lines().enumerate().map(|(place, line)| (place + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: String| {
                let remedy = "a line has a public key in base64, a space and a name";
                StateError::new(path, format!("line {number}: {what}"), remedy)
            };
            let (key, name) = line.split_once(char::is_whitespace).ok_or_else(|| wrong("there is no name".into()))?;
            let key = key.parse().map_err(|_| wrong(format!("{key:?} is no public key")))?;
            trusted.add(key, name.trim()).map_err(wrong)?;
        }
        Ok(trusted)
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), StateError> {
        let mut text = String::from("# public key and name of each host whose files are received\n");
        for (key, name) in &self.0 {
            writeln!(text, "{key} {name}").expect("a text grows");
        }
        whole_file::replace(path, text.as_bytes()).map_err(|error| StateError::unwritable(path, &error))
    }
}

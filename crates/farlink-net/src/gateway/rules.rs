//! Rules: how what applications send to some destinations is treated.

use std::time::Duration;

use serde::Deserialize;

use super::allow::Entry;
use super::destination::Destination;
use super::fields::parsed;

/// Unmarked traffic (`docs/design/header-translation.md`).
pub(super) use crate::mux::USUAL_CLASS;

const fn usual_class() -> u8 {
    USUAL_CLASS
}

/// How connections and datagrams to some destinations are treated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Destinations, as in an allow-list; names are not resolved for it.
    #[serde(rename = "destination", deserialize_with = "parsed")]
    pub entry: Entry,
    /// The protocol that the rule concerns; both if it is not given.
    #[serde(default)]
    pub protocol: Option<Protocol>,
    /// 0 to 7; 0 goes first.
    #[serde(default = "usual_class")]
    pub class: u8,
    /// A connection of TCP is reset when its data stay under way for longer. A datagram in a connection is given up.
    #[serde(default)]
    pub deadline_s: Option<f64>,
    /// How data are carried. TCP promises every byte, so that all but `reliable` are for UDP, and rules with them apply to UDP only.
    #[serde(default)]
    pub mode: Option<Mode>,
}

/// Protocol of the applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

/// How data are carried between gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// In a connection; all that is lost is sent again.
    Reliable,
    /// In a connection, with repair packets, from which most of what is lost is recovered; nothing is sent again.
    QuasiReliable,
    /// In a connection; what is lost stays lost.
    Unreliable,
    /// Each by itself, without a connection and without order.
    Datagram,
}

/// How a connection, or the datagrams of a client, are treated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Treatment {
    /// Which rule said so.
    pub rule: Option<usize>,
    /// 0 to 7; 0 goes first.
    pub class: u8,
    /// A connection of TCP is reset when its data stay under way for longer. A datagram in a connection is given up.
    pub deadline: Option<Duration>,
    /// How data are carried: those of TCP reliably.
    pub mode: Mode,
}

impl Rule {
    pub(super) fn applies_to(&self, protocol: Protocol) -> bool {
        let only = self.protocol.or(self.mode.filter(|&mode| mode != Mode::Reliable).map(|_| Protocol::Udp));
        only.is_none_or(|only| only == protocol)
    }

    pub(super) fn mode_of(&self, protocol: Protocol) -> Mode {
        match protocol {
            Protocol::Tcp => Mode::Reliable,
            Protocol::Udp => self.mode.unwrap_or(Mode::Datagram),
        }
    }

    /// The fault of a rule, and a remedy.
    pub(super) fn fault(&self, udp: &[&Destination]) -> Option<(&'static str, String, String)> {
        if self.class > 7 {
            return Some(("class", format!("{} is no class", self.class), "give 0 to 7, where 0 goes first".into()));
        }
        let mode = self.mode.unwrap_or(Mode::Datagram);
        if self.protocol == Some(Protocol::Tcp) && self.mode.is_some_and(|mode| mode != Mode::Reliable) {
            let what = format!("\"{}\" may lose bytes, and TCP promises all of them", mode.name());
            return Some(("mode", what, "leave it out, or say protocol = \"udp\"".into()));
        }
        let is_for_udp = self.applies_to(Protocol::Udp) && !self.applies_to(Protocol::Tcp);
        if is_for_udp && mode == Mode::Datagram {
            // Said here, as they would do nothing.
            let remedy = "give mode = \"unreliable\", a connection of its own, or leave it out";
            if self.deadline_s.is_some() {
                return Some(("deadline_s", "datagrams without a connection have none".into(), remedy.into()));
            }
        }
        if is_for_udp && !udp.iter().any(|destination| self.entry.names(destination)) {
            let what = format!("it is for UDP, and no [[udp]] of this gateway leads to {}", self.entry);
            return Some(("destination", what, "add [[udp]] with this destination, or leave the rule out".into()));
        }
        None
    }
}

impl Mode {
    /// As in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Reliable => "reliable",
            Mode::QuasiReliable => "quasi-reliable",
            Mode::Unreliable => "unreliable",
            Mode::Datagram => "datagram",
        }
    }
}

//! Events of a bundle of lines, in words.

use farlink_core::ppp::{Event as PppEvent, Properties};

use super::config::TtyConfig;

/// Something that users should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its kind, a short word.
    pub kind: &'static str,
    /// Name of the line, if it is about one.
    pub line: Option<String>,
    /// A sentence without a full stop; what is wrong and what to do, with "; " between, if something is.
    pub text: String,
}

impl Event {
    pub(super) fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Event { kind, line: None, text: text.into() }
    }

    pub(super) fn of_line(config: &TtyConfig, kind: &'static str, line: usize, text: impl Into<String>) -> Self {
        let name = config.lines.get(line).map(|line| line.name.clone());
        Event { kind, line: name, text: text.into() }
    }

    pub(super) fn of_bundle(config: &TtyConfig, event: &PppEvent) -> Self {
        match event {
            PppEvent::LineUp { line } => Event::of_line(config, "up", *line, "carries packets"),
            PppEvent::LineDown { line, cause } => Event::of_line(config, "down", *line, cause.to_string()),
            PppEvent::NetworkUp(properties) => Event::new("network", in_words(properties)),
            PppEvent::NetworkDown => Event::new("no-network", "no line carries packets"),
            PppEvent::AddressesDisagree { own, wanted } => Event::new(
                "fault",
                format!(
                    "the peer wants {wanted} as the address of this end, not {own}; set local = \"{wanted}\" here, or another address at the peer"
                ),
            ),
        }
    }
}

fn in_words(properties: &Properties) -> String {
    let mut parts = Vec::new();
    if let Some(addresses) = properties.ipv4 {
        parts.push(format!("this end is {}, the peer {}", addresses.own, addresses.peer));
    }
    if properties.ipv6.is_some() {
        parts.push("IPv6 is carried".to_owned());
    }
    parts.push(format!("packets of up to {} bytes", properties.mtu));
    parts.join(", ")
}

//! Events of a bundle, in words.

use farlink_core::paths::{Cause, Event as PathEvent};

use super::config::Config;
use super::session::{Closing, Event as SessionEvent, Fault};

/// Something that users should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its kind, a short word.
    pub kind: &'static str,
    /// Name of the path, if it is about one.
    pub path: Option<String>,
    /// A sentence without a full stop; what is wrong and what to do, with "; " between, if something is.
    pub text: String,
}

impl Event {
    pub(super) fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Event { kind, path: None, text: text.into() }
    }

    pub(super) fn of_path(kind: &'static str, path: &str, text: impl Into<String>) -> Self {
        Event { kind, path: Some(path.to_owned()), text: text.into() }
    }

    /// The event of a session; `None` if users need not know.
    pub(super) fn of_session(config: &Config, event: &SessionEvent) -> Option<Self> {
        let name = |path: u8| config.path(path).map_or("?", |path| &path.name);
        let peer = &config.peer.name;
        Some(match event {
            SessionEvent::Opened { is_new: true } => Event::new("open", format!("there are keys with {peer}")),
            SessionEvent::Opened { is_new: false } => return None,
            SessionEvent::Closed(Closing::Closed) => Event::new("closed", format!("{peer} has ended")),
            SessionEvent::Closed(Closing::Reset) => Event::new("closed", format!("{peer} was started again")),
            SessionEvent::Proven { path, place } => {
                Event::of_path("proven", name(*path), format!("{peer} answers at {}", place.remote))
            }
            SessionEvent::Longest { path, bytes, has_shrunk: true } => {
                let text = format!(
                    "longer packets are lost without a word (an MTU black hole); {bytes} bytes are used from now on"
                );
                Event::of_path("mtu", name(*path), text)
            }
            SessionEvent::Longest { .. } => return None,
            SessionEvent::Fault(fault) => Event::new("fault", in_words(config, fault)),
        })
    }

    /// The event of a bundle; `None` if the path is not configured.
    pub(super) fn of_bundle(config: &Config, event: PathEvent) -> Option<Self> {
        let of = match event {
            PathEvent::Up(path) | PathEvent::Down(path, _) | PathEvent::LeftOut(path, _) => Some(path),
            PathEvent::PeerRestarted => None,
        };
        let name = match of {
            Some(path) => config.path(path.0)?.name.clone(),
            None => String::new(),
        };
        Some(match event {
            PathEvent::Up(_) => Event::of_path("up", &name, "carries packets"),
            PathEvent::Down(_, cause) => Event::of_path("down", &name, why(cause)),
            PathEvent::LeftOut(_, cause) => Event::of_path(
                "left-out",
                &name,
                format!("{}; it is probed, and used again when it is better", why(cause)),
            ),
            PathEvent::PeerRestarted => Event::new("restarted", format!("{} was started again", config.peer.name)),
        })
    }
}

fn why(cause: Cause) -> &'static str {
    match cause {
        Cause::Carrier => "there is no way over it at present",
        Cause::Unanswered => "nothing comes back over it",
        Cause::Peer => "the other end does not use it",
        Cause::Loss => "it loses too many packets",
        Cause::Lag => "it is too much slower than the others",
    }
}

fn in_words(config: &Config, fault: &Fault) -> String {
    let peer = &config.peer.name;
    match fault {
        Fault::Unanswered => format!(
            "{peer} does not answer; look whether it runs, whether its address and key are right, and what it says about this host"
        ),
        Fault::OtherSecret(from) => {
            format!("{from} calls with another pre-shared key; give both ends the same psk_file")
        }
        Fault::OtherPeer(from, key) => {
            format!(
                "{from} calls with the key {key}, which is not that of {peer}; correct peer_key, or block the address"
            )
        }
        Fault::OtherKey(from) => {
            format!(
                "{from} calls a host with another key; give it the public key of this host, of farlink keygen or farlink trust"
            )
        }
        Fault::OtherVersion(versions) => {
            let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
            let all = versions.join(", ");
            format!(
                "the other end has version {all} of the protocol, and this one has version 1; install the same farlink at both"
            )
        }
        Fault::BothCall(from) => {
            format!("{from} calls, and so does this end; give `listen` in place of `address` at one of them")
        }
        Fault::UnknownPath(path) => {
            format!(
                "the other end uses path {path}, which is not configured here; give both ends the same tables [[path]]"
            )
        }
        Fault::Store(error) => {
            format!("the counter of a handshake cannot be kept: {error}; free space on the disk of the keys")
        }
    }
}

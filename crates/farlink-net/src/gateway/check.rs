//! A forecast for a connection, without making it.

use super::config::{Config, ListenerKind};
use super::destination::{Destination, Host};
use super::far;
use super::frame::Refusal;
use super::rules::{Mode, Protocol, Treatment};

/// The outcome that a connection to a destination would have.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// How this gateway treats a connection of TCP, on either side.
    pub treatment: Treatment,
    /// How it treats datagrams of its clients.
    pub of_datagrams: Treatment,
    /// Fixed forwards that lead there, by address and name of the peer.
    pub forwards: Vec<(std::net::SocketAddr, String)>,
    /// For each peer, the addresses that it may reach through this gateway, or why none.
    pub peers: Vec<(String, Result<Vec<std::net::SocketAddr>, Refusal>)>,
}

/// The outcome that a connection to a destination would have. Its name is resolved on this machine.
pub async fn check(config: &Config, destination: &Destination) -> Verdict {
    let forwards = config.listeners.iter().filter_map(|it| match &it.kind {
        ListenerKind::Forward(to) | ListenerKind::Udp { destination: to, .. } if to == destination => {
            Some((it.address, it.to.clone()))
        }
        _ => None,
    });
    let forwards = forwards.collect();
    let mut peers = Vec::new();
    for (name, peer) in &config.peers {
        peers.push((name.clone(), far::resolve(destination, &peer.allow).await));
    }
    let [treatment, of_datagrams] = [Protocol::Tcp, Protocol::Udp].map(|it| config.treatment(it, destination));
    Verdict { treatment, of_datagrams, forwards, peers }
}

impl Verdict {
    /// In sentences, a line each.
    pub fn lines(&self, config: &Config, destination: &Destination) -> Vec<String> {
        let mut lines = Vec::new();
        for (protocol, treatment) in [("", &self.treatment), (" (UDP)", &self.of_datagrams)] {
            let Treatment { class, mode, .. } = treatment;
            let rule = treatment.rule.map_or_else(|| "no rule".to_owned(), |index| format!("rule {}", index + 1));
            let deadline = match (treatment.deadline, protocol) {
                (None, _) if *mode == Mode::Datagram => "each sent once".to_owned(),
                (None, _) => "no deadline".to_owned(),
                (Some(deadline), "") => format!("reset when data are under way for {} s", deadline.as_secs_f64()),
                (Some(deadline), _) => format!("given up after {} s", deadline.as_secs_f64()),
            };
            lines.push(format!("{destination}{protocol}: class {class}, {}, {deadline} ({rule})", mode.name()));
        }
        for (listen, to) in &self.forwards {
            lines.push(format!("{listen} here leads there, through {to}"));
        }
        for listener in &config.listeners {
            let kind = match listener.kind {
                ListenerKind::Socks => "SOCKS5",
                ListenerKind::Http => "HTTP CONNECT",
                ListenerKind::Transparent => "TPROXY",
                _ => continue,
            };
            lines.push(format!(
                "{kind} at {} asks {} for it, which has a list of its own",
                listener.address, listener.to
            ));
        }
        for (name, reached) in &self.peers {
            lines.push(match reached {
                Ok(addresses) => {
                    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                    format!("{name} may reach it through this gateway, at {}", addresses.join(", "))
                }
                Err(Refusal::UnknownHost) => format!("{name} may not reach it: this machine does not know the host"),
                Err(_) if config.peers[name].allow.is_empty() => format!("{name} may not reach it: its list is empty"),
                Err(_) => {
                    let why = match destination.host {
                        Host::Address(_) => "no entry of its list has it",
                        Host::Name(_) => "no entry of its list has it, or it is a private address that none lists",
                    };
                    format!("{name} may not reach it: {why}")
                }
            });
        }
        lines
    }
}

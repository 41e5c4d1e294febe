//! Custody of a running gateway: the routes of its configuration, and its counts.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use crate::custody::{Label, Relay, Routes};
use crate::seal::PublicKey;

use super::config::Config;

/// The routes of the configuration of now.
pub(super) struct ConfiguredRoutes(pub(super) Arc<RwLock<Arc<Config>>>);

impl ConfiguredRoutes {
    fn config(&self) -> Arc<Config> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Routes for ConfiguredRoutes {
    fn next(&self, label: &Label) -> Option<(PublicKey, SocketAddr)> {
        let config = self.config();
        let route = config.custody.as_ref()?.routes.get(label)?;
        let peer = config.peers.get(&route.to)?;
        Some((peer.key, peer.address?))
    }

    fn is_allowed(&self, from: &PublicKey, label: &Label) -> bool {
        let config = self.config();
        let route = config.custody.as_ref().and_then(|custody| custody.routes.get(label));
        let name = config.peer_of_key(from).map(|(name, _)| name);
        route.zip(name).is_some_and(|(route, name)| route.from.iter().any(|it| it == name))
    }
}

/// Counters of custody, in the format of Prometheus.
pub(super) fn metrics(relay: &Relay) -> String {
    let (streams, held, disk) = relay.present();
    let counts = relay.counts();
    let mut text = String::new();
    for (name, help, kind, value) in [
        ("streams", "Streams in custody.", "gauge", streams),
        ("held_bytes", "Bytes that are kept and not passed on.", "gauge", held),
        ("disk_bytes", "Bytes that custody takes on the disk.", "gauge", disk),
        ("finished_total", "Streams that were passed on whole.", "counter", counts.finished_total.get()),
        (
            "given_up_total",
            "Streams that were given up because there was no room.",
            "counter",
            counts.given_up_total.get(),
        ),
        ("full_total", "How many times a stream found no room.", "counter", counts.full_total.get()),
        ("failures_total", "How many times the store failed.", "counter", counts.failures_total.get()),
        ("commits_total", "How many times the disk was waited for.", "counter", counts.commits_total.get()),
    ] {
        let name = format!("farlink_gateway_custody_{name}");
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}").expect("a text grows");
    }
    text
}

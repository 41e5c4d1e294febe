//! Settings of a host's endpoint: the key in its folder, the keys that it trusts, and its packets.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use farlink_core::protocol::aerotp::{AerotpConfig, RateControl};
use farlink_core::units::{BitRate, PositiveSeconds};

use crate::io::EndpointConfig;
use crate::mux::{MuxConfig, Trust};
use crate::seal::PresharedKey;
use crate::state::{StateError, StateFolder};

/// Whether packets may go in the clear, if the peer permits it too ([`MuxConfig::insecure`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Insecure {
    /// Never.
    #[default]
    No,
    /// Between programs of this machine.
    Loopback,
    /// Between any hosts.
    Anywhere,
}

/// Length, rate and protection of packets to a peer.
#[derive(Clone, Debug)]
pub struct PathSettings {
    /// The rate, headers included. By default it is learnt, and safe on a path that others share.
    pub rate: Option<BitRate>,
    /// A key that both sides share.
    pub shared: PresharedKey,
    /// The longest packet, headers of IP and UDP included, in bytes.
    pub packet_bytes: u16,
    /// Whether the link delivers damaged packets, to be corrected ([`EndpointConfig::for_damaged_links`]).
    pub damaged_links: bool,
    /// Whether they may go in the clear.
    pub insecure: Insecure,
}

impl PathSettings {
    pub(crate) fn endpoint(&self, folder: &StateFolder, trust: Trust) -> Result<EndpointConfig, StateError> {
        let mux = MuxConfig {
            trust,
            shared: self.shared.clone(),
            packet_bytes: self.packet_bytes,
            insecure: self.insecure != Insecure::No,
            ..MuxConfig::new(folder.key()?)
        };
        let mut config = EndpointConfig::new(mux);
        config.insecure_anywhere = self.insecure == Insecure::Anywhere;
        if self.damaged_links {
            config = config.for_damaged_links();
        }
        if self.rate.is_some() {
            (config.connection.rate_bps, config.connection.rate_control) = (self.rate, Some(RateControl::Fixed));
        }
        Ok(config)
    }
}

/// A silent peer is given up after so long, a second at least. An idle one is asked so often that the loss of some questions or answers ends
/// nothing.
pub(crate) fn set_patience(connection: &mut AerotpConfig, patience: Duration) {
    // Values that no connection can have are refused with its configuration.
    let patience_s = patience.as_secs_f64().clamp(1.0, MOST_PATIENCE_S);
    let seconds = |seconds| PositiveSeconds::new(seconds).expect("it is within the range");
    connection.give_up_after_s = seconds(patience_s);
    connection.keep_alive_s = Some(seconds((patience_s / QUESTIONS).min(MOST_IDLE_S)));
}

const MOST_PATIENCE_S: f64 = 1e7;
/// Within the patience an idle peer is asked so often, and after this many seconds at the latest.
const QUESTIONS: f64 = 6.0;
const MOST_IDLE_S: f64 = 60.0;

/// Any port, on the interface that leads there: to this machine, no other can send anything to it.
pub(crate) fn own_address(peer: SocketAddr) -> SocketAddr {
    match (peer, peer.ip().is_loopback()) {
        (SocketAddr::V4(_), true) => (Ipv4Addr::LOCALHOST, 0).into(),
        (SocketAddr::V4(_), false) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        (SocketAddr::V6(_), true) => (Ipv6Addr::LOCALHOST, 0).into(),
        (SocketAddr::V6(_), false) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

//! What an endpoint of a host is made with: the key in its folder, whom it trusts, and what its packets are like.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use farlink_core::protocol::aerotp::RateControl;
use farlink_core::units::BitRate;

use crate::io::EndpointConfig;
use crate::mux::{MuxConfig, Trust};
use crate::seal::PresharedKey;
use crate::state::{StateError, StateFolder};

/// What packets to a peer are like, and what is shared with it.
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
}

impl PathSettings {
    pub(crate) fn endpoint(&self, folder: &StateFolder, trust: Trust) -> Result<EndpointConfig, StateError> {
        let mux = MuxConfig {
            trust,
            shared: self.shared.clone(),
            packet_bytes: self.packet_bytes,
            ..MuxConfig::new(folder.key()?)
        };
        let mut config = EndpointConfig::new(mux);
        if self.damaged_links {
            config = config.for_damaged_links();
        }
        if self.rate.is_some() {
            (config.connection.rate_bps, config.connection.rate_control) = (self.rate, Some(RateControl::Fixed));
        }
        Ok(config)
    }
}

/// Any port, on the interface that leads there: to this machine, no other can send anything to it.
pub(crate) fn own_address(peer: SocketAddr) -> SocketAddr {
    match (peer, peer.ip().is_loopback()) {
        (SocketAddr::V4(_), true) => (Ipv4Addr::LOCALHOST, 0).into(),
        (SocketAddr::V4(_), false) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        (SocketAddr::V6(_), true) => (Ipv6Addr::LOCALHOST, 0).into(),
        (SocketAddr::V6(_), false) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

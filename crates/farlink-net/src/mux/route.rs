//! Where packets of a session go, and how much may be sent there.

use std::net::{IpAddr, SocketAddr};

/// Bytes of the header of UDP, and of those of IP.
pub(super) const UDP_BYTES: usize = 8;
pub(super) const IPV4_BYTES: usize = 20;
pub(super) const IPV6_BYTES: usize = 40;

/// Both ends of a path: where the peer is, and the own address, if the system tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// The own address at which packets of the peer arrive.
    pub local: Option<IpAddr>,
}

impl Route {
    /// To a peer, from whatever address the system chooses.
    pub const fn to(remote: SocketAddr) -> Self {
        Route { remote, local: None }
    }

    /// Bytes of the header of IP.
    pub(super) fn ip_bytes(&self) -> usize {
        if self.remote.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES }
    }

    /// Whether packets of the peer come the same way. An own address that is not known yet is no difference.
    pub(super) fn is_same(&self, other: &Route) -> bool {
        let is_other_local = self.local.zip(other.local).is_some_and(|(one, another)| one != another);
        self.remote == other.remote && !is_other_local
    }
}

/// An unproven address gets at most so many times what has come from it (RFC 9000, section 8).
const FACTOR: u64 = 3;

/// Bytes that may be sent to the address of a peer until it has shown that it receives there. `[Y8]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    Proven,
    /// So many bytes are left.
    Bytes(u64),
}

impl Budget {
    pub(super) const NONE: Budget = Budget::Bytes(0);

    pub(super) fn on_received(&mut self, bytes: usize) {
        if let Budget::Bytes(left) = self {
            *left = left.saturating_add(FACTOR * bytes as u64);
        }
    }

    /// Takes the bytes of a datagram; `false` if there are not as many.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        match self {
            Budget::Proven => true,
            Budget::Bytes(left) => {
                let rest = left.checked_sub(bytes as u64);
                *left = rest.unwrap_or(*left);
                rest.is_some()
            }
        }
    }
}

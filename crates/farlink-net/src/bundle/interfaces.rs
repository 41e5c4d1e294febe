//! Which interfaces there are, and when that changes, by netlink (crate `rtnetlink`); this needs no capability.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use futures_util::{StreamExt as _, TryStreamExt as _};
use rtnetlink::packet_route::address::{AddressAttribute, AddressHeaderFlags};
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags};
use rtnetlink::{Handle, MulticastGroup, new_connection, new_multicast_connection};
use tokio::sync::mpsc::{Receiver, channel};

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interface {
    /// A new one if the interface was away meanwhile.
    pub(super) index: u32,
    /// Whether it is up, with a carrier.
    pub(super) is_up: bool,
    pub(super) mtu_bytes: u16,
    /// Addresses that packets may have, of both families, in order.
    pub(super) addresses: Vec<IpAddr>,
}

/// Looks at interfaces and tells when something about them changes.
pub(super) struct Interfaces {
    handle: Handle,
    changes: Receiver<()>,
}

impl Interfaces {
    /// Begins to watch, within a runtime of `tokio`.
    pub(super) fn watch() -> io::Result<Self> {
        use MulticastGroup::{Ipv4Ifaddr, Ipv4Route, Ipv6Ifaddr, Ipv6Route, Link};
        // Not one for both: a change that another process asked for has that process's number of its request, which may be the number of a
        // request of this one, and would be taken for its answer.
        let (watched, _, mut messages) =
            new_multicast_connection(&[Link, Ipv4Ifaddr, Ipv6Ifaddr, Ipv4Route, Ipv6Route])?;
        let (connection, handle, _) = new_connection()?;
        tokio::spawn(watched);
        tokio::spawn(connection);
        // One waiting notice is enough: everything is read again.
        let (tell, changes) = channel(1);
        tokio::spawn(async move {
            while messages.next().await.is_some() && !tell.is_closed() {
                let _ = tell.try_send(());
            }
        });
        Ok(Interfaces { handle, changes })
    }

    /// Waits until something has changed.
    pub(super) async fn changed(&mut self) {
        if self.changes.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// All of them, by name.
    pub(super) async fn all(&self) -> Result<BTreeMap<String, Interface>, rtnetlink::Error> {
        let mut by_index = BTreeMap::new();
        let mut links = self.handle.link().get().execute();
        while let Some(link) = links.try_next().await? {
            let flags = link.header.flags;
            let mut interface = Interface {
                index: link.header.index,
                is_up: flags.contains(LinkFlags::Up) && flags.contains(LinkFlags::LowerUp),
                ..Interface::default()
            };
            let mut name = None;
            for attribute in link.attributes {
                match attribute {
                    LinkAttribute::IfName(text) => name = Some(text),
                    LinkAttribute::Mtu(mtu) => interface.mtu_bytes = mtu.min(u32::from(u16::MAX)) as u16,
                    _ => {}
                }
            }
            by_index.extend(name.map(|name| (interface.index, (name, interface))));
        }
        let mut addresses = self.handle.address().get().execute();
        while let Some(address) = addresses.try_next().await? {
            if address.header.flags.contains(AddressHeaderFlags::Tentative) {
                continue;
            }
            let own = address
                .attributes
                .iter()
                .find_map(|it| if let AddressAttribute::Local(own) = it { Some(*own) } else { None });
            let any = address
                .attributes
                .iter()
                .find_map(|it| if let AddressAttribute::Address(any) = it { Some(*any) } else { None });
            if let (Some((_, interface)), Some(own)) = (by_index.get_mut(&address.header.index), own.or(any))
                && !is_link_local(own)
            {
                interface.addresses.push(own);
            }
        }
        Ok(by_index
            .into_values()
            .map(|(name, mut interface)| {
                interface.addresses.sort();
                (name, interface)
            })
            .collect())
    }
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

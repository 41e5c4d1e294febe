//! Requests of the helper to the kernel: addresses, routes and rules of routing, over netlink (crate `rtnetlink`).
//!
//! With `fallback`, routes are in the main table, the one of everything as its two halves, so that they win over every default route. They
//! vanish with the device. Without it, they are in a table of their own, each with an unreachable one beneath that stays when the device
//! goes, and two rules lead there: first the main table without its default routes, then this one. Sockets of the bundle have a mark and
//! do not follow these rules (`wg-quick` of WireGuard does the same).

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use futures_util::TryStreamExt as _;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteProtocol, RouteType};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use rtnetlink::{Handle, IpVersion, LinkUnspec, RouteMessageBuilder, new_connection};

use super::request::Change;

/// Mark of the bundle's own sockets, and number of the table without `fallback`: "FL".
pub(super) const MARK: u32 = 0x464c;
const TABLE: u32 = 0x464c;
/// The main table (`linux/rtnetlink.h`).
const MAIN: u32 = 254;
/// Places of the two rules, before that of the main table (32766).
const PLACES: [u32; 2] = [32_700, 32_701];
/// Metrics of a route through the device and of the one beneath.
const METRICS: [u32; 2] = [10, 20];
/// Whose routes these are: a number that no routing daemon has (`/etc/iproute2/rt_protos`).
const PROTOCOL: RouteProtocol = RouteProtocol::Other(0xf4);

pub(super) struct Network {
    handle: Handle,
}

impl Network {
    /// Opens netlink, within a runtime of `tokio`.
    pub(super) fn open() -> io::Result<Self> {
        let (connection, handle, _) = new_connection()?;
        tokio::spawn(connection);
        Ok(Network { handle })
    }

    /// Takes a device up, with this MTU.
    pub(super) async fn set_up(&self, index: u32, mtu_bytes: u16) -> Result<(), String> {
        let message = LinkUnspec::new_with_index(index).up().mtu(mtu_bytes.into()).build();
        done("the device", "taken up", self.handle.link().set(message).execute()).await
    }

    pub(super) async fn address(
        &self,
        index: u32,
        change: Change,
        address: IpNet,
        peer: Option<Ipv4Addr>,
    ) -> Result<(), String> {
        let mut add = self.handle.address().add(index, address.addr(), address.prefix_len());
        if let Some(peer) = peer {
            // On a point-to-point device the local address is this end's, and the other attribute the peer's (rtnetlink(7)).
            let attributes = &mut add.message_mut().attributes;
            attributes.retain(|it| matches!(it, AddressAttribute::Local(_)));
            attributes.push(AddressAttribute::Address(IpAddr::V4(peer)));
        }
        match change {
            Change::Add => done(&address, "added", add.replace().execute()).await,
            Change::Remove => {
                let message = std::mem::take(add.message_mut());
                done(&address, "removed", self.handle.address().del(message).execute()).await
            }
        }
    }

    /// Adds or removes a route through a device.
    pub(super) async fn route(&self, index: u32, change: Change, to: IpNet, fallback: bool) -> Result<(), String> {
        if fallback {
            for part in parts(to) {
                self.change_route(change, through(part, index, MAIN)).await?;
            }
            return Ok(());
        }
        // The guard comes first and goes last.
        match change {
            Change::Add => {
                self.change_route(change, beneath(to)).await?;
                self.add_rules(to).await?;
                self.change_route(change, through(to, index, TABLE)).await
            }
            Change::Remove => {
                self.change_route(change, through(to, index, TABLE)).await?;
                self.change_route(change, beneath(to)).await
            }
        }
    }

    async fn change_route(&self, change: Change, route: RouteMessage) -> Result<(), String> {
        let to = destination(&route);
        match change {
            Change::Add => done(&to, "routed", self.handle.route().add(route).replace().execute()).await,
            Change::Remove => done(&to, "taken from the routes", self.handle.route().del(route).execute()).await,
        }
    }

    async fn add_rules(&self, to: IpNet) -> Result<(), String> {
        for rule in rules() {
            let place = self.handle.rule().add();
            let executed = match to {
                IpNet::V4(_) => {
                    let mut add = place.v4();
                    set(add.message_mut(), rule);
                    add.execute().await
                }
                IpNet::V6(_) => {
                    let mut add = place.v6();
                    set(add.message_mut(), rule);
                    add.execute().await
                }
            };
            match executed {
                Err(error) if is_errno(&error, rustix::io::Errno::EXIST) => {}
                other => done(&to, "given a rule", std::future::ready(other)).await?,
            }
        }
        Ok(())
    }

    /// Removes the table and the rules of bundles without `fallback`, also of those that were killed.
    pub(super) async fn remove_guards(&self) -> Result<(), String> {
        for version in [IpVersion::V4, IpVersion::V6] {
            let rules: Vec<RuleMessage> =
                self.handle.rule().get(version.clone()).execute().try_collect().await.unwrap_or_default();
            for rule in rules.into_iter().filter(is_own_rule) {
                done("a rule", "removed", self.handle.rule().del(rule).execute()).await?;
            }
            let all = match version {
                IpVersion::V4 => RouteMessageBuilder::<Ipv4Addr>::new().build(),
                IpVersion::V6 => RouteMessageBuilder::<std::net::Ipv6Addr>::new().build(),
            };
            let routes: Vec<RouteMessage> =
                self.handle.route().get(all).execute().try_collect().await.unwrap_or_default();
            for route in routes.into_iter().filter(is_own_route) {
                done("a route", "removed", self.handle.route().del(route).execute()).await?;
            }
        }
        Ok(())
    }
}

fn set(message: &mut RuleMessage, rule: RuleMessage) {
    message.header.action = rule.header.action;
    message.header.flags = rule.header.flags;
    message.header.table = rule.header.table;
    message.attributes = rule.attributes;
}

/// The main table without its default routes; then, for packets without the mark, the bundle's own.
fn rules() -> [RuleMessage; 2] {
    let mut rules = [RuleMessage::default(), RuleMessage::default()];
    for (rule, place) in rules.iter_mut().zip(PLACES) {
        rule.header.action = RuleAction::ToTable;
        rule.attributes = vec![RuleAttribute::Priority(place), RuleAttribute::Protocol(PROTOCOL)];
    }
    let [main, own] = &mut rules;
    main.header.table = MAIN as u8;
    main.attributes.push(RuleAttribute::SuppressPrefixLen(0));
    own.header.flags = RuleFlags::Invert;
    own.attributes.extend([RuleAttribute::FwMark(MARK), RuleAttribute::Table(TABLE)]);
    rules
}

fn is_own_rule(rule: &RuleMessage) -> bool {
    rule.attributes.contains(&RuleAttribute::Protocol(PROTOCOL))
        && rule.attributes.iter().any(|it| matches!(it, RuleAttribute::Priority(place) if PLACES.contains(place)))
}

fn is_own_route(route: &RouteMessage) -> bool {
    route.header.protocol == PROTOCOL && route.attributes.contains(&RouteAttribute::Table(TABLE))
}

/// Everything has two halves, which win over any default route.
fn parts(to: IpNet) -> Vec<IpNet> {
    if to.prefix_len() > 0 {
        return vec![to];
    }
    to.subnets(1).expect("a prefix of 1 is longer than one of 0").collect()
}

fn through(to: IpNet, index: u32, table: u32) -> RouteMessage {
    match to {
        IpNet::V4(to) => v4(to).output_interface(index).priority(METRICS[0]).table_id(table).build(),
        IpNet::V6(to) => v6(to).output_interface(index).priority(METRICS[0]).table_id(table).build(),
    }
}

fn beneath(to: IpNet) -> RouteMessage {
    match to {
        IpNet::V4(to) => v4(to).kind(RouteType::Unreachable).priority(METRICS[1]).table_id(TABLE).build(),
        IpNet::V6(to) => v6(to).kind(RouteType::Unreachable).priority(METRICS[1]).table_id(TABLE).build(),
    }
}

fn v4(to: Ipv4Net) -> RouteMessageBuilder<Ipv4Addr> {
    RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(to.addr(), to.prefix_len()).protocol(PROTOCOL)
}

fn v6(to: Ipv6Net) -> RouteMessageBuilder<std::net::Ipv6Addr> {
    RouteMessageBuilder::<std::net::Ipv6Addr>::new().destination_prefix(to.addr(), to.prefix_len()).protocol(PROTOCOL)
}

fn destination(route: &RouteMessage) -> String {
    let address = route.attributes.iter().find_map(|it| match it {
        RouteAttribute::Destination(rtnetlink::packet_route::route::RouteAddress::Inet(to)) => Some(IpAddr::V4(*to)),
        RouteAttribute::Destination(rtnetlink::packet_route::route::RouteAddress::Inet6(to)) => Some(IpAddr::V6(*to)),
        _ => None,
    });
    let length = route.header.destination_prefix_length;
    address.map_or_else(|| format!("everything (/{length})"), |address| format!("{address}/{length}"))
}

fn is_errno(error: &rtnetlink::Error, errno: rustix::io::Errno) -> bool {
    matches!(error, rtnetlink::Error::NetlinkError(message) if message.raw_code() == -errno.raw_os_error())
}

/// In words, if it failed.
async fn done(
    what: impl std::fmt::Display,
    did: &str,
    execution: impl Future<Output = Result<(), rtnetlink::Error>>,
) -> Result<(), String> {
    execution.await.map_err(|error| {
        let reason = match &error {
            rtnetlink::Error::NetlinkError(message) => message.to_io().to_string(),
            other => other.to_string(),
        };
        format!("{what} cannot be {did}: {reason}; look at `ip address`, `ip route` and `ip rule`")
    })
}

//! The helper: does what it is asked for, until the other end is gone.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{BindToDevice, Ipv6V6Only, Mark, RcvBufForce, SndBufForce};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};
use tun_rs::DeviceBuilder;

use super::channel;
use super::error::PrivilegedError;
use super::network::{MARK, Network};
use super::request::{Change, DeviceName, Request};
use super::rights;

/// Answers of the helper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reply {
    /// It is done.
    Done,
    /// The device has this name.
    Tun { name: DeviceName },
    /// It is not done: what is wrong, and what to do.
    Refused { why: String },
}

impl Reply {
    pub(super) fn into_error(self) -> PrivilegedError {
        match self {
            Reply::Refused { why } => PrivilegedError::Refused(why),
            _ => PrivilegedError::Silent(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// More addresses of a device, and more routes through it, are refused.
const MOST_ADDRESSES: usize = 16;
const MOST_ROUTES: usize = 256;
/// More bundles of one process are refused.
const MOST_BUNDLES: usize = 256;
/// Buffer that is asked of the kernel for datagrams that wait, in bytes: 4 MiB, as the sockets of sessions have.
const BUFFER_BYTES: usize = 4 << 20;

/// Serves the bundle at the other end of standard input, until it has ended. First it drops every capability but CAP_NET_ADMIN.
///
/// # Errors
/// If that capability is missing, or what came is no request.
pub fn serve() -> Result<(), PrivilegedError> {
    rights::keep(CapabilitySet::NET_ADMIN)?;
    let socket = io::stdin().as_fd().try_clone_to_owned().map_err(PrivilegedError::Start)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(PrivilegedError::Start)?;
    let network = runtime.block_on(async { Network::open() }).map_err(PrivilegedError::Start)?;
    let mut bundles = vec![Server::new(socket)];
    while !bundles.is_empty() {
        let at = next_asked(&bundles)?;
        let asked = channel::receive::<Request>(bundles[at].socket.as_fd()).map_err(PrivilegedError::Silent)?;
        let Some((request, file)) = asked else {
            bundles.remove(at);
            continue;
        };
        let answer = match (request, file) {
            (Request::Share, Some(socket)) if bundles.len() < MOST_BUNDLES => {
                bundles.push(Server::new(socket));
                Ok((Reply::Done, None))
            }
            (Request::Share, _) => Err(format!("there is no socket, or there are {MOST_BUNDLES} bundles; start fewer")),
            (request, _) => {
                let others_are_guarded = bundles.iter().enumerate().any(|(it, other)| it != at && other.is_guarded());
                runtime.block_on(bundles[at].answer(&network, others_are_guarded, &request))
            }
        };
        let (reply, file) = answer.unwrap_or_else(|why| (Reply::Refused { why }, None));
        if channel::send(bundles[at].socket.as_fd(), &reply, file.as_ref().map(AsFd::as_fd)).is_err() {
            bundles.remove(at);
        }
    }
    // The device went with the other end, and its routes with it; what guards them stays, or packets would leave outside it.
    Ok(())
}

/// Waits until a bundle asks for something, or has ended.
fn next_asked(bundles: &[Server]) -> Result<usize, PrivilegedError> {
    loop {
        let mut all: Vec<PollFd<'_>> = bundles.iter().map(|it| PollFd::new(&it.socket, PollFlags::IN)).collect();
        match poll(&mut all, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other.map_err(|error| PrivilegedError::Silent(error.into()))?,
        };
        if let Some(at) = all.iter().position(|it| !it.revents().is_empty()) {
            return Ok(at);
        }
    }
}

/// The helper of one bundle, with the changes that it has made.
struct Server {
    socket: OwnedFd,
    tun: Option<Tun>,
    addresses: Vec<ipnet::IpNet>,
    routes: Vec<ipnet::IpNet>,
}

struct Tun {
    index: u32,
    name: DeviceName,
    fallback: bool,
}

impl Server {
    fn new(socket: OwnedFd) -> Self {
        Server { socket, tun: None, addresses: Vec::new(), routes: Vec::new() }
    }

    /// Whether it has routes that are guarded: the table of them is one for all bundles.
    fn is_guarded(&self) -> bool {
        !self.routes.is_empty() && self.tun.as_ref().is_some_and(|tun| !tun.fallback)
    }

    async fn answer(
        &mut self,
        network: &Network,
        others_are_guarded: bool,
        request: &Request,
    ) -> Result<(Reply, Option<OwnedFd>), String> {
        if let Some(fault) = request.fault() {
            return Err(fault);
        }
        match request {
            Request::Tun { name, mtu_bytes, fallback } => {
                let made = self.make(network, name.as_ref(), *mtu_bytes, *fallback).await?;
                if *fallback && !others_are_guarded {
                    // Left by an earlier bundle without `fallback` that was killed.
                    network.remove_guards().await?;
                }
                return Ok(made);
            }
            Request::Share => return Err("a socket comes with it; give one".to_owned()),
            Request::Bind { device, address, port } => {
                return Ok((Reply::Done, Some(self.bind(device.as_ref(), SocketAddr::new(*address, *port))?.into())));
            }
            Request::Address { change, address, peer } => {
                let tun = self.tun.as_ref().ok_or(NO_DEVICE)?;
                let place = place_of(&self.addresses, address, *change, MOST_ADDRESSES)?;
                network.address(tun.index, *change, *address, *peer).await?;
                note(&mut self.addresses, place, *address);
            }
            Request::Route { change, to } => {
                let tun = self.tun.as_ref().ok_or(NO_DEVICE)?;
                let place = place_of(&self.routes, to, *change, MOST_ROUTES)?;
                network.route(tun.index, *change, *to, tun.fallback).await?;
                note(&mut self.routes, place, *to);
                if self.routes.is_empty() && !tun.fallback && !others_are_guarded {
                    network.remove_guards().await?;
                }
            }
            Request::Mtu { bytes } => {
                let tun = self.tun.as_ref().ok_or(NO_DEVICE)?;
                network.set_up(tun.index, *bytes).await?;
            }
        }
        Ok((Reply::Done, None))
    }

    async fn make(
        &mut self,
        network: &Network,
        name: Option<&DeviceName>,
        mtu_bytes: u16,
        fallback: bool,
    ) -> Result<(Reply, Option<OwnedFd>), String> {
        if self.tun.is_some() {
            return Err("there is a TUN device already; ask for one only".to_owned());
        }
        let opened = || -> io::Result<_> {
            let mut builder = DeviceBuilder::new();
            if let Some(name) = name {
                builder = builder.name(name.as_str());
            }
            let device = builder.inherit_enable_state().build_sync()?;
            device.set_nonblocking(true)?;
            let file = device.as_fd().try_clone_to_owned()?;
            Ok((file, device.name()?, device.if_index()?))
        };
        let (file, name, index) = opened().map_err(|error| {
            let wanted = name.map_or("a TUN device".to_owned(), ToString::to_string);
            format!("{wanted} cannot be made: {error}; {}", remedy_of_tun(&error))
        })?;
        let name: DeviceName = name.parse()?;
        network.set_up(index, mtu_bytes).await?;
        self.tun = Some(Tun { index, name: name.clone(), fallback });
        Ok((Reply::Tun { name }, Some(file)))
    }

    fn bind(&self, device: Option<&DeviceName>, address: SocketAddr) -> Result<UdpSocket, String> {
        if device.is_some() && device == self.tun.as_ref().map(|tun| &tun.name) {
            return Err(format!("{address} would lead the bundle into itself; give another interface"));
        }
        let failed = |what: &str, error: io::Error| {
            let place = device.map_or_else(|| address.to_string(), |device| format!("{address} of {device}"));
            format!("a socket at {place} {what}: {error}; look at its interface with `ip address`")
        };
        // The device first: an address may be that of several.
        let domain = if address.is_ipv4() {
            nix::sys::socket::AddressFamily::Inet
        } else {
            nix::sys::socket::AddressFamily::Inet6
        };
        let flags = nix::sys::socket::SockFlag::SOCK_NONBLOCK | nix::sys::socket::SockFlag::SOCK_CLOEXEC;
        let socket = nix::sys::socket::socket(domain, nix::sys::socket::SockType::Datagram, flags, None)
            .map_err(|error| failed("cannot be opened", error.into()))?;
        if let Some(device) = device {
            setsockopt(&socket, BindToDevice, &device.as_str().into())
                .map_err(|error| failed("cannot be bound to the interface", error.into()))?;
        }
        setsockopt(&socket, Mark, &MARK).map_err(|error| failed("cannot be marked", error.into()))?;
        // As long as the kernel allows without the force of a capability, if it does not know it.
        let _ = setsockopt(&socket, RcvBufForce, &BUFFER_BYTES)
            .and_then(|()| setsockopt(&socket, SndBufForce, &BUFFER_BYTES));
        let bound = match address {
            SocketAddr::V4(v4) => rustix::net::bind(&socket, &v4),
            SocketAddr::V6(v6) => {
                // IPv4 has sockets of its own.
                setsockopt(&socket, Ipv6V6Only, &true)
                    .map_err(|error| failed("cannot be kept to IPv6", error.into()))?;
                rustix::net::bind(&socket, &v6)
            }
        };
        bound.map_err(|error| failed("cannot be bound", error.into()))?;
        Ok(UdpSocket::from(socket))
    }
}

const NO_DEVICE: &str = "there is no TUN device yet; ask for it first";

/// Where something stands that is removed; `None` if it is added. Only what this helper added is removed.
fn place_of(all: &[ipnet::IpNet], one: &ipnet::IpNet, change: Change, most: usize) -> Result<Option<usize>, String> {
    let place = all.iter().position(|it| it == one);
    match change {
        Change::Add if place.is_some() => Err(format!("{one} is there already; give it once")),
        Change::Add if all.len() >= most => Err(format!("{one} is more than the {most} that are allowed; give fewer")),
        Change::Add => Ok(None),
        Change::Remove => place.map(Some).ok_or_else(|| format!("{one} is not there; add it first")),
    }
}

fn note(all: &mut Vec<ipnet::IpNet>, place: Option<usize>, one: ipnet::IpNet) {
    match place {
        Some(place) => drop(all.remove(place)),
        None => all.push(one),
    }
}

fn remedy_of_tun(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "run farlink with CAP_NET_ADMIN (AmbientCapabilities of its systemd unit), or as root"
        }
        io::ErrorKind::NotFound => "load the module with \"modprobe tun\", or let the container have /dev/net/tun",
        io::ErrorKind::ResourceBusy => "another program has a device of this name: stop it, or give another name",
        _ => "look at the kernel's log (dmesg)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_added_is_removed_and_lists_are_bounded() {
        let net = |at: u8| format!("10.0.{at}.0/24").parse::<ipnet::IpNet>().unwrap();
        let mut all = Vec::new();
        for at in 0..3 {
            let place = place_of(&all, &net(at), Change::Add, 3).unwrap();
            note(&mut all, place, net(at));
        }
        place_of(&all, &net(1), Change::Add, 9).unwrap_err();
        place_of(&all, &net(7), Change::Add, 3).unwrap_err();
        place_of(&all, &net(7), Change::Remove, 3).unwrap_err();
        let place = place_of(&all, &net(1), Change::Remove, 3).unwrap();
        note(&mut all, place, net(1));
        assert_eq!(all, [net(0), net(2)]);
    }
}

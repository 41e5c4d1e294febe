//! The bundle's end: starts the helper and asks it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tokio::net::unix::pipe::Receiver;

use super::channel;
use super::error::PrivilegedError;
use super::request::{Change, DeviceName, Request};
use super::server::Reply;

/// How long an answer may take: Python takes half a second to start on a slow machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A helper that runs. It ends when this is dropped, or when this process ends in any way.
#[derive(Debug)]
pub struct Helper {
    socket: OwnedFd,
    process: Arc<Process>,
}

/// The process, which ends when no socket is left.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // A child that is not waited for stays as a zombie.
        let _ = self.0.wait();
    }
}

impl Helper {
    /// Starts a helper: `command` calls [`serve`](super::serve), and its standard input is the socket.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(mut command: Command) -> Result<Self, PrivilegedError> {
        let (own, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(|error| PrivilegedError::Start(error.into()))?;
        // Ctrl-C in a terminal goes to the bundle, which then takes its routes away.
        command.stdin(Stdio::from(other)).stdout(Stdio::null()).process_group(0);
        let child = command.spawn().map_err(PrivilegedError::Start)?;
        Ok(Helper { socket: own, process: Arc::new(Process(child)) })
    }

    /// The same process for another bundle: with a device of its own, it changes nothing of the others.
    ///
    /// # Errors
    /// If the helper refuses it or has ended, or the system has no more descriptors.
    pub fn another(&mut self) -> Result<Self, PrivilegedError> {
        let (own, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(|error| PrivilegedError::Start(error.into()))?;
        match self.ask_with(&Request::Share, Some(other.as_fd()))? {
            (Reply::Done, _) => Ok(Helper { socket: own, process: self.process.clone() }),
            (other, _) => Err(other.into_error()),
        }
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.process.0.id()
    }

    /// Another descriptor of its socket, which does not block and has nothing to read until the helper has ended.
    ///
    /// # Errors
    /// If the system has no more descriptors.
    pub fn ended(&self) -> io::Result<OwnedFd> {
        rustix::io::ioctl_fionbio(&self.socket, true)?;
        self.socket.try_clone()
    }

    /// Makes the TUN device; returns it and its name.
    ///
    /// # Errors
    /// If the helper refuses it or has ended.
    pub fn tun(
        &mut self,
        name: Option<DeviceName>,
        mtu_bytes: u16,
        fallback: bool,
    ) -> Result<(OwnedFd, DeviceName), PrivilegedError> {
        let (reply, file) = self.ask(&Request::Tun { name, mtu_bytes, fallback })?;
        match (reply, file) {
            (Reply::Tun { name }, Some(file)) => Ok((file, name)),
            (other, _) => Err(other.into_error()),
        }
    }

    /// Adds an address to the device or removes it.
    ///
    /// # Errors
    /// If the helper refuses it or has ended.
    pub fn address(&mut self, change: Change, address: IpNet) -> Result<(), PrivilegedError> {
        self.ask_for_done(&Request::Address { change, address, peer: None })
    }

    /// Adds an address to the device or removes it, and with it the way to the one host at the other end.
    ///
    /// # Errors
    /// If the helper refuses it or has ended.
    pub fn address_pair(&mut self, change: Change, own: Ipv4Addr, peer: Ipv4Addr) -> Result<(), PrivilegedError> {
        self.ask_for_done(&Request::Address { change, address: IpNet::from(IpAddr::V4(own)), peer: Some(peer) })
    }

    /// Adds a route through the device or removes it, and what keeps its packets in the device.
    ///
    /// # Errors
    /// If the helper refuses it or has ended.
    pub fn route(&mut self, change: Change, to: IpNet) -> Result<(), PrivilegedError> {
        self.ask_for_done(&Request::Route { change, to })
    }

    /// Gives the device another MTU.
    ///
    /// # Errors
    /// If the helper refuses it or has ended.
    pub fn mtu(&mut self, bytes: u16) -> Result<(), PrivilegedError> {
        self.ask_for_done(&Request::Mtu { bytes })
    }

    /// Opens a UDP socket that is bound to an interface, an address, or both.
    ///
    /// # Errors
    /// If the helper refuses it or has ended.
    pub fn bind(
        &mut self,
        device: Option<DeviceName>,
        address: IpAddr,
        port: u16,
    ) -> Result<UdpSocket, PrivilegedError> {
        match self.ask(&Request::Bind { device, address, port })? {
            (Reply::Done, Some(file)) => Ok(UdpSocket::from(file)),
            (other, _) => Err(other.into_error()),
        }
    }

    fn ask_for_done(&mut self, request: &Request) -> Result<(), PrivilegedError> {
        match self.ask(request)? {
            (Reply::Done, _) => Ok(()),
            (other, _) => Err(other.into_error()),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<(Reply, Option<OwnedFd>), PrivilegedError> {
        self.ask_with(request, None)
    }

    fn ask_with(
        &mut self,
        request: &Request,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(Reply, Option<OwnedFd>), PrivilegedError> {
        let socket = self.socket.as_fd();
        channel::send(socket, request, file).map_err(|_| PrivilegedError::Gone)?;
        wait(socket)?;
        channel::receive(socket).map_err(PrivilegedError::Silent)?.ok_or(PrivilegedError::Gone)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // The end of its last socket ends the process.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }
}

/// Waits until the helper has ended: its answers have been read when nobody waits for one. What is waited for comes of
/// [`Helper::ended`].
pub(crate) async fn end_of(helper: &Receiver) {
    while helper.readable().await.is_ok() {
        match helper.try_read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
}

fn wait(socket: BorrowedFd<'_>) -> Result<(), PrivilegedError> {
    let silent = |error: io::Error| PrivilegedError::Silent(error);
    let patience = Timespec::try_from(PATIENCE).expect("seconds fit");
    loop {
        match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&patience)) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(silent(error.into())),
            Ok(0) => return Err(silent(io::ErrorKind::TimedOut.into())),
            Ok(_) => return Ok(()),
        }
    }
}

//! A line between UDP sockets: clients at the near end, a server at the far end.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use farlink_core::emulator::ip::invert;
use farlink_core::emulator::{End, Parcel};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags};

use super::waiting::{is_passing, wait_for};
use super::{EmulateError, Line};

/// Configuration of a relay.
#[derive(Clone, Copy, Debug)]
pub struct RelaySettings {
    /// Where clients send to.
    pub listen: SocketAddr,
    /// The server.
    pub to: SocketAddr,
    /// Deliver datagrams whose payload has wrong bits, as hosts without UDP's checksum get them. Else they are dropped, as the kernel
    /// of a host does.
    pub delivers_damaged: bool,
}

/// A datagram on its way.
#[derive(Debug)]
pub struct Datagram {
    payload: Vec<u8>,
    /// The client that sends or gets it, and how many clients had its place before.
    client: (usize, u64),
    ecn: Option<EcnCodepoint>,
    /// Bytes of the headers of IP and UDP.
    header_bytes: u32,
    delivers_damaged: bool,
}

impl Parcel for Datagram {
    fn wire_bytes(&self) -> u32 {
        self.payload.len() as u32 + self.header_bytes
    }

    fn class(&self) -> usize {
        0
    }

    fn mark(&mut self) -> bool {
        let is_capable = self.ecn.is_some();
        if is_capable {
            self.ecn = Some(EcnCodepoint::Ce);
        }
        is_capable
    }

    fn damage(&mut self, bits: &[u32]) -> bool {
        let header_bits = self.header_bytes * 8;
        if !self.delivers_damaged || bits.iter().any(|&bit| bit < header_bits) {
            return false;
        }
        invert(&mut self.payload, bits.iter().map(|bit| bit - header_bits));
        true
    }
}

/// A non-blocking socket, with marks and batches.
struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    is_ready: bool,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").field("io", &self.io).finish_non_exhaustive()
    }
}

/// Buffer that is asked of the kernel for datagrams that wait to be read or sent.
const BUFFER_BYTES: usize = 4 << 20;
/// Longest buffer that the kernel fills with datagrams of one sender.
const RECEIVED_BYTES: usize = 65_536;
/// Buffers for one call.
const BUFFERS: usize = if BATCH_SIZE < 8 { BATCH_SIZE } else { 8 };

impl Socket {
    fn bind(address: SocketAddr) -> io::Result<Self> {
        let io = UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        // The kernel may give less: that has to do.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&io), BUFFER_BYTES);
        let _ = state.set_send_buffer_size(UdpSockRef::from(&io), BUFFER_BYTES);
        io.set_nonblocking(true)?;
        Ok(Socket { io, state, is_ready: true })
    }

    /// Takes a batch of what has arrived.
    fn receive(&mut self, buffer: &mut [u8], mut take: impl FnMut(SocketAddr, Option<EcnCodepoint>, &[u8])) {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut slices: Vec<IoSliceMut<'_>> = buffer.chunks_exact_mut(RECEIVED_BYTES).map(IoSliceMut::new).collect();
        let count = match self.state.recv(UdpSockRef::from(&self.io), &mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) => {
                // Others are what became of earlier datagrams: nobody listens at their port.
                self.is_ready = !is_passing(&error);
                return;
            }
        };
        for (meta, slice) in metas.iter().zip(&slices).take(count) {
            if meta.len == 0 {
                take(meta.addr, meta.ecn, &[]);
            }
            for datagram in slice[..meta.len].chunks(meta.stride.max(1)) {
                take(meta.addr, meta.ecn, datagram);
            }
        }
    }

    fn send(&self, to: SocketAddr, ecn: Option<EcnCodepoint>, payload: &[u8]) -> bool {
        let transmit = Transmit { destination: to, ecn, contents: payload, segment_size: None, src_ip: None };
        let send = || self.state.try_send(UdpSockRef::from(&self.io), &transmit);
        // A socket that was refused an earlier datagram says so once, and takes the next one.
        send()
            .or_else(|error| if error.kind() == io::ErrorKind::ConnectionRefused { send() } else { Err(error) })
            .is_ok()
    }
}

/// A client, and the socket at which the server knows it.
#[derive(Debug)]
struct Client {
    address: SocketAddr,
    socket: Socket,
    /// How many clients had this place before.
    generation: u64,
    last_heard: u64,
}

/// Clients beyond so many take the place of the one that was silent for longest.
const MOST_CLIENTS: usize = 256;

/// A line between UDP sockets. The server sees each client as an address and port of its own.
#[derive(Debug)]
pub struct Relay {
    settings: RelaySettings,
    front: Socket,
    clients: Vec<Client>,
    by_address: BTreeMap<SocketAddr, usize>,
    received: [VecDeque<Datagram>; 2],
    /// Datagrams of clients so far.
    heard: u64,
    buffer: Box<[u8]>,
    header_bytes: [u32; 2],
}

impl Relay {
    /// Opens the socket for clients.
    ///
    /// # Errors
    /// If the address is not free.
    pub fn new(settings: RelaySettings) -> Result<Self, EmulateError> {
        let address = settings.listen;
        let front = Socket::bind(address).map_err(|error| EmulateError::Listen { address, error })?;
        let header_bytes = [settings.listen, settings.to].map(|address| if address.is_ipv4() { 28 } else { 48 });
        Ok(Relay {
            settings,
            front,
            clients: Vec::new(),
            by_address: BTreeMap::new(),
            received: Default::default(),
            heard: 0,
            buffer: vec![0; RECEIVED_BYTES * BUFFERS].into(),
            header_bytes,
        })
    }

    /// Where clients send to.
    ///
    /// # Errors
    /// If the system does not know.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.front.io.local_addr()
    }

    fn receive_of_clients(&mut self) {
        let Relay { front, buffer, clients, by_address, received, heard, settings, header_bytes } = self;
        front.receive(buffer, |address, ecn, payload| {
            *heard += 1;
            let Some(place) = place_of(address, clients, by_address, settings.to) else { return };
            let client = &mut clients[place];
            client.last_heard = *heard;
            received[0].push_back(Datagram {
                payload: payload.to_vec(),
                client: (place, client.generation),
                ecn,
                header_bytes: header_bytes[0],
                delivers_damaged: settings.delivers_damaged,
            });
        });
    }

    fn receive_of_server(&mut self) {
        let Relay { buffer, clients, received, settings, header_bytes, .. } = self;
        for (place, client) in clients.iter_mut().enumerate().filter(|(_, client)| client.socket.is_ready) {
            let generation = client.generation;
            client.socket.receive(buffer, |_, ecn, payload| {
                received[1].push_back(Datagram {
                    payload: payload.to_vec(),
                    client: (place, generation),
                    ecn,
                    header_bytes: header_bytes[1],
                    delivers_damaged: settings.delivers_damaged,
                });
            });
        }
    }
}

/// The place of a client, which may be new; `None` if there is no socket to be had for it.
fn place_of(
    address: SocketAddr,
    clients: &mut Vec<Client>,
    by_address: &mut BTreeMap<SocketAddr, usize>,
    server: SocketAddr,
) -> Option<usize> {
    if let Some(&place) = by_address.get(&address) {
        return Some(place);
    }
    let open = || {
        let own: IpAddr = match server.ip() {
            IpAddr::V4(ip) if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_loopback() => Ipv6Addr::LOCALHOST.into(),
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = Socket::bind(SocketAddr::new(own, 0))?;
        // From then on the kernel gives it only what comes from the server.
        socket.io.connect(server)?;
        Ok::<_, io::Error>(socket)
    };
    let socket = open().inspect_err(|error| tracing::warn!(%address, %error, "a client gets no socket")).ok()?;
    let mut client = Client { address, socket, generation: 0, last_heard: 0 };
    let place = if clients.len() < MOST_CLIENTS {
        clients.push(client);
        clients.len() - 1
    } else {
        let (place, oldest) = clients.iter().enumerate().min_by_key(|(_, client)| client.last_heard)?;
        client.generation = oldest.generation + 1;
        by_address.remove(&oldest.address);
        clients[place] = client;
        place
    };
    by_address.insert(address, place);
    Some(place)
}

impl Line for Relay {
    type Packet = Datagram;

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        // What was read and not yet taken waits for nobody.
        let at_most = if self.received.iter().all(|received| received.is_empty()) { at_most } else { Duration::ZERO };
        let sockets = || std::iter::once(&self.front).chain(self.clients.iter().map(|client| &client.socket));
        let mut asked: Vec<PollFd<'_>> = sockets().map(|socket| PollFd::new(&socket.io, PollFlags::IN)).collect();
        wait_for(&mut asked, at_most)?;
        let ready: Vec<bool> = asked.iter().map(|one| !one.revents().is_empty()).collect();
        self.front.is_ready = ready[0];
        self.clients.iter_mut().zip(&ready[1..]).for_each(|(client, &is_ready)| client.socket.is_ready = is_ready);
        Ok(())
    }

    fn receive(&mut self, at: End) -> Result<Option<Datagram>, EmulateError> {
        if self.received[at as usize].is_empty() {
            match at {
                End::Near if self.front.is_ready => self.receive_of_clients(),
                End::Near => {}
                End::Far => self.receive_of_server(),
            }
        }
        Ok(self.received[at as usize].pop_front())
    }

    fn send(&mut self, at: End, packet: Datagram) -> bool {
        let (place, generation) = packet.client;
        let client = &self.clients[place];
        if client.generation != generation {
            return false;
        }
        match at {
            End::Near => self.front.send(client.address, packet.ecn, &packet.payload),
            End::Far => client.socket.send(self.settings.to, packet.ecn, &packet.payload),
        }
    }

    fn clients(&self) -> u64 {
        self.clients.len() as u64
    }
}

#[cfg(test)]
mod tests;

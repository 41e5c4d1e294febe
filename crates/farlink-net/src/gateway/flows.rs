//! Senders of datagrams through a gateway, and where replies go.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::destination::Destination;
use super::requests::client_of;
use super::rules::Treatment;
use crate::seal::{PublicKey, random};

/// Clients and destinations of datagrams.
#[derive(Debug, Default)]
pub(super) struct Flows(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    next: Number,
    clients: HashMap<u32, Client>,
    of_clients: HashMap<(SocketAddr, SocketAddr), u32>,
    /// Clients whose datagrams go in connections, by the listener's address and their own, and what takes these.
    streams: HashMap<(SocketAddr, SocketAddr), Stream>,
    /// How many flows each peer has in connections.
    slots: HashMap<PublicKey, usize>,
    /// When places were last looked for because all were taken.
    looked: Option<Instant>,
    /// Datagrams that wait for the destinations of each peer's flows.
    destinations: HashMap<PublicKey, HashMap<u32, (Destination, mpsc::Sender<Arrived>)>>,
}

/// A datagram of a flow.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) class: u8,
    /// The mark of its packet (DSCP).
    pub(super) mark: u8,
    pub(super) data: Bytes,
}

/// The number of the next flow. The first one is drawn: late replies to a gateway that has begun anew find no flow.
#[derive(Debug)]
struct Number(u32);

impl Default for Number {
    fn default() -> Self {
        let mut bytes = [0; 4];
        random::fill(&mut bytes);
        Number(u32::from_ne_bytes(bytes))
    }
}

/// Datagrams that wait while the destination of a flow is resolved.
const WAITING: usize = 64;

/// A client of this gateway.
#[derive(Debug)]
struct Client {
    /// Its listener's, which is closed when the listener is gone, whoever its clients are.
    socket: Weak<UdpSocket>,
    address: SocketAddr,
    to: PublicKey,
    used: Instant,
    idle: Duration,
}

/// Properties of a flow in a connection.
#[derive(Debug)]
pub(super) struct Streamed {
    pub(super) to: PublicKey,
    pub(super) destination: Destination,
    pub(super) treatment: Treatment,
    pub(super) socket: Weak<UdpSocket>,
}

impl PartialEq for Streamed {
    fn eq(&self, other: &Self) -> bool {
        (self.to, &self.destination, self.treatment) == (other.to, &other.destination, other.treatment)
            && self.socket.ptr_eq(&other.socket)
    }
}

/// The task that takes the datagrams of a client, and since when.
#[derive(Debug)]
struct Stream {
    flow: Streamed,
    queue: mpsc::Sender<Bytes>,
    began: Instant,
}

/// A connection that ends at once, as one whose destination is not allowed, is followed by no other one for so long.
const AGAIN: Duration = Duration::from_secs(1);

/// When all places are taken, one is looked for so often: each look costs time, and a flood brings more clients than that.
const LOOK: Duration = Duration::from_millis(1);

/// A place of a peer's flow, as long as it lives.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    flows: &'a Flows,
    peer: PublicKey,
}

impl Flows {
    fn lock(&self) -> std::sync::MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The flow of a client; `None` if there are too many.
    pub(super) fn of_client(
        &self,
        socket: &Arc<UdpSocket>,
        address: SocketAddr,
        to: PublicKey,
        idle: Duration,
        most: usize,
    ) -> Option<u32> {
        let at = socket.local_addr().ok()?;
        let used = Instant::now();
        let tables = &mut *self.lock();
        if let Some(&flow) = tables.of_clients.get(&(at, address))
            && let Some(client) = tables.clients.get_mut(&flow)
            && client.to == to
            && std::ptr::eq(client.socket.as_ptr(), Arc::as_ptr(socket))
        {
            client.used = used;
            return Some(flow);
        }
        if !tables.make_room(address, most) {
            return None;
        }
        let flow = tables.next.0;
        tables.next.0 = flow.wrapping_add(1);
        tables.clients.insert(flow, Client { socket: Arc::downgrade(socket), address, to, used, idle });
        if let Some(before) = tables.of_clients.insert((at, address), flow) {
            tables.clients.remove(&before);
        }
        Some(flow)
    }

    /// Passes a datagram to the connection of its flow, which `begin` begins; `None` if it is dropped.
    pub(super) fn to_stream(
        &self,
        at: (SocketAddr, SocketAddr),
        flow: Streamed,
        most: usize,
        begin: impl FnOnce() -> Option<mpsc::Sender<Bytes>>,
        data: Bytes,
    ) -> Option<()> {
        let tables = &mut *self.lock();
        match tables.streams.get(&at) {
            Some(known) if known.flow == flow && !known.queue.is_closed() => return known.queue.try_send(data).ok(),
            Some(known) if known.flow == flow && known.began.elapsed() < AGAIN => return None,
            // The task that took them has ended, or the configuration has changed.
            Some(_) => drop(tables.streams.remove(&at)),
            None => {}
        }
        if !tables.make_room(at.1, most) {
            return None;
        }
        let queue = begin()?;
        queue.try_send(data).ok()?;
        tables.streams.insert(at, Stream { flow, queue, began: Instant::now() });
        Some(())
    }

    /// A place for a flow of a peer in a connection.
    pub(super) fn slot_of_peer(&self, peer: PublicKey, most: usize) -> Option<Slot<'_>> {
        let tables = &mut *self.lock();
        let others = tables.destinations.get(&peer).map_or(0, HashMap::len);
        let slots = tables.slots.entry(peer).or_default();
        if *slots + others >= most {
            return None;
        }
        *slots += 1;
        Some(Slot { flows: self, peer })
    }

    /// Passes a datagram to who carries its flow; `None` if it is dropped. Of a new flow, gives what somebody has to carry from now on.
    /// Each peer has `most` flows, so that none takes the places of another one.
    pub(super) fn to_destination(
        &self,
        peer: PublicKey,
        (flow, destination): (u32, &Destination),
        arrived: Arrived,
        most: usize,
    ) -> Option<Option<mpsc::Receiver<Arrived>>> {
        let tables = &mut *self.lock();
        let slots = tables.slots.get(&peer).copied().unwrap_or(0);
        let destinations = tables.destinations.entry(peer).or_default();
        match destinations.get(&flow) {
            Some((known, queue)) if known == destination => return queue.try_send(arrived).is_ok().then_some(None),
            // The peer has begun anew, or has another configuration: who carries the old flow ends with its queue.
            Some(_) => {}
            None if destinations.len() + slots >= most => return None,
            None => {}
        }
        let (queue, waiting) = mpsc::channel(WAITING);
        queue.try_send(arrived).ok()?;
        destinations.insert(flow, (destination.clone(), queue));
        Some(Some(waiting))
    }

    /// Forgets a flow that no session carries any more.
    pub(super) fn forget(&self, peer: PublicKey, flow: u32) {
        // Another flow may be in its place by now.
        let destinations = &mut self.lock().destinations;
        let Some(flows) = destinations.get_mut(&peer) else { return };
        if flows.get(&flow).is_some_and(|(_, queue)| queue.is_closed()) {
            flows.remove(&flow);
        }
        if flows.is_empty() {
            destinations.remove(&peer);
        }
    }

    pub(super) fn to_client(&self, peer: &PublicKey, flow: u32, data: &[u8]) -> Option<()> {
        let tables = &mut *self.lock();
        let now = Instant::now();
        let client = tables.clients.get_mut(&flow).filter(|it| it.to == *peer && now - it.used < it.idle)?;
        client.used = now;
        client.socket.upgrade()?.try_send_to(data, client.address).ok().map(drop)
    }
}

impl Tables {
    fn has_room(&self, most: usize) -> bool {
        self.clients.len() + self.streams.len() < most
    }

    /// Makes room for one more flow of a client, if there is none: first those go that are gone, then one of the address with most of
    /// them, unless that is its own.
    fn make_room(&mut self, client: SocketAddr, most: usize) -> bool {
        if self.has_room(most) {
            return true;
        }
        let now = Instant::now();
        if self.looked.is_some_and(|at| now - at < LOOK) {
            return false;
        }
        self.looked = Some(now);
        self.clients.retain(|_, client| now - client.used < client.idle && client.socket.strong_count() > 0);
        self.streams.retain(|_, stream| !stream.queue.is_closed());
        if !self.has_room(most) {
            self.end_one_of_most(client);
        }
        self.of_clients.retain(|_, flow| self.clients.contains_key(flow));
        self.has_room(most)
    }

    /// Ends the oldest flow of the address with most of them, unless a new one of this client would be as many there.
    fn end_one_of_most(&mut self, client: SocketAddr) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        let addresses = self.clients.values().map(|it| it.address).chain(self.streams.keys().map(|at| at.1));
        addresses.for_each(|address| *counts.entry(client_of(address.ip())).or_default() += 1);
        let own = counts.get(&client_of(client.ip())).copied().unwrap_or(0);
        let Some((&greedy, _)) = counts.iter().max_by_key(|(_, count)| **count).filter(|(_, count)| **count > own + 1)
        else {
            return;
        };
        let is_theirs = |address: SocketAddr| client_of(address.ip()) == greedy;
        let clients = self.clients.iter().filter(|(_, it)| is_theirs(it.address));
        let streams = self.streams.iter().filter(|(at, _)| is_theirs(at.1));
        let silent = clients.min_by_key(|(_, it)| it.used).map(|(&flow, _)| flow);
        match silent {
            Some(flow) => drop(self.clients.remove(&flow)),
            None => {
                let oldest = streams.min_by_key(|(_, it)| it.began).map(|(&at, _)| at);
                oldest.map(|at| self.streams.remove(&at));
            }
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let slots = &mut self.flows.lock().slots;
        match slots.get_mut(&self.peer) {
            Some(count @ 2..) => *count -= 1,
            _ => drop(slots.remove(&self.peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gateway that has begun anew numbers its flows from the start again, and their destinations are others. `[T11]`
    #[test]
    fn a_flow_with_another_destination_is_another_flow() {
        let (flows, peer) = (Flows::default(), PublicKey::new([7; 32]));
        let arrived = || Arrived { class: 6, mark: 0, data: Bytes::from_static(b"data") };
        let [one, other] = ["192.0.2.9:53", "192.0.2.9:514"].map(|text| text.parse::<Destination>().unwrap());
        let to = |destination| flows.to_destination(peer, (0, destination), arrived(), 1);
        let mut first = to(&one).unwrap().unwrap();
        assert!(to(&one).unwrap().is_none(), "somebody carries it");
        let mut second = to(&other).unwrap().unwrap();
        assert!(first.try_recv().is_ok() && first.try_recv().is_ok());
        assert!(matches!(first.try_recv(), Err(mpsc::error::TryRecvError::Disconnected)), "its queue has ended");
        flows.forget(peer, 0);
        assert!(to(&other).unwrap().is_none() && second.try_recv().is_ok(), "the new one stays");
        drop(second);
        flows.forget(peer, 0);
        assert!(to(&one).unwrap().is_some());
    }

    /// A peer that has all its flows keeps no other one from having some.
    #[test]
    fn each_peer_has_places_of_its_own() {
        let (flows, destination) = (Flows::default(), "192.0.2.9:53".parse::<Destination>().unwrap());
        let arrived = || Arrived { class: 6, mark: 0, data: Bytes::from_static(b"data") };
        let to = |peer, flow| flows.to_destination(PublicKey::new([peer; 32]), (flow, &destination), arrived(), 2);
        let kept = [0, 1].map(|flow| to(7, flow).unwrap().unwrap());
        assert!(to(7, 2).is_none(), "it has two");
        assert!(to(8, 0).is_some() && to(8, 1).is_some());
        drop(kept);
        flows.forget(PublicKey::new([7; 32]), 0);
        assert!(to(7, 2).is_some());
    }

    /// A client that takes all places keeps none that has fewer from having one.
    #[tokio::test]
    async fn the_client_with_most_flows_gives_way() {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let (flows, peer) = (Flows::default(), PublicKey::new([7; 32]));
        let flow = |host: u8, port: u16| {
            std::thread::sleep(2 * LOOK);
            let address = SocketAddr::from(([192, 0, 2, host], port));
            flows.of_client(&socket, address, peer, Duration::from_secs(600), 4)
        };
        let first = [1, 2, 3, 4].map(|port| flow(1, port).unwrap());
        assert_eq!(flow(1, 1), Some(first[0]), "used again");
        assert_eq!(flow(1, 5), None);
        let other = flow(2, 1).unwrap();
        assert_eq!([3, 4, 1].map(|port| flow(1, port)), [2, 3, 0].map(|n| Some(first[n])));
        assert_eq!((flow(1, 2), flow(2, 1)), (None, Some(other)), "the one that was silent for longest has gone");
        assert!(flow(2, 2).is_some());
        assert_eq!(flow(2, 3), None, "as many as the first one has");
        assert_eq!(flows.lock().of_clients.len(), 4);
    }

    /// Replies go to a client until nothing has come or gone for as long as it may.
    #[tokio::test]
    async fn a_client_that_was_silent_for_too_long_is_forgotten() {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let (flows, peer) = (Flows::default(), PublicKey::new([7; 32]));
        socket.writable().await.unwrap();
        for (idle, is_known) in [(Duration::from_secs(600), true), (Duration::from_millis(50), false)] {
            let peer = if is_known { peer } else { PublicKey::new([8; 32]) };
            let flow = flows.of_client(&socket, client, peer, idle, 1 + usize::from(!is_known)).unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(flows.to_client(&peer, flow, b"reply").is_some(), is_known);
        }
    }
}

//! Who sends datagrams through a gateway, and where replies go.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::destination::Destination;
use crate::seal::PublicKey;

/// Clients and destinations of datagrams.
#[derive(Debug, Default)]
pub(super) struct Flows(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    next: u32,
    clients: HashMap<u32, Client>,
    of_clients: HashMap<(SocketAddr, SocketAddr), u32>,
    /// What waits for the destinations of peers' flows.
    destinations: HashMap<(PublicKey, u32), (Destination, mpsc::Sender<Arrived>)>,
}

/// A datagram of a flow, and where the other gateway was when it sent it.
type Arrived = (SocketAddr, Bytes);

/// Datagrams that wait while the destination of a flow is resolved.
const WAITING: usize = 64;

/// A client of this gateway.
#[derive(Debug)]
struct Client {
    socket: Arc<UdpSocket>,
    address: SocketAddr,
    to: PublicKey,
    used: Instant,
    idle: Duration,
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
        {
            client.used = used;
            return Some(flow);
        }
        if tables.clients.len() >= most {
            let Tables { clients, of_clients, .. } = tables;
            clients.retain(|_, client| used - client.used < client.idle);
            of_clients.retain(|_, flow| clients.contains_key(flow));
            if clients.len() >= most {
                return None;
            }
        }
        let flow = tables.next;
        tables.next = flow.wrapping_add(1);
        tables.clients.insert(flow, Client { socket: socket.clone(), address, to, used, idle });
        tables.of_clients.insert((at, address), flow);
        Some(flow)
    }

    /// Passes a datagram to who carries its flow; `None` if it is dropped. Of a new flow, gives what somebody has to carry from now on.
    pub(super) fn to_destination(
        &self,
        peer: PublicKey,
        (flow, destination): (u32, &Destination),
        arrived: Arrived,
        most: usize,
    ) -> Option<Option<mpsc::Receiver<Arrived>>> {
        let destinations = &mut self.lock().destinations;
        match destinations.get(&(peer, flow)) {
            Some((known, queue)) if known == destination => return queue.try_send(arrived).is_ok().then_some(None),
            // The peer has begun anew, or has another configuration: who carries the old flow ends with its queue.
            Some(_) => {}
            None if destinations.len() >= most => return None,
            None => {}
        }
        let (queue, waiting) = mpsc::channel(WAITING);
        queue.try_send(arrived).ok()?;
        destinations.insert((peer, flow), (destination.clone(), queue));
        Some(Some(waiting))
    }

    /// Nobody carries a flow any more.
    pub(super) fn forget(&self, peer: PublicKey, flow: u32) {
        // Another one may be in its place by now.
        let destinations = &mut self.lock().destinations;
        if destinations.get(&(peer, flow)).is_some_and(|(_, queue)| queue.is_closed()) {
            destinations.remove(&(peer, flow));
        }
    }

    pub(super) fn to_client(&self, peer: &PublicKey, flow: u32, data: &[u8]) -> Option<()> {
        let tables = &mut *self.lock();
        let client = tables.clients.get_mut(&flow).filter(|client| client.to == *peer)?;
        client.used = Instant::now();
        client.socket.try_send_to(data, client.address).ok().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gateway that has begun anew numbers its flows from the start again, and their destinations are others. `[T11]`
    #[test]
    fn a_flow_with_another_destination_is_another_flow() {
        let (flows, peer) = (Flows::default(), PublicKey::new([7; 32]));
        let arrived = || (SocketAddr::from(([192, 0, 2, 1], 1)), Bytes::from_static(b"data"));
        let [one, other] = ["192.0.2.9:53", "192.0.2.9:514"].map(|text| text.parse::<Destination>().unwrap());
        let to = |destination| flows.to_destination(peer, (0, destination), arrived(), 1);
        let mut first = to(&one).unwrap().unwrap();
        assert!(to(&one).unwrap().is_none(), "somebody carries it");
        let mut second = to(&other).unwrap().unwrap();
        assert!(first.try_recv().is_ok() && first.try_recv().is_ok());
        assert!(first.try_recv() == Err(mpsc::error::TryRecvError::Disconnected), "its queue has ended");
        flows.forget(peer, 0);
        assert!(to(&other).unwrap().is_none() && second.try_recv().is_ok(), "the new one stays");
        drop(second);
        flows.forget(peer, 0);
        assert!(to(&one).unwrap().is_some());
    }
}

//! Who sends datagrams through a gateway, and where replies go.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::Instant;

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
    destinations: HashMap<(PublicKey, u32), mpsc::Sender<Arrived>>,
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
        flow: u32,
        arrived: Arrived,
        most: usize,
    ) -> Option<Option<mpsc::Receiver<Arrived>>> {
        let destinations = &mut self.lock().destinations;
        if let Some(known) = destinations.get(&(peer, flow)) {
            return known.try_send(arrived).is_ok().then_some(None);
        }
        if destinations.len() >= most {
            return None;
        }
        let (queue, waiting) = mpsc::channel(WAITING);
        queue.try_send(arrived).ok()?;
        destinations.insert((peer, flow), queue);
        Some(Some(waiting))
    }

    /// Nobody carries a flow any more.
    pub(super) fn forget(&self, peer: PublicKey, flow: u32) {
        self.lock().destinations.remove(&(peer, flow));
    }

    pub(super) fn to_client(&self, peer: &PublicKey, flow: u32, data: &[u8]) -> Option<()> {
        let tables = &mut *self.lock();
        let client = tables.clients.get_mut(&flow).filter(|client| client.to == *peer)?;
        client.used = Instant::now();
        client.socket.try_send_to(data, client.address).ok().map(drop)
    }
}

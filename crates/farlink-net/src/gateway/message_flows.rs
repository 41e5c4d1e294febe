//! Datagrams in connections: each flow of a UDP client has one, in the mode that a rule gives it. `[T12]`, `[T13]`

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::io::Connection;

use super::core::Core;
use super::destination::Destination;
use super::far;
use super::frame::{Refusal, put_destination, take_destination};
use super::messages::{LONGEST_DATAGRAM, Messages, encode};
use super::modes;
use super::rules::Treatment;

/// Datagrams that wait for their connection to take them; further ones are dropped.
const WAITING: usize = 64;

/// Begins the flow of a client; gives what takes its datagrams.
pub(super) fn begin(
    core: &Arc<Core>,
    (to, destination): (&str, &Destination),
    treatment: Treatment,
    (socket, client): (Weak<UdpSocket>, SocketAddr),
    idle: Duration,
) -> Option<mpsc::Sender<Bytes>> {
    let config = core.config();
    let peer = config.peers.get(to)?;
    let (port, endpoint) = modes::place(&core.endpoint, treatment.mode, treatment.deadline);
    let opened = endpoint.connect(&peer.key, peer.address?, port);
    let connection =
        opened.inspect_err(|error| tracing::warn!(%error, to, "no connection to the other gateway")).ok()?;
    connection.set_class(treatment.class);
    let mut head = BytesMut::new();
    head.put_u8(treatment.class);
    put_destination(destination, &mut head);
    let (queue, waiting) = mpsc::channel(WAITING);
    let core = core.clone();
    tokio::spawn(async move {
        let reply = |data: Bytes| {
            let sent = socket.upgrade().and_then(|socket| socket.try_send_to(&data, client).ok());
            core.metrics.count_received(sent.is_some());
        };
        tokio::select! {
            () = carry(connection, &head, waiting, reply, idle) => {}
            // Datagrams have no end that could be waited for.
            () = core.draining() => {}
        }
    });
    Some(queue)
}

/// Serves the flow of another gateway.
pub(super) async fn serve(core: Arc<Core>, mut connection: Connection) {
    let Some((key, _)) = connection.peer() else { return };
    let Some(_slot) = core.flows.slot_of_peer(key, core.config().limits.udp_clients as usize) else {
        core.metrics.turned_away_total.add(1);
        return;
    };
    let within = Duration::from_secs_f64(core.config().limits.request_s);
    let mut messages = Messages::default();
    let first = timeout(within, first(&mut connection, &mut messages)).await;
    let Ok(Some((class, destination, early))) = first else {
        core.metrics.bad_requests_total.add(1);
        return;
    };
    connection.set_class(class.min(7));
    let config = core.config();
    let allow = config.peer_of_key(&key).map(|(_, peer)| peer.allow.clone()).unwrap_or_default();
    let within = Duration::from_secs_f64(config.limits.connect_s);
    let address = match timeout(within, far::resolve(&destination, &allow)).await {
        Ok(Ok(addresses)) => addresses[0],
        refused => {
            let is_refused = matches!(refused, Ok(Err(Refusal::NotAllowed)));
            let count = if is_refused { &core.metrics.not_allowed_total } else { &core.metrics.failed_total };
            count.add(1);
            tracing::info!(destination = core.shown(&destination), "datagrams are dropped");
            return;
        }
    };
    let any: SocketAddr =
        if address.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let Ok(socket) = UdpSocket::bind(any).await else { return };
    if socket.connect(address).await.is_err() || socket.writable().await.is_err() {
        return;
    }
    let send = |message: Bytes| {
        let data = content(message).filter(|(_, to, _)| *to == destination).map(|(_, _, data)| data);
        let sent = data.is_some_and(|data| socket.try_send(&data).is_ok());
        core.metrics.count_received(sent);
    };
    early.into_iter().for_each(send);
    let (queue, waiting) = mpsc::channel(WAITING);
    let replies = async {
        let mut buffer = vec![0; LONGEST_DATAGRAM].into_boxed_slice();
        loop {
            match socket.recv(&mut buffer).await {
                Ok(bytes) => {
                    let sent = queue.try_send(Bytes::copy_from_slice(&buffer[..bytes])).is_ok();
                    core.metrics.count_sent(sent);
                }
                // As of a destination that is not there (ICMP).
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    // The other gateway knows how long a client may be silent, and ends the connection.
    let carried = carry_from(connection, messages, &[], waiting, send, FOREVER);
    tokio::select! {
        () = carried => {}
        () = replies => {}
        () = core.draining() => {}
    }
}

const FOREVER: Duration = Duration::from_secs(1 << 30);

/// The first message whose destination can be read, and all that came with it.
async fn first(connection: &mut Connection, messages: &mut Messages) -> Option<(u8, Destination, Vec<Bytes>)> {
    let mut buffer = [0; 4096];
    loop {
        let bytes = connection.read(&mut buffer).await.ok().filter(|&bytes| bytes > 0)?;
        let found = messages.push(&buffer[..bytes]);
        if let Some((class, destination, _)) = found.iter().find_map(|message| content(message.clone())) {
            return Some((class, destination, found));
        }
    }
}

/// Class, destination and content of a message. `[T12]`
fn content(mut message: Bytes) -> Option<(u8, Destination, Bytes)> {
    let class = message.try_get_u8().ok()?;
    let destination = take_destination(&mut message)?;
    Some((class, destination, message))
}

async fn carry(
    connection: Connection,
    head: &[u8],
    waiting: mpsc::Receiver<Bytes>,
    take: impl FnMut(Bytes),
    idle: Duration,
) {
    carry_from(connection, Messages::default(), head, waiting, take, idle).await;
}

/// Carries both directions until one has ended or nothing was carried for too long. Each message is sent behind `head`.
async fn carry_from(
    connection: Connection,
    mut messages: Messages,
    head: &[u8],
    mut waiting: mpsc::Receiver<Bytes>,
    mut take: impl FnMut(Bytes),
    idle: Duration,
) {
    let (mut from_peer, mut to_peer) = tokio::io::split(connection);
    let used = Mutex::new(Instant::now());
    let use_it = || *used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    let up = async {
        while let Some(data) = waiting.recv().await {
            use_it();
            if to_peer.write_all(&encode(&[head, &data].concat())).await.is_err() {
                return;
            }
        }
    };
    let down = async {
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = from_peer.read(&mut buffer).await {
            use_it();
            messages.push(&buffer[..bytes]).into_iter().for_each(&mut take);
        }
    };
    let watch = async {
        loop {
            let until = *used.lock().unwrap_or_else(PoisonError::into_inner) + idle;
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
        () = watch => {}
    }
}

//! UDP forwards: each datagram of a client is a datagram of the session `[T11]`, or a message in a connection, as rules say.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::seal::PublicKey;

use super::allow::AllowList;
use super::config::{Listener, ListenerKind, Mode, Protocol, USUAL_CLASS};
use super::core::Core;
use super::destination::Destination;
use super::far;
use super::flows::Streamed;
use super::frame::{Refusal, put_destination, take_destination};
use super::message_flows;
use super::messages::LONGEST_DATAGRAM;
use super::modes::PORT;

const TO_DESTINATION: u8 = 0;
const TO_CLIENT: u8 = 1;
/// The direction has the low bits of its byte, the class the others, so that the usual one is 0 there.
const CLASS_SHIFT: u32 = 4;
/// A destination that sends nothing, and to which nothing is sent, is forgotten after so long.
const FAR_IDLE: Duration = Duration::from_secs(120);

/// Serves the clients of a listener until it is aborted.
pub(super) async fn serve(core: Arc<Core>, listener: Arc<Listener>, socket: Arc<UdpSocket>) {
    let ListenerKind::Udp { destination, idle } = &listener.kind else { return };
    let mut buffer = vec![0; LONGEST_DATAGRAM].into_boxed_slice();
    loop {
        let Ok((bytes, client)) = socket.recv_from(&mut buffer).await else {
            // As of a client that is gone; of a socket that is broken, each call would fail.
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        let sent = send_on(&core, &listener, destination, *idle, &socket, client, &buffer[..bytes]);
        core.metrics.count_sent(sent.is_some());
    }
}

fn send_on(
    core: &Arc<Core>,
    listener: &Listener,
    destination: &Destination,
    idle: Duration,
    socket: &Arc<UdpSocket>,
    client: SocketAddr,
    data: &[u8],
) -> Option<()> {
    let config = core.config();
    let peer = config.peers.get(&listener.to)?;
    let treatment = config.treatment(Protocol::Udp, destination);
    if treatment.mode != Mode::Datagram {
        let flow =
            Streamed { to: peer.key, destination: destination.clone(), treatment, socket: Arc::downgrade(socket) };
        let begin = || {
            let of_client = (Arc::downgrade(socket), client);
            message_flows::begin(core, (&listener.to, destination), treatment, of_client, idle)
        };
        let at = (socket.local_addr().ok()?, client);
        let data = Bytes::copy_from_slice(data);
        return core.flows.to_stream(at, flow, config.limits.udp_clients as usize, begin, data);
    }
    let flow = core.flows.of_client(socket, client, peer.key, idle, config.limits.udp_clients as usize)?;
    let mut datagram = BytesMut::with_capacity(data.len() + 300);
    datagram.put_u8(TO_DESTINATION | (treatment.class ^ USUAL_CLASS) << CLASS_SHIFT);
    datagram.put_u32(flow);
    put_destination(destination, &mut datagram);
    datagram.put_slice(data);
    core.endpoint.send_datagram_in_class(&peer.key, peer.address?, (treatment.class, PORT), datagram.freeze()).ok()
}

/// Takes the datagrams of other gateways until the socket fails.
pub(super) async fn take(core: Arc<Core>) {
    while let Some(arrived) = core.endpoint.receive_datagram().await {
        let mut data = arrived.data;
        let taken = match (data.try_get_u8(), data.try_get_u32()) {
            (Ok(TO_CLIENT), Ok(flow)) => core.flows.to_client(&arrived.peer, flow, &data),
            (Ok(first), Ok(flow)) => match class_to_destination(first) {
                Some(class) => to_destination(&core, arrived.peer, (flow, class), data),
                None => None,
            },
            _ => None,
        };
        core.metrics.count_received(taken.is_some());
    }
}

/// The class of a datagram to a destination, by its first byte. `[T11]`
fn class_to_destination(first: u8) -> Option<u8> {
    let class = first >> CLASS_SHIFT ^ USUAL_CLASS;
    (first & ((1 << CLASS_SHIFT) - 1) == TO_DESTINATION && class <= 7).then_some(class)
}

fn to_destination(core: &Arc<Core>, peer: PublicKey, (flow, class): (u32, u8), mut data: Bytes) -> Option<()> {
    let destination = take_destination(&mut data)?;
    let config = core.config();
    let allow = config.peer_of_key(&peer)?.1.allow.clone();
    // What is not allowed takes no place of others, and what no longer is ends here.
    if !allow.may_allow(&destination) {
        core.metrics.not_allowed_total.add(1);
        return None;
    }
    let most = config.limits.udp_clients as usize;
    let waiting = core.flows.to_destination(peer, (flow, &destination), (class, data), most)?;
    if let Some(waiting) = waiting {
        let core = core.clone();
        tokio::spawn(async move {
            let _ = carry(&core, peer, flow, &destination, &allow, waiting).await;
            core.flows.forget(peer, flow);
        });
    }
    Some(())
}

/// Carries the datagrams of one flow between the session and its destination.
async fn carry(
    core: &Core,
    peer: PublicKey,
    flow: u32,
    destination: &Destination,
    allow: &AllowList,
    mut waiting: mpsc::Receiver<(u8, Bytes)>,
) -> Option<()> {
    let within = Duration::from_secs_f64(core.config().limits.connect_s);
    let resolved = timeout(within, far::resolve(destination, allow)).await.ok();
    let address = match resolved? {
        Ok(addresses) => addresses[0],
        Err(why) => {
            let count =
                if why == Refusal::NotAllowed { &core.metrics.not_allowed_total } else { &core.metrics.failed_total };
            count.add(1);
            tracing::info!(destination = core.shown(destination), why = why.text(), "datagrams are dropped");
            // Those that follow are dropped without being resolved again and again.
            let _ = timeout(FAR_IDLE, async { while waiting.recv().await.is_some() {} }).await;
            return None;
        }
    };
    let any: SocketAddr =
        if address.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any).await.ok()?;
    // From nobody else anything is taken.
    socket.connect(address).await.ok()?;
    // No datagram of the session is as long as a packet: what does not fit into one would not go on.
    let mut buffer = vec![0; usize::from(core.config().packets.packet_bytes)].into_boxed_slice();
    // Replies have the class of what came last.
    let mut class = USUAL_CLASS;
    loop {
        let next = async {
            tokio::select! {
                data = waiting.recv() => Some(data),
                Ok(bytes) = socket.recv(&mut buffer) => {
                    let mut datagram = BytesMut::with_capacity(5 + bytes);
                    datagram.put_u8(TO_CLIENT);
                    datagram.put_u32(flow);
                    datagram.put_slice(&buffer[..bytes]);
                    core.metrics.count_sent(core.endpoint.answer_datagram(&peer, (class, PORT), datagram.freeze()));
                    None
                }
            }
        };
        match timeout(FAR_IDLE, next).await {
            Ok(Some(Some((of_client, data)))) => {
                class = of_client;
                drop(socket.send(&data).await);
            }
            Ok(None) => {}
            Err(_) | Ok(Some(None)) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_has_direction_and_class() {
        for class in 0..8 {
            assert_eq!(class_to_destination(TO_DESTINATION | (class ^ USUAL_CLASS) << CLASS_SHIFT), Some(class));
        }
        assert_eq!(class_to_destination(0), Some(USUAL_CLASS), "as gateways say it that know no classes");
        for other in [TO_CLIENT, 2, 0x0f, 0x80, 0xff] {
            assert_eq!(class_to_destination(other), None, "{other}");
        }
    }
}

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
use super::config::{Listener, ListenerKind};
use super::core::Core;
use super::destination::Destination;
use super::flows::{Arrived, Streamed};
use super::frame::{Refusal, put_destination, take_destination};
use super::message_flows;
use super::messages::LONGEST_DATAGRAM;
use super::modes::PORT;
use super::rules::{Mode, Protocol, USUAL_CLASS};
use super::{dscp, far};

const TO_DESTINATION: u8 = 0;
const TO_CLIENT: u8 = 1;
/// As to a destination, with the mark of the packet behind it.
const TO_DESTINATION_MARKED: u8 = 2;
/// The direction has the low bits of its byte, the class the others, so that the usual one is 0 there.
const CLASS_SHIFT: u32 = 4;
/// A destination that sends nothing, and to which nothing is sent, is forgotten after so long.
const FAR_IDLE: Duration = Duration::from_secs(120);

/// Serves the clients of a listener until it is aborted.
pub(super) async fn serve(core: Arc<Core>, listener: Arc<Listener>, socket: Arc<UdpSocket>) {
    let ListenerKind::Udp { destination, idle } = &listener.kind else { return };
    let mut buffer = vec![0; LONGEST_DATAGRAM].into_boxed_slice();
    let trusts_marks = core.config().trust_dscp;
    if trusts_marks {
        dscp::want_marks(&socket);
    }
    loop {
        let Ok((bytes, client, mark)) = dscp::receive(&socket, &mut buffer).await else {
            // As of a client that is gone; of a socket that is broken, each call would fail.
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        let from = (client, if trusts_marks { mark } else { 0 });
        let sent = send_on(&core, &listener, destination, *idle, &socket, from, &buffer[..bytes]);
        core.metrics.count_sent(sent.is_some());
    }
}

fn send_on(
    core: &Arc<Core>,
    listener: &Listener,
    destination: &Destination,
    idle: Duration,
    socket: &Arc<UdpSocket>,
    (client, mark): (SocketAddr, u8),
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
    let class = if treatment.rule.is_none() { dscp::class_of(mark) } else { treatment.class };
    let direction = if mark == 0 { TO_DESTINATION } else { TO_DESTINATION_MARKED };
    datagram.put_u8(direction | (class ^ USUAL_CLASS) << CLASS_SHIFT);
    datagram.put_u32(flow);
    put_destination(destination, &mut datagram);
    if mark != 0 {
        datagram.put_u8(mark);
    }
    datagram.put_slice(data);
    core.endpoint.send_datagram_in_class(&peer.key, peer.address?, (class, PORT), datagram.freeze()).ok()
}

/// Takes the datagrams of other gateways until the socket fails.
pub(super) async fn take(core: Arc<Core>) {
    while let Some(arrived) = core.endpoint.receive_datagram().await {
        let mut data = arrived.data;
        let taken = match (data.try_get_u8(), data.try_get_u32()) {
            (Ok(TO_CLIENT), Ok(flow)) => core.flows.to_client(&arrived.peer, flow, &data),
            (Ok(first), Ok(flow)) => to_destination(&core, arrived.peer, flow, first, data),
            _ => None,
        };
        core.metrics.count_received(taken.is_some());
    }
}

/// The class of a datagram to a destination, and whether its mark is there, by its first byte. `[T11]`
fn class_to_destination(first: u8) -> Option<(u8, bool)> {
    let (direction, class) = (first & ((1 << CLASS_SHIFT) - 1), first >> CLASS_SHIFT ^ USUAL_CLASS);
    let is_one = matches!(direction, TO_DESTINATION | TO_DESTINATION_MARKED) && class <= 7;
    is_one.then_some((class, direction == TO_DESTINATION_MARKED))
}

fn to_destination(core: &Arc<Core>, peer: PublicKey, flow: u32, first: u8, mut data: Bytes) -> Option<()> {
    let (class, is_marked) = class_to_destination(first)?;
    let destination = take_destination(&mut data)?;
    let mark = if is_marked { data.try_get_u8().ok()? & 0x3f } else { 0 };
    let config = core.config();
    let allow = config.peer_of_key(&peer)?.1.allow.clone();
    // What is not allowed takes no place of others, and what no longer is ends here.
    if !allow.may_allow(&destination) {
        core.metrics.not_allowed_total.add(1);
        return None;
    }
    let most = config.limits.udp_clients as usize;
    let waiting = core.flows.to_destination(peer, (flow, &destination), Arrived { class, mark, data }, most)?;
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
    mut waiting: mpsc::Receiver<Arrived>,
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
    let (mut class, mut marked) = (USUAL_CLASS, 0);
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
            Ok(Some(Some(arrived))) => {
                class = arrived.class;
                if arrived.mark != marked && core.config().trust_dscp {
                    let _ = dscp::mark(&socket, address.is_ipv4(), arrived.mark);
                    marked = arrived.mark;
                }
                drop(socket.send(&arrived.data).await);
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
            for (direction, is_marked) in [(TO_DESTINATION, false), (TO_DESTINATION_MARKED, true)] {
                let first = direction | (class ^ USUAL_CLASS) << CLASS_SHIFT;
                assert_eq!(class_to_destination(first), Some((class, is_marked)));
            }
        }
        assert_eq!(class_to_destination(0), Some((USUAL_CLASS, false)), "as gateways say it that know no classes");
        for other in [TO_CLIENT, 3, 0x0f, 0x80, 0xff] {
            assert_eq!(class_to_destination(other), None, "{other}");
        }
    }
}

//! A flow of datagrams.

use std::io;
use std::net::SocketAddr;

use farlink_core::Time;
use tokio::net::UdpSocket;

use super::ends::Stopwatch;
use super::meter::Meter;
use super::plan::Traffic;

/// Takes what comes, until the run is over. Each datagram says when it was sent; all of them are the end.
pub(super) async fn receive(socket: UdpSocket, traffic: Traffic, meter: Meter) {
    let Traffic::Cbr { messages, .. } = traffic else { return };
    let mut buffer = vec![0; 1 << 16];
    let mut received = 0;
    loop {
        match socket.recv(&mut buffer).await {
            Ok(bytes) => {
                let Some(sent) = buffer[..bytes].first_chunk() else { continue };
                meter.message(bytes, Time::from_ps(u64::from_be_bytes(*sent)));
                received += 1;
                if messages == Some(received) {
                    meter.done();
                }
            }
            Err(error) => return meter.failed(error),
        }
    }
}

/// Sends the messages of a flow, each at its time.
pub(super) async fn send(socket: UdpSocket, to: SocketAddr, traffic: Traffic, meter: Meter, watch: Stopwatch) {
    let Traffic::Cbr { every, bytes, messages, last_bytes } = traffic else { return };
    let mut message = vec![0; bytes];
    let began = watch.passed();
    let mut number = 0;
    while messages.is_none_or(|all| u64::from(number) < all) {
        watch.until(began + every * number).await;
        number += 1;
        message[..8].copy_from_slice(&watch.now().as_ps().to_be_bytes());
        let now = if messages == Some(number.into()) { last_bytes } else { bytes };
        match socket.send_to(&message[..now], to).await {
            Ok(_) => {}
            // The path has no room, or nobody listens any more: it counts as sent.
            Err(error) if is_of_one_datagram(&error) => {}
            Err(error) => return meter.failed(error),
        }
    }
}

fn is_of_one_datagram(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, WouldBlock};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | WouldBlock)
        || error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error())
}

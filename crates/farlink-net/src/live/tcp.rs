//! A flow over the kernel's TCP.

use std::io;
use std::net::SocketAddr;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::ends::Stopwatch;
use super::meter::Meter;
use super::plan::Traffic;

pub(super) fn listener(address: SocketAddr, segment_bytes: u32) -> io::Result<TcpListener> {
    let socket = new_socket(address)?;
    socket.set_reuseaddr(true)?;
    setsockopt(&socket, sockopt::TcpMaxSeg, &segment_bytes)?;
    socket.bind(address)?;
    socket.listen(1)
}

fn new_socket(address: SocketAddr) -> io::Result<TcpSocket> {
    if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }
}

/// Takes what comes, until the sender ends it.
pub(super) async fn receive(listener: TcpListener, meter: Meter) {
    let received = async {
        let (mut stream, _) = listener.accept().await?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match stream.read(&mut buffer).await? {
                0 => return Ok(()),
                bytes => meter.stream(bytes),
            }
        }
    };
    let received: io::Result<()> = received.await;
    match received {
        Ok(()) => meter.done(),
        Err(error) => meter.failed(error),
    }
}

/// The socket of the sender, with its congestion control.
pub(super) fn sender(own: SocketAddr, control: &str, segment_bytes: u32) -> io::Result<TcpSocket> {
    let socket = new_socket(own)?;
    rustix::net::sockopt::set_tcp_congestion(&socket, control)?;
    setsockopt(&socket, sockopt::TcpMaxSeg, &segment_bytes)?;
    socket.bind(SocketAddr::new(own.ip(), 0))?;
    Ok(socket)
}

/// Sends the traffic of a flow.
pub(super) async fn send(socket: TcpSocket, to: SocketAddr, traffic: Traffic, meter: Meter, watch: Stopwatch) {
    let sent = async {
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        write(stream, traffic, watch).await
    };
    if let Err(error) = sent.await {
        meter.failed(error);
    }
}

async fn write(mut stream: TcpStream, traffic: Traffic, watch: Stopwatch) -> io::Result<()> {
    super::ends::write_traffic(&mut stream, traffic, watch).await?;
    stream.shutdown().await?;
    // The connection stays until the other side ends it too, or the run is over.
    let _ = stream.read(&mut [0]).await?;
    Ok(())
}

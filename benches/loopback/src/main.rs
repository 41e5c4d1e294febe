//! One stream over the loopback interface: `loopback STACK PACKET_BYTES MEGABYTES`. `benches/loopback.py` runs it.
//!
//! Both ends are tasks of this process, on two threads. Prints one line of JSON: bytes, seconds until the receiver had the last of
//! them, and seconds of CPU time of the whole process meanwhile, the kernel's work for it included.

use std::error::Error;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use farlink_core::protocol::aerotp::{AcceptorLimits, RateControl};
use farlink_core::units::BitRate;
use farlink_net::mux::{MemoryCounters, MuxConfig, Trust};
use farlink_net::seal::{PublicKey, StaticKey};
use farlink_net::{Endpoint, EndpointConfig};
use quinn::rustls;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

type Failure = Box<dyn Error + Send + Sync>;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Headers of IP and UDP.
const AROUND_UDP_BYTES: u16 = 28;
/// What an application gives or takes at once.
const PIECE_BYTES: usize = 1 << 16;
/// farlink's receive window, and what it asks of the kernel for its sockets: QUIC has the same.
const WINDOW_BYTES: u32 = 16 << 20;
const SOCKET_BYTES: usize = 4 << 20;
/// Far more than the machine can do.
const SET_RATE_BPS: f64 = 10e9;

/// Time of the wall and of the process, and bytes that have arrived.
struct Measured {
    bytes: usize,
    wall_s: f64,
    cpu_s: f64,
}

/// Clocks that run since the connection was asked for.
struct Started {
    wall: Instant,
    cpu_s: f64,
}

impl Started {
    fn now() -> Self {
        Started { wall: Instant::now(), cpu_s: cpu_s() }
    }

    fn until_now(&self, bytes: usize) -> Measured {
        Measured { bytes, wall_s: self.wall.elapsed().as_secs_f64(), cpu_s: cpu_s() - self.cpu_s }
    }
}

/// CPU time of the process so far, in user and kernel mode.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    // Not here: the runtime would run this task on a third thread.
    let measured = tokio::spawn(measured()).await;
    match measured.unwrap_or_else(|error| Err(error.into())) {
        Ok(Measured { bytes, wall_s, cpu_s }) => {
            println!("{{\"bytes\": {bytes}, \"wall_s\": {wall_s}, \"cpu_s\": {cpu_s}}}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measured() -> Result<Measured, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stack, packet_bytes, megabytes] = &arguments[..] else {
        return Err("usage: loopback STACK PACKET_BYTES MEGABYTES".into());
    };
    let (packet_bytes, bytes) = (packet_bytes.parse()?, megabytes.parse::<usize>()? * 1_000_000);
    match stack.as_str() {
        "aerotp-set" => aerotp(packet_bytes, bytes, Some(SET_RATE_BPS)).await,
        "aerotp" => aerotp(packet_bytes, bytes, None).await,
        "quinn" => quic(packet_bytes, bytes).await,
        "tcp" => tcp(bytes).await,
        _ => Err(format!("there is no {stack}; give aerotp-set, aerotp, quinn or tcp").into()),
    }
}

/// Reads to the end; how many bytes there were.
async fn read_all(mut from: impl AsyncRead + Unpin) -> Result<usize, Failure> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut bytes = 0;
    loop {
        match from.read(&mut piece).await? {
            0 => return Ok(bytes),
            more => bytes += more,
        }
    }
}

async fn write_all(to: &mut (impl AsyncWrite + Unpin), bytes: usize) -> Result<(), Failure> {
    let piece = vec![7; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        left -= to.write(&piece[..left.min(piece.len())]).await?;
    }
    Ok(())
}

/// The clocks stop when the receiver has read the end of the stream.
async fn until_received(started: &Started, receiver: JoinHandle<Result<usize, Failure>>) -> Result<Measured, Failure> {
    let bytes = receiver.await??;
    Ok(started.until_now(bytes))
}

async fn aerotp(packet_bytes: u16, bytes: usize, rate_bps: Option<f64>) -> Result<Measured, Failure> {
    let keys = [StaticKey::generate(), StaticKey::generate()];
    let endpoint = |key: &StaticKey, peer: PublicKey| {
        let mux = MuxConfig { trust: Trust::Keys([peer].into()), packet_bytes, ..MuxConfig::new(key.clone()) };
        let mut config = EndpointConfig::new(mux);
        if let Some(rate_bps) = rate_bps {
            config.connection.rate_bps = Some(BitRate::new(rate_bps)?);
            config.connection.rate_control = Some(RateControl::Fixed);
        }
        Ok::<_, Failure>(Endpoint::bind(LOOPBACK, config, Box::new(MemoryCounters::default()))?)
    };
    let (a, b) = (endpoint(&keys[0], keys[1].public())?, endpoint(&keys[1], keys[0].public())?);
    b.listen(1, AcceptorLimits::default())?;
    let (peer, address) = (b.public_key(), b.local_addr());
    // Who is dropped answers no more, and the last acknowledgement may be lost.
    let _answering = b.clone();
    let receiver =
        tokio::spawn(async move { read_all(b.accept().await.ok_or("the socket cannot be used any more")?).await });

    let started = Started::now();
    let mut connection = a.connect(&peer, address, 1)?;
    write_all(&mut connection, bytes).await?;
    connection.shutdown().await?;
    until_received(&started, receiver).await
}

/// What the kernel takes at once.
const MOST_BATCH_BYTES: u16 = 65_507;

/// A socket that takes no more datagrams at once than the kernel. quinn gives ten whatever their length, and takes a path for a black
/// hole on which such a batch is lost.
#[derive(Debug)]
struct Bounded {
    socket: Arc<dyn quinn::AsyncUdpSocket>,
    most: usize,
}

impl quinn::AsyncUdpSocket for Bounded {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn quinn::UdpPoller>> {
        self.socket.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &quinn::udp::Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [quinn::udp::RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments().min(self.most)
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

async fn quic(packet_bytes: u16, bytes: usize) -> Result<Measured, Failure> {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = CertificateDer::from(own.cert);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone())?;

    let payload_bytes = packet_bytes - AROUND_UDP_BYTES;
    let mut transport = quinn::TransportConfig::default();
    let mut discovery = quinn::MtuDiscoveryConfig::default();
    discovery.upper_bound(payload_bytes);
    transport
        .initial_mtu(payload_bytes)
        .mtu_discovery_config(Some(discovery))
        .stream_receive_window(WINDOW_BYTES.into())
        .receive_window(WINDOW_BYTES.into())
        .send_window(WINDOW_BYTES.into());
    let transport = Arc::new(transport);
    let mut server = quinn::ServerConfig::with_single_cert(vec![certificate], key)?;
    server.transport_config(transport.clone());
    let mut client = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(transport);

    let endpoint = |server: Option<quinn::ServerConfig>| {
        let socket = UdpSocket::bind(LOOPBACK)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BYTES)?;
        rustix::net::sockopt::set_socket_send_buffer_size(&socket, SOCKET_BYTES)?;
        let mut config = quinn::EndpointConfig::default();
        config.max_udp_payload_size(payload_bytes)?;
        let runtime = Arc::new(quinn::TokioRuntime);
        let most = usize::from(MOST_BATCH_BYTES / payload_bytes);
        let socket = Arc::new(Bounded { socket: quinn::Runtime::wrap_udp_socket(&*runtime, socket)?, most });
        Ok::<_, Failure>(quinn::Endpoint::new_with_abstract_socket(config, server, socket, runtime)?)
    };
    let (a, b) = (endpoint(None)?, endpoint(Some(server))?);
    let address = b.local_addr()?;
    let receiver = tokio::spawn(async move {
        let connection = b.accept().await.ok_or("the endpoint is closed")?.await?;
        read_all(connection.accept_uni().await?).await
    });

    let started = Started::now();
    let connection = a.connect_with(client, address, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    write_all(&mut stream, bytes).await?;
    stream.finish()?;
    until_received(&started, receiver).await
}

async fn tcp(bytes: usize) -> Result<Measured, Failure> {
    let listener = TcpListener::bind(LOOPBACK).await?;
    let address = listener.local_addr()?;
    let receiver = tokio::spawn(async move { read_all(listener.accept().await?.0).await });

    let started = Started::now();
    let mut stream = TcpStream::connect(address).await?;
    write_all(&mut stream, bytes).await?;
    stream.shutdown().await?;
    until_received(&started, receiver).await
}

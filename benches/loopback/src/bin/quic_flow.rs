//! One end of a QUIC stream by quinn, for `docs/wire.py`: `quic_flow receive ADDRESS` or `quic_flow send ADDRESS`.
//!
//! The receiver writes its certificate to `certificate.der` of the present folder, where the sender reads it, and prints what has
//! arrived, twice a second, as a line of JSON. The sender sends until somebody ends it. Congestion control is quinn's default, CUBIC;
//! windows hold several bandwidth-delay products of the path.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Endpoint, MtuDiscoveryConfig, ServerConfig, TransportConfig};

type Failure = Box<dyn Error + Send + Sync>;

/// A packet of 1500 bytes without the headers of IPv4 and UDP.
const PAYLOAD_BYTES: u16 = 1500 - 28;
/// As farlink's receive window.
const WINDOW_BYTES: u32 = 16 << 20;
const CERTIFICATE: &str = "certificate.der";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", address] => receive(address).await,
        ["send", address] => send(address).await,
        _ => Err("usage: quic_flow receive|send ADDRESS".into()),
    };
    done.map_or_else(
        |error| {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

fn transport() -> Result<Arc<TransportConfig>, Failure> {
    let mut transport = TransportConfig::default();
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(PAYLOAD_BYTES);
    transport
        .initial_mtu(PAYLOAD_BYTES)
        .mtu_discovery_config(Some(discovery))
        .stream_receive_window(WINDOW_BYTES.into())
        .receive_window(WINDOW_BYTES.into())
        .send_window(WINDOW_BYTES.into())
        .max_idle_timeout(Some(Duration::from_secs(120).try_into()?));
    Ok(Arc::new(transport))
}

async fn receive(address: &str) -> Result<(), Failure> {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    std::fs::write(CERTIFICATE, own.cert.der())?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let mut config = ServerConfig::with_single_cert(vec![CertificateDer::from(own.cert)], key)?;
    config.transport_config(transport()?);
    let endpoint = Endpoint::server(config, address.parse()?)?;
    let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
    let moved = Arc::new(AtomicU64::new(0));
    tokio::spawn(tell(moved.clone()));
    let mut stream = connection.accept_uni().await?;
    let mut piece = vec![0; 1 << 16];
    while let Some(more) = stream.read(&mut piece).await? {
        moved.fetch_add(more as u64, Ordering::Relaxed);
    }
    Ok(())
}

async fn tell(moved: Arc<AtomicU64>) {
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        println!("{{\"unix_s\": {now:.6}, \"moved_bytes\": {}}}", moved.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn send(address: &str) -> Result<(), Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(CERTIFICATE)?))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport()?);
    let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    let connection = endpoint.connect_with(config, address.parse()?, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let piece = vec![7; 1 << 16];
    loop {
        stream.write_all(&piece).await?;
    }
}

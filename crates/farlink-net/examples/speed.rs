//! How fast one stream is over the loopback interface, sealed: `speed BYTES [RATE_BPS [PACKET_BYTES [damaged]]]`.
//!
//! Prints Gb/s and the CPU time of the process for each byte, both sides together. Without a rate the rate is learnt. With `damaged` as for
//! links that damage packets: without UDP's checksum, one by one, with parity.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use farlink_core::protocol::aerotp::{AcceptorLimits, RateControl};
use farlink_core::units::BitRate;
use farlink_net::mux::{MemoryCounters, MuxConfig, Trust};
use farlink_net::seal::{PublicKey, StaticKey};
use farlink_net::{Endpoint, EndpointConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn endpoint(key: &StaticKey, peer: PublicKey, rate: Option<f64>, packet_bytes: u16, damaged_links: bool) -> Endpoint {
    let mux = MuxConfig { trust: Trust::Keys([peer].into()), packet_bytes, ..MuxConfig::new(key.clone()) };
    let config = EndpointConfig::new(mux);
    let mut config = if damaged_links { config.for_damaged_links() } else { config };
    if let Some(rate) = rate {
        config.connection.rate_bps = Some(BitRate::new(rate).expect("a rate is positive"));
        config.connection.rate_control = Some(RateControl::Fixed);
    }
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    Endpoint::bind(address, config, Box::new(MemoryCounters::default())).expect("loopback has free ports")
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "it measures time")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let damaged_links = words.last().is_some_and(|word| word == "damaged");
    let numbers = words.iter().filter(|word| *word != "damaged");
    let arguments: Vec<f64> = numbers.map(|it| it.parse().expect("arguments are numbers")).collect();
    let bytes = arguments.first().copied().unwrap_or(1e8) as usize;
    let (rate, packet_bytes) = (arguments.get(1).copied(), arguments.get(2).map_or(1500, |bytes| *bytes as u16));
    let keys = [StaticKey::generate(), StaticKey::generate()];
    let [a, b] = [(0, 1), (1, 0)]
        .map(|(own, peer)| endpoint(&keys[own], keys[peer].public(), rate, packet_bytes, damaged_links));
    b.listen(1, AcceptorLimits::default()).expect("the configuration has connections");

    let (peer, address) = (b.public_key(), b.local_addr());
    // A dropped endpoint no longer answers, and the last acknowledgement may be lost.
    let _answering = b.clone();
    let receiver = tokio::spawn(async move {
        let mut connection = b.accept().await.expect("the socket works");
        let mut buffer = vec![0; 1 << 16];
        let mut received = 0;
        while let Ok(more @ 1..) = connection.read(&mut buffer).await {
            received += more;
        }
        received
    });

    let (started, cpu) = (Instant::now(), cpu_s());
    let mut connection = a.connect(&peer, address, 1).expect("the peer's key is one");
    let piece = vec![7; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        left -= connection.write(&piece[..left.min(piece.len())]).await.expect("the peer is there");
    }
    connection.shutdown().await.expect("the peer is there");
    let took = started.elapsed().as_secs_f64();
    let cpu = cpu_s() - cpu;
    assert_eq!(receiver.await.expect("it ends"), bytes);
    println!("{:.3} Gb/s, {:.2} ns of CPU for a byte", bytes as f64 * 8.0 / 1e9 / took, cpu * 1e9 / bytes as f64);
}

/// CPU time of the process so far.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

//! Transfers over sockets through a relay of datagrams that repeats, delays, damages and cuts them.

use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use farlink_core::protocol::aerotp::{AcceptorLimits, RateControl};
use farlink_core::rng::{RandomSource as _, SplitMix64};
use farlink_core::units::BitRate;
use farlink_net::mux::{MemoryCounters, MuxConfig, Trust};
use farlink_net::seal::{PublicKey, StaticKey};
use farlink_net::{Endpoint, EndpointConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until, timeout};

const PORT: u16 = 1;
/// Outer header, tag and segment header of a packet with data.
const HEADER_BYTES: u64 = 14 + 16 + 18;
/// Content of a full packet of 1500 bytes.
const FULL_BYTES: u64 = 1500 - 28 - HEADER_BYTES;

/// What happens to datagrams, as shares of them.
#[derive(Clone, Copy)]
struct Path {
    repeated: f64,
    late: f64,
    damaged: f64,
    cut: f64,
    /// How late those are; the others take half of the round trip.
    lateness: Duration,
    one_way: Duration,
}

/// Bytes of content that came by on the way to the receiver, and those of them that were damaged or cut.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    gone: AtomicU64,
}

/// A datagram on its way: when it arrives, its number, whether it goes to the receiver, its content.
type Waiting = std::cmp::Reverse<(Instant, u64, bool, Vec<u8>)>;

/// Relays between whoever sends to the returned address first and `to`.
async fn relay(to: SocketAddr, path: Path, counts: Arc<Counts>) -> SocketAddr {
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    far.connect(to).await.unwrap();
    let address = near.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut random, mut number, mut sender) = (SplitMix64::new(7), 0, None);
        let mut waiting: BinaryHeap<Waiting> = BinaryHeap::new();
        let (mut from_near, mut from_far) = (vec![0; 2000], vec![0; 2000]);
        loop {
            let due = waiting.peek().map_or_else(|| Instant::now() + Duration::from_secs(1), |next| next.0.0);
            let (is_there, mut datagram) = tokio::select! {
                Ok((bytes, from)) = near.recv_from(&mut from_near) => {
                    sender = Some(from);
                    (true, from_near[..bytes].to_vec())
                }
                Ok(bytes) = far.recv(&mut from_far) => (false, from_far[..bytes].to_vec()),
                () = sleep_until(due) => {
                    while let Some(next) = waiting.peek().filter(|next| next.0.0 <= Instant::now()) {
                        // A receiver that has ended refuses datagrams.
                        let _ = match (next.0.2, sender) {
                            (true, _) => far.send(&next.0.3).await,
                            (false, Some(sender)) => near.send_to(&next.0.3, sender).await,
                            (false, None) => Ok(0),
                        };
                        waiting.pop();
                    }
                    continue;
                }
            };
            let mut happens = |share: f64| (random.next_u64() as f64) < share * 2_f64.powi(64);
            let bytes = if is_there { (datagram.len() as u64).saturating_sub(HEADER_BYTES) } else { 0 };
            let (is_damaged, is_cut) = (happens(path.damaged), happens(path.cut));
            let copies = 1 + usize::from(happens(path.repeated));
            let delays: Vec<_> = (0..copies)
                .map(|_| path.one_way + if happens(path.late) { path.lateness } else { Duration::ZERO })
                .collect();
            if is_damaged {
                let place = random.next_u64() as usize % datagram.len();
                datagram[place] ^= 1 << (random.next_u64() % 8);
            }
            if is_cut {
                datagram.truncate(random.next_u64() as usize % datagram.len());
            }
            counts.sent.fetch_add(bytes, Ordering::Relaxed);
            counts.gone.fetch_add(if is_damaged || is_cut { bytes } else { 0 }, Ordering::Relaxed);
            for delay in delays {
                number += 1;
                waiting.push(std::cmp::Reverse((Instant::now() + delay, number, is_there, datagram.clone())));
            }
        }
    });
    address
}

fn endpoint(key: &StaticKey, peer: PublicKey, rate: BitRate, damaged_links: bool) -> Endpoint {
    let mux = MuxConfig { trust: Trust::Keys([peer].into()), ..MuxConfig::new(key.clone()) };
    let config = EndpointConfig::new(mux);
    let mut config = if damaged_links { config.for_damaged_links() } else { config };
    config.connection.rate_bps = Some(rate);
    config.connection.rate_control = Some(RateControl::Fixed);
    Endpoint::bind((Ipv4Addr::LOCALHOST, 0).into(), config, Box::new(MemoryCounters::default())).unwrap()
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| ((n * n) >> 7) as u8).collect()
}

/// Sends content over a path; returns how many bytes came by and how many of them did not arrive whole.
async fn transfer(path: Path, damaged_links: bool, data: &[u8]) -> (u64, u64) {
    let keys = [StaticKey::generate(), StaticKey::generate()];
    let rate = BitRate::new(10e6).unwrap();
    let endpoint = |own: usize| endpoint(&keys[own], keys[1 - own].public(), rate, damaged_links);
    let (a, b) = (endpoint(0), endpoint(1));
    b.listen(PORT, AcceptorLimits::default()).unwrap();
    let counts = Arc::new(Counts::default());
    let address = relay(b.local_addr(), path, counts.clone()).await;
    let mut connection = a.connect(&b.public_key(), address, PORT).unwrap();
    // A dropped endpoint no longer answers, and the last acknowledgement may be lost.
    let answering = b.clone();
    let reader = tokio::spawn(async move {
        let mut data = Vec::new();
        b.accept().await.unwrap().read_to_end(&mut data).await.unwrap();
        data
    });
    connection.write_all(data).await.unwrap();
    let ended = timeout(Duration::from_secs(30), connection.shutdown()).await;
    let state = || format!("{:?}\n{:?}\n{:?}\n{:?}", connection.state(), a.counts(), answering.counts(), counts);
    ended.unwrap_or_else(|_| panic!("{}", state())).unwrap();
    let there = timeout(Duration::from_secs(60), reader).await.unwrap().unwrap();
    assert!(there == data, "{} bytes", there.len());
    (counts.sent.load(Ordering::Relaxed), counts.gone.load(Ordering::Relaxed))
}

/// 20 % repeated, 30 % late by 20 ms, 2 % damaged, 5 % cut: all arrives, and hardly more is sent again than was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_late_damaged_and_cut_datagrams() {
    let path = Path {
        repeated: 0.2,
        late: 0.3,
        damaged: 0.02,
        cut: 0.05,
        lateness: Duration::from_millis(20),
        one_way: Duration::from_millis(20),
    };
    let data = content(6_000_000);
    let (sent, gone) = transfer(path, false, &data).await;
    let again = sent - data.len() as u64;
    println!("{again} bytes sent again for {gone} that did not arrive whole");
    // 60 packets are what it takes to learn how late packets may be, as in the simulator.
    assert!(again as f64 <= 1.05 * gone as f64 + (60 * FULL_BYTES) as f64, "{again} for {gone}");
}

/// A link that damages every second packet and delivers it all the same: parity corrects what would be sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_packets_are_corrected() {
    let one_way = Duration::from_millis(20);
    let path = Path { repeated: 0.0, late: 0.0, damaged: 0.5, cut: 0.0, lateness: Duration::ZERO, one_way };
    let data = content(3_000_000);
    let (sent, damaged) = transfer(path, true, &data).await;
    // Parity is part of what was sent. One damaged packet of a hundred is damaged in its outer header, which has no parity.
    let parity = 64 * (data.len() as u64).div_ceil(FULL_BYTES - 64);
    let again = (sent - data.len() as u64).saturating_sub(parity);
    println!("{again} bytes sent again, {damaged} damaged");
    assert!(damaged > 1_000_000);
    assert!(again < damaged / 10, "{again} of {damaged}");
}

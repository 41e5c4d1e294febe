//! What connections cost that do nothing, and what many cost that are busy: `many [CONNECTIONS] [BUSY_BYTES]`.
//!
//! Four endpoints open connections to a fifth one over the loopback interface, and send a kilobyte over each. Then all are idle. With
//! BUSY_BYTES they then send as much over every tenth connection, all at once. Prints memory and CPU time; one process has both sides.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use farlink_core::protocol::aerotp::AcceptorLimits;
use farlink_net::mux::{MemoryCounters, MuxConfig, Trust};
use farlink_net::seal::{PublicKey, StaticKey};
use farlink_net::{Connection, Endpoint, EndpointConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CLIENTS: usize = 4;
const FIRST_BYTES: usize = 1000;

fn endpoint(key: &StaticKey, trusted: impl IntoIterator<Item = PublicKey>) -> Endpoint {
    let mux = MuxConfig { trust: Trust::Keys(trusted.into_iter().collect()), ..MuxConfig::new(key.clone()) };
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let config = EndpointConfig::new(mux);
    Endpoint::bind(address, config, Box::new(MemoryCounters::default())).expect("loopback has free ports")
}

async fn read(connection: &mut Connection, bytes: usize) {
    let mut buffer = vec![0; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        let most = left.min(buffer.len());
        let read = connection.read(&mut buffer[..most]).await.expect("the peer is there");
        assert_ne!(read, 0, "the stream ended too early");
        left -= read;
    }
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::disallowed_methods, reason = "it measures time")]
async fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|it| it.parse().expect("arguments are numbers")).collect();
    let (count, busy_bytes) = (arguments.first().map_or(10_000, |it| *it), arguments.get(1).map_or(0, |it| *it));
    let server_key = StaticKey::generate();
    let keys: Vec<_> = (0..CLIENTS).map(|_| StaticKey::generate()).collect();
    let server = endpoint(&server_key, keys.iter().map(StaticKey::public));
    server.listen(1, AcceptorLimits { half_open: count, connections: 2 * count }).expect("it has connections");
    let clients: Vec<_> = keys.iter().map(|key| endpoint(key, [server.public_key()])).collect();

    let (before, started, cpu) = (resident_bytes(), Instant::now(), cpu_s());
    let (mut opened, mut accepted) = (Vec::new(), Vec::new());
    for n in 0..count {
        let client = &clients[n % CLIENTS];
        let mut connection = client.connect(&server.public_key(), server.local_addr(), 1).expect("there are ports");
        connection.write_all(&[7; FIRST_BYTES]).await.expect("the peer is there");
        let mut there = server.accept().await.expect("the socket works");
        read(&mut there, FIRST_BYTES).await;
        opened.push(connection);
        accepted.push(there);
    }
    println!("{count} connections opened in {:.2} s, {:.2} s of CPU", started.elapsed().as_secs_f64(), cpu_s() - cpu);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let idle_cpu = cpu_s();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let grown = resident_bytes().saturating_sub(before) as f64;
    println!(
        "idle: {:.2} kB of memory for each end, {:.4} of a CPU",
        grown / 2e3 / count as f64,
        (cpu_s() - idle_cpu) / 10.0
    );

    if busy_bytes > 0 {
        let (started, cpu) = (Instant::now(), cpu_s());
        let mut tasks = Vec::new();
        let pairs = opened.into_iter().zip(accepted).step_by(10);
        for (mut connection, mut there) in pairs {
            tasks.push(tokio::spawn(async move { read(&mut there, busy_bytes).await }));
            tasks.push(tokio::spawn(async move {
                connection.write_all(&vec![7; busy_bytes]).await.expect("the peer is there");
                connection.shutdown().await.expect("the peer is there");
            }));
        }
        let (busy, mut most) = (tasks.len() / 2, 0);
        for task in tasks {
            task.await.expect("tasks end");
            most = most.max(resident_bytes());
        }
        let (took, cpu) = (started.elapsed().as_secs_f64(), cpu_s() - cpu);
        let bytes = (busy * busy_bytes) as f64;
        println!(
            "busy: {busy} connections, {:.3} Gb/s, {:.1} ns of CPU for a byte, {:.0} MB of memory at most",
            bytes * 8e-9 / took,
            cpu * 1e9 / bytes,
            most as f64 / 1e6
        );
    }
}

/// Memory of the process that is in use, as Linux tells it.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).map_or(0, |kilobytes: usize| kilobytes * 1024)
}

/// CPU time of the process so far.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

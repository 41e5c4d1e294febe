//! Sends datagrams of a stranger to an address of this machine, as fast as one core does:
//! `flood ADDRESS SECONDS hello|stray|noise [at-once]`.
//!
//! `hello` has the length of an initiation and a wrong code, `stray` a right outer header of a session that does not exist, `noise`
//! random bytes. Each datagram is a call of the kernel; `at-once` gives it 64 at a time, which on this interface stay together. The
//! stranger knows no key. Prints how many datagrams the kernel took; refuses addresses of other machines.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use farlink_core::rng::{RandomSource as _, SplitMix64};
use farlink_core::wire::aerotp::sealed::{KeyPhase, Kind, OUTER_BYTES, OuterHeader};
use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};

/// Bytes behind the outer header of an initiation, and of a short packet of data.
const INITIATION_BYTES: usize = 1 + 32 + 48 + 61 + 16 + 32;
const SHORT_BYTES: usize = 64;
/// Datagrams of a call, all different.
const BATCH: usize = 64;

#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (Some(address), Some(seconds), Some(kind)) = (words.first(), words.get(1), words.get(2)) else {
        return usage();
    };
    let is_at_once = words.get(3).is_some_and(|word| word == "at-once");
    let (Ok(address), Ok(seconds)) = (address.parse::<SocketAddr>(), seconds.parse::<f64>()) else { return usage() };
    if !address.ip().is_loopback() {
        eprintln!("error: {address} is not of this machine");
        eprintln!("hint: give an address of the loopback interface, as 127.0.0.1:47470");
        std::process::exit(2);
    }
    let mut random = SplitMix64::new(1);
    let datagrams: Vec<Vec<u8>> = (0..BATCH).map(|_| datagram(kind, &mut random)).collect();
    let bytes = datagrams[0].len();
    let contents = datagrams.concat();

    let any = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let socket = UdpSocket::bind(any).expect("loopback has free ports");
    let state = UdpSocketState::new(UdpSockRef::from(&socket)).expect("it is a socket of UDP");
    socket.set_nonblocking(false).expect("it is a socket of UDP");
    let segments = if is_at_once { state.max_gso_segments().clamp(1, BATCH) } else { 1 };
    let batches: Vec<_> = contents.chunks_exact(segments * bytes).collect();
    let (started, mut sent) = (Instant::now(), 0_u64);
    while started.elapsed() < Duration::from_secs_f64(seconds) {
        for contents in &batches {
            let segment_size = (segments > 1).then_some(bytes);
            let transmit = Transmit { destination: address, ecn: None, contents, segment_size, src_ip: None };
            // Refused datagrams are not counted.
            if state.try_send(UdpSockRef::from(&socket), &transmit).is_ok() {
                sent += segments as u64;
            }
        }
    }
    println!("{{\"datagrams\": {sent}, \"bytes\": {bytes}, \"seconds\": {:.3}}}", started.elapsed().as_secs_f64());
}

fn usage() {
    eprintln!("usage: flood ADDRESS SECONDS hello|stray|noise [at-once]");
    std::process::exit(2);
}

fn datagram(kind: &str, random: &mut SplitMix64) -> Vec<u8> {
    let mut noise = |bytes: usize| (0..bytes).map(|_| random.next_u64() as u8).collect::<Vec<_>>();
    let with_header = |kind, content: Vec<u8>, connection_id: u32| {
        let header = OuterHeader {
            kind,
            key_phase: KeyPhase::default(),
            parity_words: 0,
            content_bytes: content.len() as u16,
            connection_id,
            number: 0,
        };
        [&header.encode()[..], &content].concat()
    };
    match kind {
        "hello" => {
            let mut content = noise(INITIATION_BYTES);
            content[0] = 1;
            with_header(Kind::Hello, content, 0)
        }
        "stray" => {
            let id = u32::from_be_bytes(noise(4).try_into().expect("four bytes"));
            with_header(Kind::Sealed, noise(SHORT_BYTES), id)
        }
        "noise" => noise(OUTER_BYTES + SHORT_BYTES),
        _ => {
            usage();
            Vec::new()
        }
    }
}

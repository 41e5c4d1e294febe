//! Operations on two `Mux`es and on what is on its way between them: whatever arrives, nothing panics, and what is read is what was
//! written, from its beginning, once.

#![no_main]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use farlink_core::Time;
use farlink_core::endpoint::Ecn;
use farlink_core::event::Event;
use farlink_core::protocol::aerotp::{AcceptorLimits, AerotpConfig, RateControl};
use farlink_core::units::BitRate;
use farlink_net::mux::{ConnectionId, MemoryCounters, Mux, MuxConfig, Route, Trust};
use farlink_net::seal::StaticKey;
use libfuzzer_sys::fuzz_target;

static KEYS: LazyLock<[StaticKey; 2]> = LazyLock::new(|| [1, 2].map(|byte| StaticKey::from_private([byte; 32].into())));
/// The wall clock, which counts its readings.
static CLOCK: AtomicU64 = AtomicU64::new(1);
const PORT: u16 = 1;
const MOST_ON_THE_WAY: usize = 64;

fn unix_us() -> u64 {
    CLOCK.fetch_add(1, Ordering::Relaxed)
}

fn config() -> AerotpConfig {
    let rate_bps = Some(BitRate::new(1e7).expect("above 0"));
    AerotpConfig { rate_bps, rate_control: Some(RateControl::Fixed), ..AerotpConfig::default() }
}

fn mux(own: usize, insecure: bool) -> Mux {
    let trust = Trust::Keys([KEYS[1 - own].public()].into());
    let config_of_mux = MuxConfig { trust, insecure, ..MuxConfig::new(KEYS[own].clone()) };
    let mut mux = Mux::new(config_of_mux, Box::new(MemoryCounters::default()), unix_us).expect("sizes are right");
    mux.listen(PORT, &config(), AcceptorLimits::default()).expect("the mode has connections");
    mux.listen_datagrams(PORT);
    mux
}

fn address(host: usize, port: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1 + host as u8], 4000 + u16::from(port)))
}

/// The byte at a position of every stream.
fn byte(position: u64) -> u8 {
    (position * position >> 5) as u8
}

struct Net {
    now: Time,
    hosts: [Mux; 2],
    ports: [u8; 2],
    on_the_way: VecDeque<(usize, SocketAddr, Vec<u8>)>,
    /// Connections that host 0 has opened, with what was written.
    opened: Vec<(ConnectionId, u64)>,
    /// Connections that host 1 has accepted, with what was read.
    accepted: Vec<(ConnectionId, u64)>,
    insecure: bool,
}

impl Net {
    fn send(&mut self, host: usize) {
        let mut out = [0; 8192];
        for _ in 0..16 {
            let Some(batch) = self.hosts[host].poll_transmit(self.now, 4, &mut out) else { return };
            for datagram in out[..batch.bytes].chunks(batch.datagram_bytes) {
                if self.on_the_way.len() < MOST_ON_THE_WAY {
                    let from = address(host, self.ports[host]);
                    self.on_the_way.push_back((1 - host, from, datagram.to_vec()));
                }
            }
        }
    }

    fn deliver(&mut self, (to, from, datagram): (usize, SocketAddr, Vec<u8>)) {
        self.hosts[to].receive(self.now, Route::to(from), Ecn::NotCapable, BytesMut::from(&datagram[..]));
        self.events();
    }

    fn events(&mut self) {
        for host in 0..2 {
            while let Some((id, event)) = self.hosts[host].poll_event() {
                if host == 1 && event == Event::Connected {
                    self.accepted.push((id, 0));
                }
            }
        }
        while let Some(datagram) = self.hosts[1].poll_datagram() {
            let right = (0..datagram.data.len() as u64).map(byte);
            assert!(self.insecure || right.eq(datagram.data.iter().copied()), "what arrives is what was sent");
        }
        for (id, position) in &mut self.accepted {
            while let Some(data) = self.hosts[1].read(*id) {
                for &read in &data[..] {
                    assert!(self.insecure || read == byte(*position), "what is read is what was written");
                    *position += 1;
                }
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    farlink_net::fuzzing::restart();
    CLOCK.store(1, Ordering::Relaxed);
    let mut operations = data.iter().copied();
    // In the clear, only checks against damage stand between a forged byte and the reader.
    let insecure = operations.next().is_some_and(|first| first % 4 == 0);
    let mut net = Net {
        now: Time::from_secs(1),
        hosts: [mux(0, insecure), mux(1, insecure)],
        insecure,
        ports: [0; 2],
        on_the_way: VecDeque::new(),
        opened: Vec::new(),
        accepted: Vec::new(),
    };
    while let Some(operation) = operations.next() {
        let mut next = || operations.next().unwrap_or(0);
        match operation % 17 {
            0 if net.opened.len() < 4 => {
                let route = Route::to(address(1, net.ports[1]));
                let opened = net.hosts[0].connect(net.now, &KEYS[1].public(), route, u16::from(next() % 2), &config());
                net.opened.extend(opened.ok().map(|id| (id, 0)));
            }
            1 | 2 => {
                let (which, bytes) = (usize::from(next()), u64::from(next()) * 8);
                let count = net.opened.len().max(1);
                if let Some((id, written)) = net.opened.get_mut(which % count) {
                    let data: Vec<u8> = (*written..*written + bytes).map(byte).collect();
                    *written += net.hosts[0].write(net.now, *id, &mut Bytes::from(data)) as u64;
                }
            }
            3 => net.now = net.now + Time::from_millis(u64::from(next())),
            4 => net.now = net.now + Time::from_secs(u64::from(next())),
            5..=8 => {
                if let Some(first) = net.on_the_way.pop_front() {
                    net.deliver(first);
                }
            }
            9 => drop(net.on_the_way.pop_front()),
            10 => {
                if let Some(first) = net.on_the_way.front().cloned() {
                    net.deliver(first); // and once more later
                }
            }
            11 => {
                let (place, bits) = (usize::from(next()) * 5, next());
                if let Some((_, _, datagram)) = net.on_the_way.front_mut() {
                    let length = datagram.len().max(1);
                    if let Some(byte) = datagram.get_mut(place % length) {
                        *byte ^= bits;
                    }
                }
            }
            12 => {
                let bytes = usize::from(next()) * 5;
                if let Some((_, _, datagram)) = net.on_the_way.front_mut() {
                    datagram.truncate(bytes);
                }
            }
            13 => {
                let (to, bytes) = (usize::from(next() % 2), usize::from(next()));
                let datagram: Vec<u8> = (0..bytes).map(|_| next()).collect();
                net.deliver((to, address(1 - to, next()), datagram));
            }
            14 => {
                let which = next();
                net.ports[0] = which;
                if which > 250 {
                    // A restart without its counters: only bytes of new connections may come.
                    net.accepted.clear();
                    net.hosts[1] = mux(1, insecure);
                    net.on_the_way.clear();
                }
            }
            15 => {
                let (port, bytes) = (u16::from(next() % 3), usize::from(next()) * 6);
                let route = Route::to(address(1, net.ports[1]));
                let data = (0..bytes as u64).map(byte).collect::<Vec<_>>().into();
                let _ = net.hosts[0].send_datagram(net.now, &KEYS[1].public(), route, &config(), (port, data));
            }
            _ => {
                let which = usize::from(next());
                let count = net.opened.len().max(1);
                if let Some((id, _)) = net.opened.get(which % count).copied() {
                    net.hosts[0].close(net.now, id);
                }
            }
        }
        for host in 0..2 {
            net.send(host);
            let _ = net.hosts[host].poll_timeout();
        }
        net.events();
    }
});

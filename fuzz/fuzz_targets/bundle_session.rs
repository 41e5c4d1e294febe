//! Two ends of a session over several paths, and what is on its way between them: whatever arrives, nothing panics, memory is bounded, and
//! what is delivered was sent, and is delivered once.

#![no_main]

mod memory;

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use farlink_core::Time;
use farlink_net::bundle::session::{PathPlace, Place, Session, SessionConfig};
use farlink_net::mux::MemoryCounters;
use farlink_net::seal::{PresharedKey, StaticKey};
use libfuzzer_sys::fuzz_target;

static KEYS: LazyLock<[StaticKey; 2]> = LazyLock::new(|| [1, 2].map(|byte| StaticKey::from_private([byte; 32].into())));
/// The wall clock, which counts its readings.
static CLOCK: AtomicU64 = AtomicU64::new(1);
const PATHS: u8 = 3;
const MOST_ON_THE_WAY: usize = 64;
/// What this test holds itself: datagrams on the way, and the numbers of what was sent.
const OWN_BYTES: usize = MOST_ON_THE_WAY * 3000 + 200_000;

fn unix_us() -> u64 {
    CLOCK.fetch_add(1, Ordering::Relaxed)
}

/// A new end; its counters are those of a clock that goes on.
fn end(own: usize) -> Session {
    let config = SessionConfig {
        key: KEYS[own].clone(),
        peer: KEYS[1 - own].public(),
        shared: PresharedKey::default(),
        calls: own == 0,
        paths: (1 << PATHS) - 1,
        key_life: Time::from_secs(120),
    };
    CLOCK.fetch_add(1 << 30, Ordering::Relaxed);
    Session::new(config, Box::new(MemoryCounters::default()), unix_us)
}

/// Where the caller is seen on a path: of one family or the other.
fn caller(path: u8, port: u8) -> SocketAddr {
    let port = 1000 + u16::from(port);
    if port % 2 == 0 {
        ([198, 51, 100, path], port).into()
    } else {
        ([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(path)], port).into()
    }
}

struct Net {
    now: Time,
    ends: [Session; 2],
    ports: [u8; PATHS as usize],
    on_the_way: VecDeque<(usize, Place, Vec<u8>)>,
    sent: u32,
    delivered: BTreeSet<(usize, u32)>,
}

impl Net {
    fn plug(&mut self, path: u8, is_there: bool) {
        let remote = if self.ports[usize::from(path)] % 2 == 0 {
            ([192, 0, 2, 1], 47_471).into()
        } else {
            ([0x2001, 0xdb8, 1, 0, 0, 0, 0, 1], 47_471).into()
        };
        let place = Place { socket: path.into(), remote, local: None };
        let at = PathPlace { place, longest_bytes: 1500, is_last_resort: path == 2 };
        self.ends[0].set_path(self.now, path, is_there.then_some(at));
    }

    fn put(&mut self, from: usize, to: Place, bytes: Vec<u8>) {
        if self.on_the_way.len() < MOST_ON_THE_WAY {
            let place = if from == 0 {
                let path = to.socket as u8 % PATHS;
                Place { socket: 0, remote: caller(path, self.ports[usize::from(path)]), local: None }
            } else {
                let path = (0..PATHS).find(|&path| caller(path, self.ports[usize::from(path)]) == to.remote);
                let Some(path) = path else { return };
                Place { socket: path.into(), remote: to.remote, local: None }
            };
            self.on_the_way.push_back((1 - from, place, bytes));
        }
    }

    fn send(&mut self, from: usize, path: u8, bytes: usize) {
        self.sent += 1;
        let number = self.sent;
        let mut out = Vec::new();
        let length = bytes.max(4);
        let to = self.ends[from].seal(self.now, path, length, &mut out, |out| {
            out.extend(number.to_be_bytes());
            out.resize(out.len() + length - 4, 0);
        });
        if let Some(to) = to {
            self.put(from, to, out);
        }
    }

    fn deliver(&mut self, (to, from, datagram): (usize, Place, Vec<u8>)) {
        if let Some((path, content)) = self.ends[to].handle_datagram(self.now, from, BytesMut::from(&datagram[..])) {
            assert!(path < PATHS);
            let number = u32::from_be_bytes(content[..4].try_into().expect("what is sent has a number"));
            assert!(number <= self.sent && self.delivered.insert((to, number)), "it was sent, and comes once");
        }
    }
}

fn run(data: &[u8]) {
    farlink_net::fuzzing::restart();
    CLOCK.store(1, Ordering::Relaxed);
    let mut operations = data.iter().copied();
    let mut net = Net {
        now: Time::from_secs(1),
        ends: [end(0), end(1)],
        ports: [0; PATHS as usize],
        on_the_way: VecDeque::new(),
        sent: 0,
        delivered: BTreeSet::new(),
    };
    (0..PATHS).for_each(|path| net.plug(path, true));
    while let Some(operation) = operations.next() {
        let mut next = || operations.next().unwrap_or(0);
        match operation % 16 {
            0 | 1 => {
                let (which, bytes) = (next(), next());
                net.send(usize::from(which & 1), which >> 1 & 3, usize::from(bytes) * 6);
            }
            2..=5 => {
                if let Some(first) = net.on_the_way.pop_front() {
                    net.deliver(first);
                }
            }
            6 => drop(net.on_the_way.pop_front()),
            7 => {
                if let Some(first) = net.on_the_way.front().cloned() {
                    net.deliver(first); // and once more later
                }
            }
            8 => {
                let (place, bits, length) = (usize::from(next()) * 5, next(), usize::from(next()) * 6);
                if let Some((_, _, datagram)) = net.on_the_way.front_mut() {
                    let all = datagram.len().max(1);
                    if let Some(byte) = datagram.get_mut(place % all) {
                        *byte ^= bits;
                    }
                    if bits == 0 {
                        datagram.truncate(length);
                    }
                }
            }
            9 => {
                let (to, path, bytes) = (usize::from(next() & 1), next() % PATHS, usize::from(next()));
                let datagram: Vec<u8> = (0..bytes).map(|_| next()).collect();
                let remote = caller(path, next());
                let socket = if to == 0 { path.into() } else { 0 };
                net.deliver((to, Place { socket, remote, local: None }, datagram));
            }
            10 => net.now = net.now + Time::from_millis(u64::from(next())),
            11 => net.now = net.now + Time::from_secs(u64::from(next())),
            12 => {
                let path = next() % PATHS;
                net.ports[usize::from(path)] = next();
                net.plug(path, true);
            }
            13 => {
                let which = next();
                net.plug(which % PATHS, which >= 128);
            }
            14 => {
                let (which, paths) = (usize::from(next() & 1), u16::from(next()));
                net.ends[which].set_paths(paths);
            }
            _ => match next() {
                which @ 0..=63 => {
                    let which = usize::from(which & 1);
                    net.ends[which] = end(which);
                    if which == 0 {
                        (0..PATHS).for_each(|path| net.plug(path, true));
                    }
                }
                which @ 64..=95 => net.ends[usize::from(which & 1)].close(),
                which => {
                    let path = which % PATHS;
                    net.ends[usize::from(which >> 4 & 1)].note_path(net.now, path, which & 8 > 0, Time::from_secs(1));
                }
            },
        }
        for from in 0..2 {
            let mut steps = 0;
            while net.ends[from].poll_timeout() <= net.now && steps < 100 {
                net.ends[from].handle_timeout(net.now);
                steps += 1;
                while let Some(datagram) = net.ends[from].poll_transmit() {
                    net.put(from, datagram.to, datagram.bytes);
                }
            }
            assert!(steps < 100, "timers stand still");
            while net.ends[from].poll_event().is_some() {}
        }
    }
}

fuzz_target!(|data: &[u8]| memory::bounded(usize::from(PATHS), OWN_BYTES, || run(data)));

//! Muxes in virtual time, over a network that loses, repeats and records datagrams.

mod clear;
mod datagrams;
mod kept_sessions;
mod left_behind;
mod moves;
mod rates;
mod recordings;
mod renewal;
mod versions;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

use farlink_core::protocol::aerotp::RateControl;
use farlink_core::rng::{RandomSource, SplitMix64};
use farlink_core::units::{BitRate, PositiveSeconds};

use super::handshakes::MOST_GIVEN;
use super::resets::RESET_BYTES;
use super::route::IPV4_BYTES;
use crate::seal::mac::MAC_BYTES;
use farlink_core::wire::aerotp::sealed::OuterHeader;

use super::*;

const PORT: u16 = 1;

fn address(n: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4000 + n as u16))
}

fn config() -> AerotpConfig {
    AerotpConfig {
        rate_bps: Some(BitRate::new(1e7).unwrap()),
        rate_control: Some(RateControl::Fixed),
        initial_rto_s: PositiveSeconds::new(0.3).unwrap(),
        give_up_after_s: PositiveSeconds::new(60.0).unwrap(),
        ..AerotpConfig::default()
    }
}

/// Two muxes.
struct Net {
    now: Time,
    hosts: [Mux; 2],
    addresses: [SocketAddr; 2],
    /// By time of arrival: to which host, from where.
    on_the_way: BTreeMap<(Time, u64), (usize, SocketAddr, Vec<u8>)>,
    number: u64,
    random: SplitMix64,
    loss: f64,
    sent: [u64; 2],
    sent_bytes: [usize; 2],
    /// Datagrams of at least 1000 bytes that have arrived.
    arrived: [u64; 2],
    recorded: Vec<(usize, Vec<u8>)>,
    /// At which own address datagrams arrive.
    own: [Option<IpAddr>; 2],
    read: Vec<u8>,
    events: Vec<(usize, ConnectionId, Event)>,
    /// Deadlines are noticed at whole multiples of this.
    tick: Time,
    /// Longer packets do not come through.
    path_bytes: usize,
    /// How long datagrams take, and by how much longer a tenth of them do.
    delay: Time,
    late: Time,
    /// How many datagrams arrive with a wrong byte behind their outer header.
    damage: f64,
    /// What was sent is kept.
    is_recording: bool,
    /// Whether the application of host 1 reads.
    is_reading: bool,
}

const DELAY: Time = Time::from_millis(50);

/// A clock of its own that no two calls of any test see twice.
fn unix_us() -> u64 {
    static CLOCK: AtomicU64 = AtomicU64::new(1_000_000_000);
    CLOCK.fetch_add(1_000, Ordering::Relaxed)
}

fn mux(key: &StaticKey, trusted: &StaticKey, store: MemoryCounters) -> Mux {
    mux_of(MuxConfig::new(key.clone()), trusted, store)
}

fn mux_of(config_of_mux: MuxConfig, trusted: &StaticKey, store: MemoryCounters) -> Mux {
    let trust = Trust::Keys([trusted.public()].into());
    let mut mux = Mux::new(MuxConfig { trust, ..config_of_mux }, Box::new(store), unix_us).unwrap();
    mux.listen(PORT, &config(), AcceptorLimits::default()).unwrap();
    mux
}

impl Net {
    fn new(loss: f64, seed: u64) -> Self {
        let keys = [StaticKey::generate(), StaticKey::generate()];
        let hosts =
            [mux(&keys[0], &keys[1], MemoryCounters::default()), mux(&keys[1], &keys[0], MemoryCounters::default())];
        Net {
            now: Time::from_secs(1),
            hosts,
            addresses: [address(0), address(1)],
            on_the_way: BTreeMap::new(),
            number: 0,
            random: SplitMix64::new(seed),
            loss,
            sent: [0; 2],
            sent_bytes: [0; 2],
            arrived: [0; 2],
            recorded: Vec::new(),
            own: [None; 2],
            read: Vec::new(),
            events: Vec::new(),
            tick: Time::from_ps(1),
            path_bytes: 9000,
            delay: DELAY,
            late: Time::ZERO,
            damage: 0.0,
            is_recording: true,
            is_reading: true,
        }
    }

    fn connect(&mut self) -> ConnectionId {
        self.connect_with(&config())
    }

    fn connect_with(&mut self, config: &AerotpConfig) -> ConnectionId {
        let peer = self.hosts[1].public_key();
        self.hosts[0].connect(self.now, &peer, Route::to(self.addresses[1]), PORT, config).unwrap()
    }

    fn send(&mut self, host: usize) {
        let mut out = vec![0; 65_536];
        while let Some(batch) = self.hosts[host].poll_transmit(self.now, 8, &mut out) {
            assert!(batch.datagram_bytes + IPV4_BYTES + UDP_BYTES <= usize::from(self.hosts[host].config.packet_bytes));
            for datagram in out[..batch.bytes].chunks(batch.datagram_bytes) {
                self.sent[host] += 1;
                self.sent_bytes[host] += datagram.len();
                let to = 1 - host;
                let is_there = batch.route.remote == self.addresses[to]
                    && datagram.len() + IPV4_BYTES + UDP_BYTES <= self.path_bytes;
                if self.is_recording {
                    self.recorded.push((to, datagram.to_vec()));
                }
                if !is_there || (self.random.next_u64() as f64) < self.loss * 2_f64.powi(64) {
                    continue;
                }
                let late = if self.late > Time::ZERO && self.random.next_u64().is_multiple_of(10) {
                    self.late
                } else {
                    Time::ZERO
                };
                let mut datagram = datagram.to_vec();
                if self.damage > 0.0 && (self.random.next_u64() as f64) < self.damage * 2_f64.powi(64) {
                    let behind = datagram.len() - OUTER_BYTES;
                    datagram[OUTER_BYTES + self.random.next_u64() as usize % behind] ^= 0x10;
                }
                self.deliver_in(self.delay + late, to, self.addresses[host], datagram);
            }
        }
    }

    fn deliver_in(&mut self, delay: Time, to: usize, from: SocketAddr, datagram: Vec<u8>) {
        self.number += 1;
        self.on_the_way.insert((self.now + delay, self.number), (to, from, datagram));
    }

    /// What host 1 has kept of the counters of host 0.
    fn kept_counters(&self) -> MemoryCounters {
        let (mut store, peer) = (MemoryCounters::default(), self.hosts[0].public_key());
        store.keep_peer(&peer, self.hosts[1].store.peer(&peer)).unwrap();
        store
    }

    /// Runs until a time, reading all that arrives at host 1.
    fn run_until(&mut self, end: Time) {
        loop {
            for host in 0..2 {
                self.send(host);
                while let Some((id, event)) = self.hosts[host].poll_event() {
                    self.events.push((host, id, event));
                    while (host == 0 || self.is_reading)
                        && let Some(data) = self.hosts[host].read(id)
                    {
                        if host == 1 {
                            self.read.extend(&data);
                        }
                    }
                    if event == Event::Finished {
                        self.hosts[host].close(self.now, id);
                    }
                }
            }
            let due = self.hosts.iter().filter_map(Mux::poll_timeout).min();
            let due = due.map(|due| Time::from_ps(due.as_ps().next_multiple_of(self.tick.as_ps())));
            let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = due.into_iter().chain(arrival).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, from, datagram) = entry.remove();
                self.arrived[to] += u64::from(datagram.len() >= 1000);
                let route = Route { remote: from, local: self.own[to] };
                self.hosts[to].receive(self.now, route, Ecn::NotCapable, BytesMut::from(&datagram[..]));
            }
        }
        self.now = end;
    }

    fn run_for(&mut self, seconds: u64) {
        self.run_until(self.now + Time::from_secs(seconds));
    }

    fn write(&mut self, id: ConnectionId, data: &[u8]) {
        let mut data = Bytes::copy_from_slice(data);
        while !data.is_empty() && self.hosts[0].write(self.now, id, &mut data) > 0 {}
        assert!(data.is_empty());
    }
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| ((n * n) >> 7) as u8).collect()
}

#[test]
fn the_first_data_arrive_after_one_way_and_nothing_of_them_can_be_read() {
    let mut net = Net::new(0.0, 1);
    let id = net.connect();
    net.write(id, b"a secret that is long enough to be found");
    net.run_until(net.now + DELAY + Time::from_millis(1));
    assert_eq!(net.read, b"a secret that is long enough to be found");
    assert!(net.recorded.iter().all(|(_, datagram)| !datagram.windows(8).any(|part| part == b"a secret")));
}

#[test]
fn a_transfer_ends_on_both_sides_over_lossy_paths() {
    for (seed, loss) in [(1, 0.0), (2, 0.1), (3, 0.3), (4, 0.5)] {
        let mut net = Net::new(loss, seed);
        let id = net.connect();
        let data = content(200_000);
        net.write(id, &data);
        net.hosts[0].close(net.now, id);
        net.run_for(50);
        assert_eq!(net.read.len(), data.len(), "loss {loss} {:?} {:?}", net.hosts, net.sent);
        assert!(net.read == data);
        assert!(net.hosts.iter().all(|host| host.sessions() == 1));
        net.run_for(300); // one side answers for a while after the end
        let closed = net.events.iter().filter(|(_, _, event)| *event == Event::Closed).count();
        assert_eq!(closed, 2, "loss {loss}");
        assert_eq!(net.hosts.each_ref().map(Mux::sessions), [0, 0], "silent sessions are forgotten");
    }
}

/// A side that ends its program when both directions have ended has still to tell its peer, three times: one of them suffices.
#[test]
fn the_last_acknowledgement_is_still_owed_after_the_end() {
    for lost in 0..3 {
        let mut net = Net::new(0.0, 1);
        let id = net.connect();
        net.write(id, b"question");
        net.hosts[0].close(net.now, id);
        // Host 1 ends its direction when that of host 0 has ended, so host 0 hears the last end.
        while !net.events.iter().any(|&(host, _, event)| host == 0 && event == Event::Closed) {
            net.run_until(net.now + Time::from_millis(1));
            net.now += Time::from_millis(1);
        }
        assert!(net.hosts[0].owes_last_acknowledgements());
        if lost > 0 {
            net.on_the_way.retain(|_, (to, ..)| *to != 1);
        }
        if lost > 1 {
            net.loss = 1.0;
            net.run_until(net.now + Time::from_millis(70));
            net.loss = 0.0;
        }
        net.run_until(net.now + Time::from_millis(120));
        assert!(!net.hosts[0].owes_last_acknowledgements());
        net.hosts[0] = mux(&StaticKey::generate(), &StaticKey::generate(), MemoryCounters::default());
        net.run_for(1);
        assert!(net.events.iter().any(|&(host, _, event)| host == 1 && event == Event::Closed), "{lost} lost");
    }
}

#[test]
fn connections_share_a_session() {
    let mut net = Net::new(0.0, 1);
    let ids: Vec<_> = (0..20).map(|_| net.connect()).collect();
    for &id in &ids {
        net.write(id, &content(10_000));
        net.hosts[0].close(net.now, id);
    }
    net.run_for(20);
    assert_eq!(net.read.len(), 200_000);
    assert_eq!((net.hosts[0].sessions(), net.hosts[1].sessions()), (1, 1));
    net.run_for(100);
    assert_eq!(net.events.iter().filter(|(_, _, event)| *event == Event::Closed).count(), 40);
}

/// Whose session has proven its address needs no second proof for each connection: a short question gets a long answer after a round trip.
#[test]
fn a_short_question_over_a_session_gets_a_long_answer_at_once() {
    let mut net = Net::new(0.0, 1);
    let first = net.connect();
    net.write(first, b"a session");
    net.run_for(5);
    net.read.clear();
    a_long_answer_comes_at_once(&mut net);
}

/// A question of 90 bytes on a new connection has its answer of 1,000 after a round trip. Returns the connection.
fn a_long_answer_comes_at_once(net: &mut Net) -> ConnectionId {
    let id = net.connect();
    net.write(id, &content(90));
    net.run_until(net.now + DELAY + Time::from_millis(1));
    assert_eq!(net.read.len(), 90);
    let accepted = net.events.iter().rfind(|(host, _, event)| *host == 1 && *event == Event::Connected).unwrap().1;
    assert_eq!(net.hosts[1].write(net.now, accepted, &mut Bytes::from(content(1000))), 1000);
    let before = net.arrived[0];
    net.run_until(net.now + DELAY + Time::from_millis(1));
    assert_eq!(net.arrived[0] - before, 1);
    id
}

#[test]
fn strangers_and_unknown_keys_get_no_answer() {
    let mut net = Net::new(0.0, 1);
    let stranger = StaticKey::generate();
    let (theirs, peer) = (net.hosts[1].config.key.clone(), net.hosts[1].public_key());
    net.hosts[0] = mux(&stranger, &theirs, MemoryCounters::default());
    let id = net.hosts[0].connect(net.now, &peer, Route::to(address(1)), PORT, &config()).unwrap();
    net.write(id, b"let me in");
    net.run_for(30);
    assert_eq!((net.sent[1], net.hosts[1].sessions()), (0, 0));
    assert!(net.hosts[1].counts().untrusted > 0);
    assert!(net.read.is_empty());
}

/// Whatever was recorded and is sent again, also to a host that has restarted: no byte is delivered.
#[test]
fn recordings_deliver_nothing() {
    for seed in 0..20 {
        let mut net = Net::new(0.2, seed);
        let id = net.connect();
        net.write(id, &content(20_000));
        net.hosts[0].close(net.now, id);
        net.run_for(30);
        assert_eq!(net.read.len(), 20_000);

        let recorded = std::mem::take(&mut net.recorded);
        let store = net.kept_counters();
        for is_restarted in [false, true] {
            if is_restarted {
                let keys = [net.hosts[0].config.key.clone(), net.hosts[1].config.key.clone()];
                net.hosts[1] = mux(&keys[1], &keys[0], store.clone());
            }
            net.read.clear();
            for (to, datagram) in &recorded {
                let delay = Time::from_millis(net.random.next_u64() % 5000);
                net.deliver_in(delay, *to, address(7 - 7 * (*to) + (1 - to)), datagram.clone());
            }
            net.addresses[0] = address(0);
            net.run_for(30);
            assert!(net.read.is_empty(), "seed {seed}, restarted: {is_restarted}");
        }
    }
}

/// A host that restarts knows its peer's session no more, and its reset tells.
#[test]
fn a_restarted_host_ends_what_it_has_forgotten_within_a_round_trip() {
    let mut net = Net::new(0.0, 1);
    let id = net.connect();
    net.write(id, &content(1000));
    net.run_for(5);
    let keys = [net.hosts[0].config.key.clone(), net.hosts[1].config.key.clone()];
    net.hosts[1] = mux(&keys[1], &keys[0], MemoryCounters::default());
    net.write(id, &content(1000));
    net.run_until(net.now + Time::from_millis(101));
    assert!(net.events.contains(&(0, id, Event::Aborted(Abort::PeerRestarted))), "{:?}", net.events);
    let again = net.connect();
    assert_ne!(again.session, id.session);
    net.read.clear();
    net.write(again, &content(1000));
    net.run_for(1);
    assert!(net.read == content(1000), "{} bytes", net.read.len());
}

/// Strays of a stranger, all of other sessions.
#[test]
fn a_flood_of_strays_gets_few_answers() {
    let mut net = Net::new(0.0, 1);
    let header = |id| OuterHeader {
        kind: Kind::Sealed,
        key_phase: farlink_core::wire::aerotp::sealed::KeyPhase::default(),
        parity_words: 0,
        content_bytes: 64,
        connection_id: id,
        number: 0,
    };
    let mut answers = 0;
    for id in 1..=20_000_u32 {
        let datagram = [&header(id).encode()[..], &[0; 64]].concat();
        net.hosts[1].receive(net.now, Route::to(address(9)), Ecn::NotCapable, BytesMut::from(&datagram[..]));
        let mut out = [0; 100];
        answers += u32::from(net.hosts[1].poll_transmit(net.now, 1, &mut out).is_some());
    }
    assert_eq!(answers, handshakes::MOST_RESETS);
    assert_eq!(net.hosts[1].counts().stray, 20_000);
}

#[test]
fn a_forged_reset_ends_nothing() {
    let mut net = Net::new(0.0, 1);
    let id = net.connect();
    net.write(id, &content(1000));
    net.run_for(5);
    let peer_id = net.hosts[0].sessions.values().next().unwrap().peer_id.unwrap();
    let mut forger = mux(&StaticKey::generate(), &StaticKey::generate(), MemoryCounters::default());
    let reset = forger.reset_packet(peer_id);
    forger.resets.push_back((Route::to(address(0)), reset));
    let mut out = [0; 100];
    let batch = forger.poll_transmit(net.now, 1, &mut out).unwrap();
    net.deliver_in(DELAY, 0, address(1), out[..batch.bytes].to_vec());
    net.read.clear();
    net.write(id, &content(1000));
    net.run_for(1);
    assert!(net.read == content(1000), "{} bytes", net.read.len());
}

#[test]
fn bytes_of_strangers_change_nothing() {
    let mut net = Net::new(0.0, 1);
    let id = net.connect();
    net.write(id, &content(50_000));
    net.run_for(5);
    net.read.clear();
    let recorded = net.recorded.clone();
    for round in 0..20_000 {
        let (to, mut datagram) = recorded[net.random.next_u64() as usize % recorded.len()].clone();
        match round % 3 {
            0 => datagram.iter_mut().for_each(|byte| *byte = net.random.next_u64() as u8),
            1 => {
                let place = net.random.next_u64() as usize % datagram.len();
                datagram[place] ^= 1 << (net.random.next_u64() % 8);
            }
            _ => datagram.truncate(net.random.next_u64() as usize % datagram.len()),
        }
        net.hosts[to].receive(net.now, Route::to(address(9)), Ecn::NotCapable, BytesMut::from(&datagram[..]));
    }
    assert_eq!(net.hosts.each_ref().map(Mux::sessions), [1, 1]);
    net.write(id, &content(1000));
    net.run_for(5);
    assert!(net.read == content(1000), "{} bytes", net.read.len());
}

/// Hellos with the right code from addresses that do not exist, more than a second's worth of key agreements.
#[test]
fn a_flood_of_hellos_costs_few_key_agreements_and_an_honest_host_comes_through() {
    let mut net = Net::new(0.0, 1);
    let peer = net.hosts[1].public_key();
    let start = net.now;
    let mut agreements = 0;
    for n in 0..2000_u16 {
        let mut stranger = mux(&StaticKey::generate(), &StaticKey::generate(), MemoryCounters::default());
        let id = stranger.connect(net.now, &peer, Route::to(address(1)), PORT, &config()).unwrap();
        stranger.write(net.now, id, &mut Bytes::from_static(b"flood"));
        let mut out = [0; 2000];
        let batch = stranger.poll_transmit(net.now, 1, &mut out).unwrap();
        let from = Route::to(SocketAddr::from(([127, 1, (n >> 8) as u8, n as u8], 9)));
        let before = net.hosts[1].counts().untrusted;
        net.hosts[1].receive(net.now, from, Ecn::NotCapable, BytesMut::from(&out[..batch.bytes]));
        agreements += net.hosts[1].counts().untrusted - before;
    }
    assert_eq!(net.now, start);
    assert_eq!(agreements, 100);
    assert_eq!(net.hosts[1].counts().without_cookie, 1900);
    assert_eq!((net.hosts[1].sessions(), net.hosts[1].given.len()), (0, MOST_GIVEN), "nothing is kept of them");

    net.hosts[1].given.clear();
    let id = net.connect();
    net.write(id, b"I am no flood");
    // Its first packet meets the load, and its second one has the cookie.
    net.hosts[1].load.since = net.now + Time::from_secs(1);
    net.run_for(1);
    assert_eq!(net.read, b"I am no flood");
    assert_eq!(net.hosts[1].counts().without_cookie, 1901);
}

/// Answers are shorter than what they answer: nobody can use a host to flood another one.
#[test]
fn no_answer_to_a_stranger_is_longer_than_the_question() {
    let answer = session::hello_packet(&net_cookie(), 0).len();
    assert!(
        answer < INITIATION_BYTES && RESPONSE_BYTES < INITIATION_BYTES && RESET_BYTES < OUTER_BYTES + TAG_BYTES + 20
    );
}

fn net_cookie() -> Vec<u8> {
    CookieSeal::of(&StaticKey::generate().public()).seal(&[0; MAC_BYTES], &[0; MAC_BYTES])
}

/// With early packets closed, all goes out again under the keys of the whole handshake.
#[test]
fn a_host_that_trusts_anyone_opens_no_early_packets() {
    let mut net = Net::new(0.1, 1);
    let key = net.hosts[1].config.key.clone();
    let config_of_all = MuxConfig { trust: Trust::Anyone, ..MuxConfig::new(key) };
    net.hosts[1] = Mux::new(config_of_all, Box::new(MemoryCounters::default()), unix_us).unwrap();
    net.hosts[1].listen(PORT, &config(), AcceptorLimits::default()).unwrap();
    let id = net.connect();
    net.write(id, &content(20_000));
    net.run_until(net.now + DELAY + Time::from_millis(40));
    assert!(net.read.is_empty());
    net.run_for(5);
    assert!(net.read == content(20_000), "{}", net.read.len());
}

/// An opener that has nothing to say yet is there all the same, whatever is lost on the way.
#[test]
fn a_connection_without_data_is_opened_over_lossy_paths() {
    for seed in 0..20 {
        let mut net = Net::new(0.5, seed);
        let config = AerotpConfig { keep_alive_s: Some(PositiveSeconds::new(50.0).unwrap()), ..config() };
        let id = net.connect_with(&config);
        net.hosts[0].announce(id);
        net.run_for(45);
        for host in 0..2 {
            assert!(
                net.events.iter().any(|it| (it.0, it.2) == (host, Event::Connected)),
                "{seed} {host} {:?}",
                net.events
            );
        }
    }
}

#[test]
fn sizes_of_packets_have_bounds() {
    for packet_bytes in [0, 1199, 9001] {
        let config = MuxConfig { packet_bytes, ..MuxConfig::new(StaticKey::generate()) };
        let error = Mux::new(config, Box::new(MemoryCounters::default()), unix_us).unwrap_err();
        assert!(error.to_string().contains(&packet_bytes.to_string()), "{error}");
    }
}

/// Timers of a driver are late by up to a millisecond; what arrives meanwhile wakes it as well.
#[test]
fn late_deadlines_do_not_reduce_the_rate() {
    let mut net = Net::new(0.0, 1);
    net.tick = Time::from_millis(1);
    let id = net.connect();
    net.write(id, &content(4_000_000));
    net.run_for(1);
    let before = net.sent[0];
    net.run_for(2);
    let sent_bps = (net.sent[0] - before) as f64 * 1500.0 * 8.0 / 2.0;
    assert!(sent_bps > 0.995e7, "{sent_bps:.0} {:?}", net.sent);
}

/// What arrives while a driver is late is handled before the deadlines that it has missed. Time does not go back for that: a rate that
/// is learnt subtracts times.
#[test]
fn rates_are_learnt_with_late_deadlines() {
    for (seed, control) in [RateControl::Learnt, RateControl::Friendly].into_iter().cycle().take(6).enumerate() {
        let mut net = Net::new([0.0, 0.02, 0.2][seed / 2], seed as u64);
        net.tick = Time::from_ps(1 + net.random.next_u64() % Time::from_millis(12).as_ps());
        let config = AerotpConfig { rate_bps: None, rate_control: Some(control), ..config() };
        let ids = [0; 3].map(|_| net.connect_with(&config));
        ids.into_iter().for_each(|id| net.write(id, &content(1_000_000)));
        net.run_for(30);
        assert_eq!(net.read.len(), 3_000_000, "{control:?} {:?}", net.tick);
    }
}

/// Packets begin with what every path carries, and soon have the length that was looked for, with all headers. `[Y14]`, `[Y16]`
#[test]
fn packets_become_as_long_as_the_path_carries() {
    for (path_bytes, most, found) in
        [(9000, 1500, 1500), (1500, 9000, 1500), (1420, 1500, 1420), (9000, 9000, 9000), (1200, 1500, 1200)]
    {
        let mut net = Net::new(0.0, 1);
        net.path_bytes = path_bytes;
        net.hosts[0].config.packet_bytes = most;
        let id = net.connect();
        net.write(id, &content(3_000_000));
        net.run_for(6);
        // The usual length at the end; of probes there are few.
        let usual = net.recorded[2 * net.recorded.len() / 3..]
            .iter()
            .filter(|it| it.0 == 1)
            .map(|(_, datagram)| datagram.len() + 28);
        let mut counts = BTreeMap::new();
        usual.for_each(|bytes| *counts.entry(bytes).or_insert(0) += 1);
        assert_eq!(counts.iter().max_by_key(|it| it.1).map(|it| *it.0), Some(found), "{counts:?}");
        let longest = |recorded: &[(usize, Vec<u8>)], hello: bool| {
            let of_kind = |it: &&(usize, Vec<u8>)| it.0 == 1 && (it.1[0] >> 4 == 0b0100) == hello;
            recorded.iter().filter(of_kind).map(|(_, datagram)| datagram.len()).max().unwrap_or(0) + 28
        };
        assert_eq!(net.read.len(), 3_000_000, "{path_bytes}");
        assert_eq!(longest(&net.recorded, true), 1200);
        let to_sender = net.recorded.iter().filter(|it| it.0 == 0).map(|(_, datagram)| datagram.len()).max().unwrap();
        assert!(to_sender + 28 <= 1200, "who sends no full packets looks for no longer ones: {to_sender}");
    }
}

/// The path changes to one that carries less, without a word. `[Y17]`
#[test]
fn a_black_hole_is_found_within_three_timeouts() {
    for path_bytes in [1200, 1280, 1499] {
        let mut net = Net::new(0.0, 1);
        let id = net.connect();
        net.write(id, &content(4_000_000));
        net.run_for(2);
        let before = net.read.len();
        net.path_bytes = path_bytes;
        net.run_until(net.now + Time::from_millis(900));
        let behind = net.read.len();
        net.run_until(net.now + Time::from_millis(500));
        assert!(net.read.len() > behind, "{before} {behind} {path_bytes}: 200 ms is a timeout here");
        net.run_for(5);
        assert_eq!(net.read.len(), 4_000_000, "{path_bytes}");
    }
}

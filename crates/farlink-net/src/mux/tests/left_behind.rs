//! Processes of one host, some of which are gone. `[Y28]`

use super::*;

/// One host at which processes of another one, all with the same key, have sessions.
struct Hub {
    now: Time,
    /// The hub, then the processes.
    hosts: Vec<Mux>,
    addresses: Vec<SocketAddr>,
    /// Whether a host is there, and whether packets of this side to it get through.
    is_there: Vec<bool>,
    is_reached: Vec<bool>,
    on_the_way: BTreeMap<(Time, u64), (usize, SocketAddr, Vec<u8>)>,
    number: u64,
    random: SplitMix64,
    loss: f64,
    delay: Time,
    is_down: bool,
    /// When the connection of a process ended at the hub, and why.
    ended: Vec<(Time, usize, Abort)>,
    key: StaticKey,
}

fn tunnel() -> AerotpConfig {
    let seconds = |s| PositiveSeconds::new(s).unwrap();
    AerotpConfig { give_up_after_s: seconds(900.0), keep_alive_s: Some(seconds(60.0)), ..config() }
}

impl Hub {
    fn new(loss: f64, delay_ms: u64, seed: u64) -> Self {
        let keys = [StaticKey::generate(), StaticKey::generate()];
        let mut hub = mux(&keys[0], &keys[1], MemoryCounters::default());
        hub.listen(PORT, &tunnel(), AcceptorLimits::default()).unwrap();
        Hub {
            now: Time::from_secs(1),
            hosts: vec![hub],
            addresses: vec![address(0)],
            is_there: vec![true],
            is_reached: vec![true],
            on_the_way: BTreeMap::new(),
            number: 0,
            random: SplitMix64::new(seed),
            loss,
            delay: Time::from_millis(delay_ms),
            is_down: false,
            ended: Vec::new(),
            key: keys[1].clone(),
        }
    }

    /// A process starts and opens a connection; returns its number.
    fn start(&mut self) -> usize {
        let (number, hub) = (self.hosts.len(), self.hosts[0].config.key.clone());
        let mut process = mux(&self.key, &hub, MemoryCounters::default());
        let to = Route::to(self.addresses[0]);
        let id = process.connect(self.now, &hub.public(), to, PORT, &tunnel()).unwrap();
        process.write(self.now, id, &mut Bytes::from_static(b"a question"));
        self.hosts.push(process);
        self.addresses.push(address(number));
        self.is_there.push(true);
        self.is_reached.push(true);
        number
    }

    fn run_for(&mut self, seconds: u64) {
        let end = self.now + Time::from_secs(seconds);
        loop {
            for host in 0..self.hosts.len() {
                self.serve(host);
            }
            let there = self.hosts.iter().zip(&self.is_there).filter(|(_, is_there)| **is_there);
            let due = there.filter_map(|(host, _)| host.poll_timeout()).min();
            let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = due.into_iter().chain(arrival).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, from, datagram) = entry.remove();
                if self.is_there[to] {
                    self.hosts[to].receive(self.now, Route::to(from), Ecn::NotCapable, BytesMut::from(&datagram[..]));
                }
            }
        }
        self.now = end;
    }

    fn serve(&mut self, host: usize) {
        let mut out = vec![0; 65_536];
        while self.is_there[host]
            && let Some(batch) = self.hosts[host].poll_transmit(self.now, 1, &mut out)
        {
            // A host that sends can be reached again, as by a translator that had forgotten it.
            self.is_reached[host] = true;
            let to = self.addresses.iter().position(|&address| address == batch.route.remote);
            let is_lost = (self.random.next_u64() as f64) < self.loss * 2_f64.powi(64);
            let Some(to) = to.filter(|&to| self.is_reached[to] && !is_lost && !self.is_down) else { continue };
            self.number += 1;
            let datagram = (to, self.addresses[host], out[..batch.bytes].to_vec());
            self.on_the_way.insert((self.now + self.delay, self.number), datagram);
        }
        while let Some((id, event)) = self.hosts[host].poll_event() {
            while self.hosts[host].read(id).is_some() {}
            if let (0, Event::Aborted(why)) = (host, event) {
                let over = (1..self.hosts.len()).find(|&process| self.has_lost(process) && !self.was_told(process));
                self.ended.push((self.now, over.unwrap_or(0), why));
            }
        }
    }

    /// Whether the hub has no session with a process any more.
    fn has_lost(&self, process: usize) -> bool {
        let own = self.addresses[process];
        self.hosts[0].sessions.values().all(|session| session.route.remote != own)
    }

    fn was_told(&self, process: usize) -> bool {
        self.ended.iter().any(|it| it.1 == process)
    }

    fn kill(&mut self, process: usize) {
        self.is_there[process] = false;
    }
}

/// What a killed process has left ends soon after it was started again, not when the patience is over: at once if it was busy.
#[test]
fn a_killed_process_that_was_started_again_leaves_nothing_for_long() {
    for (seed, loss, delay_ms, idle_s, most_s) in
        [(1, 0.0, 50, 10, 7), (2, 0.0, 600, 10, 20), (3, 0.1, 600, 10, 60), (4, 0.3, 50, 10, 60), (5, 0.0, 50, 40, 76)]
    {
        let mut hub = Hub::new(loss, delay_ms, seed);
        let first = hub.start();
        hub.run_for(idle_s);
        hub.kill(first);
        hub.run_for(3);
        let second = hub.start();
        let restarted = hub.now;
        hub.run_for(300);
        let [(at, process, why)] = hub.ended[..] else { panic!("{loss} {delay_ms} {:?}", hub.ended) };
        assert_eq!((process, why), (first, Abort::PeerRestarted));
        let took = at.since(restarted);
        assert!(Time::from_secs(5) <= took && took < Time::from_secs(most_s), "{loss} {delay_ms} {idle_s} {took:?}");
        assert!(!hub.has_lost(second));
    }
}

/// Killed again and again, before those before it have ended.
#[test]
fn a_process_that_is_killed_again_and_again_leaves_nothing_for_long() {
    let mut hub = Hub::new(0.0, 50, 1);
    for _ in 0..20 {
        let process = hub.start();
        hub.run_for(3);
        hub.kill(process);
    }
    let last = hub.start();
    hub.run_for(10);
    assert_eq!(hub.ended.len(), 20, "{:?}", hub.ended);
    assert!(!hub.has_lost(last));
}

/// Processes of one key that are all there keep what they have, whatever the path is like.
#[test]
fn processes_that_are_there_keep_their_sessions() {
    for (loss, delay_ms) in [(0.0, 5), (0.1, 600), (0.3, 50), (0.3, 2000), (0.5, 50)] {
        for seed in 0..5 {
            let mut hub = Hub::new(loss, delay_ms, seed);
            for _ in 0..3 {
                hub.start();
                hub.run_for(seed * 11);
            }
            hub.run_for(100);
            hub.is_down = true;
            hub.run_for(200);
            hub.is_down = false;
            hub.start();
            hub.run_for(300);
            assert!(hub.ended.is_empty(), "{loss} {delay_ms} {seed} {:?}", hub.ended);
        }
    }
}

/// A translator has forgotten an idle process when another one begins, until the idle one sends something.
#[test]
fn a_process_behind_a_translator_keeps_its_session() {
    for after_s in [21, 35, 50] {
        let mut hub = Hub::new(0.0, 50, 1);
        let idle = hub.start();
        hub.run_for(65); // it has asked at 60 s
        hub.run_for(after_s);
        hub.is_reached[idle] = false;
        hub.start();
        hub.run_for(200);
        assert!(hub.ended.is_empty() && hub.is_reached[idle], "{after_s} {:?}", hub.ended);
    }
}

/// One of two that were there is killed later.
#[test]
fn an_older_process_that_is_killed_later_ends_when_it_is_silent_for_long() {
    let mut hub = Hub::new(0.1, 50, 1);
    let older = hub.start();
    hub.run_for(30);
    let newer = hub.start();
    hub.run_for(300);
    assert!(hub.ended.is_empty());
    hub.kill(older);
    let killed = hub.now;
    hub.run_for(600);
    let [(at, process, Abort::PeerRestarted)] = hub.ended[..] else { panic!("{:?}", hub.ended) };
    assert!(process == older && at.since(killed) < Time::from_secs(100), "{at:?} {killed:?}");
    assert!(!hub.has_lost(newer));
}

/// No process is taken for gone while the newest one is not heard: it may be gone as well.
#[test]
fn without_a_newest_process_nothing_ends() {
    let mut hub = Hub::new(0.0, 50, 1);
    let older = hub.start();
    hub.run_for(5);
    hub.kill(older);
    let newer = hub.start();
    hub.run_for(1);
    hub.kill(newer);
    hub.run_for(700);
    assert!(hub.ended.is_empty(), "{:?}", hub.ended);
}

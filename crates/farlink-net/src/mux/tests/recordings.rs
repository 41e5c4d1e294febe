//! Whatever was recorded delivers nothing a second time, also to a receiver that has died and was started again. `[Y5]`, `[Y6]`

use std::cell::Cell;
use std::fs;

use crate::state::StateFolder;

use super::*;

thread_local! {
    /// The wall clock of both hosts.
    static CLOCK: Cell<u64> = const { Cell::new(1_000_000_000) };
}

fn clock_us() -> u64 {
    CLOCK.with(|clock| {
        clock.set(clock.get() + 1_000);
        clock.get()
    })
}

fn host(key: &StaticKey, trusted: &StaticKey, store: Box<dyn CounterStore>) -> Mux {
    let trust = Trust::Keys([trusted.public()].into());
    let mut mux = Mux::new(MuxConfig { trust, ..MuxConfig::new(key.clone()) }, store, clock_us).unwrap();
    mux.listen(PORT, &config(), AcceptorLimits::default()).unwrap();
    mux
}

/// A sender, and a receiver that keeps its counters in files, over a path on which somebody records everything.
struct Recorded {
    net: Net,
    keys: [StaticKey; 2],
    folder: tempfile::TempDir,
    /// Of sessions that have delivered something.
    recorded: Vec<(usize, Vec<u8>)>,
    sessions: u32,
    /// Those of them of which there is a recording.
    kept: u32,
}

impl Recorded {
    fn new(seed: u64) -> Self {
        let net = Net::new(0.0, seed);
        let keys = [0, 1].map(|place| net.hosts[place].config.key.clone());
        let folder = tempfile::tempdir().unwrap();
        Recorded { net, keys, folder, recorded: Vec::new(), sessions: 0, kept: 0 }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.net.random.next_u64() % bound
    }

    /// The sender is started again: it has forgotten everything but the bound of its counter.
    fn restart_sender(&mut self) {
        let mut store = MemoryCounters::default();
        store.keep_own(self.net.hosts[0].store.own()).unwrap();
        self.net.hosts[0] = host(&self.keys[0], &self.keys[1], Box::new(store));
    }

    /// The receiver dies and is started again with its files; one that was just being written is there in part.
    fn restart_receiver(&mut self) {
        self.net.on_the_way.clear();
        // Who is dead holds no lock.
        self.net.hosts[1] = host(&self.keys[1], &self.keys[0], Box::new(MemoryCounters::default()));
        let peers = self.folder.path().join("peer-counters");
        if self.below(2) == 0
            && let Ok(text) = fs::read(&peers)
        {
            let written = self.below(text.len() as u64) as usize;
            fs::write(peers.with_extension("new"), &text[..written]).unwrap();
        }
        let counters = StateFolder::new(self.folder.path()).counters_to_answer().unwrap();
        self.net.hosts[1] = host(&self.keys[1], &self.keys[0], Box::new(counters));
    }

    /// Parts of the recordings come in any order, some of them several times, within a few seconds.
    fn replay(&mut self) {
        for _ in 0..self.below(2 * self.recorded.len() as u64 + 1) {
            let place = self.below(self.recorded.len() as u64) as usize;
            let (to, datagram) = self.recorded[place].clone();
            let from = address(if self.below(2) == 0 { 1 - to } else { 7 });
            let delay = Time::from_millis(self.below(3000));
            self.net.deliver_in(delay, to, from, datagram);
        }
    }

    /// A session of which the receiver sees only a part before it dies, while earlier ones are replayed.
    fn session(&mut self) {
        // More than the step by which kept bounds are ahead, or less.
        let pause_us = self.below(40_000_000);
        CLOCK.with(|clock| clock.set(clock.get() + pause_us));
        self.restart_sender();
        self.net.loss = self.below(5) as f64 / 10.0;
        self.net.is_recording = true;
        self.net.read.clear();
        self.sessions += 1;
        let number = self.sessions;
        let data: Vec<u8> = content(1 + self.below(30_000) as usize).iter().map(|byte| byte ^ number as u8).collect();
        let id = self.net.connect();
        self.net.write(id, &data);
        if self.below(2) == 0 {
            self.net.hosts[0].close(self.net.now, id);
        }
        self.replay();
        let life = Time::from_millis(self.below(3000));
        self.net.run_until(self.net.now + life);
        assert!(data.starts_with(&self.net.read), "{} of {} bytes", self.net.read.len(), data.len());
        let recorded = std::mem::take(&mut self.net.recorded);
        // What comes for the first time is no replay.
        if !self.net.read.is_empty() {
            self.recorded.extend(recorded);
            self.kept += 1;
        }
    }

    /// What recordings deliver to a receiver that has died; nobody else sends.
    fn delivered_by_recordings(&mut self) -> usize {
        self.restart_sender();
        self.restart_receiver();
        (self.net.loss, self.net.is_recording) = (0.0, false);
        self.net.read.clear();
        self.replay();
        self.net.run_for(5);
        self.net.read.len()
    }
}

/// Recordings of so many sessions, each of which has delivered something, are replayed to receivers that have died.
fn recordings_deliver_nothing_after_a_death(sessions: u32, seed: u64) {
    let mut replayed = 0;
    for seed in seed.. {
        let mut case = Recorded::new(seed);
        case.restart_receiver();
        for life in 0..=case.below(3) {
            case.session();
            for _ in 0..=case.below(2) {
                assert_eq!(case.delivered_by_recordings(), 0, "seed {seed}, life {life}");
            }
        }
        replayed += case.kept;
        if replayed >= sessions {
            return;
        }
    }
}

#[test]
fn two_hundred_recordings_deliver_nothing_after_a_death() {
    recordings_deliver_nothing_after_a_death(200, 0);
}

#[test]
#[ignore = "a thousand recordings: make soak"]
fn a_thousand_recordings_deliver_nothing_after_a_death() {
    recordings_deliver_nothing_after_a_death(1000, 1_000_000);
}

//! Whatever was recorded delivers nothing a second time, also to a receiver that has died and was started again. `[Y5]`, `[Y6]`

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::{fs, io};

use crate::state::{CounterFiles, StateFolder};

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

/// The counters in files, on a disk that may be full.
struct Disk {
    files: CounterFiles,
    is_full: Arc<AtomicBool>,
}

impl CounterStore for Disk {
    fn own(&self) -> u64 {
        self.files.own()
    }

    fn keep_own(&mut self, bound: u64) -> io::Result<()> {
        self.files.keep_own(bound)
    }

    fn peer(&self, peer: &PublicKey) -> u64 {
        self.files.peer(peer)
    }

    fn keep_peer(&mut self, peer: &PublicKey, bound: u64) -> io::Result<()> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.files.keep_peer(peer, bound)
    }
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
    is_full: Arc<AtomicBool>,
    /// Recorded datagrams of sessions that have delivered something.
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
        Recorded { net, keys, folder, is_full: Arc::default(), recorded: Vec::new(), sessions: 0, kept: 0 }
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
        // A dead process holds no lock.
        self.net.hosts[1] = host(&self.keys[1], &self.keys[0], Box::new(MemoryCounters::default()));
        let peers = self.folder.path().join("peer-counters");
        if self.below(2) == 0
            && let Ok(text) = fs::read(&peers)
        {
            let written = self.below(text.len() as u64) as usize;
            fs::write(peers.with_extension("new"), &text[..written]).unwrap();
        }
        self.is_full.store(false, Ordering::Relaxed);
        let files = StateFolder::new(self.folder.path()).counters_to_answer().unwrap();
        let disk = Disk { files, is_full: self.is_full.clone() };
        self.net.hosts[1] = host(&self.keys[1], &self.keys[0], Box::new(disk));
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
        for _ in 0..2 {
            let (is_full, life) = (self.below(4) == 0, Time::from_millis(self.below(2000)));
            self.is_full.store(is_full, Ordering::Relaxed);
            self.net.run_until(self.net.now + life);
        }
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

/// A handshake whose counter cannot be kept would deliver, and what was recorded of it would do so once more.
#[test]
fn a_receiver_with_a_full_disk_takes_nothing_until_there_is_room() {
    let mut case = Recorded::new(1);
    case.restart_receiver();
    case.restart_sender();
    case.is_full.store(true, Ordering::Relaxed);
    let id = case.net.connect();
    case.net.write(id, &content(20_000));
    case.net.run_for(10);
    assert_eq!((case.net.read.len(), case.net.hosts[1].sessions()), (0, 0));
    assert!(case.net.hosts[1].counts().full > 1);

    case.is_full.store(false, Ordering::Relaxed);
    case.net.run_for(30);
    assert!(case.net.read == content(20_000), "{} bytes", case.net.read.len());

    let recorded = std::mem::take(&mut case.net.recorded);
    case.restart_sender();
    case.restart_receiver();
    case.net.read.clear();
    for (number, (to, datagram)) in recorded.into_iter().enumerate() {
        case.net.deliver_in(Time::from_millis(number as u64), to, address(1 - to), datagram);
    }
    case.net.run_for(10);
    assert_eq!(case.net.read.len(), 0);
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

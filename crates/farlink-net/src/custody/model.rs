//! A store that is used, filled, crashed and damaged as bytes say, beside what it promises. For tests and the fuzzer.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use farlink_core::gateway::{Journal, Span, Store};

use crate::seal::PublicKey;

use super::folder;
use super::store::{Commit, Damage, Durable, Recovered, StreamStore, is_full};
use super::stream::{Label, StreamId};
use super::test_disk::{Fails, TestDisk};
use super::usage::Usage;

const STREAM: [u8; 16] = [0xab; 16];

/// The bytes of the stream: each says where it stands.
fn content(from: u64, bytes: usize) -> Bytes {
    (from..from + bytes as u64).map(|position| (position.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn what() -> (PublicKey, Label) {
    (PublicKey::new([7; 32]), "sink".parse().expect("this is a name"))
}

/// A store, and what its user knows of it.
struct Model {
    disk: TestDisk,
    usage: Arc<Usage>,
    store: Option<StreamStore>,
    /// A commit that is under way on another thread.
    commit: Option<Commit>,
    received: u64,
    released: u64,
    /// What was ever released: the next node has it, whatever happens here.
    gone: u64,
    /// What its source has said does not come.
    gaps: Vec<Span>,
    has_end: bool,
    /// What was ever acknowledged.
    acknowledged: Durable,
}

impl Model {
    fn new() -> Self {
        let disk = TestDisk::default();
        let usage = Arc::new(Usage::new(u64::MAX));
        let store = StreamStore::new(Arc::new(disk.clone()), usage.clone(), STREAM.into(), what());
        Model {
            disk,
            usage,
            store: Some(store),
            commit: None,
            received: 0,
            released: 0,
            gone: 0,
            gaps: Vec::new(),
            has_end: false,
            acknowledged: Durable::default(),
        }
    }

    fn store(&mut self) -> &mut StreamStore {
        self.store.as_mut().expect("it is there between two steps")
    }

    fn put(&mut self, bytes: usize) {
        let at = self.received;
        match self.store().put(at, content(at, bytes)) {
            Ok(()) => self.received += bytes as u64,
            Err(error) => assert!(is_full(&error), "{error}"),
        }
    }

    /// The source has lost bytes, and goes on behind them.
    fn skip(&mut self, bytes: u64) {
        let at = self.received;
        // Also if it does not succeed: a part may be written.
        self.gaps.push(Span { from: at, to: at + bytes });
        match self.store().put(at + bytes, content(at + bytes, 9)) {
            Ok(()) => self.received = at + bytes + 9,
            Err(error) => assert!(is_full(&error), "{error}"),
        }
    }

    fn end(&mut self) {
        let at = self.received;
        match self.store().put_end(at) {
            Ok(()) => self.has_end = true,
            Err(error) => assert!(is_full(&error), "{error}"),
        }
    }

    fn release(&mut self, bytes: u64) {
        self.released = (self.released + bytes).min(self.received);
        self.gone = self.gone.max(self.released);
        let to = self.released;
        self.store().release(to).expect("a release does not fail");
    }

    fn begin_commit(&mut self) {
        if self.commit.is_none() {
            self.commit = self.store().commit();
        }
    }

    /// What is acknowledged before and after: it only grows.
    fn end_commit(&mut self) {
        let Some(commit) = self.commit.take() else { return };
        let before = self.store().durable();
        match commit.run() {
            Ok(()) => {
                self.store().on_committed(&commit);
                let after = self.store().durable();
                assert!(after.received >= before.received && after.has_end >= before.has_end);
                self.acknowledged.received = self.acknowledged.received.max(after.received);
                self.acknowledged.has_end |= after.has_end;
            }
            Err(_) => {
                drop(commit);
                self.disk.set_fails(Fails::Nothing);
                let mut store = self.store.take().expect("it is there between two steps");
                let recovered = store.recover_again().expect("the disk can be read");
                self.check_recovered(recovered);
            }
        }
    }

    /// The machine is switched off.
    fn crash(&mut self, keeps: u8) {
        if let Some(commit) = self.commit.take().filter(|_| keeps.is_multiple_of(2)) {
            // It may have come to its end, of which nobody was told.
            let _ = commit.run();
        }
        self.store = None;
        self.disk.crash(|most| usize::from(keeps) * 131 % most);
        self.recover();
    }

    fn recover(&mut self) {
        self.disk.set_fails(Fails::Nothing);
        self.usage = Arc::new(Usage::new(u64::MAX));
        let recovered = recovered(&self.disk, self.usage.clone()).expect("the disk can be read");
        self.check_recovered(recovered);
    }

    /// Everything that was acknowledged is there, and all that is there is right.
    fn check_recovered(&mut self, Recovered { store, journal, damage, .. }: Recovered) {
        let Durable { received: acknowledged, has_end } = self.acknowledged;
        self.store = Some(store);
        let gaps = std::mem::take(&mut self.gaps);
        let behind = |mut at| {
            while let Some(gap) = gaps.iter().find(|gap| gap.from <= at && at < gap.to) {
                at = gap.to;
            }
            at
        };
        // On a full disk content may be removed before it is written down that it was released.
        let is_harmless = |it: &&Damage| match it {
            Damage::File(..) => true,
            // What was released and what does not come may stand side by side.
            Damage::Lost(span) => behind(span.from.max(self.gone)) >= span.to,
        };
        let lost = damage.iter().find(|it| !is_harmless(it));
        assert_eq!(lost, None, "of {acknowledged} acknowledged bytes");
        // Released bytes are of no use to anybody, whether they are known or not.
        assert!(journal.received >= acknowledged || self.gone >= acknowledged, "{journal:?}, {acknowledged}");
        assert!(journal.has_end || !has_end, "the end is lost");
        self.check(&journal);
        let from = journal.held.start().unwrap_or(journal.received);
        let missing = behind(self.gone);
        assert!(from <= missing, "{journal:?}, {}, {gaps:?}", self.gone);
        // Its source goes on with what was not acknowledged.
        self.received = journal.received.max(acknowledged);
        self.gaps = gaps;
        self.released = self.released.min(self.received);
        self.has_end = journal.has_end;
    }

    /// What is counted is what is there.
    fn check_usage(&self) {
        assert_eq!(self.usage.taken(), self.disk.bytes() as u64);
    }

    fn check(&mut self, journal: &Journal) {
        for span in journal.held.iter() {
            let mut rest = span;
            while !rest.is_empty() {
                let data = self.store().get(rest).expect("it holds these bytes");
                assert!(!data.is_empty() && data.len() as u64 <= rest.len());
                assert_eq!(data, content(rest.from, data.len()), "from byte {}", rest.from);
                rest.from += data.len() as u64;
            }
        }
    }
}

fn recovered(disk: &TestDisk, usage: Arc<Usage>) -> io::Result<Recovered> {
    let numbers = folder::streams(disk)?.remove(&StreamId::from(STREAM)).unwrap_or_default();
    StreamStore::recover(Arc::new(disk.clone()), usage, STREAM.into(), numbers, Some(what()))
}

/// Does what the bytes say, and checks what a store promises: what was acknowledged is there after a crash. Returns how many bytes were received.
pub(crate) fn play(bytes: &[u8]) -> u64 {
    let mut model = Model::new();
    for step in bytes.chunks_exact(2) {
        let number = u64::from(step[1]);
        match step[0] % 14 {
            0..=2 if !model.has_end => model.put(number as usize * 11 + 1),
            3 => model.release(number * 17),
            4 => model.begin_commit(),
            5 => model.end_commit(),
            6 => {
                model.end_commit();
                model.begin_commit();
                model.end_commit();
            }
            7 => model.crash(step[1]),
            8 => model.disk.set_most_bytes(model.disk.bytes() + number as usize * 4),
            9 => model.disk.set_most_bytes(usize::MAX),
            10 if number < 32 && !model.has_end => model.end(),
            11 => model.disk.set_fails(Fails::Syncs),
            12 => {
                model.end_commit();
                model.disk.set_fails(Fails::Nothing);
            }
            13 if number > 0 && !model.has_end => model.skip(number),
            _ => {}
        }
        model.check_usage();
    }
    model.disk.set_fails(Fails::Nothing);
    model.crash(0);
    model.received
}

/// Writes a stream, damages its files as the bytes say, and checks that what is whole is kept and the rest reported.
pub(crate) fn damage(bytes: &[u8]) {
    let Some((head, changes)) = bytes.split_first_chunk::<8>() else { return };
    let mut model = Model::new();
    for &byte in &head[..6] {
        model.put(usize::from(byte) * 13 + 1);
    }
    model.release(u64::from(head[6]) * 3);
    if head[7].is_multiple_of(2) {
        model.end();
    }
    model.begin_commit();
    model.end_commit();
    for change in changes.chunks_exact(4) {
        let (place, at) = (usize::from(change[0]), usize::from(u16::from_be_bytes([change[1], change[2]])));
        model.disk.change(place, |file| match (change[3], file.len()) {
            (_, 0) => {}
            (0, length) => file.truncate(at % length),
            (1, length) => drop(file.drain(at % length..length.min(at % length + 7))),
            (2, _) => file.extend_from_slice(changes),
            (bits, length) => file[at % length] ^= bits,
        });
    }
    let (received, released) = (model.received, model.released);
    model.store = None;
    let found = match recovered(&model.disk, model.usage.clone()) {
        Ok(found) => found,
        Err(error) => return assert_eq!(error.kind(), io::ErrorKind::Unsupported),
    };
    let (journal, damage) = (found.journal, found.damage);
    model.store = Some(found.store);
    assert!(journal.received <= received);
    model.check(&journal);
    // All bytes are held, reported, or behind what is known to have come.
    let mut at = released.min(journal.received);
    let mut lost: Vec<Span> = damage
        .iter()
        .filter_map(|it| match *it {
            Damage::Lost(span) => Some(span),
            Damage::File(..) => None,
        })
        .collect();
    lost.extend(journal.held.iter());
    lost.sort_by_key(|span| span.from);
    for span in lost {
        if span.to <= at {
            continue;
        }
        assert!(span.from <= at, "bytes {at} to {} are neither held nor reported", span.from);
        at = span.to;
    }
    assert_eq!(at, journal.received, "{damage:?}");
    // A file that is cut between two records looks whole; what is missing then shows when the source goes on behind it.
    let is_cut = changes.chunks_exact(4).any(|change| change[3] <= 1);
    if journal.received < received && !is_cut {
        assert_ne!(damage, [], "what is missing at the end is reported as bytes of a file");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::medium::Medium;
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2000), ..ProptestConfig::default() })]

        /// `[N2]`, `[N5]`: on a disk that fills up, fails and loses what it was not told to keep.
        #[test]
        fn what_is_acknowledged_survives(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            play(&bytes);
        }

        #[test]
        fn what_is_whole_is_kept_and_the_rest_is_reported(bytes in prop::collection::vec(any::<u8>(), 8..40)) {
            damage(&bytes);
        }
    }

    proptest! {
        /// The same for longer: as many files and failures as streams have in a day.
        #[test]
        fn what_is_acknowledged_survives_for_long(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
            play(&bytes);
        }
    }

    /// A full disk stops a stream, and nothing else happens to it; with room it goes on, in the same file.
    #[test]
    fn a_full_disk_is_waited_for() {
        let mut model = Model::new();
        model.disk.set_most_bytes(3000);
        while model.received < 2500 {
            let before = model.received;
            model.put(100);
            if model.received == before {
                break;
            }
        }
        let full_at = model.received;
        assert!((2000..2900).contains(&full_at), "{full_at}");
        model.begin_commit();
        model.end_commit();
        assert_eq!(model.store().durable().received, full_at);
        model.put(100);
        assert_eq!(model.received, full_at, "there is still no room");
        // What the next node has makes room, though no file can be begun.
        model.release(u64::MAX / 2);
        model.put(100);
        assert_eq!(model.received, full_at + 100);
        model.begin_commit();
        model.end_commit();
        model.crash(0);
        model.put(1000);
        assert!(model.received >= full_at + 1000);
    }

    #[test]
    fn a_stream_that_is_finished_leaves_one_short_file() {
        let mut model = Model::new();
        (0..20).for_each(|_| model.put(1000));
        model.end();
        model.release(u64::MAX / 2);
        model.begin_commit();
        model.end_commit();
        model.store().finish().unwrap();
        model.begin_commit();
        model.end_commit();
        assert!(model.disk.bytes() < 400, "{} bytes", model.disk.bytes());
        model.store = None;
        let found = recovered(&model.disk, model.usage.clone()).unwrap();
        assert!(found.is_finished && found.journal.has_end && found.damage.is_empty());
        assert_eq!((found.journal.received, found.journal.held.bytes()), (20_000, 0));
        let mut store = found.store;
        store.remove();
        let commit = store.commit().unwrap();
        commit.run().unwrap();
        assert_eq!(model.disk.bytes(), 0);
    }

    fn committed(model: &mut Model) {
        model.begin_commit();
        model.end_commit();
    }

    /// A stream needs no file descriptor for each of its files: thousands of them would leave none for connections.
    #[test]
    fn files_that_are_on_the_disk_are_closed() {
        let mut model = Model::new();
        for _ in 0..60 {
            model.put(3000);
            committed(&mut model);
        }
        assert!(folder::streams(&model.disk).unwrap()[&STREAM.into()].len() > 20);
        assert_eq!(model.disk.open_files(), 0);
        let journal = Journal { held: spans(0, 180_000), received: 180_000, has_end: false };
        model.check(&journal);
        assert_eq!(model.disk.open_files(), 1, "the one that was read last");
        model.release(u64::MAX / 2);
        assert_eq!(model.disk.open_files(), 1, "the one that says what was released");
        committed(&mut model);
        assert_eq!(model.disk.open_files(), 0);
        model.put(3000);
        committed(&mut model);
        model.crash(0);
        assert_eq!((model.received, model.disk.open_files()), (183_000, 1), "what was recovered was read");
    }

    fn spans(from: u64, to: u64) -> farlink_core::gateway::Spans {
        let mut spans = farlink_core::gateway::Spans::default();
        spans.push(Span { from, to });
        spans
    }

    /// What has changed on the disk since it was written is not passed on.
    #[test]
    fn what_is_read_is_what_was_written() {
        let mut model = Model::new();
        (0..3).for_each(|_| model.put(500));
        committed(&mut model);
        model.disk.change(0, |file| {
            let middle = file.len() / 2;
            file[middle] ^= 1;
        });
        let get = |model: &mut Model, from| model.store().get(Span { from, to: from + 500 });
        assert_eq!(get(&mut model, 0).unwrap(), content(0, 500));
        let changed = get(&mut model, 500).unwrap_err();
        assert!(changed.to_string().ends_with("have changed"), "{changed}");
        // The stream goes on behind it, and that is said.
        let Recovered { store, journal, damage, .. } = model.store.take().unwrap().recover_again().unwrap();
        assert!(damage.contains(&Damage::Lost(Span { from: 500, to: 1000 })), "{damage:?}");
        assert_eq!((journal.received, journal.held.bytes()), (1500, 1000));
        model.store = Some(store);
        model.check(&journal);
    }

    /// A block that the disk cannot read costs what stands in it, and nothing else; and it stays, as it may be read some other time.
    #[test]
    fn a_block_that_cannot_be_read_is_reported() {
        let mut model = Model::new();
        (0..40).for_each(|_| model.put(1000));
        committed(&mut model);
        let bytes = model.disk.bytes();
        model.store = None;
        let last = folder::streams(&model.disk).unwrap()[&STREAM.into()].len() - 1;
        model.disk.set_unreadable(1, 100..101);
        model.disk.set_unreadable(last, 0..1);
        let found = recovered(&model.disk, Arc::new(Usage::new(u64::MAX))).unwrap();
        let lost = |it: &Damage| if let Damage::Lost(span) = it { span.len() } else { 0 };
        let lost: u64 = found.damage.iter().map(lost).sum();
        assert!((1000..9000).contains(&lost), "{:?}", found.damage);
        assert_eq!(found.journal.held.bytes() + lost, found.journal.received);
        assert_eq!(model.disk.bytes(), bytes, "nothing was cut");
        // What comes now goes into another file.
        model.store = Some(found.store);
        model.received = found.journal.received;
        model.put(1000);
        committed(&mut model);
        model.check(&found.journal);
        model.disk.set_unreadable(1, 0..0);
        model.disk.set_unreadable(last, 0..0);
        let whole = recovered(&model.disk, Arc::new(Usage::new(u64::MAX))).unwrap();
        assert_eq!(whole.damage, []);
    }

    /// Files that cannot be removed are not forgotten: they would come back as a stream that was never passed on.
    #[test]
    fn files_that_cannot_be_removed_are_not_forgotten() {
        let mut model = Model::new();
        (0..20).for_each(|_| model.put(1000));
        model.end();
        model.release(u64::MAX / 2);
        committed(&mut model);
        model.store().finish().unwrap();
        model.disk.set_fails(Fails::Removes);
        let commit = model.store().commit().unwrap();
        assert!(commit.run().is_err());
        drop(commit);
        model.disk.set_fails(Fails::Nothing);
        // The journal does not say that it was passed on: it is offered again.
        let found = model.store.take().unwrap().recover_again().unwrap();
        assert!(!found.is_finished);
        assert_eq!((found.journal.received, found.journal.held.bytes()), (20_000, 0));
        model.store = Some(found.store);
        model.check_usage();
        model.store().finish().unwrap();
        committed(&mut model);
        assert_eq!(folder::streams(&model.disk).unwrap()[&STREAM.into()].len(), 1);
        model.store().remove();
        let commit = model.store().commit().unwrap();
        commit.run().unwrap();
        drop(commit);
        assert_eq!((model.disk.bytes(), model.usage.taken()), (0, 0));
    }

    /// Failures of the disk do not fill up the account of it.
    #[test]
    fn what_is_counted_stays_right_when_commits_fail() {
        let mut model = Model::new();
        for _ in 0..10 {
            (0..10).for_each(|_| model.put(1000));
            committed(&mut model);
            model.release(u64::MAX / 2);
            model.disk.set_fails(Fails::Syncs);
            committed(&mut model);
            model.check_usage();
        }
    }

    /// A recovery that fails is tried again.
    #[test]
    fn a_recovery_may_fail_and_be_tried_again() {
        let mut model = Model::new();
        (0..30).for_each(|_| model.put(1000));
        committed(&mut model);
        model.put(1000);
        model.disk.set_fails(Fails::Opens);
        let mut store = model.store.take().unwrap();
        for _ in 0..3 {
            assert!(store.recover_again().is_err());
        }
        model.disk.set_fails(Fails::Nothing);
        let found = store.recover_again().unwrap();
        assert_eq!((found.journal.received, found.damage), (30_000, vec![]));
        model.check_usage();
    }

    /// Each piece takes memory, so single bytes fill a store long before they fill its bytes.
    #[test]
    fn single_bytes_are_bounded() {
        let disk = TestDisk::default();
        let usage = Arc::new(Usage::new(100_000));
        let mut store = StreamStore::new(Arc::new(disk), usage.clone(), STREAM.into(), what());
        let most = 100_000 / super::super::usage::LEAST_PIECE;
        let mut at = 0;
        while store.put(at, content(at, 1)).is_ok() {
            at += 1;
        }
        assert_eq!((at, usage.pieces()), (most, most));
        assert!(usage.taken() < 50_000, "{} bytes", usage.taken());
        store.release(50).unwrap();
        store.put(at, content(at, 1)).unwrap();
        assert_eq!(usage.pieces(), most - 49);
        store.remove();
        assert_eq!(usage.pieces(), 0);
    }

    /// What was never acknowledged comes again, also if a gap was written behind it.
    #[test]
    fn a_gap_does_not_hide_what_the_disk_has_lost() {
        let mut model = Model::new();
        (0..4).for_each(|_| model.put(1000));
        committed(&mut model);
        // The next file is on the disk, and the end of this one is not.
        (0..3).for_each(|_| model.put(100));
        model.skip(200);
        while folder::streams(&model.disk).unwrap()[&STREAM.into()].len() < 3 {
            model.put(1000);
        }
        model.skip(200);
        model.disk.sync_names().unwrap();
        let mut files = 0;
        model.commit = None;
        model.store = None;
        model.disk.crash(|most| {
            files += 1;
            if files == 3 { most - 1 } else { 0 }
        });
        model.recover();
        assert_eq!(model.received, 4000);
    }
}

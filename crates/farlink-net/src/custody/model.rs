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
    store: Option<StreamStore>,
    /// A commit that is under way on another thread.
    commit: Option<Commit>,
    received: u64,
    released: u64,
    /// What was ever released: the next node has it, whatever happens here.
    gone: u64,
    has_end: bool,
    /// What was ever acknowledged.
    acknowledged: Durable,
}

impl Model {
    fn new() -> Self {
        let disk = TestDisk::default();
        let usage = Arc::new(Usage::new(u64::MAX));
        let store = StreamStore::new(Arc::new(disk.clone()), usage, STREAM.into(), what());
        Model {
            disk,
            store: Some(store),
            commit: None,
            received: 0,
            released: 0,
            gone: 0,
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
                self.disk.set_fails(Fails::Nothing);
                let store = self.store.take().expect("it is there between two steps");
                store.roll_back().expect("a file can be cut");
                self.recover();
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

    /// Everything that was acknowledged is there, and all that is there is right.
    fn recover(&mut self) {
        let Durable { received: acknowledged, has_end } = self.acknowledged;
        self.disk.set_fails(Fails::Nothing);
        let Recovered { store, journal, damage, .. } = recovered(&self.disk).expect("the disk can be read");
        self.store = Some(store);
        // On a full disk content may be removed before it is written down that it was released.
        let is_harmless = |it: &&Damage| match it {
            Damage::File(..) => true,
            Damage::Lost(span) => span.to <= self.gone,
        };
        let lost = damage.iter().find(|it| !is_harmless(it));
        assert_eq!(lost, None, "of {acknowledged} acknowledged bytes");
        // Released bytes are of no use to anybody, whether they are known or not.
        assert!(journal.received >= acknowledged || self.gone >= acknowledged, "{journal:?}, {acknowledged}");
        assert!(journal.has_end || !has_end, "the end is lost");
        self.check(&journal);
        let from = journal.held.start().unwrap_or(journal.received);
        assert!(from <= self.gone, "{journal:?}, {}", self.gone);
        // Its source goes on with what was not acknowledged.
        self.received = journal.received.max(acknowledged);
        self.released = self.released.min(self.received);
        self.has_end = journal.has_end;
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

fn recovered(disk: &TestDisk) -> io::Result<Recovered> {
    let numbers = folder::streams(disk)?.remove(&StreamId::from(STREAM)).unwrap_or_default();
    StreamStore::recover(Arc::new(disk.clone()), Arc::new(Usage::new(u64::MAX)), STREAM.into(), numbers, Some(what()))
}

/// Does what the bytes say, and checks what a store promises: what was acknowledged is there after a crash. Returns how many bytes were received.
pub(crate) fn play(bytes: &[u8]) -> u64 {
    let mut model = Model::new();
    for step in bytes.chunks_exact(2) {
        let number = u64::from(step[1]);
        match step[0] % 13 {
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
            _ => {}
        }
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
    let found = match recovered(&model.disk) {
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

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

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
        let found = recovered(&model.disk).unwrap();
        assert!(found.is_finished && found.journal.has_end && found.damage.is_empty());
        assert_eq!((found.journal.received, found.journal.held.bytes()), (20_000, 0));
        let mut store = found.store;
        store.remove();
        let commit = store.commit().unwrap();
        commit.run().unwrap();
        assert_eq!(model.disk.bytes(), 0);
    }
}

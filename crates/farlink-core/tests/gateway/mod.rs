//! A gateway between two TCP connections with real bytes: `docs/aerotp.md`, [N1]-[N6].

mod chain;
mod disk_store;

use std::path::PathBuf;

use bytes::Bytes;
use chain::Chain;
use disk_store::DiskStore;
use farlink_core::event::Abort;
use farlink_core::gateway::{AfterAbort, Gateway, Journal, MemoryStore, Reader, Span, Spans, Store};
use farlink_core::protocol::tcp::TcpConfig;
use farlink_core::units::Count;
use farlink_core::{Event, Time};
use proptest::prelude::*;

/// Segments of 100 bytes, so that a few kilobytes make many.
fn config() -> TcpConfig {
    TcpConfig {
        segment_bytes: Count::new(100.0).unwrap(),
        max_window_segments: Some(Count::new(30.0).unwrap()),
        ..TcpConfig::default()
    }
}

fn content(bytes: usize) -> Vec<u8> {
    // 251 is coprime to the lengths in use, so that shifted bytes are detected.
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

fn in_memory(buffer_bytes: u64, seed: u64) -> Chain<MemoryStore<Bytes>> {
    Chain::new(config(), Gateway::new(MemoryStore::default(), buffer_bytes), seed)
}

/// A file for each test, removed when it is dropped.
struct Spool(PathBuf);

impl Spool {
    fn new(name: &str, seed: u64) -> Self {
        let path = std::env::temp_dir().join(format!("farlink-{}-{name}-{seed}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Spool(path)
    }

    fn open(&self, buffer_bytes: u64) -> Gateway<DiskStore> {
        let (store, journal) = DiskStore::open(&self.0).unwrap();
        Gateway::recovered(store, buffer_bytes, journal)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// `[N1]`, `[N3]`, `[N6]`: the stream and its end arrive, whatever is lost; the store exceeds its limit by at most
    /// the data of one read.
    #[test]
    fn a_stream_arrives_complete(bytes in 0_usize..30_000, lost in 0.0..0.2_f64, buffer in 100_u64..5000, seed in 0_u64..1 << 40) {
        let content = content(bytes);
        let mut chain = in_memory(buffer, seed);
        chain.lost = lost;
        chain.write_all(&content);
        chain.run_until(Time::from_secs(10_000));
        prop_assert!(chain.is_complete());
        prop_assert_eq!(chain.received(&content), bytes as u64);
        prop_assert_eq!(chain.opened(), [1, 1]);
        prop_assert!(chain.largest_store < buffer + 30 * 100, "{} bytes in a store of {buffer}", chain.largest_store);
    }

    /// `[N4]`, `[N5]`: with the store on disk, crashes lose nothing, and nothing is delivered twice.
    #[test]
    fn crashes_lose_nothing_on_disk(
        bytes in 1_usize..20_000,
        lost in 0.0..0.1_f64,
        crashes in proptest::collection::vec((0_u64..20, 1_u64..30), 1..4),
        seed in 0_u64..1 << 40,
    ) {
        let (content, spool) = (content(bytes), Spool::new("crashes", seed));
        let mut chain = Chain::new(config(), spool.open(u64::MAX), seed);
        chain.lost = lost;
        chain.write_all(&content);
        for (up, down) in crashes {
            chain.run_until(chain.now + Time::from_millis(100 * up));
            // [N2] holds because this driver reads all arrived data, for which there is room, before the side answers.
            drop(chain.crash());
            chain.run_until(chain.now + Time::from_secs(down));
            chain.restart(spool.open(u64::MAX));
        }
        chain.run_until(Time::from_secs(10_000));
        prop_assert_eq!(chain.received(&content), bytes as u64);
    }

    /// `[N5]`: with the store in memory, a crash loses at most what the gateway held; the rest arrives once.
    #[test]
    fn a_crash_loses_only_data_in_memory(bytes in 1_usize..20_000, up in 0_u64..20, lost in 0.0..0.1_f64, seed in 0_u64..1 << 40) {
        let content = content(bytes);
        let mut chain = in_memory(u64::MAX, seed);
        chain.lost = lost;
        chain.write_all(&content);
        chain.run_until(Time::from_millis(100 * up));
        let held = chain.gateway.as_ref().unwrap().held_bytes();
        chain.crash();
        chain.run_until(chain.now + Time::from_secs(5));
        chain.restart(Gateway::new(MemoryStore::default(), u64::MAX));
        chain.run_until(Time::from_secs(10_000));
        let received = chain.received(&content);
        prop_assert!(received <= bytes as u64 && received + held >= bytes as u64, "{received} of {bytes}, {held} held");
    }

    /// On disk and in memory, after any part was released.
    #[test]
    fn stores_return_the_stored_bytes(pieces in proptest::collection::vec((0_u64..3, 1_usize..50), 1..20), gone in 0.0..1.0_f64, seed in 0_u64..1 << 40) {
        let spool = Spool::new("stores", seed);
        let (mut disk, _) = DiskStore::open(&spool.0).unwrap();
        let mut memory = MemoryStore::default();
        let (mut position, mut held) = (0, Spans::default());
        for (hole, len) in pieces {
            position += hole;
            let data = Bytes::from_iter((position..position + len as u64).map(|at| at as u8));
            disk.put(position, data.clone()).unwrap();
            let Ok(()) = memory.put(position, data);
            held.push(Span { from: position, to: position + len as u64 });
            position += len as u64;
        }
        held.drop_front((gone * held.bytes() as f64) as u64);
        let from = held.start().unwrap_or(position);
        disk.release(from).unwrap();
        let Ok(()) = memory.release(from);
        let (mut reopened, journal) = DiskStore::open(&spool.0).unwrap();
        prop_assert_eq!(&journal.held, &held);
        prop_assert_eq!(journal.received, position);
        for span in held.iter() {
            let mut at = span.from;
            while at < span.to {
                let rest = Span { from: at, to: span.to };
                let Ok(data) = memory.get(rest);
                prop_assert!(!data.is_empty() && data.iter().zip(at..).all(|(&byte, at)| byte == at as u8));
                let read = reopened.get(rest).unwrap();
                prop_assert!(!read.is_empty() && read.iter().zip(at..).all(|(&byte, at)| byte == at as u8));
                at += data.len() as u64;
            }
        }
    }

    /// A crash during the write of a record loses only that record.
    #[test]
    fn a_truncated_file_is_read_up_to_the_last_whole_record(cut in 0.0..1.0_f64, seed in 0_u64..1 << 40) {
        let spool = Spool::new("cut", seed);
        let (mut disk, _) = DiskStore::open(&spool.0).unwrap();
        for index in 0..10 {
            disk.put(20 * index, Bytes::from(vec![index as u8; 20])).unwrap();
        }
        disk.put_end(200).unwrap();
        let len = std::fs::metadata(&spool.0).unwrap().len();
        let kept = (cut * len as f64) as u64;
        std::fs::OpenOptions::new().write(true).open(&spool.0).unwrap().set_len(kept).unwrap();
        let (_, journal) = DiskStore::open(&spool.0).unwrap();
        prop_assert_eq!(journal.received, 20 * (kept / 33).min(10));
        prop_assert_eq!(journal.held.bytes(), journal.received);
        prop_assert!(!journal.has_end, "the last record was cut");
    }
}

/// The gateway acknowledges bytes when it holds them, long before the sink has them. [N2]
#[test]
fn the_source_is_acknowledged_before_the_sink_has_the_data() {
    let content = content(20_000);
    let mut chain = in_memory(u64::MAX, 1);
    chain.write_all(&content);
    while !chain.source.is_complete() {
        assert!(chain.step(Time::from_secs(100)));
    }
    assert!(!chain.sink.has_end());
    drop(chain.crash());
    chain.restart(Gateway::new(MemoryStore::default(), u64::MAX));
    chain.run_until(Time::from_secs(100));
    assert!(chain.received(&content) < 20_000, "acknowledged data is lost and not sent again");
}

/// Before a closed window, a gateway fills its buffer, and further data waits in the incoming connection.
#[test]
fn a_full_gateway_stops_reading() {
    let mut gateway = Gateway::new(MemoryStore::default(), 1000);
    let Ok(new) = gateway.receive(0, Bytes::from(vec![1; 600]));
    assert_eq!((new, gateway.room()), (Some(Span { from: 0, to: 600 }), 400));
    let Ok(new) = gateway.receive(500, Bytes::from(vec![2; 700]));
    assert_eq!((new, gateway.room(), gateway.held_bytes()), (Some(Span { from: 600, to: 1200 }), 0, 1200), "[N4]");
    let Ok(again) = gateway.receive(100, Bytes::from(vec![3; 300]));
    assert_eq!(again, None);
    assert_eq!(gateway.skip(Span { from: 1000, to: 1300 }), Some(Span { from: 1200, to: 1300 }));
    let Ok(new) = gateway.receive(1250, Bytes::from(vec![4; 100]));
    assert_eq!(new, Some(Span { from: 1300, to: 1350 }), "skipped bytes are not accepted afterwards");
}

/// The gateway opens a new connection only to a peer that has lost the old one.
#[test]
fn a_stream_is_given_up_without_answers() {
    for (why, then) in [
        (Abort::Reset, AfterAbort::Reopen),
        (Abort::PeerRestarted, AfterAbort::Reopen),
        (Abort::TooManyRetries, AfterAbort::GiveUp),
        (Abort::NoAnswer, AfterAbort::GiveUp),
        (Abort::NotClosed, AfterAbort::GiveUp),
    ] {
        let mut gateway = Gateway::new(MemoryStore::default(), 1000);
        let Ok(_) = gateway.receive(0, Bytes::from_static(b"abc"));
        assert!(gateway.wants_connection());
        assert_eq!(gateway.on_opened(), 0);
        assert!(!gateway.wants_connection());
        assert_eq!(gateway.on_aborted(why), then, "{why:?}");
        if then == AfterAbort::GiveUp {
            let Ok(()) = gateway.give_up();
        }
        assert_eq!(gateway.held_bytes(), if then == AfterAbort::Reopen { 3 } else { 0 });
        assert_eq!(gateway.wants_connection(), then == AfterAbort::Reopen, "{why:?}");
    }
}

#[test]
fn giving_up_a_stream_empties_the_store() {
    let spool = Spool::new("given-up", 0);
    let mut gateway = spool.open(1000);
    gateway.receive(0, Bytes::from_static(b"abc")).unwrap();
    gateway.give_up().unwrap();
    let (_, journal) = DiskStore::open(&spool.0).unwrap();
    assert_eq!((journal.held, journal.received), (Spans::default(), 3));
}

/// The peer sends the position where its connection begins; no value may stop the gateway.
#[test]
fn an_extreme_position_is_harmless() {
    let mut gateway = Gateway::new(MemoryStore::default(), 1000);
    gateway.on_incoming(u64::MAX - 1);
    let Ok(none) = gateway.receive(u64::MAX - 1, Bytes::from_static(b"abc"));
    assert_eq!((none, gateway.held_bytes()), (None, 0));
    let mut reader = Reader::new(u64::MAX - 1);
    reader.on_event(Event::Skipped(5), &mut gateway);
    assert_eq!(reader.position(), u64::MAX);
}

/// A store on a full disk.
struct Full;

impl Store for Full {
    type Data = Bytes;
    type Error = &'static str;

    fn put(&mut self, _position: u64, _data: Bytes) -> Result<(), Self::Error> {
        Err("no space left on device")
    }

    fn get(&mut self, _span: Span) -> Result<Bytes, Self::Error> {
        unreachable!("it holds nothing")
    }

    fn release(&mut self, _position: u64) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[test]
fn a_failing_store_leaves_the_gateway_unchanged() {
    let mut gateway = Gateway::new(Full, 1000);
    assert_eq!(gateway.receive(0, Bytes::from_static(b"abc")), Err("no space left on device"));
    assert_eq!((gateway.journal(), gateway.wants_connection()), (Journal::default(), false));
}

//! What strangers send. The bytes are made here by `docs/files-format.md` and not by the code under test.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use farlink_net::files::{
    FilesError, Limits, ReceiveOptions, SendOptions, Summary, WORK_FOLDER, receive_files, send_files,
};
use proptest::prelude::*;
use ring::digest::{SHA256, digest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{Place, Random, contents};

const PREAMBLE: &[u8] = b"FARFILES\x00\x01";
const TOP: u32 = u32::MAX;

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32).to_be_bytes(), body].concat()
}

/// An entry of a manifest: a folder without a size.
fn entry(parent: u32, size: Option<u64>, name: &[u8]) -> Vec<u8> {
    let mut body = parent.to_be_bytes().to_vec();
    body.push(u8::from(size.is_some()));
    body.extend(0o755_u16.to_be_bytes());
    body.extend(1_i64.to_be_bytes());
    body.extend(2_u32.to_be_bytes());
    body.extend(size.unwrap_or(0).to_be_bytes());
    body.extend((name.len() as u16).to_be_bytes());
    body.extend(name);
    body
}

fn manifest(entries: &[Vec<u8>], bytes: u64) -> Vec<u8> {
    let end = [&(entries.len() as u32).to_be_bytes()[..], &bytes.to_be_bytes()].concat();
    [frame(1, &entries.concat()), frame(2, &end)].concat()
}

fn begin(index: u32, offset: u64) -> Vec<u8> {
    frame(3, &[&index.to_be_bytes()[..], &offset.to_be_bytes()].concat())
}

fn chunk(data: &[u8]) -> Vec<u8> {
    frame(4, &[digest(&SHA256, data).as_ref(), data].concat())
}

fn end(data: &[u8]) -> Vec<u8> {
    frame(5, digest(&SHA256, data).as_ref())
}

fn done() -> Vec<u8> {
    frame(8, &[])
}

/// What the receiver makes of the bytes, and what it answers.
async fn receive(bytes: &[u8], directory: &Path, options: &ReceiveOptions) -> (Result<Summary, FilesError>, Vec<u8>) {
    let (mut one, other) = tokio::io::duplex(1 << 20);
    let talking = async {
        let _ = one.write_all(PREAMBLE).await;
        let _ = one.write_all(bytes).await;
        let _ = one.shutdown().await;
        let mut answers = Vec::new();
        let _ = one.read_to_end(&mut answers).await;
        answers
    };
    tokio::join!(receive_files(other, directory, options, |_| {}), talking)
}

async fn refusal(entries: &[Vec<u8>], bytes: u64, options: &ReceiveOptions) -> String {
    let place = Place::new();
    let (received, answers) = receive(&manifest(entries, bytes), &place.directory, options).await;
    let error = received.unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    let FilesError::Refused(refusal) = &error else { panic!("{error:?}") };
    assert!(!refusal.value.is_empty() && !refusal.rule.is_empty() && !refusal.remedy.is_empty());
    // The sender is told the same.
    assert_eq!(answers, [PREAMBLE, &frame(0x7f, &[&[2], error.to_string().as_bytes()].concat())].concat());
    assert_eq!(fs::read_dir(&place.directory).unwrap().count(), 0, "nothing was written");
    error.to_string()
}

/// The format as the page has it is what the receiver takes.
#[tokio::test]
async fn a_transfer_made_by_hand_arrives() {
    let place = Place::new();
    let entries = [entry(TOP, None, b"folder"), entry(0, Some(5), b"file"), entry(TOP, Some(0), b"empty")];
    let bytes =
        [manifest(&entries, 5), begin(1, 0), chunk(b"he"), chunk(b"llo"), end(b"hello"), begin(2, 0), end(b""), done()];
    let (received, answers) = receive(&bytes.concat(), &place.directory, &ReceiveOptions::default()).await;
    assert_eq!(received.unwrap().placed, 2);
    assert_eq!(fs::read(place.directory.join("folder/file")).unwrap(), b"hello");
    let nothing = frame(0x11, &[0, 0, 0, 1, 0, 0, 0, 2]);
    let verdicts = [frame(0x13, &[0, 0, 0, 1, 0]), frame(0x13, &[0, 0, 0, 2, 0]), frame(0x14, &[])];
    assert_eq!(answers, [PREAMBLE, &nothing, &verdicts.concat()].concat());
}

#[tokio::test]
async fn names_that_lead_out_are_refused() {
    for name in
        [&b".."[..], b".", b"", b"/etc/cron.d/x", b"a/../../b", b"a\0b", WORK_FOLDER.as_bytes(), b".FARLINK-PARTIAL"]
    {
        refusal(&[entry(TOP, Some(1), name)], 1, &ReceiveOptions::default()).await;
    }
    let told = refusal(&[entry(TOP, Some(1), b"..")], 1, &ReceiveOptions::default()).await;
    assert!(told.starts_with("the name \"..\": \".\" and \"..\" are no names of files; "), "{told}");
}

#[tokio::test]
async fn names_that_collide_are_refused() {
    let options = ReceiveOptions::default();
    let twins: [(&[u8], &[u8]); 3] = [(b"a", b"a"), (b"README", b"readme"), ("\u{c9}".as_bytes(), "\u{e9}".as_bytes())];
    for (one, other) in twins {
        let told = refusal(&[entry(TOP, Some(1), one), entry(TOP, None, other)], 1, &options).await;
        assert!(told.contains("differs by case alone; rename one of them"), "{told}");
    }
    let sensitive = ReceiveOptions { case_sensitive: true, ..options };
    refusal(&[entry(TOP, Some(1), b"a"), entry(TOP, None, b"a")], 1, &sensitive).await;
    let place = Place::new();
    let entries = [entry(TOP, None, b"a"), entry(TOP, None, b"A")];
    let bytes = [manifest(&entries, 0), done()].concat();
    receive(&bytes, &place.directory, &sensitive).await.0.unwrap();
}

#[tokio::test]
async fn each_limit_is_named_with_value_rule_and_remedy() {
    let with = |limits: Limits| ReceiveOptions { limits, ..ReceiveOptions::default() };
    let limits = Limits::default();
    let files =
        |count: u32, size| (0..count).map(|index| entry(TOP, Some(size), index.to_string().as_bytes())).collect();
    let chain: Vec<_> = (0..5).map(|index: u32| entry(index.wrapping_sub(1), None, b"abcd")).collect();
    let many: Vec<_> = files(5, 10);

    let told = refusal(&many, 50, &with(Limits { total_bytes: 49, ..limits.clone() })).await;
    assert_eq!(
        told,
        "files of 50 bytes and more: a transfer has at most 49 bytes; send fewer files at a time, or raise the limit \
         total_bytes"
    );
    let told = refusal(&many, 50, &with(Limits { entries: 4, ..limits.clone() })).await;
    assert!(told.contains("at most 4 files and folders"), "{told}");
    let told = refusal(&chain, 0, &with(Limits { depth: 4, ..limits.clone() })).await;
    assert!(told.starts_with("a path of 5 components: a path has at most 4 components"), "{told}");
    let told = refusal(&chain, 0, &with(Limits { path_bytes: 23, ..limits.clone() })).await;
    assert!(told.starts_with("a path of 24 bytes: a path has at most 23 bytes"), "{told}");
    let told = refusal(&chain, 0, &with(Limits { name_bytes: 3, ..limits.clone() })).await;
    assert!(told.starts_with("a name of 4 bytes"), "{told}");
    let told = refusal(&many, 50, &with(Limits { manifest_bytes: 100, ..limits })).await;
    assert!(told.contains("a manifest has at most 100 bytes"), "{told}");

    // Sizes whose sum passes 2^64, and more than any disk has.
    refusal(&files(2, u64::MAX / 2 + 1), 0, &ReceiveOptions::default()).await;
    let huge = with(Limits { total_bytes: u64::MAX, ..Limits::default() });
    let place = Place::new();
    let bytes = manifest(&files(1, u64::MAX / 2), u64::MAX / 2);
    let error = receive(&bytes, &place.directory, &huge).await.0.unwrap_err();
    assert!(error.to_string().contains("bytes free; free space on the receiving side"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

/// Frames that may not come, or not now, or not with these fields.
#[tokio::test]
async fn what_breaks_the_format_places_nothing() {
    let one = manifest(&[entry(TOP, Some(5), b"file")], 5);
    let start = [&one[..], &begin(0, 0)].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("a parent that comes later", manifest(&[entry(1, Some(1), b"a"), entry(TOP, None, b"b")], 1)),
        ("a parent that is a file", manifest(&[entry(TOP, Some(1), b"a"), entry(0, Some(1), b"b")], 2)),
        ("its own parent", manifest(&[entry(0, None, b"a")], 0)),
        ("a wrong total", manifest(&[entry(TOP, Some(5), b"a")], 6)),
        ("a cut entry", [frame(1, &entry(TOP, Some(5), b"abc")[..28]), frame(2, &[0; 12])].concat()),
        ("a second manifest", [&one[..], &one].concat()),
        ("data before its file begins", [&one[..], &chunk(b"hello")].concat()),
        ("an end before its file begins", [&one[..], &end(b"hello")].concat()),
        ("a file that is not there", [&one[..], &begin(1, 0)].concat()),
        ("an offset that nobody claimed", [&one[..], &begin(0, 3)].concat()),
        ("an offset behind the end", [&one[..], &begin(0, 6)].concat()),
        ("a file twice", [&start[..], &begin(0, 0)].concat()),
        ("too many bytes", [&start[..], &chunk(b"hello!")].concat()),
        ("too few bytes", [&start[..], &chunk(b"hell"), &end(b"hell")].concat()),
        ("done within a file", [&start[..], &done()].concat()),
        ("done without its files", [&one[..], &done()].concat()),
        ("differs without a claim", [&one[..], &frame(7, &[0; 4])].concat()),
        ("a frame of the receiver", [&one[..], &frame(0x14, &[])].concat()),
        ("an unknown kind", frame(0x55, &[])),
        ("a long frame", [&[4][..], &u32::MAX.to_be_bytes()].concat()),
        ("an empty chunk", [&start[..], &chunk(b"")].concat()),
        ("no time", {
            let mut bad = entry(TOP, Some(5), b"a");
            bad[15..19].copy_from_slice(&1_000_000_000_u32.to_be_bytes());
            manifest(&[bad], 5)
        }),
        ("setuid", {
            let mut bad = entry(TOP, Some(5), b"a");
            bad[5..7].copy_from_slice(&0o4755_u16.to_be_bytes());
            manifest(&[bad], 5)
        }),
    ];
    for (what, bytes) in cases {
        let place = Place::new();
        let error = receive(&bytes, &place.directory, &ReceiveOptions::default()).await.0.expect_err(what);
        assert!(matches!(error, FilesError::Format(_)), "{what}: {error:?}");
        assert_eq!(error.exit_code(), 1);
        assert!(contents(&place.directory).is_empty(), "{what}");
    }
}

#[tokio::test]
async fn a_file_whose_whole_hash_is_wrong_is_not_placed() {
    let place = Place::new();
    let bytes = [manifest(&[entry(TOP, Some(5), b"file")], 5), begin(0, 0), chunk(b"hello"), end(b"other"), done()];
    let summary = receive(&bytes.concat(), &place.directory, &ReceiveOptions::default()).await.0.unwrap();
    assert_eq!((summary.placed, summary.failed.count), (0, 1));
    assert_eq!(fs::read_dir(&place.directory).unwrap().count(), 0);
}

/// A file that the receiver would not replace is not replaced by a sender that does as if it did not know.
#[tokio::test]
async fn a_sender_cannot_overwrite_by_force() {
    for (there, frames) in [
        ("hello", [begin(0, 0), chunk(b"HELLO"), end(b"HELLO")].concat()),
        ("hello", [begin(0, 5), end(b"HELLO")].concat()),
        ("longer", [begin(0, 0), chunk(b"HELLO"), end(b"HELLO")].concat()),
    ] {
        let place = Place::new();
        fs::write(place.directory.join("file"), there).unwrap();
        let bytes = [manifest(&[entry(TOP, Some(5), b"file")], 5), frames, done()].concat();
        let received = receive(&bytes, &place.directory, &ReceiveOptions::default()).await.0;
        assert!(matches!(received, Err(FilesError::Format(_))), "{received:?}");
        assert_eq!(fs::read(place.directory.join("file")).unwrap(), there.as_bytes());
    }
}

/// What a sender writes for this source, to be changed and sent again.
async fn recorded(place: &Place) -> Vec<u8> {
    let (one, other) = tokio::io::duplex(1 << 16);
    let (mut reader, mut to_receiver) = tokio::io::duplex(1 << 16);
    let (mut from_sender, mut to_sender) = tokio::io::split(other);
    let target = Place::new();
    let paths = [place.source.clone()];
    let (options, send_options) = (ReceiveOptions::default(), SendOptions::default());
    let copying = async {
        let mut record = Vec::new();
        let mut buffer = [0; 4096];
        let (mut from_receiver, mut into_receiver) = tokio::io::split(&mut to_receiver);
        let back = async {
            let _ = tokio::io::copy(&mut from_receiver, &mut to_sender).await;
            let _ = to_sender.shutdown().await;
        };
        let forth = async {
            while let Ok(read @ 1..) = from_sender.read(&mut buffer).await {
                record.extend(&buffer[..read]);
                into_receiver.write_all(&buffer[..read]).await.unwrap();
            }
        };
        tokio::join!(back, forth);
        record
    };
    let receiving = async {
        let received = receive_files(&mut reader, &target.directory, &options, |_| {}).await;
        drop(reader);
        received
    };
    let (sent, received, record) = tokio::join!(send_files(one, &paths, &send_options, |_| {}), receiving, copying);
    assert_eq!(sent.unwrap(), received.unwrap());
    record
}

/// Streams of a sender with changed, removed and repeated bytes: the receiver never panics, writes nothing outside, and
/// what it places is what was sent (SHA-256 sees to that).
#[test]
fn changed_streams_never_panic_nor_place_anything_else() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let place = Place::new();
    let mut random = Random(11);
    place.write("a/b/c", random.bytes(3000));
    place.write("a/d", random.bytes(100));
    place.write("e", "");
    let record = runtime.block_on(recorded(&place));
    let source = contents(&place.source);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(600)
    });
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<u8>()), 1..6);
    runner
        .run(&edits, |edits| {
            let mut bytes = record.clone();
            for (at, how, value) in edits {
                let at = at.index(bytes.len());
                match how {
                    0 | 1 => bytes[at] ^= value,
                    2 => drop(bytes.drain(at..(at + usize::from(value)).min(bytes.len()))),
                    _ => {
                        let repeated = bytes[at..(at + usize::from(value)).min(bytes.len())].to_vec();
                        bytes.splice(at..at, repeated);
                    }
                }
                if bytes.is_empty() {
                    return Ok(());
                }
            }
            let target = Place::new();
            let received = runtime.block_on(async {
                let (mut one, other) = tokio::io::duplex(1 << 16);
                let options = ReceiveOptions::default();
                let talking = async {
                    let _ = one.write_all(&bytes).await;
                    let _ = one.shutdown().await;
                    let _ = one.read_to_end(&mut Vec::new()).await;
                };
                tokio::join!(receive_files(other, &target.directory, &options, |_| {}), talking).0
            });
            drop(received);
            let sent: Vec<_> = source.values().filter_map(|found| found.content.clone()).collect();
            for (path, found) in contents(&target.directory) {
                if let Some(content) = found.content {
                    prop_assert!(sent.contains(&content), "{}", path.display());
                }
                prop_assert_eq!(found.mode & !0o777, 0);
            }
            Ok(())
        })
        .unwrap();
}

/// Answers of a receiver that says anything: the sender never panics and always ends.
#[test]
fn senders_survive_any_answers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let place = Place::new();
    place.write("a/b", "12345");
    place.write("c", "67");
    let answers = prop::collection::vec(
        prop_oneof![
            (0..5_u32, 0..5_u32).prop_map(|(a, b)| frame(0x11, &[a.to_be_bytes(), b.to_be_bytes()].concat())),
            (0..5_u32, 0..8_u64, any::<[u8; 32]>(), 0..3_u8).prop_map(|(index, length, sha, only)| {
                frame(0x12, &[&index.to_be_bytes()[..], &length.to_be_bytes(), &sha, &[only]].concat())
            }),
            (0..5_u32, 0..4_u8, "[a-z]{0,5}").prop_map(|(index, outcome, text)| {
                frame(0x13, &[&index.to_be_bytes()[..], &[outcome], text.as_bytes()].concat())
            }),
            Just(frame(0x14, &[])),
            prop::collection::vec(any::<u8>(), 0..40),
        ],
        0..8,
    );
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) };
    proptest::test_runner::TestRunner::new(config)
        .run(&answers, |answers| {
            let bytes = [PREAMBLE, &answers.concat()].concat();
            runtime.block_on(async {
                let (mut one, other) = tokio::io::duplex(1 << 16);
                let paths = [place.source.clone()];
                let options = SendOptions::default();
                let talking = async {
                    let _ = one.write_all(&bytes).await;
                    let _ = one.shutdown().await;
                    let _ = one.read_to_end(&mut Vec::new()).await;
                };
                let both = async { tokio::join!(send_files(other, &paths, &options, |_| {}), talking).0 };
                let _ = tokio::time::timeout(Duration::from_secs(10), both).await.expect("it ends");
            });
            Ok(())
        })
        .unwrap();
}

/// Someone swaps a folder of the directory for a symbolic link and back, as fast as they can: no byte lands outside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapped_folders_do_not_lead_out() {
    let mut random = Random(12);
    let place = Place::new();
    // In the same file system, into which a rename could lead.
    let outside = place.source.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    let folder = place.directory.join("source/folder");
    fs::create_dir_all(&folder).unwrap();
    let (begun, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let attacker = std::thread::spawn({
        let (begun, stop) = (Arc::clone(&begun), Arc::clone(&stop));
        let (folder, outside) = (folder.clone(), outside.clone());
        move || {
            let aside = folder.with_file_name("aside");
            let mut swaps = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let pause = Duration::from_micros(random.below(300));
                if !begun.load(Ordering::Relaxed) {
                    std::thread::sleep(pause);
                } else if fs::rename(&folder, &aside).is_ok() {
                    std::os::unix::fs::symlink(&outside, &folder).unwrap();
                    std::thread::sleep(pause);
                    fs::remove_file(&folder).unwrap();
                    fs::rename(&aside, &folder).unwrap();
                    std::thread::sleep(pause);
                    swaps += 1;
                }
            }
            swaps
        }
    });
    let (mut placed, mut failed) = (0, 0);
    let paths = [place.source.clone()];
    let (send_options, options) =
        (SendOptions::default(), ReceiveOptions { overwrite: true, ..ReceiveOptions::default() });
    for round in 0..10 {
        // Other bytes each time, so that each file comes again.
        for index in 0..200 {
            place.write(&format!("folder/{index}"), [round; 500]);
        }
        let (one, other) = tokio::io::duplex(4096);
        let (_, received) = tokio::join!(
            send_files(one, &paths, &send_options, |_| {}),
            receive_files(other, &place.directory, &options, |_| begun.store(true, Ordering::Relaxed)),
        );
        begun.store(false, Ordering::Relaxed);
        // Losing the race costs files, and the error says what stands there.
        if let Ok(summary) = received {
            placed += summary.placed;
            failed += summary.failed.count;
            for failure in &summary.failed.first {
                let says = ["a symbolic link or another file system", "move away what stands there", "check the path"];
                assert!(says.iter().any(|text| failure.reason.contains(text)), "{}", failure.reason);
            }
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        // Whichever swap was under way comes to its end.
        std::thread::sleep(Duration::from_millis(5));
    }
    stop.store(true, Ordering::Relaxed);
    let counts = format!("{} swaps, {placed} files placed, {failed} failed", attacker.join().unwrap());
    eprintln!("{counts}");
    assert!(placed > 0 && failed > 0, "the attack won and lost: {counts}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

/// A stream that ends within a frame, at every place.
#[tokio::test]
async fn streams_that_end_anywhere_are_network_failures() {
    let bytes =
        [manifest(&[entry(TOP, Some(5), b"file")], 5), begin(0, 0), chunk(b"hello"), end(b"hello"), done()].concat();
    for length in 0..bytes.len() {
        let place = Place::new();
        let error = receive(&bytes[..length], &place.directory, &ReceiveOptions::default()).await.0.unwrap_err();
        assert!(matches!(error, FilesError::Closed), "{length}: {error}");
    }
}

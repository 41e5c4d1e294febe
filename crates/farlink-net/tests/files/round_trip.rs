//! What is sent arrives, with modes and times.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use farlink_net::files::{Progress, ReceiveOptions, SendOptions};
use proptest::prelude::*;

use super::support::{Fate, Place, Random, contents, total_bytes, transfer, transfer_with};

#[derive(Clone, Debug)]
struct RandomEntry {
    path: Vec<String>,
    bytes: Option<usize>,
    mode: u32,
    seconds: u64,
}

fn random_entry() -> impl Strategy<Value = RandomEntry> {
    let name = "[a-d]{1,2}";
    let bytes = prop_oneof![3 => 0..100_usize, 2 => 0..100_000_usize, 1 => 900_000..2_500_000_usize];
    (prop::collection::vec(name, 1..5), prop::option::weighted(0.8, bytes), 0..0o1000_u32, 0..4_000_000_000_u64)
        .prop_map(|(path, bytes, mode, seconds)| RandomEntry { path, bytes, mode, seconds })
}

/// Makes what can be made; names that collide are left out.
fn make(place: &Place, entries: &[RandomEntry], seed: u64) {
    let mut random = Random(seed);
    for entry in entries {
        let path = entry.path.iter().fold(place.source.clone(), |path, name| path.join(name));
        if path.parent().is_none_or(|parent| fs::create_dir_all(parent).is_err()) {
            continue;
        }
        let made = match entry.bytes {
            None => fs::create_dir(&path).is_ok(),
            Some(bytes) => !path.exists() && fs::write(&path, random.bytes(bytes)).is_ok(),
        };
        if made {
            let time = SystemTime::UNIX_EPOCH + Duration::new(entry.seconds, random.below(1_000_000_000) as u32);
            File::open(&path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
            // As root every mode can be read; owners read theirs.
            fs::set_permissions(&path, Permissions::from_mode(entry.mode | 0o500)).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn random_trees_arrive(
        entries in prop::collection::vec(random_entry(), 0..25),
        seed in any::<u64>(),
        splits in any::<(Option<u64>, Option<u64>)>(),
    ) {
        let place = Place::new();
        make(&place, &entries, seed);
        let fates = (Fate { split: splits.0, ..Fate::default() }, Fate { split: splits.1, ..Fate::default() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let ends = runtime.block_on(transfer_with(
            std::slice::from_ref(&place.source), &place.directory, &SendOptions::default(), &ReceiveOptions::default(),
            fates,
        ));

        let total = total_bytes(&contents(&place.source));
        let progress = ends.receiver_progress.clone();
        prop_assert_eq!(&progress, &ends.sender_progress);
        let (sent, received) = ends.summaries();
        prop_assert_eq!(&sent, &received);
        prop_assert_eq!(sent.exit_code(), 0);
        prop_assert_eq!((sent.carried_bytes, sent.resumed_bytes), (total, 0));
        if let Some(Progress { done_bytes, total_bytes, .. }) = progress {
            prop_assert_eq!((done_bytes, total_bytes), (total, total));
        }
        place.assert_same();
    }
}

#[tokio::test]
async fn the_second_time_nothing_is_sent() {
    let place = Place::new();
    let mut random = Random(1);
    for index in 0..20 {
        place.write(&format!("folder/{index}"), random.bytes(index * 20_000));
    }
    place.write("empty", "");
    transfer(&place.source, &place.directory).await.summaries();
    let before = contents(&place.copy());

    let (sent, received) = transfer(&place.source, &place.directory).await.summaries();

    assert_eq!(sent, received);
    assert_eq!((sent.placed, sent.already_there, sent.carried_bytes), (0, 21, 0));
    assert_eq!(sent.resumed_bytes, total_bytes(&before));
    assert_eq!(contents(&place.copy()), before);
}

#[tokio::test]
async fn modes_lose_what_gives_rights_to_others() {
    let place = Place::new();
    place.write("setuid", "x");
    fs::set_permissions(place.source.join("setuid"), Permissions::from_mode(0o6751)).unwrap();
    fs::create_dir(place.source.join("sticky")).unwrap();
    fs::set_permissions(place.source.join("sticky"), Permissions::from_mode(0o1777)).unwrap();

    transfer(&place.source, &place.directory).await.summaries();

    let copy = contents(&place.copy());
    let mode = |name: &str| copy.iter().find(|(path, _)| path.ends_with(name)).unwrap().1.mode;
    assert_eq!((mode("setuid"), mode("sticky")), (0o751, 0o777));
}

#[tokio::test]
async fn folders_that_let_nothing_in_are_received_again() {
    let place = Place::new();
    place.write("shut/file", "1");
    fs::set_permissions(place.source.join("shut"), Permissions::from_mode(0o500)).unwrap();
    transfer(&place.source, &place.directory).await.summaries();
    fs::set_permissions(place.source.join("shut"), Permissions::from_mode(0o700)).unwrap();
    place.write("shut/other", "2");
    fs::set_permissions(place.source.join("shut"), Permissions::from_mode(0o500)).unwrap();

    transfer(&place.source, &place.directory).await.summaries();
    place.assert_same();
}

#[tokio::test]
async fn what_is_no_file_is_left_out_and_named() {
    let place = Place::new();
    place.write("file", "1");
    symlink("/etc/passwd", place.source.join("link")).unwrap();

    let (sent, received) = transfer(&place.source, &place.directory).await.summaries();

    assert_eq!((sent.placed, sent.left_out.count, received.left_out.count), (1, 1, 0));
    assert_eq!(sent.left_out.first[0].path, place.source.join("link"));
    assert_eq!(sent.left_out.first[0].what, "a symbolic link");
    assert_eq!(contents(&place.copy()).len(), 1);
}

#[tokio::test]
async fn names_are_bytes() {
    let place = Place::new();
    for name in
        [&b"\xff\xfe"[..], b"a b", b"-rf", b"new\nline", "\u{e9}\u{1f680}".as_bytes(), b"back\\slash", &[b'x'; 255]]
    {
        fs::write(place.source.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    let (sent, _) = transfer(&place.source, &place.directory).await.summaries();
    assert_eq!(sent.placed, 7);
    place.assert_same();
}

#[tokio::test]
async fn several_paths_and_nothing_at_all() {
    let place = Place::new();
    place.write("a/x", "1");
    place.write("b", "2");
    let paths = [place.source.join("a"), place.source.join("b")];
    let no_fates = || (Fate::default(), Fate::default());
    let (send, receive) = (SendOptions::default(), ReceiveOptions::default());
    let (sent, _) = transfer_with(&paths, &place.directory, &send, &receive, no_fates()).await.summaries();
    assert_eq!(sent.placed, 2);
    assert_eq!(fs::read(place.directory.join("a/x")).unwrap(), b"1");
    assert_eq!(fs::read(place.directory.join("b")).unwrap(), b"2");

    let (sent, received) = transfer_with(&[], &place.directory, &send, &receive, no_fates()).await.summaries();
    assert_eq!((&sent, sent.placed), (&received, 0));
}

/// Both futures can be spawned.
#[test]
fn both_ends_are_send() {
    fn is_send(_: impl Send) {}
    let (one, other) = tokio::io::duplex(1);
    is_send(farlink_net::files::send_files(one, &[], &SendOptions::default(), |_| {}));
    let options = ReceiveOptions::default();
    is_send(farlink_net::files::receive_files(other, std::path::Path::new("x"), &options, |_| {}));
}

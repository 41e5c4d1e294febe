//! Transfers that are cut go on where they stopped.

use std::fs;
use std::time::Duration;

use farlink_net::files::{FilesError, ReceiveOptions, SendOptions, WORK_FOLDER, receive_files, send_files};

use super::support::{Ends, Fate, Place, Random, contents, total_bytes, transfer, transfer_with};

async fn cut_transfer(place: &Place, fates: (Fate, Fate)) -> Ends {
    let paths = std::slice::from_ref(&place.source);
    transfer_with(paths, &place.directory, &SendOptions::default(), &ReceiveOptions::default(), fates).await
}

fn fill(place: &Place, random: &mut Random) {
    place.write("large", random.bytes(3_000_000));
    for index in 0..30 {
        let bytes = random.below(40_000) as usize;
        place.write(&format!("small/{index}"), random.bytes(bytes));
    }
    place.write("z/last", random.bytes(1_200_000));
}

/// 200 cuts in all: of 40 transfers, each is cut five times at random places, in either direction. Each chunk that
/// reached the receiver whole is taken once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_cuts_no_byte_is_taken_twice() {
    let mut random = Random(2);
    for _ in 0..40 {
        let place = Place::new();
        fill(&place, &mut random);
        let total = total_bytes(&contents(&place.source));
        let mut taken = 0;
        let mut cuts = 0;
        while cuts < 5 {
            let fates = if random.below(4) == 0 {
                (Fate::default(), Fate { cut_at: Some(random.below(1_500)), ..Fate::default() })
            } else {
                (Fate { cut_at: Some(random.below(2_000_000)), ..Fate::default() }, Fate::default())
            };
            let ends = cut_transfer(&place, fates).await;
            taken += ends.taken_bytes();
            cuts += 1;
            if let (Err(sent), Err(received)) = (&ends.sent, &ends.received) {
                assert_eq!((sent.exit_code(), received.exit_code()), (1, 1), "{sent}, {received}");
            }
        }
        let ends = transfer(&place.source, &place.directory).await;
        taken += ends.taken_bytes();
        let (sent, received) = ends.summaries();
        assert_eq!(sent, received);
        assert_eq!(taken, total);
        place.assert_same();
    }
}

/// Both futures are dropped at any time, as by a user who presses Ctrl-C in a program that goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_futures_leave_what_can_go_on() {
    let mut random = Random(3);
    for _ in 0..5 {
        let place = Place::new();
        fill(&place, &mut random);
        for _ in 0..4 {
            let (one, other) = tokio::io::duplex(4096);
            let paths = [place.source.clone()];
            let (send_options, options) = (SendOptions::default(), ReceiveOptions::default());
            let both = async {
                tokio::join!(
                    send_files(one, &paths, &send_options, |_| {}),
                    receive_files(other, &place.directory, &options, |_| {})
                )
            };
            let _ = tokio::time::timeout(Duration::from_millis(random.below(60)), both).await;
        }
        transfer(&place.source, &place.directory).await.summaries();
        place.assert_same();
    }
}

/// A source that is partly received, and how much of it.
async fn partly_received() -> (Place, u64) {
    let place = Place::new();
    place.write("file", Random(4).bytes(3_000_000));
    let ends = cut_transfer(&place, (Fate { cut_at: Some(2_000_000), ..Fate::default() }, Fate::default())).await;
    ends.received.as_ref().unwrap_err();
    let taken = ends.taken_bytes();
    assert!(taken > 0);
    (place, taken)
}

#[tokio::test]
async fn a_changed_source_starts_again() {
    let (place, _) = partly_received().await;
    place.write("file", Random(5).bytes(3_000_000));
    let (sent, _) = transfer(&place.source, &place.directory).await.summaries();
    assert_eq!((sent.carried_bytes, sent.resumed_bytes), (3_000_000, 0));
    place.assert_same();
}

/// The same size and time, but other bytes: the sender's own reading finds that.
#[tokio::test]
async fn a_source_that_hides_its_change_starts_again() {
    let (place, _) = partly_received().await;
    let path = place.source.join("file");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    fs::write(&path, bytes).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();

    let (sent, _) = transfer(&place.source, &place.directory).await.summaries();
    assert_eq!((sent.carried_bytes, sent.resumed_bytes), (3_000_000, 0));
    place.assert_same();
}

#[tokio::test]
async fn damaged_records_cost_bytes_and_nothing_else() {
    for (extension, damage) in [("log", 0), ("log", 1), ("log", 2), ("data", 0), ("data", 1), ("data", 2)] {
        let (place, taken) = partly_received().await;
        let work = place.directory.join(WORK_FOLDER);
        let path = fs::read_dir(&work)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|found| found == extension))
            .unwrap();
        let bytes = fs::read(&path).unwrap();
        match damage {
            0 => fs::remove_file(&path).unwrap(),
            1 => fs::write(&path, &bytes[..bytes.len() / 2]).unwrap(),
            _ => fs::write(&path, Random(6).bytes(bytes.len())).unwrap(),
        }
        let (sent, _) = transfer(&place.source, &place.directory).await.summaries();
        assert!(sent.resumed_bytes < taken, "{extension} {damage}");
        assert_eq!(sent.resumed_bytes + sent.carried_bytes, 3_000_000);
        place.assert_same();
    }
}

#[tokio::test]
async fn damage_on_the_way_is_found() {
    let place = Place::new();
    place.write("file", Random(7).bytes(500_000));
    let fate = Fate { changes: vec![(300_000, 1)], ..Fate::default() };
    let ends = cut_transfer(&place, (fate, Fate::default())).await;
    let (told, error) = (ends.sent.unwrap_err(), ends.received.unwrap_err());
    assert!(matches!(told, FilesError::RefusedByPeer { .. }) && told.exit_code() == 1, "{told}");
    assert!(error.to_string().contains("a chunk whose bytes are not those of its SHA-256"), "{error}");
    assert_eq!(error.exit_code(), 1);
    transfer(&place.source, &place.directory).await.summaries();
    place.assert_same();
}

/// The file is written to while it is sent: it fails, and the others arrive.
#[tokio::test]
async fn a_source_that_changes_while_it_is_sent_fails_alone() {
    let place = Place::new();
    place.write("a", Random(8).bytes(5_000_000));
    place.write("b", "other");
    let (one, other) = tokio::io::duplex(4096);
    let (paths, send_options, options) = ([place.source.clone()], SendOptions::default(), ReceiveOptions::default());
    let mut has_changed = false;
    let (sent, received) = tokio::join!(
        send_files(one, &paths, &send_options, |now| {
            if now.done_bytes > 0 && !std::mem::replace(&mut has_changed, true) {
                fs::File::options().append(true).open(place.source.join("a")).unwrap().set_len(1_000_000).unwrap();
            }
        }),
        receive_files(other, &place.directory, &options, |_| {}),
    );
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.failed.count, sent.placed, sent.exit_code()), (1, 1, 2));
    assert_eq!(sent.failed, received.failed);
    assert!(sent.failed.first[0].reason.contains("changed on the sending side"), "{}", sent.failed.first[0].reason);
    assert!(!place.copy().join("a").exists());
}

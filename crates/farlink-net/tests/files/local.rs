//! What stands in the receiver's directory, and what its host lacks.

use std::fs;
use std::path::Path;
use std::process::Command;

use farlink_net::files::{FilesError, ReceiveOptions, SendOptions, WORK_FOLDER, receive_files, send_files};

use super::support::{Ends, Fate, Place, Random, transfer, transfer_with};

async fn overwrite(place: &Place) -> Ends {
    let options = ReceiveOptions { overwrite: true, ..ReceiveOptions::default() };
    let no_fates = (Fate::default(), Fate::default());
    let paths = std::slice::from_ref(&place.source);
    transfer_with(paths, &place.directory, &SendOptions::default(), &options, no_fates).await
}

/// A source with three files, of which the directory has one, another of the same size, and another of another size.
fn three_files() -> Place {
    let place = Place::new();
    for (name, there) in [("same", "12345"), ("other", "54321"), ("longer", "1234567")] {
        place.write(name, "12345");
        fs::create_dir_all(place.copy()).unwrap();
        fs::write(place.copy().join(name), there).unwrap();
    }
    place
}

#[tokio::test]
async fn files_that_exist_stay() {
    let place = three_files();
    let (sent, received) = transfer(&place.source, &place.directory).await.summaries();
    assert_eq!(sent, received);
    assert_eq!((sent.placed, sent.already_there, sent.failed.count, sent.carried_bytes), (0, 1, 2, 0));
    assert_eq!(sent.exit_code(), 2);
    for failure in &sent.failed.first {
        assert_eq!(
            failure.reason,
            "another file of this name exists on the receiving side; move it away, or receive with overwrite"
        );
    }
    assert_eq!(fs::read(place.copy().join("other")).unwrap(), b"54321");
    assert_eq!(fs::read(place.copy().join("longer")).unwrap(), b"1234567");
}

#[tokio::test]
async fn files_that_exist_are_replaced_on_request() {
    let place = three_files();
    let (sent, received) = overwrite(&place).await.summaries();
    assert_eq!(sent, received);
    assert_eq!((sent.placed, sent.already_there, sent.failed.count), (2, 1, 0));
    for name in ["same", "other", "longer"] {
        assert_eq!(fs::read(place.copy().join(name)).unwrap(), b"12345");
    }
}

#[tokio::test]
async fn folders_and_files_do_not_replace_one_another() {
    let place = Place::new();
    place.write("file", "1");
    place.write("folder/inside/deep", "2");
    place.write("good", "3");
    fs::create_dir_all(place.copy().join("file")).unwrap();
    fs::write(place.copy().join("folder"), "in the way").unwrap();

    let (sent, received) = overwrite(&place).await.summaries();
    assert_eq!(sent, received);
    let failed: Vec<_> = sent.failed.first.iter().map(|failure| failure.path.to_str().unwrap()).collect();
    assert_eq!(failed, ["source/file", "source/folder", "source/folder/inside", "source/folder/inside/deep"]);
    assert_eq!(fs::read(place.copy().join("good")).unwrap(), b"3");
    assert_eq!(fs::read(place.copy().join("folder")).unwrap(), b"in the way");
}

#[tokio::test]
async fn a_directory_takes_one_transfer_at_a_time() {
    let place = Place::new();
    place.write("file", Random(1).bytes(100_000));
    let (stuck, other) = tokio::io::duplex(1 << 20);
    let paths = [place.source.clone()];
    let (send_options, options) = (SendOptions::default(), ReceiveOptions::default());
    let (mut theirs, ours) = tokio::io::duplex(1 << 20);
    // A transfer that stops behind its manifest, as its sender does.
    let first = receive_files(ours, &place.directory, &options, |_| {});
    let second = async {
        use tokio::io::AsyncWriteExt;
        theirs.write_all(b"FARFILES\x00\x01\x02\x00\x00\x00\x0c\0\0\0\0\0\0\0\0\0\0\0\0").await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        tokio::join!(
            send_files(stuck, &paths, &send_options, |_| {}),
            receive_files(other, &place.directory, &options, |_| {})
        )
    };
    let (sent, received) = tokio::select! {
        _ = first => panic!("it waits"),
        ends = second => ends,
    };
    let error = received.unwrap_err();
    assert!(error.to_string().contains("a folder receives one transfer at a time"), "{error}");
    assert_eq!((error.exit_code(), sent.unwrap_err().exit_code()), (2, 2));
}

#[tokio::test]
async fn a_source_that_is_not_there_is_named_and_the_receiver_told() {
    let place = Place::new();
    let ends = transfer(&place.source.join("missing"), &place.directory).await;
    let error = ends.sent.unwrap_err();
    assert!(error.to_string().contains("missing\": No such file or directory (os error 2); check the path"), "{error}");
    let told = ends.received.unwrap_err();
    assert!(matches!(&told, FilesError::RefusedByPeer { .. }), "{told}");
    assert!(!told.to_string().contains(place.source.to_str().unwrap()), "paths of the sender stay with it: {told}");
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let place = Place::new();
    place.write("file", "1");
    fs::write(place.directory.join("taken"), "").unwrap();
    let directory = place.directory.join("taken/inside");
    let ends = transfer(&place.source, &directory).await;
    let error = ends.received.unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("taken/inside\": Not a directory"), "{error}");
    assert!(matches!(ends.sent.unwrap_err(), FilesError::RefusedByPeer { .. }));
}

/// A file system of 4 MB that fills up while a file comes.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// `None` without the right to mount, said aloud.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(directory.path()).status();
        if mounted.is_ok_and(|status| status.success()) {
            Some(SmallDisk { directory })
        } else {
            eprintln!("SKIPPED: a full disk needs the right to mount a tmpfs");
            None
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_stops_the_transfer_which_goes_on_later() {
    let Some(disk) = SmallDisk::new() else { return };
    let place = Place::new();
    place.write("a", "small");
    place.write("b", Random(2).bytes(3_000_000));
    let (one, other) = tokio::io::duplex(4096);
    let (paths, send_options, options) = ([place.source.clone()], SendOptions::default(), ReceiveOptions::default());
    let filler = disk.path().join("filler");
    let (sent, received) = tokio::join!(
        send_files(one, &paths, &send_options, |_| {}),
        receive_files(other, disk.path(), &options, |now| {
            if now.done_bytes > 500_000 && !filler.exists() {
                let _ = fs::write(&filler, vec![0; 4_000_000]);
            }
        }),
    );
    let (sent, error) = (sent.unwrap_err(), received.unwrap_err());
    assert_eq!((sent.exit_code(), error.exit_code()), (2, 2), "{sent} {error}");
    assert!(error.to_string().contains("No space left on device (os error 28); free space on the disk"), "{error}");
    assert!(sent.to_string().contains("No space left on device"), "{sent}");
    assert!(!sent.to_string().contains(disk.path().to_str().unwrap()), "{sent}");
    assert_eq!(fs::read(disk.path().join("source/a")).unwrap(), b"small");
    assert!(!disk.path().join("source/b").exists());

    fs::remove_file(&filler).unwrap();
    let (sent, _) = transfer(&place.source, disk.path()).await.summaries();
    assert!(sent.resumed_bytes > 5, "what was there is not sent again: {}", sent.resumed_bytes);
    assert_eq!(fs::read(disk.path().join("source/b")).unwrap(), fs::read(place.source.join("b")).unwrap());
    assert!(!disk.path().join(WORK_FOLDER).exists());
}

#[tokio::test]
async fn what_cannot_fit_is_refused_before_it_is_sent() {
    let Some(disk) = SmallDisk::new() else { return };
    let place = Place::new();
    place.write("b", Random(2).bytes(5_000_000));
    let ends = transfer(&place.source, disk.path()).await;
    let error = ends.received.unwrap_err();
    assert!(error.to_string().starts_with("5000000 bytes to receive: the disk has 4"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

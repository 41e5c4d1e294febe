//! Either side is a process that is killed by SIGKILL at random times.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use farlink_net::files::{FilesError, ReceiveOptions, SendOptions, Summary, WORK_FOLDER, receive_files, send_files};
use tokio::net::{TcpListener, TcpStream};

use super::support::{Place, Random, contents, total_bytes};

const ROLE: &str = "FARLINK_TEST_FILES_ROLE";

/// Not a test: the process that is killed. It is this program, run for this function alone.
#[tokio::test]
#[ignore = "the other process of the tests here"]
async fn other_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (address, path) =
        (std::env::var("FARLINK_TEST_ADDRESS").unwrap(), std::env::var_os("FARLINK_TEST_PATH").unwrap());
    let stream = TcpStream::connect(address).await.unwrap();
    let path = PathBuf::from(path);
    let ended = match role.as_str() {
        "receive" => receive_files(stream, &path, &ReceiveOptions::default(), |_| {}).await,
        _ => send_files(stream, &[path], &SendOptions::default(), |_| {}).await,
    };
    ended.unwrap();
}

fn start(role: &str, address: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "files::kill::other_process", "--ignored"])
        .env(ROLE, role)
        .env("FARLINK_TEST_ADDRESS", address)
        .env("FARLINK_TEST_PATH", path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Bytes that a receiver has on its disk: files under their names, and chunks of the logs.
fn bytes_on_disk(place: &Place) -> u64 {
    let mut bytes = total_bytes(&contents(&place.directory));
    let Ok(work) = fs::read_dir(place.directory.join(WORK_FOLDER)) else { return bytes };
    for path in
        work.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|kind| kind == "log"))
    {
        if path.with_extension("data").exists() {
            let log = fs::read(&path).unwrap();
            let chunks = log.get(36..).unwrap_or_default().chunks_exact(36);
            bytes += chunks.map(|entry| u64::from(u32::from_be_bytes(entry[..4].try_into().unwrap()))).sum::<u64>();
        }
    }
    bytes
}

/// One transfer with a process in that role; `None` when the process was killed after `kill_after`.
async fn transfer(place: &Place, role: &str, kill_after: Option<Duration>) -> Option<Summary> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let path = if role == "receive" { &place.directory } else { &place.source };
    let mut child = start(role, &address, path);
    let ours = async {
        // A process that was killed before it connected never does.
        let accepted = tokio::time::timeout(Duration::from_secs(5), listener.accept()).await;
        let Ok((stream, _)) = accepted.map(Result::unwrap) else { return Err(FilesError::Closed) };
        match role {
            "receive" => send_files(stream, std::slice::from_ref(&place.source), &SendOptions::default(), |_| {}).await,
            _ => receive_files(stream, &place.directory, &ReceiveOptions::default(), |_| {}).await,
        }
    };
    let Some(kill_after) = kill_after else {
        let summary = ours.await.unwrap();
        assert!(child.wait().unwrap().success());
        return Some(summary);
    };
    let killing = async {
        tokio::time::sleep(kill_after).await;
        child.kill().unwrap();
        child.wait().unwrap();
    };
    let both = async { tokio::join!(ours, killing).0 };
    match tokio::time::timeout(Duration::from_secs(20), both).await {
        Ok(Err(error)) => {
            assert_eq!(error.exit_code(), 1, "{error}");
            None
        }
        Ok(Ok(summary)) => Some(summary),
        Err(_) => panic!("a transfer whose other process is dead ends"),
    }
}

async fn killed_at_random(role: &str, seed: u64) {
    let mut random = Random(seed);
    let mut kills = 0;
    let (mut resumed_bytes, mut carried_bytes) = (0, 0);
    for _ in 0..8 {
        let place = Place::on_disk();
        for index in 0..10 {
            let bytes = random.below(200_000) as usize;
            place.write(&format!("a/{index}"), random.bytes(bytes));
        }
        place.write("b", random.bytes(20_000_000));
        for _ in 0..2 {
            let wait = Duration::from_millis(10 + random.below(80));
            kills += u32::from(transfer(&place, role, Some(wait)).await.is_none());
        }
        let kept = bytes_on_disk(&place);
        let summary = transfer(&place, role, None).await.unwrap();
        // What was there, fsynced or not, is not sent again: the kernel keeps what a killed process has written.
        assert_eq!(summary.resumed_bytes, kept);
        resumed_bytes += kept;
        carried_bytes += summary.carried_bytes;
        place.assert_same();
    }
    let counts =
        format!("{kills} transfers killed, {resumed_bytes} bytes not sent again, {carried_bytes} bytes sent last");
    eprintln!("{counts}");
    assert!(kills >= 5 && resumed_bytes > 0 && carried_bytes > 0, "{counts}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_receiver_goes_on() {
    killed_at_random("receive", 21).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_sender_goes_on() {
    killed_at_random("send", 22).await;
}

//! Either side is a process of its own: killed by SIGKILL at random times, without rights, without descriptors.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use farlink_net::files::{FilesError, ReceiveOptions, SendOptions, Summary, WORK_FOLDER, receive_files, send_files};
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};

use super::support::{Place, Random, contents, total_bytes};

/// What the other process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Send,
    Receive,
}

const ROLE: &str = "FARLINK_TEST_FILES_ROLE";
const ADDRESS: &str = "FARLINK_TEST_FILES_ADDRESS";
const PATH: &str = "FARLINK_TEST_FILES_PATH";
const DESCRIPTORS: &str = "FARLINK_TEST_FILES_DESCRIPTORS";

/// Not a test: the other process. It is this program, run for this function alone. It prints how the transfer ended and
/// how much its memory grew, in kB.
#[tokio::test]
#[ignore = "the other process of the tests here"]
async fn other_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let path = PathBuf::from(std::env::var_os(PATH).unwrap());
    let stream = TcpStream::connect(std::env::var(ADDRESS).unwrap()).await.unwrap();
    if let Ok(more) = std::env::var(DESCRIPTORS) {
        let limit = Some(64);
        setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).unwrap();
        let mut taken: Vec<_> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
        taken.truncate(taken.len() - more.parse::<usize>().unwrap());
        std::mem::forget(taken);
    }
    let before = memory_kb();
    let ended = match role.as_str() {
        "Receive" => receive_files(stream, &path, &ReceiveOptions::default(), |_| {}).await,
        _ => send_files(stream, &[path], &SendOptions::default(), |_| {}).await,
    };
    let code = ended.as_ref().map_or_else(FilesError::exit_code, Summary::exit_code);
    match ended {
        Ok(summary) => println!("ENDED {} {summary:?}", memory_kb().saturating_sub(before)),
        Err(error) => println!("ENDED {error}"),
    }
    std::process::exit(code.into());
}

/// The most memory that this process has had, in kB; 0 when there are no descriptors left to ask.
fn memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn command(role: Role, address: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "files::processes::other_process", "--ignored", "--nocapture"])
        .env(ROLE, format!("{role:?}"))
        .env(ADDRESS, address)
        .env(PATH, path)
        .current_dir("/")
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

fn start(role: Role, address: &str, path: &Path) -> Child {
    command(role, address, path).spawn().unwrap()
}

/// How the other process ended: its exit code, and what it said behind "ENDED".
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split_once("ENDED ")).map_or("", |(_, said)| said);
    (output.status.code(), line.to_owned())
}

/// A transfer with another process that is changed before it starts. `None` when it cannot be started.
async fn transfer_with(
    place: &Place,
    role: Role,
    change: impl FnOnce(&mut Command),
) -> Option<(Result<Summary, FilesError>, Option<i32>, String)> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let path = if role == Role::Receive { &place.directory } else { &place.source };
    let mut command = command(role, &address, path);
    change(&mut command);
    let child = command.spawn().ok()?;
    let (stream, _) = tokio::time::timeout(Duration::from_secs(10), listener.accept()).await.ok()?.unwrap();
    let ours = match role {
        Role::Receive => send_files(stream, std::slice::from_ref(&place.source), &SendOptions::default(), |_| {}).await,
        Role::Send => receive_files(stream, &place.directory, &ReceiveOptions::default(), |_| {}).await,
    };
    let (code, said) = ended(child);
    Some((ours, code, said))
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
async fn transfer(place: &Place, role: Role, kill_after: Option<Duration>) -> Option<Summary> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let path = if role == Role::Receive { &place.directory } else { &place.source };
    let mut child = start(role, &address, path);
    let ours = async {
        // A process that was killed before it connected never does.
        let accepted = tokio::time::timeout(Duration::from_secs(5), listener.accept()).await;
        let Ok((stream, _)) = accepted.map(Result::unwrap) else { return Err(FilesError::Closed) };
        match role {
            Role::Receive => {
                send_files(stream, std::slice::from_ref(&place.source), &SendOptions::default(), |_| {}).await
            }
            Role::Send => receive_files(stream, &place.directory, &ReceiveOptions::default(), |_| {}).await,
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

async fn killed_at_random(role: Role, seed: u64) {
    let mut random = Random(seed);
    let mut kills = 0;
    let (mut resumed_bytes, mut carried_bytes) = (0, 0);
    for _ in 0..8 {
        let place = Place::on_disk();
        for index in 0..10 {
            let bytes = random.below(200_000) as usize;
            place.write(&format!("a/{index}"), random.bytes(bytes));
        }
        place.write("b", random.bytes(60_000_000)); // more than is sent until the kill
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
    killed_at_random(Role::Receive, 21).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_sender_goes_on() {
    killed_at_random(Role::Send, 22).await;
}

/// 300 MB pass, and neither side's memory grows by 16 MB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_bounded() {
    for role in [Role::Send, Role::Receive] {
        let place = Place::new();
        fs::File::create(place.source.join("large")).unwrap().set_len(300_000_000).unwrap();
        let (ours, code, said) = transfer_with(&place, role, |_| {}).await.unwrap();
        assert_eq!((ours.unwrap().placed, code), (1, Some(0)), "{said}");
        let grown_kb: u64 = said.split_once(' ').unwrap().0.parse().unwrap();
        eprintln!("{role:?}: {grown_kb} kB");
        assert!(grown_kb < 16_000, "{role:?}: {grown_kb} kB");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_descriptors_the_remedy_is_named() {
    for role in [Role::Send, Role::Receive] {
        let mut failures = 0;
        for descriptors in 0..5 {
            let place = Place::new();
            place.write("a/b", Random(3).bytes(2_000_000));
            let change = |command: &mut Command| {
                command.env(DESCRIPTORS, descriptors.to_string());
            };
            let (ours, code, said) = transfer_with(&place, role, change).await.unwrap();
            match ours {
                Ok(summary) => assert_eq!((summary.placed, code), (1, Some(0)), "{role:?} {descriptors}: {said}"),
                Err(error) => {
                    failures += 1;
                    assert_eq!((error.exit_code(), code), (2, Some(2)), "{role:?} {descriptors}: {error}; {said}");
                    assert!(said.contains("raise the limit of open files (ulimit -n)"), "{said}");
                    assert!(!place.copy().join("a/b").exists());
                }
            }
            // And later it goes on.
            let (ours, ..) = transfer_with(&place, role, |_| {}).await.unwrap();
            ours.unwrap();
            place.assert_same();
        }
        assert!(failures > 0, "{role:?}");
    }
}

/// The other process is nobody, who may read and write little.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_rights_the_remedy_is_named() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root starts processes of nobody");
        return;
    }
    let as_nobody = |command: &mut Command| {
        command.uid(65_534);
    };
    let place = Place::new();
    fs::set_permissions(place.source.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    place.write("open", "1");
    place.write("shut", "2");
    fs::set_permissions(place.source.join("shut"), fs::Permissions::from_mode(0o600)).unwrap();
    let Some((received, code, said)) = transfer_with(&place, Role::Send, as_nobody).await else {
        eprintln!("SKIPPED: nobody may not run this program");
        return;
    };
    let summary = received.unwrap();
    assert_eq!((summary.placed, summary.failed.count, code), (1, 1, Some(2)), "{said}");
    assert_eq!(
        summary.failed.first[0].reason,
        "the sender cannot read it: Permission denied (os error 13); check the permissions of the file and of the \
         folders above it"
    );

    let (sent, code, said) = transfer_with(&place, Role::Receive, as_nobody).await.unwrap();
    let told = sent.unwrap_err();
    assert_eq!((told.exit_code(), code), (2, Some(2)));
    assert!(said.contains(&format!("cannot make the folder \"{}", place.directory.display())), "{said}");
    assert!(said.contains("Permission denied (os error 13); check the permissions"), "{said}");
    assert!(!told.to_string().contains(place.directory.to_str().unwrap()), "{told}");
}

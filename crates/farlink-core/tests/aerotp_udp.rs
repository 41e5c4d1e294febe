//! The example `aerotp_udp`: sends a file between two processes over real sockets.

#![expect(clippy::disallowed_methods, reason = "processes take real time")]

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use farlink_core::protocol::aerotp::{Flags, Segment};
use farlink_core::wire::aerotp::{Outside, encode_segment_into};

const BYTES: usize = 8 << 20;
/// Far longer than a test takes.
const LONGEST: Duration = Duration::from_secs(120);

fn program() -> Command {
    // Examples are built beside the folder of the tests.
    let tests = std::env::current_exe().unwrap();
    let example = tests.parent().and_then(Path::parent).unwrap().join("examples/aerotp_udp");
    assert!(example.is_file(), "{} is missing: cargo build -p farlink-core --examples", example.display());
    Command::new(example)
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// An unused port of this machine.
fn address() -> String {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn content(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

fn start(arguments: &[&str], folder: &Path) -> Child {
    let mut command = program();
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Output of a process that has ended by itself.
fn finish(mut child: Child) -> Output {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > LONGEST {
            child.kill().unwrap();
            panic!("it does not end: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The number before the first occurrence of a word.
fn number(output: &Output, word: &str) -> u64 {
    let text = text(&output.stdout);
    let before = text.split(word).next().unwrap();
    before.split(|c: char| !c.is_ascii_digit()).rfind(|digits| !digits.is_empty()).unwrap().parse().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder with a file to send, its content, and an address for its receiver.
fn prepare(name: &str, bytes: usize) -> (PathBuf, Vec<u8>, String) {
    let (folder, file) = (folder(name), content(bytes));
    std::fs::write(folder.join("file"), &file).unwrap();
    (folder, file, address())
}

/// A process that has done something for so long, and is killed.
fn kill_after(mut child: Child, millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Sender and receiver end well, and the copy is the file.
fn finish_both(sender: Child, receiver: Child, folder: &Path, file: &[u8]) -> (Output, Output) {
    let (sender, receiver) = (finish(sender), finish(receiver));
    assert!(sender.status.success() && receiver.status.success(), "{sender:?} {receiver:?}");
    assert!(std::fs::read(folder.join("copy")).unwrap() == file, "the same bytes");
    (sender, receiver)
}

fn transfer(name: &str, bytes: usize, options: &[&str]) -> (Output, Output) {
    let (folder, file, address) = prepare(name, bytes);
    let receiver = start(&[&["receive", &address, "copy"], options].concat(), &folder);
    let sender = start(&[&["send", "file", &address], options].concat(), &folder);
    let (sender, receiver) = finish_both(sender, receiver, &folder, &file);
    assert_eq!(names(&folder), ["copy", "file"], "nothing else is left");
    (sender, receiver)
}

#[test]
fn a_file_arrives_whole() {
    let (sender, _) = transfer("udp-clean", BYTES, &[]);
    assert_eq!(number(&sender, " of them dropped"), 0);
}

#[test]
fn a_file_arrives_whole_although_datagrams_are_dropped() {
    let (sender, receiver) = transfer("udp-drops", BYTES, &["--drop", "0.05"]);
    let (sent, dropped) = (number(&sender, " datagrams"), number(&sender, " of them"));
    assert!((0.03..0.07).contains(&(dropped as f64 / sent as f64)), "{dropped} of {sent}");
    assert!(number(&receiver, " of them") > 0, "acknowledgements are dropped as well");
    assert!(sent >= BYTES as u64 / 1444 + dropped, "lost segments were retransmitted");
}

/// The rate is found in each way, and no fixed one is needed.
#[test]
fn a_file_arrives_whole_at_a_rate_that_is_found() {
    for control in ["learnt", "friendly", "alone"] {
        transfer(&format!("udp-{control}"), BYTES, &["--control", control, "--drop", "0.01"]);
    }
}

/// One host serves several senders at once, each with its own file.
#[test]
fn several_files_arrive_at_one_host() {
    let folder = folder("udp-several");
    let contents: Vec<Vec<u8>> = (0..3).map(|n| content(BYTES / 4 + n * 1000)).collect();
    for (n, content) in contents.iter().enumerate() {
        std::fs::write(folder.join(format!("file{n}")), content).unwrap();
    }
    let address = address();
    let receiver = start(&["receive", &address, "copy", "--files", "3", "--drop", "0.02"], &folder);
    // Slow enough that all three transfers overlap.
    let rate = ["--rate", "2e7", "--drop", "0.02"];
    let senders: Vec<Child> =
        (0..3).map(|n| start(&[&["send", &format!("file{n}"), &address], &rate[..]].concat(), &folder)).collect();
    for sender in senders {
        let output = finish(sender);
        assert!(output.status.success(), "{output:?}");
    }
    let output = finish(receiver);
    assert!(output.status.success(), "{output:?}");
    let mut copies: Vec<Vec<u8>> = (1..=3).map(|n| std::fs::read(folder.join(format!("copy.{n}"))).unwrap()).collect();
    copies.sort_by_key(Vec::len);
    assert!(copies == contents, "the same bytes");
    assert_eq!(names(&folder).len(), 6, "nothing else is left");
}

/// Another sender waits until a host has given up the one that vanished.
#[test]
fn a_host_waits_for_another_sender() {
    let (folder, file, address) = prepare("udp-another", BYTES / 4);
    let receiver = start(&["receive", &address, "copy", "--wait", "1"], &folder);
    kill_after(start(&["send", "file", &address, "--rate", "1e6"], &folder), 700);
    let sender = start(&["send", "file", &address], &folder);
    let (_, receiver) = finish_both(sender, receiver, &folder, &file);
    assert!(text(&receiver.stderr).contains("a sender is gone (NoAnswer)"), "{receiver:?}");
}

/// A receiver that was killed and started again gets the file from its beginning.
#[test]
fn a_sender_begins_anew_with_a_receiver_that_was_started_again() {
    let (folder, file, address) = prepare("udp-receiver-killed", BYTES / 4);
    let first = start(&["receive", &address, "copy"], &folder);
    let sender = start(&["send", "file", &address, "--rate", "8e6"], &folder);
    kill_after(first, 700);
    std::thread::sleep(Duration::from_millis(300));
    let second = start(&["receive", &address, "copy"], &folder);
    let (sender, _) = finish_both(sender, second, &folder, &file);
    assert!(text(&sender.stderr).contains("sending from the beginning"), "{sender:?}");
}

/// A stranger's single opening takes no file from the sender that comes after it.
#[test]
fn a_stray_datagram_takes_no_file() {
    let (folder, file, address) = prepare("udp-stray", BYTES / 4);
    let receiver = start(&["receive", &address, "copy"], &folder);
    while names(&folder) == ["file"] {
        std::thread::sleep(Duration::from_millis(10));
    }
    let opening = Segment::<Vec<u8>> {
        flags: Flags::ASYN,
        header_bytes: 48 + 4,
        timestamp: 1,
        payload: b"stray".to_vec(),
        ..Segment::default()
    };
    let mut datagram = [0; 200];
    let bytes = encode_segment_into(&opening, &Outside::default(), &mut datagram).unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in [&datagram[..bytes], b"garbage"] {
        stranger.send_to(datagram, &address).unwrap();
    }
    std::thread::sleep(Duration::from_millis(100));
    let started = Instant::now();
    let sender = start(&["send", "file", &address], &folder);
    let (_, receiver) = finish_both(sender, receiver, &folder, &file);
    assert!(started.elapsed() < Duration::from_secs(8), "the stranger is given up after ten seconds");
    assert!(text(&receiver.stdout).contains("1 refused"), "{receiver:?}");
}

#[test]
fn an_empty_file_arrives() {
    transfer("udp-empty", 0, &["--drop", "0.3"]);
}

/// The first datagram finds no receiver, so it gets no answer.
#[test]
fn an_empty_file_waits_for_its_receiver() {
    let folder = folder("udp-empty-early");
    std::fs::write(folder.join("file"), []).unwrap();
    let address = address();
    let sender = start(&["send", "file", &address], &folder);
    std::thread::sleep(Duration::from_millis(500));
    let receiver = start(&["receive", &address, "copy"], &folder);
    let (sender, receiver) = (finish(sender), finish(receiver));
    assert!(sender.status.success() && receiver.status.success(), "{sender:?} {receiver:?}");
    assert_eq!(names(&folder), ["copy", "file"]);
}

#[test]
fn a_stopped_receiver_leaves_no_file() {
    let folder = folder("udp-stopped");
    let receiver = start(&["receive", &address(), "copy"], &folder);
    let started = Instant::now();
    while names(&folder).is_empty() && started.elapsed() < LONGEST {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(names(&folder)[0].ends_with(".part"), "{:?}", names(&folder));
    // Ctrl-C; the handler is installed before the file is created.
    assert!(Command::new("kill").args(["-INT", &receiver.id().to_string()]).status().unwrap().success());
    let output = finish(receiver);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(130), "interrupted\n"));
    assert_eq!(names(&folder), Vec::<String>::new());
}

#[test]
fn errors_are_reported_in_two_lines() {
    let folder = folder("udp-refused");
    std::fs::write(folder.join("file"), b"abc").unwrap();
    let here = address();
    for (arguments, wrong) in [
        (&["send", "file", "192.0.2.1:4000"][..], "192.0.2.1:4000 is not on this machine"),
        (&["receive", "0.0.0.0:4000", "copy"], "0.0.0.0:4000 is not on this machine"),
        (&["send", "file", "localhost"], "localhost is no address with a port"),
        (&["send", "nothing", &here], "cannot read nothing"),
        (&["send", ".", &here], ". is no file"),
        (&["receive", &here, "nowhere/copy"], "cannot write nowhere/"),
        (&["receive", &here, "."], ". is no name for a file"),
        (&["send", "file", &here, "--drop", "1"], "--drop 1 is no number from 0e0 to 9e-1"),
        (&["send", "file", &here, "--control", "slow"], "--control slow is none of fixed, learnt, friendly and alone"),
        (&["send", "file", &here, "--speed", "1"], "there is no option --speed"),
        (&["give", "file"], "what to do is not clear"),
        (&["send", "file", &here, "--wait", "0.3"], "the transfer failed: NoAnswer"),
    ] {
        let output = finish(start(arguments, &folder));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.len() == 2 && lines[0].starts_with(&format!("error: {wrong}")), "{arguments:?}: {said}");
        assert!(lines[1].starts_with("hint: "), "{arguments:?}: {said}");
    }
    assert_eq!(names(&folder), ["file"]);
}

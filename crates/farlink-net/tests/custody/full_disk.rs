//! A gateway whose disk is full, which is a small tmpfs in a mount namespace of its own.

use std::io::{BufRead, BufReader};

use super::*;

/// Keeps the namespace, and ends with the test.
struct Namespace(Child);

impl Namespace {
    /// A namespace in which a folder has a disk of so many kB; nothing without the right to make one.
    fn new(folder: &Path, kb: u32) -> Option<Self> {
        std::fs::create_dir_all(folder).unwrap();
        let script = format!("mount -t tmpfs -o size={kb}k,mode=700 tmpfs \"$0\" && echo ready && exec sleep 1000");
        let mut child = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let namespace = Namespace(child);
        (line == "ready\n").then_some(namespace)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A full disk stops the acknowledgements, also through a kill, and loses nothing; with room the stream goes on. `[N2]`, `[N3]`
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_the_stream_and_loses_nothing() {
    let hosts = Hosts::new(1);
    let Some(namespace) = Namespace::new(&hosts.folder.path().join("custody-0"), 512) else {
        return println!("SKIPPED: a mount namespace needs root");
    };
    let mut gateway = hosts.gateway(0, "");
    gateway.within = Some(namespace.0.id());
    gateway.start();
    let (_from, mut source) = hosts.source(1 << 20);
    let kept = source.progress();
    let bytes = 3_000_000;
    let writing = tokio::spawn(async move {
        source.write(content(0, bytes)).await.unwrap();
        source.finish().await.unwrap();
    });
    // There is no sink yet: the disk fills up, and nothing more is acknowledged.
    let full = async {
        while !hosts.log(0).contains("has no room") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(WITHIN, full).await.expect("the disk fills up");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let at = *kept.borrow();
    assert!((200_000..524_288).contains(&at), "{at} bytes are kept on a disk of 512 kB");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*kept.borrow(), at, "nothing more is acknowledged");
    gateway.kill();
    gateway.start();
    let (_at, mut sink) = hosts.sink();
    let mut stream = tokio::time::timeout(WITHIN, sink.accept()).await.unwrap().unwrap();
    assert_eq!(read_all(&mut stream).await, bytes as u64);
    tokio::time::timeout(WITHIN, writing).await.unwrap().unwrap();
}

//! Streams that give way when a store is full, and gateways that are told to stop.

use farlink_net::gateway::Control;

use super::*;

/// A stream whose source is gone and whose sink does not come gives way to one for which there is no room; the log and the metrics say so.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_stream_gives_way_to_one_that_has_no_room() {
    let hosts = Hosts::new(1);
    let mut gateway = hosts.gateway(0, "bytes = 4_194_304\nstream_bytes = 4_194_304\nexpires_s = 2.0");
    gateway.start();
    let bytes = 3_000_000;
    let mut ids = Vec::new();
    let (endpoint, first) = hosts.source(1 << 20);
    let second = hosts.source_at(&endpoint, 1 << 20);
    for mut source in [first, second] {
        ids.push(source.id());
        source.write(content(0, bytes)).await.unwrap();
        tokio::time::timeout(WITHIN, source.wait_kept(bytes as u64)).await.expect("there is room at last").unwrap();
    }
    let log = hosts.log(0);
    let said =
        format!("a stream in custody is given up, as the store is full: what is held of it is lost stream={}", ids[0]);
    let line = log.lines().find(|line| line.contains(&said)).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("label=shore") && line.contains("held=3000000"), "{line}");
    assert!(!log.contains(&format!("is lost stream={}", ids[1])), "{log}");
    let (_at, mut sink) = hosts.sink();
    // What was written into a connection of the first one before is still delivered, and leads nowhere.
    let mut others = Vec::new();
    let mut stream = loop {
        let stream = tokio::time::timeout(WITHIN, sink.accept()).await.unwrap().unwrap();
        if stream.id() == ids[1] {
            break stream;
        }
        others.push(stream);
    };
    assert_eq!(
        tokio::time::timeout(WITHIN, stream.read()).await.unwrap().unwrap(),
        Some(Piece::Data(content(0, 16_384)))
    );
}

/// A gateway that drains ends streams in custody at once, as everything of them is on its disk, and goes on with them when it is started again.
#[tokio::test(flavor = "multi_thread")]
async fn streams_in_custody_do_not_hold_up_a_gateway_that_drains() {
    let hosts = Hosts::new(1);
    let gateway = hosts.gateway(0, "");
    let bytes = 500_000;
    let (_at, mut sink) = hosts.sink();
    let (_endpoint, mut source) = hosts.source(1 << 20);
    source.write(content(0, bytes)).await.unwrap();
    // All of it ends with its runtime, as with its process.
    let run = |config: PathBuf| {
        let (control, told) = tokio::sync::mpsc::unbounded_channel();
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(gateway::run(&config, told, |_| ()))
        };
        (control, tokio::task::spawn_blocking(run))
    };
    let (control, task) = run(gateway.config.clone());
    let mut stream = tokio::time::timeout(WITHIN, sink.accept()).await.unwrap().unwrap();
    let mut at = 0;
    while at < 100_000 {
        match tokio::time::timeout(WITHIN, stream.read()).await.unwrap().unwrap() {
            Some(Piece::Data(data)) => at += data.len(),
            other => panic!("{other:?}"),
        }
        stream.keep().await;
    }
    control.send(Control::Drain).unwrap();
    tokio::time::timeout(Duration::from_secs(10), task).await.expect("it does not wait for 30 s").unwrap().unwrap();
    let (control, task) = run(gateway.config.clone());
    source.write(content(bytes as u64, bytes)).await.unwrap();
    let reading = async {
        while let Some(piece) = tokio::time::timeout(WITHIN, stream.read()).await.expect("it goes on").unwrap() {
            match piece {
                Piece::Data(data) => {
                    assert_eq!(data, content(at as u64, data.len()));
                    at += data.len();
                }
                Piece::Lost(bytes) => panic!("{bytes} bytes are lost from {at}"),
            }
            stream.keep().await;
        }
        stream.keep().await;
    };
    let (finished, ()) = tokio::join!(tokio::time::timeout(WITHIN, source.finish()), reading);
    finished.unwrap().unwrap();
    assert_eq!(at, 2 * bytes);
    control.send(Control::Stop).unwrap();
    task.await.unwrap().unwrap();
}

//! Streams that nothing happens to, and streams whose gateways and ends come and go.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_reaches_its_sink_and_is_forgotten() {
    let hosts = Hosts::new(2);
    let mut gateways = [hosts.gateway(0, ""), hosts.gateway(1, "")];
    gateways.iter_mut().for_each(Gateway::start);
    let (_at, mut sink) = hosts.sink();
    let (_from, mut source) = hosts.source(1 << 20);
    let bytes = 3_000_000;
    let reading = tokio::spawn(async move {
        let mut stream = sink.accept().await.unwrap();
        assert_eq!(stream.label().as_str(), "shore");
        let read = read_all(&mut stream).await;
        (read, sink)
    });
    source.write(content(0, bytes)).await.unwrap();
    source.finish().await.unwrap();
    let (read, _sink) = reading.await.unwrap();
    assert_eq!(read, bytes as u64);
    // Nothing of it stays on the disks.
    for number in 0..2 {
        let streams = hosts.folder.path().join(format!("custody-{number}/streams"));
        for _ in 0..100 {
            if std::fs::read_dir(&streams).unwrap().next().is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(std::fs::read_dir(&streams).unwrap().count(), 0, "gateway {number}: {}", hosts.log(number));
    }
}

/// What a gateway has acknowledged reaches the sink, though the source is gone, and the gateway was killed, before there was a sink.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_outlives_the_source_and_the_gateway() {
    let hosts = Hosts::new(1);
    let mut gateway = hosts.gateway(0, "");
    gateway.start();
    let (endpoint, mut source) = hosts.source(1 << 20);
    let bytes = 700_000;
    source.write(content(0, bytes)).await.unwrap();
    tokio::time::timeout(WITHIN, source.wait_kept(1)).await.unwrap().unwrap();
    let kept = source.kept();
    endpoint.close().await;
    gateway.kill();
    drop(source);
    gateway.start();
    let (_at, mut sink) = hosts.sink();
    let mut stream = tokio::time::timeout(WITHIN, sink.accept()).await.unwrap().unwrap();
    let mut at = 0;
    while at < kept {
        match tokio::time::timeout(WITHIN, stream.read()).await.unwrap().unwrap() {
            Some(Piece::Data(data)) => {
                assert_eq!(data, content(at, data.len()));
                at += data.len() as u64;
            }
            other => panic!("{other:?} at byte {at} of {kept}"),
        }
    }
}

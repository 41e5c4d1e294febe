//! A gateway beside peers that misbehave. What they send is put together by hand.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farlink_core::protocol::aerotp::AcceptorLimits;

use crate::io::{Connection, Endpoint, EndpointConfig};
use crate::mux::{MemoryCounters, MuxConfig, Trust};
use crate::seal::{PublicKey, StaticKey};

use super::frame::{Frame, Refusal};
use super::link::Link;
use super::{Bounds, Label, PORT, Relay, Routes, Source, StreamId, near_reliable};

const WITHIN: Duration = Duration::from_secs(10);

/// Two sockets of this machine that trust each other.
pub(super) fn endpoints() -> [Endpoint; 2] {
    let keys = [StaticKey::generate(), StaticKey::generate()];
    [0, 1].map(|n| {
        let trust = Trust::Keys([keys[1 - n].public()].into());
        let config = EndpointConfig::new(MuxConfig { trust, ..MuxConfig::new(keys[n].clone()) });
        Endpoint::bind((Ipv4Addr::LOCALHOST, 0).into(), config, Box::new(MemoryCounters::default())).unwrap()
    })
}

/// Everybody may send everywhere, and nobody knows where that is.
pub(super) struct Nowhere;

impl Routes for Nowhere {
    fn next(&self, _: &Label) -> Option<(PublicKey, SocketAddr)> {
        None
    }

    fn is_allowed(&self, _: &PublicKey, _: &Label) -> bool {
        true
    }
}

pub(super) const BOUNDS: Bounds =
    Bounds { bytes: 1 << 24, stream_bytes: 1 << 20, streams: 8, expires: Duration::from_secs(100) };

pub(super) fn label() -> Label {
    "shore".parse().unwrap()
}

/// A relay that takes what comes to a socket, and the socket of a peer.
struct Gateway {
    _folder: tempfile::TempDir,
    relay: Arc<Relay>,
    hub: Endpoint,
    peer: Endpoint,
}

impl Gateway {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [hub, peer] = endpoints();
        near_reliable(&hub).listen(PORT, AcceptorLimits::default()).unwrap();
        let relay = Relay::start(&folder.path().join("store"), &hub, BOUNDS, Arc::new(Nowhere)).unwrap();
        let (takes, from) = (relay.clone(), hub.clone());
        tokio::spawn(async move {
            while let Some(connection) = from.accept().await {
                tokio::spawn(takes.clone().take(connection));
            }
        });
        Gateway { _folder: folder, relay, hub, peer }
    }

    /// A connection of some host.
    fn connect(&self, from: &Endpoint) -> Connection {
        near_reliable(from).connect(&self.hub.public_key(), self.hub.local_addr(), PORT).unwrap()
    }

    /// A connection for a stream.
    fn open(&self, stream: StreamId) -> Link {
        let mut link = Link::new(self.connect(&self.peer));
        link.put(&Frame::Open { stream, label: label() });
        link
    }
}

async fn frame(link: &mut Link) -> Frame {
    tokio::time::timeout(WITHIN, link.frame()).await.expect("the gateway answers").unwrap()
}

/// Waits until it is kept.
async fn kept(link: &mut Link, expected: (u64, bool)) {
    loop {
        match frame(link).await {
            Frame::Kept { position, has_end } if (position, has_end) == expected => return,
            Frame::Kept { position, .. } => assert!(position <= expected.0, "{position} of {expected:?}"),
            other => panic!("{other:?}"),
        }
    }
}

fn data(position: u64, text: &'static str) -> Frame {
    Frame::Data { position, data: Bytes::from_static(text.as_bytes()) }
}

/// `[T10]`, `[T16]`
#[tokio::test]
async fn what_stands_behind_the_end_is_refused() {
    let gateway = Gateway::start();
    let stream = StreamId::random();
    let mut link = gateway.open(stream);
    [data(0, "hello"), Frame::End { position: 5 }].iter().for_each(|frame| link.put(frame));
    kept(&mut link, (5, true)).await;
    // Once more is nothing new.
    [data(2, "llo"), Frame::End { position: 5 }].iter().for_each(|frame| link.put(frame));
    kept(&mut link, (5, true)).await;
    for wrong in [data(5, "!"), data(0, "hello!"), Frame::End { position: 6 }, Frame::End { position: 4 }] {
        let mut link = gateway.open(stream);
        kept(&mut link, (5, true)).await;
        link.put(&wrong);
        assert_eq!(frame(&mut link).await, Frame::Refused(Refusal::Other), "{wrong:?}");
    }
    let mut link = gateway.open(stream);
    kept(&mut link, (5, true)).await;
}

/// A source that goes on with another stream under the number of this one.
#[tokio::test]
async fn an_end_before_what_has_come_is_refused() {
    let gateway = Gateway::start();
    let mut link = gateway.open(StreamId::random());
    link.put(&data(0, "hello"));
    kept(&mut link, (5, false)).await;
    link.put(&Frame::End { position: 4 });
    assert_eq!(frame(&mut link).await, Frame::Refused(Refusal::Other));
}

/// Order, repetition, overlaps and gaps: what is new is taken, and nothing else. `[N4]`
#[tokio::test]
async fn data_that_overlap_are_taken_once() {
    let gateway = Gateway::start();
    let mut link = gateway.open(StreamId::random());
    for (frame, to) in [
        (data(0, "abc"), 3),
        (data(0, "abc"), 3),
        (data(1, "bcde"), 5),
        (data(100, "x"), 101), // what is between does not come any more
        (data(50, "late"), 101),
        (data(100, "xy"), 102),
    ] {
        link.put(&frame);
        link.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        let _ = to;
    }
    link.put(&Frame::End { position: 102 });
    kept(&mut link, (102, true)).await;
    let (streams, held, _) = gateway.relay.present();
    assert_eq!((streams, held), (1, 5 + 2));
}

/// A stream of the same number by somebody else, or to somebody else. `[T15]`
#[tokio::test]
async fn streams_of_others_are_refused() {
    let gateway = Gateway::start();
    let stream = StreamId::random();
    let mut link = gateway.open(stream);
    link.put(&data(0, "mine"));
    kept(&mut link, (4, false)).await;
    let mut other = Link::new(gateway.connect(&gateway.peer));
    other.put(&Frame::Open { stream, label: "another".parse().unwrap() });
    assert_eq!(frame(&mut other).await, Frame::Refused(Refusal::NotYours));
    let [stranger, _] = endpoints();
    gateway.hub.set_trust(Trust::Keys([stranger.public_key(), gateway.peer.public_key()].into()));
    let mut other = Link::new(gateway.connect(&stranger));
    other.put(&Frame::Open { stream, label: label() });
    assert_eq!(frame(&mut other).await, Frame::Refused(Refusal::NotYours));
    link.put(&data(4, "!"));
    kept(&mut link, (5, false)).await;
}

/// Frames that only the other side sends end the connection, and nothing else.
#[tokio::test]
async fn frames_of_the_wrong_side_end_the_connection() {
    let gateway = Gateway::start();
    let stream = StreamId::random();
    for wrong in [
        Frame::Kept { position: 1 << 60, has_end: true },
        Frame::Refused(Refusal::GivenUp),
        Frame::Open { stream, label: label() },
    ] {
        let mut link = gateway.open(stream);
        kept(&mut link, (0, false)).await;
        link.put(&wrong);
        let end = tokio::time::timeout(WITHIN, link.frame()).await.expect("it ends");
        assert!(end.is_err(), "{end:?}");
    }
    let mut link = gateway.open(stream);
    link.put(&data(0, "all is well"));
    kept(&mut link, (11, false)).await;
}

/// A gateway that stops closes its streams, which stay on the disk, and takes no others.
#[tokio::test]
async fn a_gateway_that_stops_ends_its_connections() {
    let gateway = Gateway::start();
    let stream = StreamId::random();
    let mut link = gateway.open(stream);
    link.put(&data(0, "kept"));
    kept(&mut link, (4, false)).await;
    gateway.relay.stop();
    let end = tokio::time::timeout(WITHIN, link.frame()).await.expect("it ends");
    assert!(end.is_err(), "{end:?}");
    for stream in [stream, StreamId::random()] {
        assert_eq!(frame(&mut gateway.open(stream)).await, Frame::Refused(Refusal::Full));
    }
}

/// A source that was killed and started again leaves a connection that never ends, and one that was killed before it said anything another.
/// A gateway that stops does not wait for them.
#[tokio::test]
async fn a_gateway_that_stops_waits_for_no_source() {
    let gateway = Gateway::start();
    let stream = StreamId::random();
    let mut killed = gateway.open(stream);
    killed.put(&data(0, "kept"));
    kept(&mut killed, (4, false)).await;
    let mut again = gateway.open(stream);
    kept(&mut again, (4, false)).await;
    let mut silent = gateway.connect(&gateway.peer);
    silent.connected().await.unwrap();
    drop(again);
    gateway.relay.stop();
    tokio::time::timeout(WITHIN, gateway.hub.finish()).await.expect("it waits for nobody");
    drop((killed, silent));
}

/// What the next node says to have at the beginning of a connection is not sent again, and counts as kept. `[T16]`
#[tokio::test]
async fn what_the_next_node_has_is_not_sent_again() {
    let [hub, peer] = endpoints();
    near_reliable(&hub).listen(PORT, AcceptorLimits::default()).unwrap();
    const BYTES: u64 = 3_000_000;
    let mut source = Source::open(&peer, (hub.public_key(), hub.local_addr()), label(), 2 * BYTES);
    let gateway = tokio::spawn(async move {
        let mut link = Link::new(hub.accept().await.unwrap());
        assert!(matches!(link.frame().await, Ok(Frame::Open { .. })));
        link.put(&Frame::Kept { position: BYTES, has_end: false });
        let mut came = 0;
        loop {
            match link.frame().await.unwrap() {
                Frame::Data { data, .. } => came += data.len() as u64,
                Frame::End { position } => {
                    assert_eq!(position, BYTES);
                    link.put(&Frame::Kept { position, has_end: true });
                }
                Frame::Forget => return came,
                other => panic!("{other:?}"),
            }
        }
    });
    source.write(vec![7; BYTES as usize].into()).await.unwrap();
    tokio::time::timeout(WITHIN, source.wait_kept(BYTES)).await.expect("it is kept").unwrap();
    source.finish().await.unwrap();
    let came = tokio::time::timeout(WITHIN, gateway).await.expect("the source ends").unwrap();
    assert!(came < BYTES / 2, "{came} bytes were sent that the gateway has");
}

/// A next node that acknowledges what was never sent gets no more than it says to have.
#[tokio::test]
async fn acknowledgements_of_what_was_never_sent_do_no_harm() {
    let [hub, peer] = endpoints();
    near_reliable(&hub).listen(PORT, AcceptorLimits::default()).unwrap();
    let mut source = Source::open(&peer, (hub.public_key(), hub.local_addr()), label(), 1 << 20);
    let mut link = Link::new({
        source.write(Bytes::from_static(b"hello")).await.unwrap();
        hub.accept().await.unwrap()
    });
    assert!(matches!(frame(&mut link).await, Frame::Open { .. }));
    for position in [0, 3, u64::MAX] {
        link.put(&Frame::Kept { position, has_end: true });
    }
    link.flush().await.unwrap();
    tokio::time::timeout(WITHIN, source.wait_kept(5)).await.expect("it is kept").unwrap();
    let finished = tokio::spawn(source.finish());
    loop {
        match frame(&mut link).await {
            Frame::Data { .. } => {}
            Frame::End { position } => break assert_eq!(position, 5),
            other => panic!("{other:?}"),
        }
    }
    assert!(!finished.is_finished(), "an end that was not sent cannot be kept");
    link.put(&Frame::Kept { position: 5, has_end: true });
    link.flush().await.unwrap();
    tokio::time::timeout(WITHIN, finished).await.expect("it ends").unwrap().unwrap();
}

/// A stream that goes on with another content has another end than the one that the gateway has, and is not whole with that.
#[tokio::test]
async fn the_end_of_another_content_is_no_end() {
    let gateway = Gateway::start();
    let at = (gateway.hub.public_key(), gateway.hub.local_addr());
    let mut source = Source::open(&gateway.peer, at, label(), 1 << 20);
    let stream = source.id();
    // The next node does not know the way, so the gateway keeps all of it.
    source.write(vec![1; 50_000].into()).await.unwrap();
    tokio::time::timeout(WITHIN, source.finish()).await.expect("it is kept").unwrap();
    for bytes in [40_000, 60_000] {
        let mut source = Source::resume(&gateway.peer, at, label(), stream, 1 << 20);
        let _ = source.write(vec![1; bytes].into()).await;
        let end = tokio::time::timeout(WITHIN, source.finish()).await.expect("it is refused");
        assert_eq!(end, Err(super::SourceError::Refused(Refusal::Other)), "{bytes} bytes");
    }
    let mut source = Source::resume(&gateway.peer, at, label(), stream, 1 << 20);
    source.write(vec![1; 50_000].into()).await.unwrap();
    tokio::time::timeout(WITHIN, source.finish()).await.expect("it is kept").unwrap();
}

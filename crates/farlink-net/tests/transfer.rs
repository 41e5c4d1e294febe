//! Transfers between two endpoints of this machine.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use farlink_core::protocol::aerotp::AcceptorLimits;
use farlink_core::units::BitRate;
use farlink_net::files::{ReceiveOptions, SendOptions};
use farlink_net::mux::{MemoryCounters, MuxConfig, Trust};
use farlink_net::seal::{PresharedKey, PublicKey, StaticKey};
use farlink_net::state::StateFolder;
use farlink_net::transfer::{ReceiveSettings, SendSettings, receive, send};
use farlink_net::{Endpoint, EndpointConfig, Insecure, PathSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const PORT: u16 = 1;

fn endpoint(key: &StaticKey, trusted: &[PublicKey], address: SocketAddr) -> Endpoint {
    let trust = Trust::Keys(trusted.iter().copied().collect());
    let config = EndpointConfig::new(MuxConfig { trust, ..MuxConfig::new(key.clone()) });
    Endpoint::bind(address, config, Box::new(MemoryCounters::default())).unwrap()
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Two endpoints that trust each other.
fn pair(address: SocketAddr) -> [Endpoint; 2] {
    let keys = [StaticKey::generate(), StaticKey::generate()];
    let [a, b] = [&keys[0], &keys[1]];
    let pair = [endpoint(a, &[b.public()], address), endpoint(b, &[a.public()], address)];
    pair[1].listen(PORT, AcceptorLimits::default()).unwrap();
    pair
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| ((n * n) >> 7) as u8).collect()
}

async fn echo(endpoint: Endpoint) {
    while let Some(mut connection) = endpoint.accept().await {
        tokio::spawn(async move {
            let mut data = Vec::new();
            connection.read_to_end(&mut data).await.unwrap();
            connection.write_all(&data).await.unwrap();
            connection.shutdown().await.unwrap();
        });
    }
}

#[tokio::test]
async fn bytes_go_there_and_back() {
    for address in [loopback(), (Ipv6Addr::LOCALHOST, 0).into()] {
        let [a, b] = pair(address);
        tokio::spawn(echo(b.clone()));
        let mut connection = a.connect(&b.public_key(), b.local_addr(), PORT).unwrap();
        let data = content(3_000_000);
        connection.write_all(&data).await.unwrap();
        timeout(Duration::from_secs(60), connection.shutdown()).await.unwrap().unwrap();
        let mut back = Vec::new();
        timeout(Duration::from_secs(60), connection.read_to_end(&mut back)).await.unwrap().unwrap();
        assert!(back == data, "{address}: {} bytes", back.len());
        drop(connection);
        timeout(Duration::from_secs(10), a.finish()).await.unwrap();
    }
}

#[tokio::test]
async fn many_connections_share_a_socket() {
    let [a, b] = pair(loopback());
    tokio::spawn(echo(b.clone()));
    let transfers = (0..50).map(|n| {
        let (a, b) = (a.clone(), b.clone());
        tokio::spawn(async move {
            let mut connection = a.connect(&b.public_key(), b.local_addr(), PORT).unwrap();
            let data = content(1000 * n + 1);
            connection.write_all(&data).await.unwrap();
            connection.shutdown().await.unwrap();
            let mut back = Vec::new();
            connection.read_to_end(&mut back).await.unwrap();
            assert!(back == data);
        })
    });
    for transfer in transfers.collect::<Vec<_>>() {
        timeout(Duration::from_secs(60), transfer).await.unwrap().unwrap();
    }
}

/// A driver looks at its clock after each datagram that it has taken, not before: what it received would seem to have been held for longer
/// than its sender knows it. Such an acknowledgement does not count, and if it is the last one, the sender waits for another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_of_short_connections_count() {
    let keys = [StaticKey::generate(), StaticKey::generate()];
    let b = endpoint(&keys[1], &[keys[0].public()], loopback());
    b.listen(PORT, AcceptorLimits::default()).unwrap();
    let mut forged = 0;
    let exchanges = async {
        for _ in 0..100 {
            let a = endpoint(&keys[0], &[], loopback());
            let mut connection = a.connect(&b.public_key(), b.local_addr(), PORT).unwrap();
            connection.write_all(b"question").await.unwrap();
            let mut accepted = b.accept().await.unwrap();
            // It ends while `a` computes the keys of the session, and an end is acknowledged at once.
            accepted.write_all(b"answer").await.unwrap();
            let mut answer = Vec::new();
            let (ended, read) = tokio::join!(accepted.shutdown(), connection.read_to_end(&mut answer));
            ended.and(read.map(drop)).unwrap();
            forged += accepted.state().unwrap().dropped.forged + connection.state().unwrap().dropped.forged;
        }
    };
    timeout(Duration::from_secs(100), exchanges).await.unwrap();
    assert_eq!(forged, 0);
}

/// What nobody reads stays with who writes it: at most the peer's window and a little more is taken.
#[tokio::test]
async fn a_writer_waits_for_a_reader() {
    let [a, b] = pair(loopback());
    let mut connection = a.connect(&b.public_key(), b.local_addr(), PORT).unwrap();
    let piece = content(1 << 16);
    let mut written = 0;
    while let Ok(more) = timeout(Duration::from_secs(1), connection.write(&piece)).await {
        written += more.unwrap();
        assert!(written < 64 << 20);
    }
    let mut accepted = timeout(Duration::from_secs(10), b.accept()).await.unwrap().unwrap();
    let reader = tokio::spawn(async move {
        let mut data = Vec::new();
        accepted.read_to_end(&mut data).await.unwrap();
        data.len()
    });
    timeout(Duration::from_secs(60), connection.write_all(&piece)).await.unwrap().unwrap();
    timeout(Duration::from_secs(60), connection.shutdown()).await.unwrap().unwrap();
    assert_eq!(timeout(Duration::from_secs(60), reader).await.unwrap().unwrap(), written + piece.len());
}

/// What was written to a connection that is dropped at once is delivered.
#[tokio::test]
async fn a_dropped_connection_delivers_what_was_written() {
    let [a, b] = pair(loopback());
    let mut connection = a.connect(&b.public_key(), b.local_addr(), PORT).unwrap();
    connection.write_all(&content(100_000)).await.unwrap();
    drop(connection);
    let mut accepted = timeout(Duration::from_secs(10), b.accept()).await.unwrap().unwrap();
    let mut data = Vec::new();
    timeout(Duration::from_secs(10), accepted.read_to_end(&mut data)).await.unwrap().unwrap();
    assert!(data == content(100_000));
    drop(accepted);
    timeout(Duration::from_secs(10), a.finish()).await.unwrap();
}

/// Datagrams that go out at once do not keep `finish` waiting.
#[tokio::test]
async fn datagrams_arrive_and_the_endpoint_finishes() {
    let [a, b] = pair(loopback());
    b.listen_datagrams(PORT);
    let data = bytes::Bytes::from_static(b"position");
    a.send_datagram(&b.public_key(), b.local_addr(), PORT, data.clone()).unwrap();
    timeout(Duration::from_secs(10), a.finish()).await.unwrap();
    let arrived = timeout(Duration::from_secs(10), b.receive_datagram()).await.unwrap().unwrap();
    assert_eq!((arrived.data, arrived.port, arrived.peer), (data, PORT, a.public_key()));
    let longest = a.longest_datagram(&b.public_key(), b.local_addr());
    let refused = a.send_datagram(&b.public_key(), b.local_addr(), PORT, vec![0; longest + 1].into());
    assert!(refused.unwrap_err().to_string().contains(&format!("at present {longest} fit")));
}

/// A host does not answer a caller that expects another key.
#[tokio::test]
async fn the_wrong_key_gets_no_answer() {
    let [a, b] = pair(loopback());
    let other = StaticKey::generate();
    let mut connection = a.connect(&other.public(), b.local_addr(), PORT).unwrap();
    connection.write_all(b"hello").await.unwrap();
    let accepted = timeout(Duration::from_millis(500), b.accept()).await;
    assert!(accepted.is_err(), "nothing was accepted");
    assert!(b.counts().unasked > 0);
}

/// A task that waits for the peer's answer learns that it has come; a closed endpoint frees its address, although clones exist.
#[tokio::test]
async fn a_closed_endpoint_frees_its_address() {
    let [a, b] = pair(loopback());
    let mut connection = a.connect(&b.public_key(), b.local_addr(), PORT).unwrap();
    timeout(Duration::from_secs(10), connection.connected()).await.unwrap().unwrap();
    let mut accepted = timeout(Duration::from_secs(10), b.accept()).await.unwrap().unwrap();
    accepted.connected().await.unwrap();
    b.close().await;
    assert!(accepted.read(&mut [0]).await.is_err());
    assert!(b.accept().await.is_none());
    std::net::UdpSocket::bind(b.local_addr()).unwrap();
}

/// Another process may answer with the key as soon as the endpoint is closed, though a task that accepted has a copy still.
#[tokio::test]
async fn a_closed_endpoint_frees_its_counters() {
    let place = tempfile::tempdir().unwrap();
    let folder = StateFolder::new(place.path().join("farlink"));
    let key = folder.generate_key().unwrap();
    let open = || {
        let counters = folder.counters_to_answer().map_err(|error| error.to_string())?;
        let mux = MuxConfig::new(key.clone());
        Ok::<_, String>(Endpoint::bind(loopback(), EndpointConfig::new(mux), Box::new(counters)).unwrap())
    };
    let endpoint = open().unwrap();
    let copy = endpoint.clone();
    assert!(open().unwrap_err().contains("another process receives with the same key"));
    endpoint.close().await;
    let again = open().unwrap();
    let refused = copy.connect(&again.public_key(), again.local_addr(), PORT).unwrap_err().to_string();
    assert!(refused.contains("the endpoint is closed"), "{refused}");
}

/// Packets in the clear stay on this machine unless the host says that any address is meant.
#[tokio::test]
async fn an_insecure_endpoint_binds_loopback_only() {
    let bind = |address: SocketAddr, insecure_anywhere| {
        let mux = MuxConfig { insecure: true, ..MuxConfig::new(StaticKey::generate()) };
        let config = EndpointConfig { insecure_anywhere, ..EndpointConfig::new(mux) };
        Endpoint::bind(address, config, Box::new(MemoryCounters::default()))
    };
    for reached in [(Ipv4Addr::UNSPECIFIED, 0).into(), (Ipv6Addr::UNSPECIFIED, 0).into()] {
        let refused = bind(reached, false).unwrap_err().to_string();
        assert!(refused.contains(&reached.ip().to_string()) && refused.contains("--insecure-anywhere"), "{refused}");
        assert!(bind(reached, true).is_ok());
    }
    assert!(bind(loopback(), false).is_ok());
}

/// A sender that was killed and started again does not wait until its first transfer is given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_that_was_started_again_gets_its_turn() {
    let place = tempfile::tempdir().unwrap();
    let path = |rate| PathSettings {
        rate,
        shared: PresharedKey::default(),
        packet_bytes: 1472,
        damaged_links: false,
        insecure: Insecure::No,
    };
    let [shore, ship] = ["shore", "ship"].map(|name| StateFolder::new(place.path().join(name)));
    let [shore_key, ship_key] = [&shore, &ship].map(|folder| folder.generate_key().unwrap().public());
    let mut trusted = shore.trusted().unwrap();
    trusted.add(ship_key, "ship").unwrap();
    shore.keep_trusted(&trusted).unwrap();
    let content = vec![7; 4 << 20];
    std::fs::write(place.path().join("file"), &content).unwrap();

    let (listening, mut listens) = tokio::sync::mpsc::unbounded_channel();
    let settings = ReceiveSettings {
        listen: loopback(),
        path: path(None),
        options: ReceiveOptions::default(),
        by_host: false,
        once: true,
        patience: Duration::from_secs(300),
    };
    let into = place.path().join("in");
    let receiving = tokio::spawn(async move {
        receive(&shore, &into, &settings, |event| drop(listening.send(format!("{event:?}")))).await
    });
    let listens_at = timeout(Duration::from_secs(10), listens.recv()).await.unwrap().unwrap();
    let address = listens_at.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
    let patience = Duration::from_secs(60);
    let settings =
        |rate| SendSettings { peer: shore_key, address, path: path(rate), options: SendOptions::default(), patience };
    let paths = [place.path().join("file")];
    // In a second it sends an eighth of the file; then it is gone without a word, as nothing drives its socket any more.
    std::thread::scope(|scope| {
        let first = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let slow = settings(BitRate::new(4e6).ok());
            runtime.block_on(async { timeout(Duration::from_secs(1), send(&ship, &paths, &slow, |_| {})).await })
        };
        assert!(scope.spawn(first).join().unwrap().is_err());
    });
    let sent = timeout(Duration::from_secs(30), send(&ship, &paths, &settings(None), |_| {})).await.unwrap().unwrap();
    assert!(sent.resumed_bytes > 0 && sent.placed == 1, "{sent:?}");
    timeout(Duration::from_secs(10), receiving).await.unwrap().unwrap().unwrap();
    assert!(std::fs::read(place.path().join("in/file")).unwrap() == content);
}

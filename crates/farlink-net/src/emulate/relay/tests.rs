use std::net::Ipv4Addr;
use std::time::Instant;

use farlink_core::path::{Channels, PathSetup};
use farlink_core::scenario::{expand, from_json};
use farlink_core::trace::MemoryTraces;

use super::*;
use crate::emulate::{Report, Settings, Watch, run};

fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn relay(to: SocketAddr, delivers_damaged: bool) -> Relay {
    Relay::new(RelaySettings { listen: local(), to, delivers_damaged }).unwrap()
}

fn settings(link: &str) -> Settings {
    let scenario = format!(
        r#"{{"duration_s": 100, "link": {link}, "transport": {{"udp": {{"kind": "udp"}}}},
            "flow": {{"f": {{"transport": "udp", "traffic": {{"kind": "file", "bytes": 1}}}}}}}}"#
    );
    let expanded = expand(&from_json(&scenario).unwrap()).unwrap();
    let traces = MemoryTraces::default();
    let path = PathSetup::resolve(&expanded.points[0].scenario, None, &traces, &mut Channels::default()).unwrap();
    Settings { path, seed: 1, run: 0, duration: None, most_bytes: 1 << 30, spin: Duration::from_micros(50) }
}

/// Relays while `act` talks to the address.
fn while_relaying(link: &str, mut relay: Relay, act: impl FnOnce(SocketAddr)) -> Report {
    let (settings, watch) = (settings(link), Watch::default());
    let address = relay.local_addr().unwrap();
    std::thread::scope(|scope| {
        let relaying = scope.spawn(|| run(&settings, &mut relay, &watch).unwrap());
        act(address);
        watch.stop();
        relaying.join().unwrap()
    })
}

fn client(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(local()).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

/// A server that sends everything back.
fn echo() -> UdpSocket {
    let socket = UdpSocket::bind(local()).unwrap();
    let server = socket.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        while let Ok((bytes, from)) = socket.recv_from(&mut buffer) {
            if bytes == 0 {
                return;
            }
            let _ = socket.send_to(&buffer[..bytes], from);
        }
    });
    server
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it measures a delay")]
fn answers_come_after_a_round_trip_to_the_client_that_asked() {
    let server = echo();
    let link = r#"{"rate_bps": 1e7, "delay_s": 0.05, "return": {"delay_s": 0.02}}"#;
    let report = while_relaying(link, relay(server.local_addr().unwrap(), false), |address| {
        let clients: Vec<_> = (0..3).map(|_| client(address)).collect();
        for (number, client) in clients.iter().enumerate() {
            let began = Instant::now();
            client.send(&[number as u8; 100]).unwrap();
            let mut answer = [0; 200];
            assert_eq!(client.recv(&mut answer).unwrap(), 100);
            assert!(answer[..100].iter().all(|&byte| usize::from(byte) == number));
            let took = began.elapsed();
            assert!(took >= Duration::from_millis(70) && took < Duration::from_secs(5), "{took:?}");
        }
    });
    let [there, back] = &report.ways;
    assert_eq!((there.counts.out_packets, back.counts.out_packets, report.clients), (3, 3, 3));
    assert_eq!((there.counts.in_bytes, there.untaken, back.untaken), (3 * 128, 0, 0), "headers count");
    assert!(there.lateness.all.count() == 3 && there.is_up);
}

#[test]
fn what_the_channel_damages_is_dropped_unless_it_is_asked_for() {
    for (delivers_damaged, link) in [
        (true, r#"{"rate_bps": 1e9, "delay_s": 0, "channel": {"kind": "ber", "ber": 1e-4}}"#),
        (false, r#"{"rate_bps": 1e9, "delay_s": 0, "channel": {"kind": "ber", "ber": 1e-4}}"#),
    ] {
        let sink = UdpSocket::bind(local()).unwrap();
        sink.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sent = [7; 1000];
        let mut wrong = 0;
        let report = while_relaying(link, relay(sink.local_addr().unwrap(), delivers_damaged), |address| {
            let client = client(address);
            let mut buffer = [0; 2000];
            for _ in 0..50 {
                client.send(&sent).unwrap();
                std::thread::sleep(Duration::from_micros(200));
            }
            // A last word that is too short to be damaged.
            for _ in 0..10 {
                client.send(b"e").unwrap();
            }
            while let Ok(bytes) = sink.recv(&mut buffer) {
                if bytes <= 1 {
                    break;
                }
                wrong += u64::from(buffer[..bytes] != sent);
            }
        });
        let counts = &report.ways[0].counts;
        assert_eq!(counts.damaged, wrong, "{counts:?}");
        assert_eq!(wrong > 10, delivers_damaged);
        assert!(counts.ruined > 0 && counts.lost == 0, "{counts:?}");
    }
}

#[test]
fn clients_have_a_bound_and_the_silent_one_goes() {
    let server = UdpSocket::bind(local()).unwrap();
    let mut relay = relay(server.local_addr().unwrap(), false);
    let to = relay.settings.to;
    let address = |n: usize| SocketAddr::from((Ipv4Addr::LOCALHOST, 1000 + n as u16));
    for n in 0..MOST_CLIENTS {
        let place = place_of(address(n), &mut relay.clients, &mut relay.by_address, to).unwrap();
        relay.clients[place].last_heard = 1 + n as u64;
    }
    relay.clients[5].last_heard = 0;
    let place = place_of(address(5000), &mut relay.clients, &mut relay.by_address, to).unwrap();
    assert_eq!((place, relay.clients.len(), relay.by_address.len()), (5, MOST_CLIENTS, MOST_CLIENTS));
    let late = Datagram { payload: vec![1], client: (5, 0), ecn: None, header_bytes: 28, delivers_damaged: false };
    assert!(!relay.send(End::Far, late), "it is not given to another client's server");
}

#[test]
fn a_port_in_use_is_told() {
    let taken = UdpSocket::bind(local()).unwrap();
    let listen = taken.local_addr().unwrap();
    let error = Relay::new(RelaySettings { listen, to: listen, delivers_damaged: false }).unwrap_err();
    assert!(error.to_string().contains("give another port"), "{error}");
}

//! TCP connections through gateways: both directions, their ends, resets and refusals.

use super::*;

#[test]
fn a_forward_carries_both_directions_and_their_ends() {
    let (_hosts, near, _far, listener) = pair();
    let mut client = connect(near.clients[0]);
    let data = content(3_000_000);
    let sent = data.clone();
    let writing = std::thread::spawn(move || {
        client.write_all(&sent).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        client
    });
    let mut server = accept(&listener);
    let mut arrived = Vec::new();
    server.read_to_end(&mut arrived).unwrap();
    assert!(arrived == data, "{} bytes", arrived.len());
    // The other direction is still open.
    let mut client = writing.join().unwrap();
    server.write_all(&data[..1_000_000]).unwrap();
    drop(server);
    let mut back = Vec::new();
    client.read_to_end(&mut back).unwrap();
    assert!(back == data[..1_000_000], "{} bytes", back.len());
}

/// The server speaks first, and ends its direction while the client's goes on.
#[test]
fn a_half_closed_connection_stays_half_closed() {
    let (_hosts, near, _far, listener) = pair();
    let mut client = connect(near.clients[0]);
    let mut server = accept(&listener);
    server.write_all(b"ready").unwrap();
    server.shutdown(std::net::Shutdown::Write).unwrap();
    let mut greeting = String::new();
    client.read_to_string(&mut greeting).unwrap();
    assert_eq!(greeting, "ready");
    for _ in 0..3 {
        client.write_all(b"still there").unwrap();
        let mut arrived = [0; 11];
        server.read_exact(&mut arrived).unwrap();
        assert_eq!(&arrived, b"still there");
    }
    drop(client);
    assert_eq!(server.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_reset_of_either_end_resets_the_other() {
    let (_hosts, near, _far, listener) = pair();
    for is_client_reset in [true, false] {
        for is_half_closed in [false, true] {
            let mut client = connect(near.clients[0]);
            client.write_all(b"x").unwrap();
            let mut server = accept(&listener);
            server.read_exact(&mut [0; 1]).unwrap();
            let (one, mut other) = if is_client_reset { (client, server) } else { (server, client) };
            if is_half_closed {
                one.shutdown(std::net::Shutdown::Write).unwrap();
                assert_eq!(other.read(&mut [0; 1]).unwrap(), 0);
            }
            reset(one);
            if is_half_closed {
                // What has ended tells nothing; what is written is answered by RST.
                let began = Instant::now();
                while other.write(b"x").is_ok() {
                    assert!(began.elapsed() < WITHIN, "client {is_client_reset}");
                    std::thread::sleep(Duration::from_millis(10));
                }
            } else {
                assert!(is_reset(other.read(&mut [0; 1])), "client {is_client_reset}");
            }
        }
    }
}

#[test]
fn a_refused_connection_resets_the_client() {
    let (_hosts, near, _far, listener) = pair();
    drop(listener);
    let mut client = connect(near.clients[0]);
    assert!(is_reset(client.read(&mut [0; 1])));
}

/// No open relay: without an entry nothing is reached, and a host without a key opens no session.
#[test]
fn an_empty_list_refuses_all() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    listener.set_nonblocking(true).unwrap();
    for allow in ["[]", "[\"*:*\", \"0.0.0.0/0:*\"]", "[\"127.0.0.1:1\"]"] {
        let far = hosts.far(allow);
        let near = hosts.near(&far, &forward(address));
        let mut client = connect(near.clients[0]);
        assert!(is_reset(client.read(&mut [0; 1])), "{allow}");
        assert!(listener.accept().is_err(), "{allow}");
    }
}

#[test]
fn a_gateway_that_is_on_no_list_opens_no_session() {
    let (hosts, strangers) = (Hosts::new(), Hosts::new());
    let (listener, address) = listener();
    listener.set_nonblocking(true).unwrap();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    // It knows the far gateway, which does not know it.
    let key = StateFolder::new(hosts.folder.path().join("far")).key().unwrap().public();
    let text = format!(
        "keys = \"near\"\npatience_s = 1.0\n[peer.far]\naddress = \"{}\"\nkey = \"{key}\"\n{}",
        far.sessions,
        forward(address)
    );
    let near = Running::start(&strangers.write("near.toml", &text));
    let mut client = connect(near.clients[0]);
    client.write_all(b"hello").unwrap();
    assert!(is_reset(client.read(&mut [0; 1])));
    assert!(listener.accept().is_err());
}

/// A destination that does not read stops the client: no more is taken than windows and buffers hold.
#[test]
fn a_destination_that_does_not_read_stops_the_client() {
    let (_hosts, near, _far, listener) = pair();
    let client = connect(near.clients[0]);
    let mut server = accept(&listener);
    client.set_nonblocking(true).unwrap();
    let (mut written, mut last) = (0, Instant::now());
    while last.elapsed() < Duration::from_millis(1500) {
        match (&client).write(&[7; 1 << 16]) {
            Ok(bytes) => (written, last) = (written + bytes, Instant::now()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
        assert!(written < 40 << 20, "nothing stops it");
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut arrived = Vec::new();
    server.read_to_end(&mut arrived).unwrap();
    assert_eq!(arrived.len(), written);
}

/// Both ends of a connection get RST when a gateway is gone, never FIN.
#[test]
fn a_gateway_that_stops_resets_both_ends() {
    for is_near_stopped in [true, false] {
        let (hosts, near, far, listener) = pair();
        let mut client = connect(near.clients[0]);
        client.write_all(b"x").unwrap();
        let mut server = accept(&listener);
        server.read_exact(&mut [0; 1]).unwrap();
        if is_near_stopped {
            near.stop();
            assert!(is_reset(client.read(&mut [0; 1])));
            continue;
        }
        let at = far.sessions;
        far.stop();
        assert!(is_reset(server.read(&mut [0; 1])));
        // Another one in its place does not know the connection, and says so.
        let text = format!("keys = \"far\"\nlisten = \"{at}\"\n[peer.near]\nallow = [\"127.0.0.1:*\"]\n");
        let _again = Running::start(&hosts.write("far.toml", &text));
        client.write_all(b"y").unwrap();
        assert!(is_reset(client.read(&mut [0; 1])));
    }
}

#[test]
fn a_gateway_drains() {
    let (_hosts, near, far, listener) = pair();
    let mut client = connect(near.clients[0]);
    let mut server = accept(&listener);
    near.control.send(Control::Drain).unwrap();
    assert!(matches!(near.next(), Event::Draining));
    let refused = TcpStream::connect(near.clients[0]).and_then(|mut late| late.read(&mut [0; 1]));
    assert!(refused.is_err(), "{refused:?}");
    client.write_all(b"still carried").unwrap();
    let mut arrived = [0; 13];
    server.read_exact(&mut arrived).unwrap();
    drop((client, server));
    let mut near = near;
    near.thread.take().unwrap().join().unwrap().unwrap();
    drop(far);
}

/// What is left when the time for draining is over is reset at both ends at once, whichever gateway it is: the other one would wait for an
/// answer for as long as through an outage. `[T9]`
#[test]
fn what_is_left_of_a_drain_is_reset_at_both_ends() {
    for is_near_drained in [true, false] {
        let hosts = Hosts::new();
        let (listener, at) = listener();
        let limits = |is_here: bool| if is_here { "[limits]\ndrain_s = 0.2\n" } else { "" };
        let text = "keys = \"far\"\nlisten = \"127.0.0.1:0\"\n[peer.near]\nallow = [\"127.0.0.1:*\"]\n";
        let far = Running::start(&hosts.write("far.toml", &format!("{text}{}", limits(!is_near_drained))));
        let near = hosts.near(&far, &format!("{}{}", forward(at), limits(is_near_drained)));
        let mut client = connect(near.clients[0]);
        client.write_all(b"x").unwrap();
        let mut server = accept(&listener);
        server.read_exact(&mut [0; 1]).unwrap();
        let _other = if is_near_drained {
            near.drain();
            far
        } else {
            far.drain();
            near
        };
        assert!(is_reset(client.read(&mut [0; 1])) && is_reset(server.read(&mut [0; 1])), "{is_near_drained}");
    }
}

/// Sessions, clients and destinations may be those of IPv6.
#[test]
fn everything_goes_over_ipv6() {
    let hosts = Hosts::new();
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let server = std::net::UdpSocket::bind("[::1]:0").unwrap();
    server.set_read_timeout(Some(WITHIN)).unwrap();
    let (at, udp_at) = (listener.local_addr().unwrap(), server.local_addr().unwrap());
    let far = "keys = \"far\"\nlisten = \"[::1]:0\"\n[peer.near]\nallow = [\"[::1]:*\"]\n";
    let far = Running::start(&hosts.write("far.toml", far));
    let tcp = forward(at).replace("127.0.0.1:0", "[::1]:0");
    let socks = "[[socks]]\nlisten = \"[::1]:0\"\n";
    let udp = format!("[[udp]]\nlisten = \"[::1]:0\"\ndestination = \"{udp_at}\"\n");
    let near = hosts.near(&far, &format!("{tcp}{socks}{udp}"));
    let mut client = connect(near.clients[0]);
    client.write_all(b"hello").unwrap();
    let mut served = accept(&listener);
    served.read_exact(&mut [0; 5]).unwrap();
    served.write_all(b"back").unwrap();
    client.read_exact(&mut [0; 4]).unwrap();
    let mut client = connect(near.clients[1]);
    socks_request(&mut client, "::1", at.port());
    assert_eq!(socks_reply(&mut client), 0);
    accept(&listener);
    let client = std::net::UdpSocket::bind("[::1]:0").unwrap();
    client.set_read_timeout(Some(WITHIN)).unwrap();
    client.send_to(b"ask", near.clients[2]).unwrap();
    let (_, from) = server.recv_from(&mut [0; 10]).unwrap();
    server.send_to(b"answer", from).unwrap();
    assert_eq!(client.recv_from(&mut [0; 10]).unwrap().0, 6);
}

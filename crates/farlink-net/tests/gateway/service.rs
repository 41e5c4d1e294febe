//! The service: configurations, metrics, bounds, errors.

use super::*;

/// Connections that are there go on, whatever the new configuration says.
#[test]
fn a_new_configuration_touches_no_connection() {
    let (hosts, near, far, first) = pair();
    let (second, address) = listener();
    let mut client = connect(near.clients[0]);
    let mut server = accept(&first);

    hosts.write("near.toml", &format!("{}\nlisten = 5", hosts.near_text(&far, "")));
    near.control.send(Control::Reload).unwrap();
    assert!(matches!(near.next(), Event::NotReloaded(_)));

    let (spare, other) = listener();
    drop(spare);
    let listeners = format!("[[forward]]\nlisten = \"{other}\"\ndestination = \"{address}\"\n");
    hosts.write("near.toml", &hosts.near_text(&far, &listeners));
    near.control.send(Control::Reload).unwrap();
    assert!(matches!(near.next(), Event::Reloaded));
    hosts.write("far.toml", "keys = \"far\"\nlisten = \"127.0.0.1:0\"\n[peer.near]\nallow = []\n");
    client.write_all(b"x").unwrap();
    server.read_exact(&mut [0; 1]).unwrap();
    assert!(TcpStream::connect(near.clients[0]).is_err(), "the old forward is closed");
    let mut new = connect(other);
    new.write_all(b"y").unwrap();
    accept(&second).read_exact(&mut [0; 1]).unwrap();

    far.control.send(Control::Reload).unwrap();
    assert!(matches!(far.next(), Event::Reloaded));
    assert!(is_reset(connect(other).read(&mut [0; 1])), "the new list refuses");
    client.write_all(b"x").unwrap();
    server.read_exact(&mut [0; 1]).unwrap();
}

#[test]
fn metrics_count_what_was_carried() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let near = hosts.near(&far, &format!("{}[metrics]\nlisten = \"127.0.0.1:0\"\n", forward(address)));
    let mut client = connect(near.clients[0]);
    client.write_all(&content(10_000)).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut server = accept(&listener);
    server.read_to_end(&mut Vec::new()).unwrap();
    drop(server);
    client.read_to_end(&mut Vec::new()).unwrap();
    let ask = |path: &str| {
        let mut scraper = connect(near.metrics.unwrap());
        write!(scraper, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        scraper.read_to_string(&mut text).unwrap();
        text
    };
    let began = Instant::now();
    while !ask("/metrics").contains("\nfarlink_gateway_ended_total 1\n") {
        assert!(began.elapsed() < WITHIN, "{}", ask("/metrics"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = ask("/metrics");
    for line in ["connections 0", "accepted_total 1", "sent_bytes_total 10000", "received_bytes_total 0"] {
        assert!(text.contains(&format!("\nfarlink_gateway_{line}\n")), "{line}: {text}");
    }
    assert!(ask("/").starts_with("HTTP/1.1 404"));
}

/// Places are bounded: who comes when all are taken is turned away, and the others go on.
#[test]
fn connections_are_bounded() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let near = hosts.near(&far, &format!("{}[limits]\nconnections = 2\n", forward(address)));
    let clients = [0; 2].map(|_| (connect(near.clients[0]), accept(&listener)));
    let mut third = connect(near.clients[0]);
    assert!(is_reset(third.read(&mut [0; 1])));
    drop(clients);
    let began = Instant::now();
    loop {
        let mut client = connect(near.clients[0]);
        client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        if !is_reset(client.read(&mut [0; 1])) {
            break;
        }
        assert!(began.elapsed() < WITHIN);
    }
}

/// What a killed near gateway has left is reset when it is started again, at another port: nobody is there to say that it has restarted.
#[test]
fn connections_of_a_killed_near_gateway_end_when_it_is_started_again() {
    let (hosts, near, far, listener) = pair();
    let (_client, mut left) = (connect(near.clients[0]), accept(&listener));
    near.stop();
    let near = hosts.near(&far, &forward(listener.local_addr().unwrap()));
    let (mut client, mut other) = (connect(near.clients[0]), accept(&listener));
    assert!(is_reset(left.read(&mut [0])));
    other.write_all(b"x").unwrap();
    client.read_exact(&mut [0]).unwrap();
}

/// A gateway opens its sessions when it starts, or where that costs too much, for the first client.
#[test]
fn sessions_are_opened_before_clients_come_unless_a_peer_is_not_to_be_ready() {
    for is_ready in [true, false] {
        let hosts = Hosts::new();
        let far = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        far.set_read_timeout(Some(if is_ready { WITHIN } else { Duration::from_millis(1500) })).unwrap();
        let at = far.local_addr().unwrap();
        let text = format!("keys = \"near\"\n[peer.far]\naddress = \"{at}\"\nready = {is_ready}\n{}", forward(at));
        let near = Running::start(&hosts.write("near.toml", &text));
        assert_eq!(far.recv(&mut [0; 2000]).is_ok(), is_ready);
        let _client = connect(near.clients[0]);
        far.set_read_timeout(Some(WITHIN)).unwrap();
        far.recv(&mut [0; 2000]).unwrap();
    }
}

/// Connections that are opened as fast as they come leave the link to the one that is there.
#[test]
fn a_storm_of_connections_leaves_the_link_to_those_that_are_there() {
    let hosts = Hosts::new();
    let ((bulk, bulk_at), (stormed, storm_at)) = (listener(), listener());
    let rate = "[packets]\nrate_bps = 2e6\n";
    let far = format!("keys = \"far\"\nlisten = \"127.0.0.1:0\"\n{rate}[peer.near]\nallow = [\"127.0.0.1:*\"]\n");
    let far = Running::start(&hosts.write("far.toml", &far));
    let near = hosts.near(&far, &format!("{}{}{rate}", forward(bulk_at), forward(storm_at)));
    let [bulk_at, storm_at] = near.clients[..] else { unreachable!() };
    std::thread::spawn(move || {
        let mut client = connect(bulk_at);
        while client.write_all(&[7; 10_000]).is_ok() {}
    });
    let mut sink = accept(&bulk);
    let mut bytes_within = |seconds: u64| {
        let (began, mut bytes, mut buffer) = (Instant::now(), 0, vec![0; 1 << 16]);
        while began.elapsed() < Duration::from_secs(seconds) {
            bytes += sink.read(&mut buffer).unwrap();
        }
        bytes as f64 / began.elapsed().as_secs_f64()
    };
    bytes_within(2);
    let alone = bytes_within(3);
    std::thread::spawn(move || {
        while let Ok((tcp, _)) = stormed.accept() {
            reset(tcp)
        }
    });
    std::thread::spawn(move || {
        let mut kept = std::collections::VecDeque::new();
        while let Ok(mut client) = TcpStream::connect(storm_at) {
            let _ = client.write_all(b"x");
            kept.push_back(client);
            if kept.len() > 400 {
                reset(kept.pop_front().unwrap());
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    });
    let beside = bytes_within(6);
    println!("{alone:.0} bytes/s alone, {beside:.0} beside a storm");
    assert!(beside > 0.8 * alone, "{alone} alone, {beside} beside a storm");
}

/// Each connection is an AeroTP connection of its own over the one session.
#[test]
fn many_connections_are_carried_at_once() {
    let (_hosts, near, _far, listener) = pair();
    let at = near.clients[0];
    let echo = std::thread::spawn(move || {
        for _ in 0..200 {
            let mut server = accept(&listener);
            std::thread::spawn(move || {
                let mut data = Vec::new();
                server.read_to_end(&mut data).unwrap();
                server.write_all(&data).unwrap();
            });
        }
    });
    let clients = (0..200).map(|n| {
        std::thread::spawn(move || {
            let mut client = connect(at);
            let data = content(1000 + 100 * n);
            client.write_all(&data).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            let mut back = Vec::new();
            client.read_to_end(&mut back).unwrap();
            assert!(back == data, "{n}");
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.join().unwrap();
    }
    echo.join().unwrap();
}

/// What is wrong is said with its line and a remedy, and nothing is opened.
#[test]
fn wrong_configurations_are_refused() {
    let hosts = Hosts::new();
    let passwords = hosts.write("open", "ann:secret\n");
    std::fs::set_permissions(&passwords, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let peer = "keys = \"near\"\n[peer.far]\naddress = \"127.0.0.1:1\"\n";
    let udp = "[[udp]]\nlisten = \"127.0.0.1:0\"\ndestination = \"dns.example.org:53\"\n";
    let (taken, address) = listener();
    let cases = [
        (
            "keys = \"near\"\nlisten = \"127.0.0.1:0\"\nlisen = 5",
            "line 3: unknown field `lisen`",
            "did you mean `listen`?",
        ),
        ("keys = \"near\"", "no gateway opens a session", "UDP address"),
        (
            "keys = \"near\"\n[peer.moon]\naddress = \"127.0.0.1:1\"",
            "peer.moon: its key is not known",
            "farlink trust KEY moon",
        ),
        (&format!("{peer}allow = [\"10.0.0.0/8\"]"), "10.0.0.0/8: there are no ports", "HOSTS:PORTS"),
        (
            &format!("{peer}[[forward]]\nlisten = \"127.0.0.1:0\"\ndestination = \"host\""),
            "line 6: \"host\" has no port",
            "HOST:PORT",
        ),
        (&format!("{peer}[[socks]]\nlisten = \"0.0.0.0:1080\""), "without a password", "name a file with passwords"),
        (
            &format!("{peer}[[http]]\nlisten = \"127.0.0.1:0\"\npasswords = \"open\""),
            "others can read the secrets (mode 644)",
            "chmod 600",
        ),
        (&format!("{peer}[[rule]]\ndestination = \"*:22\"\nclass = 8"), "rule[0].class: 8 is no class", "0 to 7"),
        (
            &format!("{peer}[[rule]]\ndestination = \"*:22\"\nmode = \"quasi-relible\""),
            "unknown variant `quasi-relible`",
            "did you mean `quasi-reliable`?",
        ),
        (
            &format!("{peer}[[rule]]\ndestination = \"*:22\"\nmode = \"quasi-reliable\""),
            "rule[0].destination: it is for UDP, and no [[udp]] of this gateway leads to *:22",
            "add [[udp]]",
        ),
        (
            &format!("{peer}[[rule]]\ndestination = \"*:22\"\nprotocol = \"tcp\"\nmode = \"unreliable\""),
            "rule[0].mode: \"unreliable\" may lose bytes, and TCP promises all of them",
            "protocol = \"udp\"",
        ),
        (
            &format!("{peer}{udp}[[rule]]\ndestination = \"*:53\"\nmode = \"datagram\"\ndeadline_s = 1"),
            "rule[0].deadline_s: datagrams without a connection have none",
            "mode = \"unreliable\"",
        ),
        (&format!("{peer}[limits]\nwindow_bytes = 1"), "limits.window_bytes: 1 is not within", "within"),
        (&format!("{peer}[metrics]\nlisten = \"0.0.0.0:9000\""), "other machines reach 0.0.0.0:9000", "127.0.0.1"),
        (
            &format!("{peer}[[forward]]\nlisten = \"{address}\"\ndestination = \"a:1\""),
            "cannot listen at",
            "choose another port",
        ),
        (
            &format!("{peer}[[forward]]\nlisten = \"127.0.0.1:5\"\ndestination = \"a:1\"\nto = \"moon\""),
            "there is no peer \"moon\"",
            "give one of: far",
        ),
    ];
    for (text, what, remedy) in cases {
        let path = hosts.write("wrong.toml", text);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (_control, told) = unbounded_channel();
        let error = runtime.block_on(gateway::run(&path, told, |event| panic!("{event:?}"))).unwrap_err();
        let said = error.to_string();
        let (message, hint) = said.rsplit_once("; ").unwrap_or_else(|| panic!("{said}"));
        assert!(message.contains(what) && hint.contains(remedy), "{text}\n{said}");
        assert_eq!(error.exit_code(), 2);
        assert!(!said.contains("secret:"), "{said}");
    }
    drop(taken);
}

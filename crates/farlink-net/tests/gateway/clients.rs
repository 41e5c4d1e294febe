//! Clients that name their destination: SOCKS5 and HTTP CONNECT.

use super::*;

#[test]
fn socks_clients_name_their_destination() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let listen = "[[socks]]\nlisten = \"127.0.0.1:0\"\n";
    let near = hosts.near(&far, &format!("{listen}{listen}wait = true\n"));
    for at in &near.clients {
        let mut client = connect(*at);
        socks_request(&mut client, "localhost", address.port());
        assert_eq!(socks_reply(&mut client), 0);
        client.write_all(b"hello").unwrap();
        let mut server = accept(&listener);
        server.read_exact(&mut [0; 5]).unwrap();
        server.write_all(b"back").unwrap();
        client.read_exact(&mut [0; 4]).unwrap();
    }
    drop(listener);
    // A client that does not wait is reset, one that waits is told why.
    let mut client = connect(near.clients[0]);
    socks_request(&mut client, "localhost", address.port());
    assert_eq!(socks_reply(&mut client), 0);
    assert!(is_reset(client.read(&mut [0; 1])));
    for (name, reply) in [("127.0.0.1", 5), ("10.0.0.1", 2), ("no-such-host.invalid", 4)] {
        let mut client = connect(near.clients[1]);
        socks_request(&mut client, name, address.port());
        assert_eq!(socks_reply(&mut client), reply, "{name}");
    }
}

fn http_head(client: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn http_clients_need_connect_and_their_password() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let secrets = hosts.write("passwords", "ann:open sesame\n");
    std::fs::set_permissions(&secrets, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let listen = "[[http]]\nlisten = \"127.0.0.1:0\"\npasswords = \"passwords\"\n";
    let near = hosts.near(&far, &format!("{listen}{listen}wait = true\n"));
    let ask = |at: SocketAddr, to: SocketAddr, credentials: &str| {
        let mut client = connect(at);
        // Data behind the request ride along.
        write!(client, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{credentials}\r\nhello").unwrap();
        let head = http_head(&mut client);
        (client, head)
    };
    let encode = |text: &str| {
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
        format!("Proxy-Authorization: Basic {encoded}\r\n")
    };
    let right = encode("ann:open sesame");
    for at in &near.clients {
        let (mut client, head) = ask(*at, address, &right);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let mut server = accept(&listener);
        server.read_exact(&mut [0; 5]).unwrap();
        server.write_all(b"back").unwrap();
        client.read_exact(&mut [0; 4]).unwrap();
        for wrong in ["", &encode("ann:open"), &encode("bob:open sesame"), "Proxy-Authorization: Basic !\r\n"] {
            let (_, head) = ask(*at, address, wrong);
            assert!(
                head.starts_with("HTTP/1.1 407") && head.to_lowercase().contains("proxy-authenticate: basic"),
                "{head}"
            );
        }
        let mut client = connect(*at);
        write!(client, "GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n{right}\r\n").unwrap();
        assert!(http_head(&mut client).starts_with("HTTP/1.1 405"));
    }
    let (_, head) = ask(near.clients[1], "10.0.0.1:80".parse().unwrap(), &right);
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    drop(listener);
    let (_, head) = ask(near.clients[1], address, &right);
    assert!(head.starts_with("HTTP/1.1 502"), "{head}");
}

/// A client that says nothing, or too slowly, is left, and others are served meanwhile.
#[test]
fn slow_clients_are_left() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let limits = "[limits]\nrequest_s = 0.5\nrequests = 8\n";
    let near =
        hosts.near(&far, &format!("[[socks]]\nlisten = \"127.0.0.1:0\"\n[[http]]\nlisten = \"127.0.0.1:0\"\n{limits}"));
    for at in &near.clients {
        let began = Instant::now();
        let mut slow: Vec<_> = (0..8).map(|_| connect(*at)).collect();
        for client in &mut slow {
            client.write_all(b"\x05").unwrap();
        }
        for mut client in slow {
            let _ = client.read_to_end(&mut Vec::new()); // HTTP has words for it
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    let mut client = connect(near.clients[0]);
    socks_request(&mut client, "127.0.0.1", address.port());
    assert_eq!(socks_reply(&mut client), 0);
    accept(&listener);
}

/// Clients that have not said where to take no places of connections; they have a bound of their own.
#[test]
fn slow_clients_take_no_places_of_connections() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let listen = "[[socks]]\nlisten = \"127.0.0.1:0\"\n[[http]]\nlisten = \"127.0.0.1:0\"\n";
    let limits = "[limits]\nrequest_s = 30.0\nrequests = 6\nconnections = 2\n";
    let near = hosts.near(&far, &format!("{}{listen}{limits}", forward(address)));
    let [at_forward, socks, http] = near.clients[..] else { unreachable!() };
    let mut slow = [socks, http].map(|at| [(); 3].map(|()| connect(at)));
    // When the first one has given way to one more, all six places of requests are taken.
    let more = connect(socks);
    assert!(matches!(slow[0][0].read(&mut [0; 1]), Ok(0)));
    let client = connect(at_forward);
    listener.set_nonblocking(true).unwrap();
    let began = Instant::now();
    while let Err(error) = listener.accept() {
        assert!(began.elapsed() < WITHIN, "the forward has no place: {error}");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop((slow, more, client));
}

/// However many do not come to the point, who does is served: the oldest of them give way.
#[test]
fn slow_clients_keep_nobody_out() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let listen = "[[socks]]\nlisten = \"127.0.0.1:0\"\n[[http]]\nlisten = \"127.0.0.1:0\"\n";
    let near = hosts.near(&far, &format!("{listen}{METRICS}[limits]\nrequest_s = 60.0\nrequests = 6\n"));
    let [socks, http] = near.clients[..] else { unreachable!() };
    let slow: Vec<_> = (0..30)
        .map(|n| {
            let mut client = connect(if n % 2 == 0 { socks } else { http });
            client.write_all(if n % 2 == 0 { b"\x05" } else { b"C" }).unwrap();
            client
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(metric(&near, "turned_away_total"), 24);
    let mut client = connect(socks);
    socks_request(&mut client, "127.0.0.1", address.port());
    assert_eq!(socks_reply(&mut client), 0);
    accept(&listener);
    let mut client = connect(http);
    write!(client, "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    assert!(http_head(&mut client).starts_with("HTTP/1.1 200"));
    accept(&listener);
    assert_eq!(metric(&near, "turned_away_total"), 25, "the first has left a place");
    drop(slow);
}

/// A client whose request is whole when all places are taken is told so.
#[test]
fn clients_are_told_that_there_is_no_room() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let listen = "[[socks]]\nlisten = \"127.0.0.1:0\"\n[[http]]\nlisten = \"127.0.0.1:0\"\n";
    let near = hosts.near(&far, &format!("{}{listen}[limits]\nconnections = 1\n", forward(address)));
    let _one = (connect(near.clients[0]), accept(&listener));
    let mut client = connect(near.clients[1]);
    socks_request(&mut client, "127.0.0.1", address.port());
    assert_eq!(socks_reply(&mut client), 1);
    let mut client = connect(near.clients[2]);
    write!(client, "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let head = http_head(&mut client);
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
}

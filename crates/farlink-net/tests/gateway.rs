//! Two gateways of this machine, with clients and destinations on the loopback interface.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use farlink_net::gateway::{self, Control, Event, GatewayError};
use farlink_net::state::StateFolder;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;

const WITHIN: Duration = Duration::from_secs(20);

/// A gateway on a thread of its own; it is stopped when it is dropped.
struct Running {
    control: UnboundedSender<Control>,
    sessions: SocketAddr,
    clients: Vec<SocketAddr>,
    metrics: Option<SocketAddr>,
    events: std::sync::mpsc::Receiver<Event>,
    thread: Option<std::thread::JoinHandle<Result<(), GatewayError>>>,
}

impl Running {
    fn start(config: &Path) -> Self {
        let (control, told) = unbounded_channel();
        let (events, event) = std::sync::mpsc::channel();
        let config = config.to_owned();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let ended = runtime.block_on(gateway::run(&config, told, |event| events.send(event).unwrap_or(())));
            runtime.shutdown_timeout(Duration::from_secs(1));
            ended
        });
        match event.recv_timeout(WITHIN) {
            Ok(Event::Listening { sessions, clients, metrics }) => {
                Running { control, sessions, clients, metrics, events: event, thread: Some(thread) }
            }
            other => panic!("{other:?}, {:?}", thread.join()),
        }
    }

    fn next(&self) -> Event {
        self.events.recv_timeout(WITHIN).unwrap()
    }

    /// Ends it at once: its tasks are dropped as they are, and with them its sockets.
    fn stop(mut self) {
        let _ = self.control.send(Control::Stop);
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.control.send(Control::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Two hosts with keys that know each other.
struct Hosts {
    folder: tempfile::TempDir,
}

impl Hosts {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys =
            ["near", "far"].map(|name| StateFolder::new(folder.path().join(name)).generate_key().unwrap().public());
        for (host, other, key) in [("near", "far", keys[1]), ("far", "near", keys[0])] {
            let folder = StateFolder::new(folder.path().join(host));
            let mut trusted = folder.trusted().unwrap();
            trusted.add(key, other).unwrap();
            folder.keep_trusted(&trusted).unwrap();
        }
        Hosts { folder }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn far(&self, allow: &str) -> Running {
        let text = format!("keys = \"far\"\nlisten = \"127.0.0.1:0\"\n[peer.near]\nallow = {allow}\n");
        Running::start(&self.write("far.toml", &text))
    }

    fn near_text(&self, far: &Running, listeners: &str) -> String {
        let at = far.sessions;
        format!("keys = \"near\"\n[peer.far]\naddress = \"{at}\"\n{listeners}\n")
    }

    fn near(&self, far: &Running, listeners: &str) -> Running {
        Running::start(&self.write("near.toml", &self.near_text(far, listeners)))
    }
}

fn forward(destination: SocketAddr) -> String {
    format!("[[forward]]\nlisten = \"127.0.0.1:0\"\ndestination = \"{destination}\"\n")
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(WITHIN)).unwrap();
    tcp.set_write_timeout(Some(WITHIN)).unwrap();
    tcp
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (tcp, _) = listener.accept().unwrap();
    tcp.set_read_timeout(Some(WITHIN)).unwrap();
    tcp
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| ((n * n) >> 7) as u8).collect()
}

fn is_reset(result: std::io::Result<usize>) -> bool {
    result.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

fn reset(tcp: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&tcp, Some(Duration::ZERO)).unwrap();
}

/// A pair of gateways with one forward to a listener here.
fn pair() -> (Hosts, Running, Running, TcpListener) {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let near = hosts.near(&far, &forward(address));
    (hosts, near, far, listener)
}

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

/// Reads a reply of SOCKS5 that has an IPv4 address.
fn socks_reply(client: &mut TcpStream) -> u8 {
    let mut reply = [0; 10];
    client.read_exact(&mut reply).unwrap();
    assert_eq!((reply[0], reply[3]), (5, 1));
    reply[1]
}

fn socks_request(client: &mut TcpStream, name: &str, port: u16) {
    client.write_all(&[5, 1, 0]).unwrap();
    let mut method = [0; 2];
    client.read_exact(&mut method).unwrap();
    assert_eq!(method, [5, 0]);
    let mut request = vec![5, 1, 0, 3, name.len() as u8];
    request.extend_from_slice(name.as_bytes());
    request.extend_from_slice(&port.to_be_bytes());
    client.write_all(&request).unwrap();
}

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

#[test]
fn datagrams_go_there_and_back() {
    let hosts = Hosts::new();
    let server = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    server.set_read_timeout(Some(WITHIN)).unwrap();
    let address = server.local_addr().unwrap();
    let listener = format!("[[udp]]\nlisten = \"127.0.0.1:0\"\ndestination = \"{address}\"\n");
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let near = hosts.near(&far, &listener);
    let clients = [0; 3].map(|_| std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    for (n, client) in clients.iter().enumerate() {
        client.set_read_timeout(Some(WITHIN)).unwrap();
        for piece in [0, 1, 700] {
            client.send_to(&vec![n as u8; piece], near.clients[0]).unwrap();
            let mut buffer = [0; 2000];
            let (bytes, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..bytes], vec![n as u8; piece]);
            server.send_to(&buffer[..bytes], from).unwrap();
            let (back, _) = client.recv_from(&mut buffer).unwrap();
            assert_eq!(back, bytes);
        }
    }
    // Not without an entry.
    drop((near, far));
    let refusing = hosts.far("[]");
    let near = hosts.near(&refusing, &listener);
    clients[0].send_to(b"x", near.clients[0]).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(server.recv_from(&mut [0; 10]).is_err());
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
            &format!("{peer}[[rule]]\ndestination = \"*:22\"\nmode = \"quasi-reliable\""),
            "unknown variant `quasi-reliable`",
            "did you mean `reliable`?",
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

/// Relays datagrams between whoever sends first and `to`, each `one_way` later. It ends with the test's process.
fn slow_path(to: SocketAddr, one_way: Duration) -> SocketAddr {
    let near = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let far = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    far.connect(to).unwrap();
    let address = near.local_addr().unwrap();
    let sender = std::sync::Arc::new(std::sync::OnceLock::new());
    for is_there in [true, false] {
        let (near, far, sender) = (near.try_clone().unwrap(), far.try_clone().unwrap(), sender.clone());
        let (waiting, later) = std::sync::mpsc::channel::<(Instant, Vec<u8>)>();
        let (from_near, from_far, asked) = (near.try_clone().unwrap(), far.try_clone().unwrap(), sender.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 2000];
            loop {
                let bytes = if is_there {
                    from_near.recv_from(&mut buffer).map(|(bytes, from)| {
                        let _ = asked.set(from);
                        bytes
                    })
                } else {
                    from_far.recv(&mut buffer)
                };
                let Ok(bytes) = bytes else { continue };
                let _ = waiting.send((Instant::now() + one_way, buffer[..bytes].to_vec()));
            }
        });
        std::thread::spawn(move || {
            for (due, datagram) in later {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let _ = if is_there { far.send(&datagram) } else { near.send_to(&datagram, *sender.get().unwrap()) };
            }
        });
    }
    address
}

/// A request of 1 kB has its answer a round trip later, the first one of the session as well. A busy machine makes it later, so that of
/// each the fastest of some sessions counts.
#[test]
fn a_request_takes_one_round_trip() {
    let sessions = [(); 6].map(|()| four_requests());
    let fastest = [0, 1, 2, 3].map(|n| sessions.iter().map(|took| took[n]).min().unwrap());
    println!("requests over 400 ms: {fastest:?}");
    assert!(fastest.iter().all(|took| *took < Duration::from_millis(450)), "{fastest:?}");
}

/// How long a first request over a forward takes, one by SOCKS5, and another one of each.
fn four_requests() -> [Duration; 4] {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let at = slow_path(far.sessions, Duration::from_millis(200));
    let text = format!(
        "keys = \"near\"\n[peer.far]\naddress = \"{at}\"\n[[socks]]\nlisten = \"127.0.0.1:0\"\n{}",
        forward(address)
    );
    let near = Running::start(&hosts.write("near.toml", &text));
    let server = std::thread::spawn(move || {
        for _ in 0..4 {
            let mut server = accept(&listener);
            let mut request = [0; 1000];
            server.read_exact(&mut request).unwrap();
            server.write_all(&request).unwrap();
        }
    });
    let took = [false, true, false, true].map(|is_socks| {
        // Forwards come before SOCKS5.
        let mut client = connect(near.clients[usize::from(is_socks)]);
        let began = Instant::now();
        if is_socks {
            socks_request(&mut client, "localhost", address.port());
            assert_eq!(socks_reply(&mut client), 0);
        }
        client.write_all(&[7; 1000]).unwrap();
        client.read_exact(&mut [0; 1000]).unwrap();
        began.elapsed()
    });
    assert!(took.iter().all(|it| *it >= Duration::from_millis(400)), "{took:?}");
    server.join().unwrap();
    took
}

/// A connection whose data do not get through in time is reset on both sides.
#[test]
fn data_that_are_late_reset_their_connection() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let rule = "[[rule]]\ndestination = \"127.0.0.1:*\"\ndeadline_s = 0.5\n";
    let near = hosts.near(&far, &format!("{}{rule}", forward(address)));
    let mut client = connect(near.clients[0]);
    let mut server = accept(&listener);
    // What is read in time goes on, however long the connection lasts.
    for _ in 0..6 {
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0; 1]).unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
    client.set_nonblocking(true).unwrap();
    let began = Instant::now();
    let error = loop {
        assert!(began.elapsed() < WITHIN);
        match client.write(&[7; 1 << 16]) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5))
            }
            Err(error) => break error,
            Ok(_) => {}
        }
    };
    assert!(matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe), "{error}");
    // The server reads what had come before, and then the reset.
    let mut arrived = Vec::new();
    assert!(server.read_to_end(&mut arrived).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
}

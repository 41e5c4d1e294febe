//! Two gateways of this machine, with clients and destinations on the loopback interface.

mod clients;
mod datagrams;
mod latency;
mod service;
mod streams;

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

    /// Has it end its connections, and itself; how long that took.
    fn drain(mut self) -> Duration {
        let began = Instant::now();
        self.control.send(Control::Drain).unwrap();
        self.thread.take().unwrap().join().unwrap().unwrap();
        began.elapsed()
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

/// What a gateway serves as metrics, of which `metric` is one.
fn metric(gateway: &Running, metric: &str) -> u64 {
    let mut scraper = connect(gateway.metrics.unwrap());
    write!(scraper, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    scraper.read_to_string(&mut text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("farlink_gateway_{metric} ")));
    line.unwrap_or_else(|| panic!("no {metric}: {text}")).parse().unwrap()
}

const METRICS: &str = "[metrics]\nlisten = \"127.0.0.1:0\"\n";

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

/// Relays datagrams between whoever sends first and `to`, each `one_way` later. On the way there
/// one of `lost_of` is lost. It ends with the test's process.
fn path(to: SocketAddr, one_way: Duration, lost_of: usize) -> SocketAddr {
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
            for number in 1_usize.. {
                let bytes = if is_there {
                    from_near.recv_from(&mut buffer).map(|(bytes, from)| {
                        let _ = asked.set(from);
                        bytes
                    })
                } else {
                    from_far.recv(&mut buffer)
                };
                let Ok(bytes) = bytes else { continue };
                if is_there && number.is_multiple_of(lost_of) {
                    continue;
                }
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

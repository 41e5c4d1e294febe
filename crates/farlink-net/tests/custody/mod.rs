//! Streams in custody: a source, gateways that are processes of their own, and a sink, on the loopback interface.

mod chain;
mod config;
mod expiry;
mod full_disk;
mod kills;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use farlink_core::protocol::aerotp::AcceptorLimits;
use farlink_net::custody::{Piece, Sink, SinkStream, Source};
use farlink_net::gateway;
use farlink_net::mux::{MuxConfig, Trust};
use farlink_net::seal::PublicKey;
use farlink_net::state::StateFolder;
use farlink_net::{Endpoint, EndpointConfig};

const CONFIG: &str = "FARLINK_TEST_CUSTODY_CONFIG";
const WITHIN: Duration = Duration::from_secs(60);

/// Not a test: a gateway. It is this program, run for this function alone.
#[test]
#[ignore = "the gateways of the tests here"]
fn gateway_process() {
    let Some(config) = std::env::var_os(CONFIG) else { return };
    tracing_subscriber::fmt().with_ansi(false).with_max_level(tracing::Level::INFO).init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_control, told) = tokio::sync::mpsc::unbounded_channel();
    let ended = runtime.block_on(gateway::run(Path::new(&config), told, |event| println!("{event:?}")));
    println!("ENDED {ended:?}");
}

/// A gateway, which is killed when it is dropped.
struct Gateway {
    config: PathBuf,
    /// A process in whose mount namespace it runs.
    within: Option<u32>,
    process: Option<Child>,
}

impl Gateway {
    fn start(&mut self) {
        let log = std::fs::File::options().append(true).create(true).open(self.config.with_extension("log")).unwrap();
        let program = std::env::current_exe().unwrap();
        let mut command = match self.within {
            None => Command::new(program),
            Some(process) => {
                let mut command = Command::new("nsenter");
                command.args(["--mount", "--target", &process.to_string()]).arg(program);
                command
            }
        };
        let process = command
            .args(["--exact", "custody::gateway_process", "--ignored", "--nocapture"])
            .env(CONFIG, &self.config)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.process = Some(process.unwrap());
    }

    /// Kills it by SIGKILL.
    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Hosts with keys: a source, gateways in a row, a sink.
struct Hosts {
    folder: tempfile::TempDir,
    gateways: Vec<SocketAddr>,
    sink: SocketAddr,
}

impl Hosts {
    fn new(gateways: usize) -> Self {
        let hosts = Hosts {
            folder: tempfile::tempdir().unwrap(),
            gateways: (0..gateways).map(|_| free_address()).collect(),
            sink: free_address(),
        };
        let names = (0..gateways).map(|n| format!("gateway-{n}")).chain(["source".into(), "sink".into()]);
        names.for_each(|name| drop(hosts.keys(&name).generate_key().unwrap()));
        hosts
    }

    fn keys(&self, name: &str) -> StateFolder {
        StateFolder::new(self.folder.path().join(name))
    }

    fn key(&self, name: &str) -> PublicKey {
        self.keys(name).key().unwrap().public()
    }

    /// The gateway with this number, not yet started. `custody` has more lines of its table.
    fn gateway(&self, number: usize, custody: &str) -> Gateway {
        let before = number.checked_sub(1).map_or_else(|| "source".to_owned(), |n| format!("gateway-{n}"));
        let is_last = number + 1 == self.gateways.len();
        let (next, at) = match is_last {
            true => ("sink".to_owned(), self.sink),
            false => (format!("gateway-{}", number + 1), self.gateways[number + 1]),
        };
        let text = format!(
            "keys = \"gateway-{number}\"\nlisten = \"{}\"\n\
             [packets]\nrate_bps = 50e6\n\
             [peer.before]\nkey = \"{}\"\n[peer.next]\nkey = \"{}\"\naddress = \"{at}\"\n\
             [custody]\nfolder = \"custody-{number}\"\n{custody}\n\
             [[custody.route]]\nsink = \"shore\"\nfrom = [\"before\"]\nto = \"next\"\n",
            self.gateways[number],
            self.key(&before),
            self.key(&next),
        );
        let config = self.folder.path().join(format!("gateway-{number}.toml"));
        std::fs::write(&config, text).unwrap();
        Gateway { config, within: None, process: None }
    }

    fn endpoint(&self, name: &str, address: SocketAddr, trust: Vec<PublicKey>) -> Endpoint {
        let keys = self.keys(name);
        let trust = Trust::Keys(trust.into_iter().collect());
        let config = EndpointConfig::new(MuxConfig { trust, ..MuxConfig::new(keys.key().unwrap()) });
        Endpoint::bind(address, config, Box::new(keys.counters_to_answer().unwrap())).unwrap()
    }

    fn source(&self, held_bytes: u64) -> (Endpoint, Source) {
        let endpoint = self.endpoint("source", (Ipv4Addr::LOCALHOST, 0).into(), vec![]);
        let source = self.source_at(&endpoint, held_bytes);
        (endpoint, source)
    }

    fn source_at(&self, endpoint: &Endpoint, held_bytes: u64) -> Source {
        let first = (self.key("gateway-0"), self.gateways[0]);
        Source::open(endpoint, first, "shore".parse().unwrap(), held_bytes)
    }

    fn sink(&self) -> (Endpoint, Sink) {
        let last = format!("gateway-{}", self.gateways.len() - 1);
        let endpoint = self.endpoint("sink", self.sink, vec![self.key(&last)]);
        let sink = Sink::listen(&endpoint, AcceptorLimits::default()).unwrap();
        (endpoint, sink)
    }

    fn log(&self, number: usize) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("gateway-{number}.log"))).unwrap_or_default()
    }
}

fn free_address() -> SocketAddr {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

/// The bytes of the test streams: each says where it stands.
fn content(from: u64, bytes: usize) -> Bytes {
    (from..from + bytes as u64).map(|position| ((position * 2_654_435_761) >> 13) as u8).collect()
}

/// Reads a whole stream. Each byte has to come once, in its place.
async fn read_all(stream: &mut SinkStream) -> u64 {
    let mut at = 0;
    while let Some(piece) = tokio::time::timeout(WITHIN, stream.read()).await.expect("the stream goes on").unwrap() {
        match piece {
            Piece::Data(data) => {
                assert_eq!(data, content(at, data.len()), "from byte {at}");
                at += data.len() as u64;
            }
            Piece::Lost(bytes) => panic!("{bytes} bytes are lost from byte {at}"),
        }
        assert_eq!(stream.position(), at);
        stream.keep().await;
    }
    stream.keep().await;
    at
}

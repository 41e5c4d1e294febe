//! One end of a coded stream, sealed, for `docs/wire_far.py`: `coded receive KEYS ADDRESS LOSS` or `coded send KEYS ADDRESS LOSS RATE_BPS`.
//!
//! KEYS is a folder of `farlink keygen` that trusts one host, and LOSS the share of packets that is expected to be lost. The receiver
//! prints what has arrived, twice a second, as a line of JSON; the sender sends until somebody ends it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farlink_core::protocol::aerotp::{AcceptorLimits, Coded, RateControl};
use farlink_core::units::{BitRate, Count, PositiveSeconds, Probability};
use farlink_net::mux::{MuxConfig, Trust};
use farlink_net::state::StateFolder;
use farlink_net::{Endpoint, EndpointConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PORT: u16 = 1;
/// Ten bandwidth-delay products at 5 Mb/s and a round trip of 20 s.
const BUFFER_BYTES: f64 = 125e6;
/// Above a round trip of 20 s.
const FIRST_TIMEOUT_S: f64 = 30.0;
const GIVE_UP_AFTER_S: f64 = 3600.0;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", keys, address, loss] => receive(&StateFolder::new(keys), address, loss).await,
        ["send", keys, address, loss, rate] => send(&StateFolder::new(keys), address, loss, rate).await,
        _ => {
            eprintln!("usage: coded receive KEYS ADDRESS LOSS, or coded send KEYS ADDRESS LOSS RATE_BPS");
            std::process::exit(2);
        }
    }
}

fn config(folder: &StateFolder, loss: &str, rate: Option<&str>) -> EndpointConfig {
    let trust = Trust::Keys(folder.trusted().expect("the folder has trusted hosts").keys());
    let mut config = EndpointConfig::new(MuxConfig { trust, ..MuxConfig::new(folder.key().expect("it has a key")) });
    let seconds = |s| PositiveSeconds::new(s).expect("a constant within its range");
    let expected_loss = Probability::new(loss.parse().expect("LOSS is a number")).expect("LOSS is a share");
    config.connection.coded = Some(Coded { expected_loss, ..Coded::default() });
    config.connection.receive_buffer_bytes = Some(Count::new(BUFFER_BYTES).expect("a constant within its range"));
    config.connection.initial_rto_s = seconds(FIRST_TIMEOUT_S);
    config.connection.give_up_after_s = seconds(GIVE_UP_AFTER_S);
    if let Some(rate) = rate {
        let rate = BitRate::new(rate.parse().expect("RATE_BPS is a number"));
        config.connection.rate_bps = Some(rate.expect("RATE_BPS is a rate"));
        config.connection.rate_control = Some(RateControl::Fixed);
    }
    config
}

async fn receive(folder: &StateFolder, address: &str, loss: &str) {
    let counters = folder.counters_to_answer().expect("nobody else receives");
    let address = address.parse().expect("ADDRESS is one");
    let endpoint = Endpoint::bind(address, config(folder, loss, None), Box::new(counters)).expect("the port is free");
    endpoint.listen(PORT, AcceptorLimits::default()).expect("the configuration has connections");
    let mut connection = endpoint.accept().await.expect("the socket works");
    let moved = Arc::new(AtomicU64::new(0));
    tokio::spawn(tell(moved.clone()));
    let mut piece = vec![0; 1 << 16];
    while let Ok(more @ 1..) = connection.read(&mut piece).await {
        moved.fetch_add(more as u64, Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "it tells the time")]
async fn tell(moved: Arc<AtomicU64>) {
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        println!("{{\"unix_s\": {now:.6}, \"moved_bytes\": {}}}", moved.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn send(folder: &StateFolder, address: &str, loss: &str, rate: &str) {
    let peer = *folder.trusted().expect("the folder has trusted hosts").keys().first().expect("it trusts one");
    let counters = folder.counters_to_send().expect("the folder can be written");
    let own: SocketAddr = (Ipv4Addr::UNSPECIFIED, 0).into();
    let endpoint = Endpoint::bind(own, config(folder, loss, Some(rate)), Box::new(counters)).expect("there are ports");
    let address = address.parse().expect("ADDRESS is one");
    let mut connection = endpoint.connect(&peer, address, PORT).expect("the configuration is right");
    let piece = vec![7; 1 << 16];
    while connection.write_all(&piece).await.is_ok() {}
}

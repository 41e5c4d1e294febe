//! Several streams to one peer take one share of a path: `cargo run -p farlink-net --example shared_rate`.
//!
//! Four connections of one session send at 20 Mb/s together. They take turns, so that each has a quarter.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use farlink_core::protocol::aerotp::{AcceptorLimits, RateControl};
use farlink_core::units::BitRate;
use farlink_net::mux::{MemoryCounters, MuxConfig, Trust};
use farlink_net::seal::{PublicKey, StaticKey};
use farlink_net::{Endpoint, EndpointConfig};
use tokio::io::AsyncWriteExt as _;

const PORT: u16 = 1;
const STREAMS: usize = 4;
const SPAN: Duration = Duration::from_secs(2);

fn endpoint(key: &StaticKey, trusted: PublicKey) -> Result<Endpoint, Box<dyn Error>> {
    let mux = MuxConfig { trust: Trust::Keys([trusted].into()), ..MuxConfig::new(key.clone()) };
    let mut config = EndpointConfig::new(mux);
    config.connection.rate_control = Some(RateControl::Fixed);
    config.connection.rate_bps = Some(BitRate::new(20e6)?);
    let any_port: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    Ok(Endpoint::bind(any_port, config, Box::new(MemoryCounters::default()))?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (here, there) = (StaticKey::generate(), StaticKey::generate());
    let (sender, receiver) = (endpoint(&here, there.public())?, endpoint(&there, here.public())?);
    receiver.listen(PORT, AcceptorLimits::default())?;
    let accepting = receiver.clone();
    tokio::spawn(async move {
        while let Some(mut connection) = accepting.accept().await {
            tokio::spawn(async move { tokio::io::copy(&mut connection, &mut tokio::io::sink()).await });
        }
    });

    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut connection = sender.connect(&receiver.public_key(), receiver.local_addr(), PORT)?;
        streams.push(tokio::spawn(async move {
            // Writes for as long as the others do, and tells how much the peer has by then.
            let endless = async { while connection.write_all(&[7; 1 << 14]).await.is_ok() {} };
            let _ = tokio::time::timeout(SPAN, endless).await;
            connection.state().map_or(0, |state| state.settled_bytes)
        }));
    }
    for (n, stream) in streams.into_iter().enumerate() {
        let megabits_per_s = stream.await? as f64 * 8.0 / SPAN.as_secs_f64() / 1e6;
        println!("stream {n}: {megabits_per_s:.1} Mb/s");
    }
    Ok(())
}

//! Datagrams that are worth nothing once they are late: `cargo run -p farlink-net --example telemetry`.
//!
//! A position each 10 ms, sent once. What is lost is not repeated, and what waits too long behind the rate gives way to newer ones.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use farlink_core::protocol::aerotp::RateControl;
use farlink_core::units::BitRate;
use farlink_net::mux::{MemoryCounters, MuxConfig, Trust};
use farlink_net::seal::{PublicKey, StaticKey};
use farlink_net::{Endpoint, EndpointConfig};

const POSITIONS: u16 = 1;
const COUNT: u32 = 50;

fn endpoint(key: &StaticKey, trusted: PublicKey) -> Result<Endpoint, Box<dyn Error>> {
    let mux = MuxConfig { trust: Trust::Keys([trusted].into()), ..MuxConfig::new(key.clone()) };
    let mut config = EndpointConfig::new(mux);
    // Nothing answers datagrams, so that their rate is set, not learnt.
    config.connection.rate_control = Some(RateControl::Fixed);
    config.connection.rate_bps = Some(BitRate::new(1e6)?);
    let any_port: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    Ok(Endpoint::bind(any_port, config, Box::new(MemoryCounters::default()))?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (aircraft, ground) = (StaticKey::generate(), StaticKey::generate());
    let (sender, receiver) = (endpoint(&aircraft, ground.public())?, endpoint(&ground, aircraft.public())?);
    receiver.listen_datagrams(POSITIONS);
    let (peer, address) = (receiver.public_key(), receiver.local_addr());
    tokio::spawn(async move {
        for n in 0..COUNT {
            let position = format!("{n}: 78.2 N 15.6 E {} m", 3000 + 10 * n);
            sender.send_datagram(&peer, address, POSITIONS, Bytes::from(position)).expect("it fits into a packet");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        sender.finish().await;
    });

    let (mut arrived, mut last) = (0, String::new());
    while arrived < COUNT {
        let next = tokio::time::timeout(Duration::from_secs(2), receiver.receive_datagram()).await;
        let Ok(Some(datagram)) = next else { break };
        (arrived, last) = (arrived + 1, String::from_utf8_lossy(&datagram.data).into_owned());
    }
    println!("{arrived} of {COUNT} positions, the last one {last}");
    Ok(())
}

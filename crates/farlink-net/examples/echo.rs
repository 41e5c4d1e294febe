//! A stream there and back: `cargo run -p farlink-net --example echo`.
//!
//! Two hosts that know each other's public keys, here on one machine. Nothing waits for a handshake: the first packet carries data.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

use farlink_core::protocol::aerotp::AcceptorLimits;
use farlink_net::mux::{MemoryCounters, MuxConfig, Trust};
use farlink_net::seal::{PublicKey, StaticKey};
use farlink_net::{Connection, Endpoint, EndpointConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The port within the session, which has nothing to do with ports of UDP.
const PORT: u16 = 7;

fn endpoint(key: &StaticKey, trusted: PublicKey) -> Result<Endpoint, Box<dyn Error>> {
    let mux = MuxConfig { trust: Trust::Keys([trusted].into()), ..MuxConfig::new(key.clone()) };
    let any_port: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    // A host that restarts needs counters on disk: `farlink_net::state` has them.
    Ok(Endpoint::bind(any_port, EndpointConfig::new(mux), Box::new(MemoryCounters::default()))?)
}

async fn echo(connection: Connection) -> std::io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(connection);
    tokio::io::copy(&mut reader, &mut writer).await?;
    writer.shutdown().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (here, there) = (StaticKey::generate(), StaticKey::generate());
    let (client, server) = (endpoint(&here, there.public())?, endpoint(&there, here.public())?);
    server.listen(PORT, AcceptorLimits::default())?;
    let accepting = server.clone();
    tokio::spawn(async move {
        while let Some(connection) = accepting.accept().await {
            tokio::spawn(echo(connection));
        }
    });

    let mut connection = client.connect(&server.public_key(), server.local_addr(), PORT)?;
    connection.write_all(b"Hello, far away").await?;
    connection.shutdown().await?; // nothing more will be written, and the peer has everything
    let mut back = String::new();
    connection.read_to_string(&mut back).await?;
    println!("{back}");
    drop(connection);
    client.finish().await;
    Ok(())
}

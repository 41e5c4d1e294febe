//! A folder from one host to another: `cargo run -p farlink-net --example folder`.
//!
//! What `farlink send` and `farlink receive` do, in one program: keys and trusted hosts in folders, files resumed and placed whole.

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use farlink_net::files::{ReceiveOptions, SendOptions};
use farlink_net::seal::{PresharedKey, PublicKey};
use farlink_net::state::StateFolder;
use farlink_net::transfer::{ReceiveSettings, Received, SendSettings, receive, send};
use farlink_net::{Insecure, PathSettings};
use tokio::sync::oneshot;

fn path() -> PathSettings {
    PathSettings {
        rate: None,
        shared: PresharedKey::default(),
        packet_bytes: 1500,
        damaged_links: false,
        insecure: Insecure::No,
    }
}

/// A host with a key, in a folder of its own.
fn host(folder: &Path) -> Result<(StateFolder, PublicKey), Box<dyn Error>> {
    let state = StateFolder::new(folder);
    let key = state.generate_key()?.public();
    Ok((state, key))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let at = |name: &str| place.path().join(name);
    std::fs::create_dir_all(at("measured/monday"))?;
    std::fs::write(at("measured/monday/log.csv"), "t,snr\n0,11.5\n")?;
    std::fs::create_dir(at("received"))?;

    let ((here, key), (there, there_key)) = (host(&at("here"))?, host(&at("there"))?);
    let mut trusted = there.trusted()?;
    trusted.add(key, "here")?;
    there.keep_trusted(&trusted)?;

    let settings = ReceiveSettings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        path: path(),
        options: ReceiveOptions::default(),
        by_host: false,
        once: true,
        patience: Duration::from_secs(300),
    };
    let (listening, address) = oneshot::channel();
    let mut listening = Some(listening);
    let into = at("received");
    let receiving = async move {
        let tell = |what| {
            if let (Received::Listening(address), Some(listening)) = (what, listening.take()) {
                let _ = listening.send(address);
            }
        };
        receive(&there, &into, &settings, tell).await
    };
    let sending = async {
        let settings = SendSettings {
            peer: there_key,
            address: address.await.expect("the receiver is there"),
            path: path(),
            options: SendOptions::default(),
            patience: Duration::from_secs(30),
        };
        send(&here, &[at("measured")], &settings, |_| {}).await
    };
    let (received, sent) = tokio::join!(receiving, sending);
    received?;
    println!("{} file, {} bytes", sent?.placed, std::fs::metadata(at("received/measured/monday/log.csv"))?.len());
    Ok(())
}

//! Sends files to a host.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use farlink_core::units::{BitRate, PositiveSeconds};

use crate::files::{self, FilesError, Progress, SendOptions, Summary};
use crate::io::Endpoint;
use crate::mux::MuxConfig;
use crate::seal::{PresharedKey, PublicKey};
use crate::state::StateFolder;

use super::{FILES_PORT, LAST_WORDS, TransferError, endpoint_config, with_rate};

/// Where files go, and how.
#[derive(Clone, Debug)]
pub struct SendSettings {
    /// The key of the receiver.
    pub peer: PublicKey,
    /// Where it is.
    pub address: SocketAddr,
    /// The rate, headers included. By default it is learnt.
    pub rate: Option<BitRate>,
    /// A key that both sides share.
    pub shared: PresharedKey,
    /// The longest packet, headers of IP and UDP included, in bytes.
    pub packet_bytes: u16,
    /// Whether the link delivers damaged packets, to be corrected ([`for_damaged_links`](crate::EndpointConfig::for_damaged_links)).
    pub damaged_links: bool,
    /// What is sent.
    pub options: SendOptions,
    /// How long an answer is waited for, 1 s at least. After a failure of the network it is tried again as long as files make progress
    /// at least this often.
    pub patience: Duration,
}

/// A pause before another try.
const PAUSE: Duration = Duration::from_secs(1);

/// Sends files and folders to a host that runs [`receive`](super::receive). If the network fails or the receiver is started again, it
/// goes on where it stopped.
///
/// # Errors
/// If a file of this host cannot be used, the receiver refuses, or the network fails for longer than the patience.
#[tracing::instrument(skip_all, fields(peer = %settings.peer, address = %settings.address))]
pub async fn send(
    folder: &StateFolder,
    paths: &[PathBuf],
    settings: &SendSettings,
    mut progress: impl FnMut(Progress),
) -> Result<Summary, TransferError> {
    let mux = MuxConfig {
        shared: settings.shared.clone(),
        packet_bytes: settings.packet_bytes,
        ..MuxConfig::new(folder.key()?)
    };
    // Before anything is sent: a name that was mistyped is found at once, also when nobody answers.
    for path in paths {
        std::fs::symlink_metadata(path).map_err(|error| FilesError::local("send", path, error))?;
    }
    let mut config = endpoint_config(mux, settings.damaged_links);
    config.connection.give_up_after_s =
        PositiveSeconds::new(settings.patience.as_secs_f64().max(1.0)).expect("durations are finite");
    config.connection = with_rate(config.connection, settings.rate);
    let endpoint = Endpoint::bind(own_address(settings.address), config, Box::new(folder.counters_to_send()?))?;

    let (mut carried, mut until) = (0, tokio::time::Instant::now() + settings.patience);
    loop {
        let connection = endpoint.connect(&settings.peer, settings.address, FILES_PORT)?;
        let mut moved = 0;
        let sent = files::send_files(connection, paths, &settings.options, |now: Progress| {
            moved = now.done_bytes - now.resumed_bytes;
            progress(now);
        });
        let error = match sent.await {
            Ok(mut summary) => {
                summary.carried_bytes += carried;
                // All is placed and confirmed: that the other side may not know of the end changes nothing.
                let _ = tokio::time::timeout(LAST_WORDS, endpoint.finish()).await;
                return Ok(summary);
            }
            Err(error) => error,
        };
        if moved > 0 {
            until = tokio::time::Instant::now() + settings.patience;
        }
        carried += moved;
        let is_of_network = matches!(error, FilesError::Stream(_) | FilesError::Closed);
        if !is_of_network || tokio::time::Instant::now() + PAUSE >= until {
            return Err(error.into());
        }
        tracing::info!(%error, "trying again");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Any port, on the interface that leads there: to this machine, no other can send anything to it.
pub(crate) fn own_address(peer: SocketAddr) -> SocketAddr {
    match (peer, peer.ip().is_loopback()) {
        (SocketAddr::V4(_), true) => (Ipv4Addr::LOCALHOST, 0).into(),
        (SocketAddr::V4(_), false) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        (SocketAddr::V6(_), true) => (Ipv6Addr::LOCALHOST, 0).into(),
        (SocketAddr::V6(_), false) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

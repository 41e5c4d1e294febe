//! Sends files to a host.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::files::{self, FilesError, Progress, SendOptions, Summary};
use crate::io::Endpoint;
use crate::mux::Trust;
use crate::seal::PublicKey;
use crate::settings::{PathSettings, own_address, set_patience};
use crate::state::StateFolder;

use super::{FILES_PORT, LAST_WORDS, TransferError};

/// Where files go, and how.
#[derive(Clone, Debug)]
pub struct SendSettings {
    /// The key of the receiver.
    pub peer: PublicKey,
    /// Where it is.
    pub address: SocketAddr,
    /// What packets are like.
    pub path: PathSettings,
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
    let mut config = settings.path.endpoint(folder, Trust::Keys([].into()))?;
    // Before anything is sent: a name that was mistyped is found at once, also when nobody answers.
    for path in paths {
        std::fs::symlink_metadata(path).map_err(|error| FilesError::local("send", path, error))?;
    }
    set_patience(&mut config.connection, settings.patience);
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

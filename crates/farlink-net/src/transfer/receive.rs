//! Receives files from trusted hosts.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use farlink_core::protocol::aerotp::AcceptorLimits;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::files::{self, FilesError, Progress, ReceiveOptions, Summary};
use crate::io::{Connection, Endpoint};
use crate::mux::Trust;
use crate::settings::{PathSettings, set_patience};
use crate::state::{StateFolder, Trusted};

use super::turn::Turn;
use super::{FILES_PORT, LAST_WORDS, TransferError};

/// Where files come in, and how.
#[derive(Clone, Debug)]
pub struct ReceiveSettings {
    /// The address of the socket.
    pub listen: SocketAddr,
    /// What packets are like.
    pub path: PathSettings,
    /// What is taken.
    pub options: ReceiveOptions,
    /// Whether each host has a folder of its own, by its name, below the folder of files.
    pub by_host: bool,
    /// Whether it ends after one transfer that was complete.
    pub once: bool,
    /// How long a silent host is waited for, 1 s at least, as through an outage. Files that did not come whole are kept for its next try.
    pub patience: Duration,
}

/// What happens while files are received.
#[derive(Debug)]
pub enum Received {
    /// The socket is open at this address.
    Listening(SocketAddr),
    /// How far a transfer of a host is.
    Progress(Arc<str>, Progress),
    /// A transfer of a host has ended. After a failure of the network the host may go on with it.
    Ended(Arc<str>, Result<Summary, FilesError>),
}

/// Transfers tell their progress through a queue of this length; while it is full they wait.
const QUEUE: usize = 64;

/// Receives files of trusted hosts into `directory`, until `tell` has been told of a complete transfer if `once`, otherwise for ever.
/// Several transfers into one folder wait for each other. One whose sender is silent and does not answer ends if another one waits: after
/// 5 s if that is of the same host, whose sender was started again; otherwise after 60 s, or a fifth of the patience, or the longest silence
/// that it has come back from, whichever is longest. Four round trips are added. What it has brought is kept for its next try.
///
/// # Errors
/// If a file of this host cannot be used, or the socket cannot be opened or fails.
pub async fn receive(
    folder: &StateFolder,
    directory: &Path,
    settings: &ReceiveSettings,
    mut tell: impl FnMut(Received),
) -> Result<(), TransferError> {
    let trusted = Arc::new(folder.trusted()?);
    let mut config = settings.path.endpoint(folder, Trust::Keys(trusted.keys()))?;
    set_patience(&mut config.connection, settings.patience);
    let counters = Box::new(folder.counters_to_answer()?);
    let endpoint = Endpoint::bind(settings.listen, config, counters)?;
    endpoint.listen(FILES_PORT, AcceptorLimits::default())?;
    tell(Received::Listening(endpoint.local_addr()));

    let (events, mut told) = mpsc::channel(QUEUE);
    let mut transfers = JoinSet::new();
    let mut busy: HashMap<PathBuf, Arc<Turn>> = HashMap::new();
    loop {
        tokio::select! {
            accepted = endpoint.accept() => {
                let Some(connection) = accepted else { return Err(TransferError::SocketFailed) };
                let Some(name) = name_of(&connection, &trusted) else { continue };
                let place = if settings.by_host { directory.join(&*name) } else { directory.to_owned() };
                let turn = busy.entry(place.clone()).or_insert_with(|| Arc::new(Turn::new(settings.patience))).clone();
                transfers.spawn(one(connection, name, place, settings.options.clone(), turn, events.clone()));
            }
            Some(event) = told.recv() => {
                let is_complete = matches!(&event, Received::Ended(_, Ok(_)));
                tell(event);
                if is_complete && settings.once {
                    let _ = tokio::time::timeout(LAST_WORDS, endpoint.finish()).await;
                    return Ok(());
                }
            }
            Some(_) = transfers.join_next() => {}
        }
    }
}

fn name_of(connection: &Connection, trusted: &Trusted) -> Option<Arc<str>> {
    let (key, _) = connection.peer()?;
    trusted.name(&key).map(Arc::from)
}

/// One transfer.
#[tracing::instrument(name = "receive", skip_all, fields(from = &*name))]
async fn one(
    connection: Connection,
    name: Arc<str>,
    place: PathBuf,
    options: ReceiveOptions,
    turn: Arc<Turn>,
    events: mpsc::Sender<Received>,
) {
    let (turn, stream) = turn.wait(&name, connection).await;
    let progress = |progress| {
        // Progress that nobody has time for is of no interest any more.
        let _ = events.try_send(Received::Progress(name.clone(), progress));
    };
    let received = files::receive_files_in_turn(stream, &place, &options, progress, turn).await;
    tracing::info!(outcome = ?received.as_ref().map(|summary| summary.carried_bytes), "ended");
    let ended = Received::Ended(name.clone(), received);
    let _ = events.send(ended).await;
}

//! One transfer at a time into each folder, and when it gives way.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Mutex as Lock, OwnedMutexGuard, oneshot};

use crate::io::{Connection, Watch};

/// A transfer gives way to another one of its host once nothing has come from its sender for this long.
const SILENCE: Duration = Duration::from_secs(5);
/// A sender whose round trip is not known may be silent for so long without being gone.
const ROUND_TRIP: Duration = Duration::from_millis(50);
/// How often it is looked whether the present transfer is silent.
const LOOK: Duration = Duration::from_secs(1);

/// Whose turn it is to write into a folder.
#[derive(Debug, Default)]
pub(super) struct Turn {
    lock: Arc<Lock<()>>,
    present: Mutex<Option<Present>>,
}

/// The transfer whose turn it is, or was.
#[derive(Debug)]
struct Present {
    host: Arc<str>,
    watch: Watch,
    give_way: oneshot::Sender<()>,
}

impl Turn {
    /// Waits for the turn of a transfer. The guard ends it. The present transfer gives way if its sender is gone and this is its next
    /// one, as after a restart: otherwise the host would wait for as long as a silent sender is given.
    pub(super) async fn wait(&self, host: &Arc<str>, connection: Connection) -> (OwnedMutexGuard<()>, GivesWay) {
        let watch = connection.watch();
        let mut locked = std::pin::pin!(self.lock.clone().lock_owned());
        let guard = loop {
            match tokio::time::timeout(LOOK, &mut locked).await {
                Ok(guard) => break guard,
                Err(_) => self.look(host, &watch),
            }
        };
        let (give_way, asked) = oneshot::channel();
        *self.present() = Some(Present { host: host.clone(), watch, give_way });
        (guard, GivesWay { connection, asked: Some(asked), has_given_way: false })
    }

    fn look(&self, host: &Arc<str>, waiting: &Watch) {
        let mut present = self.present();
        let is_gone = |it: &mut Present| {
            let (Some(silence), Some(heard)) = (it.watch.silence(), waiting.silence()) else { return false };
            let round_trip = it.watch.round_trip().unwrap_or(ROUND_TRIP);
            it.host == *host && silence >= SILENCE && silence >= heard + 4 * round_trip
        };
        if let Some(gone) = present.take_if(is_gone) {
            tracing::info!(%host, "the host has begun another transfer and is silent in the present one, which ends");
            // A transfer that ended meanwhile does not listen any more.
            let _ = gone.give_way.send(());
        }
    }

    fn present(&self) -> std::sync::MutexGuard<'_, Option<Present>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stream of a transfer. It fails once the transfer has to give way.
#[derive(Debug)]
pub(super) struct GivesWay {
    connection: Connection,
    asked: Option<oneshot::Receiver<()>>,
    has_given_way: bool,
}

impl GivesWay {
    /// The connection, unless it has given way.
    fn connection(&mut self, cx: &mut Context<'_>) -> io::Result<Pin<&mut Connection>> {
        if let Some(asked) = &mut self.asked
            && let Poll::Ready(told) = Pin::new(asked).poll(cx)
        {
            (self.asked, self.has_given_way) = (None, told.is_ok());
            if self.has_given_way {
                self.connection.leave(); // nobody is there to hear its end
            }
        }
        if self.has_given_way {
            let why = "the host has begun another transfer, and nothing comes from it in this one";
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, why));
        }
        Ok(Pin::new(&mut self.connection))
    }
}

impl AsyncRead for GivesWay {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.connection(cx)?.poll_read(cx, out)
    }
}

impl AsyncWrite for GivesWay {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.connection(cx)?.poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection(cx)?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection(cx)?.poll_shutdown(cx)
    }
}

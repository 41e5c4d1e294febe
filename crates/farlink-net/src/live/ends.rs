//! The threads at both ends of a path, each in its network namespace, and their clock.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use farlink_core::Time;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::io::AsyncWriteExt;

use super::LiveError;
use super::plan::Traffic;
use crate::io::Timer;

/// The time since the beginning of a run, for all its threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch(Instant);

#[expect(clippy::disallowed_methods, reason = "who plays in real time has a clock")]
impl Stopwatch {
    pub(super) fn start() -> Self {
        Stopwatch(Instant::now())
    }

    pub(super) fn now(self) -> Time {
        Time::from_ps(u64::try_from(self.0.elapsed().as_nanos() * 1_000).unwrap_or(u64::MAX))
    }

    pub(super) fn passed(self) -> Duration {
        self.0.elapsed()
    }

    /// Waits until so much has passed, to some 0.1 ms.
    pub(super) async fn until(self, passed: Duration) {
        let left = passed.saturating_sub(self.passed());
        if !left.is_zero() {
            Timer::new().wait_for(left).await;
        }
    }
}

/// An end of the path: where its sockets are.
#[derive(Clone, Debug)]
pub struct EndPlace {
    /// The file of its network namespace; that of the process if there is none.
    pub namespace: Option<PathBuf>,
    /// The address of its sockets.
    pub address: IpAddr,
}

/// The present thread belongs to the namespace of an end from now on; sockets stay in the namespace in which they were made.
pub(super) fn enter(place: &EndPlace, end: &'static str) -> Result<(), LiveError> {
    let Some(namespace) = &place.namespace else { return Ok(()) };
    let failed = |error| LiveError::Namespace { end, error };
    let file = std::fs::File::open(namespace).map_err(failed)?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|error| failed(error.into()))
}

/// Bytes of one write of a bulk flow or a file.
const CHUNK: usize = 16 << 10;

/// Writes the traffic of a flow to a stream.
pub(super) async fn write_traffic(
    stream: &mut (impl AsyncWriteExt + Unpin),
    traffic: Traffic,
    watch: Stopwatch,
) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    match traffic {
        Traffic::Bulk => loop {
            stream.write_all(&zeros).await?;
        },
        Traffic::File { bytes } => {
            let mut left = bytes;
            while left > 0 {
                let now = left.min(CHUNK as u64) as usize;
                stream.write_all(&zeros[..now]).await?;
                left -= now as u64;
            }
            stream.flush().await
        }
        Traffic::Cbr { every, bytes, messages, last_bytes } => {
            let message = vec![0; bytes];
            let began = watch.passed();
            let mut number = 0;
            while messages.is_none_or(|all| u64::from(number) < all) {
                watch.until(began + every * number).await;
                number += 1;
                let now = if messages == Some(number.into()) { last_bytes } else { bytes };
                stream.write_all(&message[..now]).await?;
            }
            stream.flush().await
        }
    }
}

//! One transfer at a time into each folder, and when it gives way.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Mutex as Lock, OwnedMutexGuard, oneshot};
use tokio::time::Instant;

use crate::io::{Connection, Watch};

/// A transfer gives way to another one of its host once nothing has come from its sender for this long.
const SAME_HOST: Duration = Duration::from_secs(5);
/// And to one of another host after this long, or this part of the patience if that is longer, or as long as the sender was silent before.
const OTHER_HOST: Duration = Duration::from_secs(60);
const PART_OF_PATIENCE: u32 = 5;
/// So long before, both senders are asked to show that they are there, at each look.
const ASKED: Duration = Duration::from_secs(10);
/// The one that waits has to be there alone for so long: what kept both out of reach says nothing of either.
const ALONE: Duration = Duration::from_millis(2_500);
/// The round trip to a host that has begun another transfer, where it is not known.
const ROUND_TRIP: Duration = Duration::from_millis(50);
/// How often it is looked whether the present transfer is silent.
const LOOK: Duration = Duration::from_secs(1);

/// Whose turn it is to write into a folder.
#[derive(Debug)]
pub(super) struct Turn {
    lock: Arc<Lock<()>>,
    present: Mutex<Option<Present>>,
    /// The silence after which a transfer of one host gives way to one of another host.
    other_host: Duration,
}

/// The transfer whose turn it is, or was.
#[derive(Debug)]
struct Present {
    host: Arc<str>,
    watch: Watch,
    give_way: oneshot::Sender<()>,
}

/// State of two transfers, of which one waits for the other.
#[derive(Clone, Copy, Debug)]
struct Seen {
    is_same_host: bool,
    /// For how long nothing has come from the present sender, and for how long nothing had come from it before, at the most.
    silence: Duration,
    longest_silence: Duration,
    /// The round trip to it.
    round_trip: Option<Duration>,
    /// For how long nothing has come from the one that waits.
    waiting: Duration,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    There,
    /// Both are asked.
    Uncertain,
    Gone,
}

/// How long the sender that waits has been there alone.
#[derive(Debug, Default)]
struct Alone(Option<Instant>);

impl Turn {
    /// Nobody's turn. A silent sender is waited for with this patience.
    pub(super) fn new(patience: Duration) -> Self {
        Turn {
            lock: Arc::default(),
            present: Mutex::default(),
            other_host: OTHER_HOST.max(patience / PART_OF_PATIENCE),
        }
    }

    /// Waits for the turn of a transfer. The guard ends it. The present transfer gives way if its sender is gone and this one is there:
    /// otherwise it would wait for as long as a silent sender is given.
    pub(super) async fn wait(&self, host: &Arc<str>, connection: Connection) -> (OwnedMutexGuard<()>, GivesWay) {
        let watch = connection.watch();
        let mut locked = std::pin::pin!(self.lock.clone().lock_owned());
        let mut alone = Alone::default();
        let guard = loop {
            match tokio::time::timeout(LOOK, &mut locked).await {
                Ok(guard) => break guard,
                Err(_) => self.look(host, &watch, &mut alone),
            }
        };
        let (give_way, asked) = oneshot::channel();
        *self.present() = Some(Present { host: host.clone(), watch, give_way });
        (guard, GivesWay { connection, asked: Some(asked), has_given_way: false })
    }

    fn look(&self, host: &Arc<str>, waiting: &Watch, alone: &mut Alone) {
        let mut present = self.present();
        let Some(it) = &*present else { return };
        let (Some(silence), Some(longest_silence), Some(heard)) =
            (it.watch.silence(), it.watch.longest_silence(), waiting.silence())
        else {
            return;
        };
        let (is_same_host, round_trip) = (it.host == *host, it.watch.round_trip());
        let seen = Seen { is_same_host, silence, longest_silence, round_trip, waiting: heard };
        match alone.judge(Instant::now(), self.other_host, &seen) {
            Verdict::There => {}
            Verdict::Uncertain => {
                it.watch.ask();
                waiting.ask();
            }
            Verdict::Gone => {
                tracing::info!(present = %it.host, %host, "the present transfer is silent and ends, as another one waits");
                if let Some(gone) = present.take() {
                    // A transfer that ended meanwhile does not listen any more.
                    let _ = gone.give_way.send(());
                }
            }
        }
    }

    fn present(&self) -> std::sync::MutexGuard<'_, Option<Present>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alone {
    fn judge(&mut self, now: Instant, other_host: Duration, seen: &Seen) -> Verdict {
        let (least, unknown) = if seen.is_same_host {
            (SAME_HOST, 4 * ROUND_TRIP)
        } else {
            (other_host.max(seen.longest_silence), other_host)
        };
        let margin = seen.round_trip.map_or(unknown, |round_trip| 4 * round_trip);
        if seen.silence < LOOK || seen.silence + ASKED < least {
            self.0 = None;
            return Verdict::There;
        }
        if seen.waiting > 2 * LOOK + margin {
            self.0 = None;
            return Verdict::Uncertain;
        }
        let since = *self.0.get_or_insert(now);
        let is_gone = seen.silence >= least + margin && now.duration_since(since) >= ALONE + margin;
        if is_gone { Verdict::Gone } else { Verdict::Uncertain }
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
            let why = "nothing comes from the host any more, and another transfer into the same folder waits";
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use farlink_core::protocol::aerotp::AcceptorLimits;
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::timeout;

    use super::*;
    use crate::io::{Endpoint, EndpointConfig};
    use crate::mux::{MemoryCounters, MuxConfig, Trust};
    use crate::seal::StaticKey;

    const SECOND: Duration = Duration::from_secs(1);
    const PATIENCE: Duration = Duration::from_secs(300);

    /// How long the present sender is silent until it gives way, if both are heard as these say, at each second; `None` in 2 hours.
    fn gives_way(
        patience: Duration,
        seen: Seen,
        silence: impl Fn(u32) -> u32,
        waiting: impl Fn(u32) -> u32,
    ) -> Option<u32> {
        let (turn, mut alone, began) = (Turn::new(patience), Alone::default(), Instant::now());
        (0..7200).find(|&second| {
            let (silence, waiting) = (silence(second) * SECOND, waiting(second) * SECOND);
            let seen = Seen { silence, waiting, ..seen };
            alone.judge(began + second * SECOND, turn.other_host, &seen) == Verdict::Gone
        })
    }

    const SEEN: Seen = Seen {
        is_same_host: false,
        silence: Duration::ZERO,
        longest_silence: Duration::ZERO,
        round_trip: Some(Duration::from_millis(100)),
        waiting: Duration::ZERO,
    };

    #[test]
    fn a_silent_sender_gives_way_to_its_host_soon_and_to_others_later() {
        let after = |patience, seen| gives_way(patience, seen, |second| second, |_| 0);
        let of = |change: fn(&mut Seen)| {
            let mut seen = SEEN;
            change(&mut seen);
            seen
        };
        assert_eq!(after(PATIENCE, of(|it| it.is_same_host = true)), Some(6));
        assert_eq!(after(PATIENCE, SEEN), Some(61));
        assert_eq!(after(SECOND, SEEN), Some(61), "its patience ends it before");
        assert_eq!(after(7200 * SECOND, SEEN), Some(1441), "a fifth of a long patience");
        assert_eq!(
            after(PATIENCE, of(|it| it.longest_silence = 200 * SECOND)),
            Some(201),
            "it has come back after 200 s"
        );
        assert_eq!(after(PATIENCE, of(|it| it.round_trip = Some(20 * SECOND))), Some(140));
        assert_eq!(after(PATIENCE, of(|it| it.round_trip = None)), Some(120), "its handshake has not ended");
        assert_eq!(after(4 * 3600 * SECOND, of(|it| it.round_trip = None)), Some(5760), "an hour's round trip");
    }

    #[test]
    fn who_is_there_gives_way_to_nobody() {
        // It answers what it is asked, within 2 s, also if it sends nothing else for a minute.
        assert_eq!(gives_way(PATIENCE, SEEN, |second| second % 53, |_| 0), None);
        // The one that waits is not heard either, or is gone.
        assert_eq!(gives_way(PATIENCE, SEEN, |second| second, |second| second + 1), None);
        // Both are out of reach until second 3000, and both are heard then: the present one 2 s after the other.
        let there = |second: u32, from| if second < from { second } else { 0 };
        assert_eq!(gives_way(PATIENCE, SEEN, |second| there(second, 3002), |second| there(second, 3000)), None);
    }

    /// A sender that is gone for good keeps another host's transfer waiting no longer.
    #[tokio::test]
    async fn a_silent_sender_gives_way_to_another_host() {
        let keys = [0; 3].map(|_| StaticKey::generate());
        let ends = [0, 1, 2].map(|at| {
            let trust = Trust::Keys(keys.iter().map(StaticKey::public).collect());
            let config = EndpointConfig::new(MuxConfig { trust, ..MuxConfig::new(keys[at].clone()) });
            Endpoint::bind((Ipv4Addr::LOCALHOST, 0).into(), config, Box::new(MemoryCounters::default())).unwrap()
        });
        let [receiver, gone, other] = &ends;
        receiver.listen(1, AcceptorLimits::default()).unwrap();
        let turn = Turn { other_host: 3 * SECOND, ..Turn::new(PATIENCE) };
        let mut open = Vec::new();
        let mut waits = Vec::new();
        for sender in [gone, other] {
            let mut opened = sender.connect(&receiver.public_key(), receiver.local_addr(), 1).unwrap();
            opened.write_all(b"files").await.unwrap();
            open.push(opened);
            waits.push(timeout(10 * SECOND, receiver.accept()).await.unwrap().unwrap());
        }
        let (waiting, first) = (waits.pop().unwrap(), waits.pop().unwrap());
        let (guard, mut first) = turn.wait(&"gone".into(), first).await;
        let host: Arc<str> = "other".into();
        let mut second = std::pin::pin!(turn.wait(&host, waiting));
        // While it is there, it keeps its turn, though it sends nothing.
        assert!(timeout(5 * SECOND, &mut second).await.is_err());
        first.write_all(b"go on").await.unwrap();
        gone.close().await;
        let transfer = async {
            while first.write_all(b"more").await.is_ok() {
                tokio::time::sleep(SECOND / 10).await;
            }
            drop(guard);
        };
        timeout(15 * SECOND, async { tokio::join!(transfer, second) }).await.unwrap();
    }
}

//! Custody of a gateway: all its streams, who may bring them, and what is given up when the store is full.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::io::{Connection, Endpoint, unix_us};
use crate::seal::PublicKey;

use super::counts::Counts;
use super::folder::{self, StoreError, StoreFolder};
use super::frame::{Frame, Refusal};
use super::link::Link;
use super::node::{Next, Node, Shared, Shown, Told};
use super::store::StreamStore;
use super::stream::{Label, StreamId};
use super::usage::Usage;

/// What custody may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    /// Of all streams on the disk, in bytes.
    pub(crate) bytes: u64,
    /// Held of one stream, in bytes.
    pub(crate) stream_bytes: u64,
    /// Streams.
    pub(crate) streams: usize,
    /// A stream of which nothing comes or goes for so long is given up when there is no room.
    pub(crate) expires: Duration,
}

/// Who sends to which sink, and where the next node is.
pub(crate) trait Routes: Send + Sync {
    /// Where the next node to a sink is; `None` if no host may send there, or nobody knows where it is.
    fn next(&self, label: &Label) -> Option<(PublicKey, SocketAddr)>;

    /// Whether a host may send to a sink.
    fn is_allowed(&self, from: &PublicKey, label: &Label) -> bool;
}

/// Custody of a gateway.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    routes: Arc<dyn Routes>,
    next: Next,
    bounds: Mutex<Bounds>,
    streams: Mutex<BTreeMap<StreamId, Entry>>,
    /// Streams of which no whole record says where they go, with the numbers of their files.
    unknown: Mutex<BTreeMap<StreamId, Vec<u64>>>,
    /// Held as long as the files are used.
    _folder: StoreFolder,
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("streams", &self.streams.lock().map(|it| it.len())).finish_non_exhaustive()
    }
}

struct Entry {
    owner: PublicKey,
    label: Label,
    node: UnboundedSender<Told>,
    shown: Arc<Shown>,
}

/// Connections may take so long to say what they are.
const OPENING: Duration = Duration::from_secs(30);
/// What is expired is looked for so often.
const LOOK: Duration = Duration::from_secs(1);

impl Relay {
    /// Opens the store, and goes on with the streams that it has. `endpoint` takes connections to [`PORT`](super::PORT), which are passed to [`take`](Self::take).
    pub(crate) fn start(
        folder: &Path,
        endpoint: &Endpoint,
        bounds: Bounds,
        routes: Arc<dyn Routes>,
    ) -> Result<Arc<Self>, StoreError> {
        let store = StoreFolder::open(folder)?;
        let shared = Arc::new(Shared {
            endpoint: super::near_reliable(endpoint),
            medium: store.medium.clone(),
            usage: Arc::new(Usage::new(bounds.bytes)),
            stream_bytes: AtomicU64::new(bounds.stream_bytes),
            shortage: tokio::sync::Notify::new(),
            counts: Counts::default(),
        });
        let of_label = routes.clone();
        let relay = Arc::new(Relay {
            shared,
            routes,
            next: Arc::new(move |label| of_label.next(label)),
            bounds: Mutex::new(bounds),
            streams: Mutex::new(BTreeMap::new()),
            unknown: Mutex::new(BTreeMap::new()),
            _folder: store,
        });
        let found = folder::streams(&*relay.shared.medium).map_err(|error| StoreError::unusable(folder, &error))?;
        for (stream, numbers) in found {
            relay.recover(stream, numbers, None).map_err(|error| StoreError::unusable(folder, &error))?;
        }
        tokio::spawn(expire(Arc::downgrade(&relay)));
        Ok(relay)
    }

    /// Goes on with a stream of the disk.
    fn recover(
        self: &Arc<Self>,
        stream: StreamId,
        numbers: Vec<u64>,
        known: Option<(PublicKey, Label)>,
    ) -> io::Result<()> {
        let (medium, usage) = (self.shared.medium.clone(), self.shared.usage.clone());
        let recovered = match StreamStore::recover(medium, usage, stream, numbers.clone(), known) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::error!(%stream, %error, "a stream in custody waits until its source asks for it");
                self.unknown().insert(stream, numbers);
                return Ok(());
            }
            recovered => recovered?,
        };
        recovered.damage.iter().for_each(|what| tracing::error!(%stream, "the store of custody is damaged: {what}"));
        let (held, received) = (recovered.journal.held.bytes(), recovered.journal.received);
        tracing::info!(%stream, held, received, finished = recovered.is_finished, "a stream in custody goes on");
        let (owner, label) = (recovered.store.owner(), recovered.store.label().clone());
        let shown = Arc::new(Shown::default());
        let node = Node::recovered(self.shared.clone(), self.next.clone(), shown.clone(), stream, recovered);
        self.begin(&mut self.streams(), stream, (owner, label), shown, node);
        Ok(())
    }

    fn begin(
        self: &Arc<Self>,
        streams: &mut BTreeMap<StreamId, Entry>,
        stream: StreamId,
        (owner, label): (PublicKey, Label),
        shown: Arc<Shown>,
        node: Node,
    ) -> UnboundedSender<Told> {
        let (told, mailbox) = unbounded_channel();
        streams.insert(stream, Entry { owner, label, node: told.clone(), shown });
        let relay = Arc::downgrade(self);
        tokio::spawn(async move {
            node.run(mailbox).await;
            if let Some(relay) = relay.upgrade() {
                relay.streams().remove(&stream);
            }
        });
        told
    }

    /// Takes a connection of a previous node, and what it brings.
    pub(crate) async fn take(self: Arc<Self>, connection: Connection) {
        let Some((from, _)) = connection.peer() else { return };
        let mut link = Link::new(connection);
        let Ok(Ok(Frame::Open { stream, label })) = tokio::time::timeout(OPENING, link.frame()).await else { return };
        match self.admit(from, stream, label) {
            // A node that is just ending drops it, and the previous one connects again.
            Ok(node) => drop(node.send(Told::Incoming(link))),
            Err(why) => {
                tracing::warn!(%stream, %from, why = why.text(), "a stream in custody was not taken");
                link.put(&Frame::Refused(why));
                let _ = tokio::time::timeout(OPENING, link.flush()).await;
            }
        }
    }

    /// The node of a stream, which may be new.
    fn admit(
        self: &Arc<Self>,
        from: PublicKey,
        stream: StreamId,
        label: Label,
    ) -> Result<UnboundedSender<Told>, Refusal> {
        if !self.routes.is_allowed(&from, &label) {
            return Err(Refusal::NotAllowed);
        }
        if let Some(numbers) = self.unknown().remove(&stream)
            && let Err(error) = self.recover(stream, numbers, Some((from, label.clone())))
        {
            tracing::error!(%stream, %error, "a stream in custody cannot be read");
            return Err(Refusal::Other);
        }
        let mut streams = self.streams();
        if let Some(known) = streams.get(&stream) {
            let is_same = known.owner == from && known.label == label;
            return if is_same { Ok(known.node.clone()) } else { Err(Refusal::NotYours) };
        }
        if streams.len() >= self.bounds().streams {
            self.shared.shortage.notify_one();
            return Err(Refusal::Full);
        }
        let (medium, usage) = (self.shared.medium.clone(), self.shared.usage.clone());
        let store = StreamStore::new(medium, usage, stream, (from, label.clone()));
        let shown = Arc::new(Shown::default());
        let node = Node::new(self.shared.clone(), self.next.clone(), shown.clone(), stream, store);
        Ok(self.begin(&mut streams, stream, (from, label), shown, node))
    }

    /// From now on other bounds.
    pub(crate) fn set_bounds(&self, bounds: Bounds) {
        *self.bounds.lock().unwrap_or_else(PoisonError::into_inner) = bounds;
        self.shared.usage.set_most(bounds.bytes);
        self.shared.stream_bytes.store(bounds.stream_bytes, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Streams, bytes that they hold, and bytes of the disk.
    pub(crate) fn present(&self) -> (u64, u64, u64) {
        let streams = self.streams();
        let held = streams.values().map(|it| it.shown.held_bytes.load(Ordering::Relaxed)).sum();
        (streams.len() as u64, held, self.shared.usage.taken())
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<StreamId, Entry>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown(&self) -> MutexGuard<'_, BTreeMap<StreamId, Vec<u64>>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bounds(&self) -> Bounds {
        *self.bounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up the stream that has been silent for longest, if that is long enough.
    fn give_up_oldest(&self) {
        let expires_us = self.bounds().expires.as_micros() as u64;
        let now = unix_us();
        let streams = self.streams();
        let age = |it: &Entry| now.saturating_sub(it.shown.active_us.load(Ordering::Relaxed));
        let Some((stream, oldest)) =
            streams.iter().max_by_key(|(_, it)| age(it)).filter(|(_, it)| age(it) >= expires_us)
        else {
            return;
        };
        let held = oldest.shown.held_bytes.load(Ordering::Relaxed);
        let (label, silent_s) = (&oldest.label, age(oldest) / 1_000_000);
        tracing::warn!(%stream, %label, held, silent_s, "a stream in custody is given up, as the store is full: what is held of it is lost");
        self.shared.counts.given_up_total.add(1);
        let _ = oldest.node.send(Told::GiveUp);
        oldest.shown.active_us.store(now, Ordering::Relaxed); // until it is gone
    }

    /// Forgets streams that were passed on and for which nobody asks any more.
    fn forget_finished(&self) {
        let expires_us = self.bounds().expires.as_micros() as u64;
        let now = unix_us();
        for it in self.streams().values().filter(|it| it.shown.is_finished.load(Ordering::Relaxed)) {
            if now.saturating_sub(it.shown.active_us.load(Ordering::Relaxed)) >= expires_us {
                let _ = it.node.send(Told::GiveUp);
            }
        }
    }
}

/// Makes room when there is none, at the expense of what has expired.
async fn expire(relay: std::sync::Weak<Relay>) {
    loop {
        let Some(shared) = relay.upgrade().map(|relay| relay.shared.clone()) else { return };
        let is_short = tokio::time::timeout(LOOK, shared.shortage.notified()).await.is_ok();
        let Some(relay) = relay.upgrade() else { return };
        relay.forget_finished();
        if is_short {
            relay.give_up_oldest();
            drop(relay);
            // The one that goes makes room before the next one has to.
            tokio::time::sleep(LOOK).await;
        }
    }
}

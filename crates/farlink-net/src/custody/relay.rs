//! Custody of a gateway: all its streams, who may bring them, and what is given up when the store is full.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::io::{Connection, Endpoint};
use crate::seal::PublicKey;

use super::counts::Counts;
use super::folder::{self, StoreError, StoreFolder};
use super::frame::{Frame, Refusal};
use super::link::Link;
use super::node::{Next, Node, Shared, Shown, Told};
use super::store::StreamStore;
use super::stream::{Label, StreamId};
use super::usage::Usage;

/// Limits of custody.
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

/// Which host may send to which sink, and where the next node is.
pub(crate) trait Routes: Send + Sync {
    /// Where the next node to a sink is; `None` if no host may send there, or its address is not known.
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
    is_stopping: AtomicBool,
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
/// Room is made so often at most.
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
            started: Instant::now(),
        });
        let of_label = routes.clone();
        let relay = Arc::new(Relay {
            shared,
            routes,
            next: Arc::new(move |label| of_label.next(label)),
            bounds: Mutex::new(bounds),
            streams: Mutex::new(BTreeMap::new()),
            unknown: Mutex::new(BTreeMap::new()),
            is_stopping: AtomicBool::new(false),
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
        // Its data is kept or comes again: the end of the program need not wait for a previous node, which may be gone.
        link.leave();
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
        if self.is_stopping.load(Ordering::Relaxed) {
            return Err(Refusal::Full);
        }
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

    /// Ends all connections, and takes nothing more. Everything stays on the disk.
    pub(crate) fn stop(&self) {
        let streams = self.streams();
        self.is_stopping.store(true, Ordering::Relaxed);
        for it in streams.values() {
            let _ = it.node.send(Told::Stop);
        }
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

    /// Makes room, at the expense of what has expired: of streams that were passed on, otherwise of the one that has been silent for longest.
    fn make_room(&self) {
        let expires_us = self.bounds().expires.as_micros() as u64;
        let now = self.shared.now_us();
        let streams = self.streams();
        let age = |it: &Entry| now.saturating_sub(it.shown.active_us.load(Ordering::Relaxed));
        let is_finished = |it: &Entry| it.shown.is_finished.load(Ordering::Relaxed);
        let (finished, others): (Vec<_>, Vec<_>) =
            streams.iter().filter(|(_, it)| age(it) >= expires_us).partition(|(_, it)| is_finished(it));
        for (stream, it) in &finished {
            tracing::info!(%stream, label = %it.label, "a stream that was passed on is forgotten, though nobody has said that it may be: there is no room");
            let _ = it.node.send(Told::Forget);
        }
        let Some((stream, oldest)) = others.into_iter().max_by_key(|(_, it)| age(it)).filter(|_| finished.is_empty())
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
}

/// Makes room when there is none, at the expense of what has expired.
async fn expire(relay: std::sync::Weak<Relay>) {
    loop {
        let Some(shared) = relay.upgrade().map(|relay| relay.shared.clone()) else { return };
        let is_short = tokio::time::timeout(LOOK, shared.shortage.notified()).await.is_ok();
        let Some(relay) = relay.upgrade().filter(|_| is_short) else { continue };
        relay.make_room();
        drop(relay);
        // The one that goes makes room before the next one has to.
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::folder::StoreFolder;
    use super::super::tests::{BOUNDS, Nowhere, endpoints, label};
    use super::*;
    use bytes::Bytes;
    use farlink_core::gateway::Store;

    /// Events for the log.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Log {
        fn begin(&self) -> tracing::subscriber::DefaultGuard {
            let log = self.clone();
            let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone());
            tracing::subscriber::set_default(subscriber.finish())
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    async fn seconds(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    const FROM: PublicKey = PublicKey::new([7; 32]);

    /// Places of streams are given to new ones only when there is none, at the expense of those that are expired, the oldest first; and
    /// that is said.
    #[tokio::test(start_paused = true)]
    async fn the_oldest_expired_stream_goes_first() {
        let (log, folder) = (Log::default(), tempfile::tempdir().unwrap());
        let _guard = log.begin();
        let [hub, _] = endpoints();
        let bounds = Bounds { streams: 3, ..BOUNDS };
        let relay = Relay::start(&folder.path().join("store"), &hub, bounds, Arc::new(Nowhere)).unwrap();
        let ids = [1, 2, 3, 4, 5, 6].map(|n| StreamId::from([n; 16]));
        let admit = |n: usize| relay.admit(FROM, ids[n], label()).err();
        let there = || relay.streams().keys().map(|it| it.as_bytes()[0]).collect::<Vec<_>>();
        // The second one in age has the lowest number, so that order of numbers is not order of age.
        for n in [1, 0, 2] {
            assert_eq!(admit(n), None);
            seconds(10).await;
        }
        assert_eq!(admit(3), Some(Refusal::Full));
        seconds(60).await; // 90 s: none is expired
        assert_eq!((there(), relay.counts().given_up_total.get()), (vec![1, 2, 3], 0));
        seconds(200).await; // all are, and there was room enough as nobody asked
        assert_eq!(there(), [1, 2, 3]);
        for (new, left) in [(3, vec![1, 3, 4]), (4, vec![3, 4, 5]), (5, vec![4, 5, 6])] {
            assert_eq!(admit(new), Some(Refusal::Full));
            seconds(3).await;
            assert_eq!(admit(new), None);
            assert_eq!(there(), left);
        }
        assert_eq!(admit(0), Some(Refusal::Full), "those that are new are not expired");
        seconds(3).await;
        assert_eq!(admit(0), Some(Refusal::Full));
        assert_eq!(relay.counts().given_up_total.get(), 3);
        let text = log.text();
        let said: Vec<_> = text.lines().filter(|line| line.contains("is given up, as the store is full")).collect();
        assert_eq!(said.len(), 3, "{text}");
        for (line, number) in said.iter().zip([2, 1, 3]) {
            let stream = format!("stream={}", ids[number - 1]);
            assert!(line.contains(&stream) && line.contains("label=shore") && line.contains("silent_s=2"), "{line}");
        }
    }

    /// A node that was away for long and asks again is told that there is nothing to do, as long as there is room. `[T18]`
    #[tokio::test(start_paused = true)]
    async fn what_was_passed_on_is_remembered_as_long_as_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let [finished, other] = [1, 2].map(|n| StreamId::from([n; 16]));
        let store_folder = StoreFolder::open(&path).unwrap();
        let usage = Arc::new(Usage::new(1 << 20));
        let mut store = StreamStore::new(store_folder.medium.clone(), usage, finished, (FROM, label()));
        store.put(0, Bytes::from_static(b"passed on")).unwrap();
        store.put_end(9).unwrap();
        store.release(9).unwrap();
        store.finish().unwrap();
        store.commit().unwrap().run().unwrap();
        drop((store, store_folder));
        let log = Log::default();
        let _guard = log.begin();
        let [hub, _] = endpoints();
        let bounds = Bounds { streams: 1, ..BOUNDS };
        let relay = Relay::start(&path, &hub, bounds, Arc::new(Nowhere)).unwrap();
        seconds(2_000).await;
        assert_eq!(relay.present().0, 1);
        assert_eq!(relay.admit(FROM, other, label()).err(), Some(Refusal::Full));
        seconds(3).await;
        assert_eq!(relay.admit(FROM, other, label()).err(), None);
        assert_eq!(relay.counts().given_up_total.get(), 0, "nothing was lost");
        let text = log.text();
        assert!(
            text.contains("is forgotten, though nobody has said that it may be") && !text.contains("given up"),
            "{text}"
        );
    }
}

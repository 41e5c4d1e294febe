//! One stream at a gateway: takes it from the previous node, keeps it, acknowledges what is on the disk, and passes it on.
//! `[N1]` to `[N6]`

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use farlink_core::gateway::Gateway;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::io::Endpoint;
use crate::seal::PublicKey;

use super::counts::Counts;
use super::frame::{Frame, Refusal};
use super::link::{Link, LinkEvent, event_of};
use super::medium::Medium;
use super::outgoing::{Outgoing, Progress};
use super::store::{Commit, Durable, Recovered, StreamStore, is_full};
use super::stream::{Label, StreamId};
use super::usage::Usage;

/// After the store has failed or was full, it is tried again so much later.
const AGAIN: Duration = Duration::from_millis(500);
/// The longest pause between attempts to recover a stream.
const LONGEST_AGAIN: Duration = Duration::from_secs(60);

/// State that the nodes of all streams share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Connections that it opens are near-reliable.
    pub(super) endpoint: Endpoint,
    pub(super) medium: Arc<dyn Medium>,
    pub(super) usage: Arc<Usage>,
    /// A stream stops being read when so much of it is held.
    pub(super) stream_bytes: AtomicU64,
    /// Tells that there was no room.
    pub(super) shortage: tokio::sync::Notify,
    pub(super) counts: Counts,
    pub(super) started: Instant,
}

impl Shared {
    /// The time since the gateway was started, in microseconds: a wall clock that jumps must not make streams old.
    pub(super) fn now_us(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }
}

/// Where the next node is.
pub(super) type Next = Arc<dyn Fn(&Label) -> Option<(PublicKey, SocketAddr)> + Send + Sync>;

/// Commands to a node.
#[derive(Debug)]
pub(super) enum Told {
    /// The previous node has a connection, and has said which stream it is.
    Incoming(Link),
    /// Gives the stream up.
    GiveUp,
    /// The stream was passed on, and its source will not ask for it again.
    Forget,
    /// Ends, and leaves everything on the disk.
    Stop,
}

/// Public state of a node.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// When something last came or was kept by the next node, in microseconds since the gateway was started.
    pub(super) active_us: AtomicU64,
    /// Whether the next node has everything.
    pub(super) is_finished: std::sync::atomic::AtomicBool,
    pub(super) held_bytes: AtomicU64,
}

/// The node of a stream.
pub(super) struct Node {
    shared: Arc<Shared>,
    next: Next,
    shown: Arc<Shown>,
    stream: StreamId,
    gateway: Gateway<StreamStore>,
    incoming: Option<Link>,
    /// Position that was reported to the previous node over this connection.
    told: Option<Durable>,
    /// A frame for which there was no room.
    pending: Option<Frame>,
    /// Whether there was no room for the last frame.
    is_short: bool,
    try_again: Option<Instant>,
    outgoing: Outgoing,
    commit: Option<JoinHandle<(Commit, io::Result<()>)>>,
    /// The previous node does not come back.
    is_forgotten: bool,
    refused: Option<Refusal>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Passing,
    /// The next node has everything, which is being written down.
    Finishing,
    /// It is written down. The previous node may still ask.
    Finished,
    /// The files are being removed.
    Removing,
}

/// Why a node stops for a while: its store has failed.
struct Failed(io::Error);

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed(error)
    }
}

impl Node {
    pub(super) fn new(
        shared: Arc<Shared>,
        next: Next,
        shown: Arc<Shown>,
        stream: StreamId,
        store: StreamStore,
    ) -> Self {
        let buffer = shared.stream_bytes.load(Ordering::Relaxed);
        let label = store.label().clone();
        Self::with(shared, next, shown, stream, Gateway::new(store, buffer), label)
    }

    /// A stream that was found on the disk.
    pub(super) fn recovered(
        shared: Arc<Shared>,
        next: Next,
        shown: Arc<Shown>,
        stream: StreamId,
        recovered: Recovered,
    ) -> Self {
        let buffer = shared.stream_bytes.load(Ordering::Relaxed);
        let label = recovered.store.label().clone();
        let gateway = Gateway::recovered(recovered.store, buffer, recovered.journal);
        shown.is_finished.store(recovered.is_finished, Ordering::Relaxed);
        let phase = if recovered.is_finished { Phase::Finished } else { Phase::Passing };
        Node { phase, ..Self::with(shared, next, shown, stream, gateway, label) }
    }

    fn with(
        shared: Arc<Shared>,
        next: Next,
        shown: Arc<Shown>,
        stream: StreamId,
        gateway: Gateway<StreamStore>,
        label: Label,
    ) -> Self {
        let outgoing = Outgoing::new(shared.endpoint.clone(), stream, label);
        shown.active_us.store(shared.now_us(), Ordering::Relaxed);
        Node {
            shared,
            next,
            shown,
            stream,
            gateway,
            incoming: None,
            told: None,
            pending: None,
            try_again: None,
            outgoing,
            commit: None,
            is_forgotten: false,
            refused: None,
            is_short: false,
            phase: Phase::Passing,
        }
    }

    /// Runs until the stream is forgotten or given up.
    pub(super) async fn run(mut self, mut mailbox: UnboundedReceiver<Told>) {
        loop {
            match self.step(&mut mailbox).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(Failed(error)) => {
                    let Some(again) = self.restart(error, &mut mailbox).await else { return };
                    self = again;
                }
            }
        }
    }

    /// Does what can be done, and waits for what happens next. Returns whether the node goes on.
    async fn step(&mut self, mailbox: &mut UnboundedReceiver<Told>) -> Result<bool, Failed> {
        self.take_pending()?;
        if self.phase == Phase::Passing {
            let label = self.gateway.store_mut().label().clone();
            let next = self.next.clone();
            self.outgoing.advance(&mut self.gateway, || next(&label))?;
            if self.gateway.is_complete() {
                self.finish()?;
            }
        }
        self.begin_commit();
        if self.commit.is_none() && matches!(self.phase, Phase::Finishing | Phase::Removing) {
            return Ok(self.on_written_down().await);
        }
        if self.gateway.store_mut().is_short() && self.try_again.is_none() {
            self.try_again = Some(Instant::now() + AGAIN);
        }
        self.tell_kept();
        self.shown.held_bytes.store(self.gateway.held_bytes(), Ordering::Relaxed);
        let is_passing = self.phase == Phase::Passing;
        let wants_frame = !is_passing || (self.pending.is_none() && self.gateway.room() > 0);
        let try_again = self.try_again;
        tokio::select! {
            told = mailbox.recv() => match told {
                Some(Told::Incoming(link)) => {
                    (self.incoming, self.told) = (Some(link), None);
                    // Data that was still in the old connection comes again over the new one.
                    (self.pending, self.try_again) = (None, None);
                    self.gateway.on_incoming(0);
                    self.note_activity();
                }
                Some(Told::GiveUp) => self.give_up()?,
                Some(Told::Forget) => self.forget(),
                Some(Told::Stop) | None => {
                    self.outgoing.leave();
                    return Ok(false);
                }
            },
            event = event_of(&mut self.incoming, wants_frame) => match event {
                Ok(LinkEvent::Written) => {}
                Ok(LinkEvent::Frame(frame)) => self.on_frame(frame)?,
                Err(error) => {
                    tracing::debug!(stream = %self.stream, %error, "the connection to the previous node is over");
                    self.incoming = None;
                }
            },
            event = self.outgoing.event(), if is_passing => {
                match self.outgoing.on_event(event, &mut self.gateway)? {
                    Progress::None => {}
                    Progress::Kept => {
                        self.refused = None;
                        self.note_activity();
                    }
                    Progress::Refused(why) if self.refused != Some(why) => {
                        self.refused = Some(why);
                        tracing::warn!(stream = %self.stream, why = why.text(), "a stream in custody is not taken; it is kept and offered again");
                    }
                    Progress::Refused(_) => {}
                }
            }
            (commit, result) = committed(&mut self.commit) => {
                self.commit = None;
                result?;
                self.gateway.store_mut().on_committed(&commit);
            }
            () = sleep_until(try_again.unwrap_or_else(Instant::now)), if try_again.is_some() => self.try_again = None,
        }
        Ok(true)
    }

    fn note_activity(&self) {
        self.shown.active_us.store(self.shared.now_us(), Ordering::Relaxed);
    }

    fn on_frame(&mut self, frame: Frame) -> Result<(), Failed> {
        match frame {
            Frame::Data { .. } | Frame::End { .. } if self.phase != Phase::Passing => self.told = None,
            Frame::Data { .. } | Frame::End { .. } => {
                self.note_activity();
                if self.contradicts_end(&frame) {
                    tracing::warn!(stream = %self.stream, end = self.gateway.received(), "a stream in custody does not end where it did, or before what came of it: it is another one");
                    self.refuse(Refusal::Other);
                } else {
                    self.pending = Some(frame);
                    self.take_pending()?;
                }
            }
            Frame::Forget => self.forget(),
            Frame::Open { .. } | Frame::Kept { .. } | Frame::Refused(_) => self.incoming = None,
        }
        Ok(())
    }

    /// Whether there are bytes behind the end. `[T10]`, `[T16]`
    fn contradicts_end(&self, frame: &Frame) -> bool {
        let (received, has_end) = (self.gateway.received(), self.gateway.has_end());
        match frame {
            Frame::Data { position, data } => has_end && position + data.len() as u64 > received,
            Frame::End { position } => *position < received || (has_end && *position > received),
            _ => false,
        }
    }

    /// The previous node closes a connection that is refused.
    fn refuse(&mut self, why: Refusal) {
        if let Some(link) = &mut self.incoming {
            link.put(&Frame::Refused(why));
        }
    }

    /// The previous node does not come back.
    fn forget(&mut self) {
        self.is_forgotten = true;
        if self.phase == Phase::Finished {
            self.remove();
        }
    }

    /// Puts what has come into the store, or keeps it until there is room. `[N3]`
    fn take_pending(&mut self) -> Result<(), Failed> {
        if self.try_again.is_some() {
            return Ok(());
        }
        let Some(frame) = self.pending.take() else { return Ok(()) };
        let taken = match &frame {
            Frame::Data { position, data } => self.receive(*position, data.clone()),
            Frame::End { position } => self.receive_end(*position),
            _ => Ok(()),
        };
        match taken {
            Err(error) if is_full(&error) => {
                if !std::mem::replace(&mut self.is_short, true) {
                    self.shared.counts.full_total.add(1);
                    tracing::warn!(stream = %self.stream, %error, "the store of custody has no room: nothing more is acknowledged until it has");
                }
                self.pending = Some(frame);
                self.try_again = Some(Instant::now() + AGAIN);
                self.shared.shortage.notify_one();
                Ok(())
            }
            result => {
                self.is_short = false;
                Ok(result?)
            }
        }
    }

    fn receive(&mut self, position: u64, data: Bytes) -> io::Result<()> {
        let received = self.gateway.received();
        self.gateway.receive(position, data)?;
        if position > received {
            tracing::warn!(stream = %self.stream, from = received, to = position, "bytes of a stream do not come any more: who had them has lost or given them up");
        }
        Ok(())
    }

    fn receive_end(&mut self, position: u64) -> io::Result<()> {
        let received = self.gateway.received();
        if self.gateway.has_end() {
            self.told = None; // it is told once more that the end is here
            return Ok(());
        }
        if let Some(lost) = self.gateway.skip(farlink_core::gateway::Span { from: received, to: position }) {
            tracing::warn!(stream = %self.stream, from = lost.from, to = lost.to, "bytes of a stream do not come any more: who had them has lost or given them up");
        }
        self.gateway.on_end()
    }

    /// One commit at a time: what comes meanwhile goes into the next one.
    fn begin_commit(&mut self) {
        if self.commit.is_none()
            && let Some(commit) = self.gateway.store_mut().commit()
        {
            self.shared.counts.commits_total.add(1);
            self.commit = Some(tokio::task::spawn_blocking(move || {
                let result = commit.run();
                (commit, result)
            }));
        }
    }

    /// Acknowledges what is on the disk. `[N2]`
    fn tell_kept(&mut self) {
        let durable = self.gateway.store_mut().durable();
        // A peer that does not read gets no more reports: their queue must not grow.
        let told = self.told;
        let is_due = |link: &&mut Link| told != Some(durable) && link.unwritten() == 0;
        if let Some(link) = self.incoming.as_mut().filter(is_due) {
            link.put(&Frame::Kept { position: durable.received, has_end: durable.has_end });
            self.told = Some(durable);
        }
    }

    /// The next node has everything.
    fn finish(&mut self) -> Result<(), Failed> {
        match self.gateway.store_mut().finish() {
            Ok(()) => self.phase = Phase::Finishing,
            Err(error) if is_full(&error) => {
                self.shared.shortage.notify_one();
                self.try_again = Some(Instant::now() + AGAIN);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn remove(&mut self) {
        self.gateway.store_mut().remove();
        self.phase = Phase::Removing;
    }

    fn give_up(&mut self) -> Result<(), Failed> {
        self.refuse(Refusal::GivenUp);
        self.gateway.give_up()?;
        self.pending = None;
        self.remove();
        Ok(())
    }

    /// How the stream ended is on the disk. Returns whether the node goes on.
    async fn on_written_down(&mut self) -> bool {
        match self.phase {
            Phase::Finishing => {
                // Not before this node knows it for good: otherwise it would offer the stream again, as a new one.
                self.outgoing.forget().await;
                tracing::info!(stream = %self.stream, bytes = self.gateway.received(), "a stream in custody was passed on whole");
                self.shared.counts.finished_total.add(1);
                self.shown.is_finished.store(true, Ordering::Relaxed);
                self.phase = Phase::Finished;
                if self.is_forgotten {
                    self.remove();
                }
                true
            }
            Phase::Removing => {
                if let Some(link) = &mut self.incoming {
                    let _ = tokio::time::timeout(Duration::from_secs(1), link.flush()).await;
                }
                false
            }
            Phase::Passing | Phase::Finished => true,
        }
    }

    /// The store has failed: everything goes on from what is on the disk for certain, as after a crash. `[N5]`
    async fn restart(self, error: io::Error, mailbox: &mut UnboundedReceiver<Told>) -> Option<Self> {
        tracing::error!(stream = %self.stream, %error, "the store of custody has failed; the stream goes on from what is on the disk");
        self.shared.counts.failures_total.add(1);
        let Node { shared, next, shown, stream, gateway, commit, incoming, outgoing, .. } = self;
        // Connections end: the previous node sends again what was not acknowledged.
        drop((incoming, outgoing));
        if let Some(commit) = commit {
            drop(commit.await);
        }
        let mut store = gateway.into_store();
        let mut pause = AGAIN;
        loop {
            pass(pause, mailbox).await?;
            match store.recover_again() {
                Ok(recovered) => {
                    for what in &recovered.damage {
                        tracing::error!(%stream, "the store of custody is damaged: {what}");
                    }
                    return Some(Node::recovered(shared, next, shown, stream, recovered));
                }
                // Data that may not be on the disk must not count as kept. Files that cannot be opened now may be later.
                Err(error) => {
                    pause = (2 * pause).min(LONGEST_AGAIN);
                    tracing::error!(%stream, %error, again_s = pause.as_secs_f64(), "the stream cannot be read and waits");
                }
            }
        }
    }
}

/// Waits; who asks for the stream gets no answer meanwhile. Nothing if the stream is to stop.
async fn pass(pause: Duration, mailbox: &mut UnboundedReceiver<Told>) -> Option<()> {
    let told = async { while !matches!(mailbox.recv().await, Some(Told::Stop) | None) {} };
    tokio::time::timeout(pause, told).await.err().map(drop)
}

async fn committed(commit: &mut Option<JoinHandle<(Commit, io::Result<()>)>>) -> (Commit, io::Result<()>) {
    match commit {
        Some(commit) => commit.await.expect("a commit does not panic"),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::super::PORT;
    use super::super::link::Link;
    use super::super::test_disk::TestDisk;
    use super::super::tests::{endpoints, label};
    use super::*;

    /// A peer that asks again and again and reads nothing. `[T17]`
    #[tokio::test]
    async fn what_waits_for_a_peer_that_does_not_read_is_bounded() {
        let [hub, peer] = endpoints();
        let (medium, usage) = (Arc::new(TestDisk::default()), Arc::new(Usage::new(1 << 20)));
        let shared = Arc::new(Shared {
            endpoint: hub.clone(),
            medium: medium.clone(),
            usage: usage.clone(),
            stream_bytes: AtomicU64::new(1 << 20),
            shortage: tokio::sync::Notify::new(),
            counts: Counts::default(),
            started: Instant::now(),
        });
        let stream = StreamId::random();
        let store = StreamStore::new(medium, usage, stream, (peer.public_key(), label()));
        let mut node = Node::new(shared, Arc::new(|_| None), Arc::default(), stream, store);
        node.incoming = Some(Link::new(hub.connect(&peer.public_key(), peer.local_addr(), PORT).unwrap()));
        for phase in [Phase::Passing, Phase::Finished] {
            node.phase = phase;
            for _ in 0..1000 {
                assert!(node.on_frame(Frame::End { position: 0 }).is_ok());
                node.tell_kept();
            }
            let waiting = node.incoming.as_ref().unwrap().unwritten();
            assert!((1..100).contains(&waiting), "{waiting} bytes wait for the peer");
        }
    }
}

//! A sealed session over several paths: who the peer is, where it is on each path, and what it may read. No socket, no clock.
//!
//! `docs/bundle-protocol.md` says what stands in the datagrams, `[J1]` and so on. Order of calls: [`Session::set_path`] for each path of a
//! caller; [`Session::handle_datagram`] for what comes; [`Session::seal`] for packets of the bundle; after each of them, and at
//! [`Session::poll_timeout`], [`Session::handle_timeout`], then [`Session::poll_transmit`] and [`Session::poll_event`] until both return `None`.

mod address;
mod answer;
mod call;
mod keys;
mod messages;
mod packet;
mod path_size;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use farlink_core::Time;

use crate::mux::{CounterStore, Counters};
use crate::seal::cookie::CookieMaker;
use crate::seal::mac::{HelloMac, Mac, ResetSecret, are_equal};
use crate::seal::{PresharedKey, PublicKey, StaticKey, random};

pub use address::Place;
pub use packet::{MOST_PATHS, SEAL_BYTES};

use address::Address;
use answer::Answered;
use call::Call;
use keys::{Keys, NotOpened};
use messages::Message;
use packet::{HEADER_BYTES, Kind, Outer, RESET_BYTES};
use path_size::PathSize;

/// One end of a session.
#[derive(Debug)]
pub struct SessionConfig {
    /// The key of this host.
    pub key: StaticKey,
    /// That of the peer.
    pub peer: PublicKey,
    /// The pre-shared key of both hosts.
    pub shared: PresharedKey,
    /// Whether this end begins. The other one answers, at addresses that it learns.
    pub calls: bool,
    /// Which paths there are, bit by bit.
    pub paths: u16,
    /// A key that has sealed more than a megabyte lives for so long. `[J6]`
    pub key_life: Time,
}

/// Where a caller finds the peer on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathPlace {
    /// The peer's address.
    pub place: Place,
    /// Longest packet of the interface, headers of IP included, in bytes.
    pub longest_bytes: u16,
    /// Whether handshakes take this path only if no other one has brought an answer.
    pub is_last_resort: bool,
}

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Where to.
    pub to: Place,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// Events of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Both ends have keys.
    Opened {
        /// Whether there were none before.
        is_new: bool,
    },
    /// There are none any more.
    Closed(Closing),
    /// The peer has answered on this path, at a new address if it is one of an answering end.
    Proven {
        /// Number of the path.
        path: u8,
        /// Where.
        place: Place,
    },
    /// Packets on this path may have so many bytes of content from now on.
    Longest {
        /// Number of the path.
        path: u8,
        /// Length of a packet of the bundle.
        bytes: u32,
        /// Whether longer ones came through before: a black hole.
        has_shrunk: bool,
    },
    /// Something keeps the session from being opened.
    Fault(Fault),
}

/// Why there are no keys any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The peer has said so.
    Closed,
    /// The peer has forgotten them: it was started again.
    Reset,
}

/// Causes for which a session is not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No answer comes. The peer does not run, is elsewhere, has another key, or has another pre-shared key.
    Unanswered,
    /// A caller knows this host's key but has another pre-shared key; or the datagram was damaged on purpose.
    OtherSecret(SocketAddr),
    /// A host calls that is not the peer.
    OtherPeer(SocketAddr, PublicKey),
    /// Somebody calls who takes this host for another one.
    OtherKey(SocketAddr),
    /// The peer speaks these versions of the protocol, and not this one.
    OtherVersion(Vec<u8>),
    /// Both ends call, and none answers.
    BothCall(SocketAddr),
    /// The peer uses a path that is not configured here.
    UnknownPath(u8),
    /// The counter of a handshake cannot be kept.
    Store(String),
}

/// Counts of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that opened.
    pub opened: u64,
    /// Sealed datagrams whose tag is wrong.
    pub refused: u64,
    /// Sealed datagrams that came twice, or too late to know.
    pub repeated: u64,
    /// Datagrams of no session.
    pub stray: u64,
    /// Handshakes that have ended well.
    pub handshakes: u64,
    /// Initiations that were not taken.
    pub refused_hellos: u64,
}

/// The peer may still send with the keys before the present ones for so long.
const KEEP_PREVIOUS: Time = Time::from_secs(60);
/// Nothing came back for so long: the caller begins again.
const SILENCE: Time = Time::from_secs(10);
/// Key agreements in a second from which on cookies are asked for, and most resets. One peer needs far fewer.
const MOST_AGREEMENTS: u32 = 20;
/// Datagrams that wait to be sent.
const MOST_QUEUED: usize = 64;
const MOST_EVENTS: usize = 256;
/// Longest packet of a path of which nothing is known, headers of IP included, in bytes.
const USUAL_LONGEST: u16 = 1500;

/// The state.
pub struct Session {
    config: SessionConfig,
    own_code: HelloMac,
    reset: ResetSecret,
    counters: Counters,
    store: Box<dyn CounterStore>,
    unix_us: fn() -> u64,
    call: Option<Call>,
    /// The last initiation that was answered, and how.
    answered: Option<Answered>,
    current: Option<Keys>,
    /// Keys of an answer, until the caller has used them.
    pending: Option<Keys>,
    previous: Option<(Keys, Time)>,
    paths: Vec<Path>,
    /// The path that brought the last datagram that opened.
    last_path: u8,
    /// Since when nothing has come although something was sent.
    waiting_since: Option<Time>,
    /// Whether this end has said goodbye.
    is_closed: bool,
    /// When a handshake that could not be begun is begun again.
    retry: Time,
    cookies: Option<CookieMaker>,
    load: (Time, u32, u32),
    queue: VecDeque<Datagram>,
    events: VecDeque<Event>,
    counts: Counts,
}

#[derive(Debug)]
struct Path {
    address: Address,
    /// Whether there is a way to the peer at present. Only a caller uses it.
    is_there: bool,
    is_last_resort: bool,
    size: PathSize,
    /// Longest packet, headers of IP included, in bytes.
    longest_bytes: u16,
}

impl Default for Path {
    fn default() -> Self {
        Path {
            address: Address::default(),
            is_there: false,
            is_last_resort: false,
            size: PathSize::default(),
            longest_bytes: USUAL_LONGEST,
        }
    }
}

impl Path {
    /// The peer answers over the other family of addresses, whose headers have another length. `[J13]`
    fn follow_family(&mut self) -> bool {
        let Some(is_ipv4) = self.address.present().map(|place| place.remote.is_ipv4()) else { return false };
        let has_changed = is_ipv4 != self.size.is_ipv4();
        if has_changed {
            self.size = PathSize::new(self.longest_bytes, is_ipv4);
        }
        has_changed
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("paths", &self.paths).field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Session {
    /// A session that is not open yet. `unix_us` is the wall clock, microseconds since 1970; only counters of handshakes come from it.
    pub fn new(config: SessionConfig, store: Box<dyn CounterStore>, unix_us: fn() -> u64) -> Self {
        Session {
            own_code: HelloMac::to(&config.key.public()),
            reset: ResetSecret::of(&config.key),
            counters: Counters::default(),
            store,
            unix_us,
            call: None,
            answered: None,
            current: None,
            pending: None,
            previous: None,
            paths: (0..MOST_PATHS).map(|_| Path::default()).collect(),
            last_path: 0,
            waiting_since: None,
            is_closed: false,
            retry: Time::ZERO,
            cookies: None,
            load: (Time::ZERO, 0, 0),
            queue: VecDeque::new(),
            events: VecDeque::new(),
            counts: Counts::default(),
            config,
        }
    }

    /// Where the peer is on a path, for a caller; `None` if there is no way to it at present. Called again when the own address changed.
    pub fn set_path(&mut self, now: Time, path: u8, at: Option<PathPlace>) {
        let Some(own) = self.paths.get_mut(usize::from(path)) else { return };
        own.is_there = at.is_some();
        let Some(at) = at else {
            own.address = Address::default();
            return;
        };
        own.address = Address::fixed(now, at.place);
        (own.is_last_resort, own.longest_bytes) = (at.is_last_resort, at.longest_bytes);
        own.size = PathSize::new(at.longest_bytes, at.place.remote.is_ipv4());
        self.events.push_back(Event::Longest { path, bytes: own.size.content_bytes(), has_shrunk: false });
        match &mut self.call {
            Some(call) => call.due = now,
            None if self.current.is_none() => self.begin(now, false),
            None => {}
        }
    }

    /// Which paths there are from now on, bit by bit. Where the peer was on one that is no longer there is forgotten; keys and packet
    /// numbers stay, so that a path may come back. `[J15]`
    pub fn set_paths(&mut self, paths: u16) {
        self.config.paths = paths;
        for (number, own) in (0..).zip(&mut self.paths) {
            if paths >> number & 1 == 0 {
                *own = Path::default();
            }
        }
    }

    /// A handshake that waits is sent now: the way to the peer may have become free.
    pub fn hurry(&mut self, now: Time) {
        if let Some(call) = &mut self.call {
            call.due = now;
        }
    }

    /// Longest packets of a path of an answering end, headers of IP included, in bytes, and the family of the peer's address until that is
    /// known.
    pub fn set_longest(&mut self, path: u8, longest_bytes: u16, is_ipv4: bool) {
        if let Some(own) = self.paths.get_mut(usize::from(path)) {
            let is_ipv4 = own.address.present().map_or(is_ipv4, |place| place.remote.is_ipv4());
            (own.size, own.longest_bytes) = (PathSize::new(longest_bytes, is_ipv4), longest_bytes);
            self.note(Event::Longest { path, bytes: self.content_bytes(path), has_shrunk: false });
        }
    }

    /// How many bytes a packet of the bundle may have on this path.
    pub fn content_bytes(&self, path: u8) -> u32 {
        self.paths.get(usize::from(path)).map_or(0, |path| path.size.content_bytes())
    }

    /// Length of the headers of IP and UDP and of the seal around a packet of the bundle on this path, in bytes.
    pub fn overhead_bytes(&self, path: u8) -> u32 {
        let header = self.paths.get(usize::from(path)).map_or(0, |path| path.size.header_bytes());
        u32::from(header) + SEAL_BYTES as u32
    }

    /// What the bundle knows of a path, from which black holes are told: whether packets were lost since the last call, and how long an
    /// acknowledgement takes at most.
    pub fn note_path(&mut self, now: Time, path: u8, has_lost: bool, timeout: Time) {
        if let Some(own) = self.paths.get_mut(usize::from(path)) {
            own.size.note(now, has_lost, timeout);
        }
    }

    /// Whether there are keys.
    pub fn is_open(&self) -> bool {
        self.current.is_some()
    }

    /// Whether packets can be sent on a path at present.
    pub fn is_usable(&self, path: u8) -> bool {
        self.current.is_some() && self.paths.get(usize::from(path)).is_some_and(|path| path.address.is_known())
    }

    /// Where the peer is on a path, if that is proven.
    pub fn place(&self, path: u8) -> Option<Place> {
        self.paths.get(usize::from(path))?.address.proven()
    }

    /// Counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Appends a sealed datagram with a packet of the bundle to `out`, and says where it goes. `content_bytes` is the length of what `write`
    /// appends. `None`, and nothing is appended, if there are no keys or no address, or if the address is not proven and has had
    /// enough.
    pub fn seal(
        &mut self,
        now: Time,
        path: u8,
        content_bytes: usize,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Place> {
        let keys = self.current.as_mut()?;
        let own = self.paths.get_mut(usize::from(path))?;
        let to = own.address.target(content_bytes + SEAL_BYTES)?;
        if !keys.seal(Kind::Data, path, out, write) {
            return None;
        }
        own.size.on_sent(now, content_bytes);
        self.waiting_since.get_or_insert(now);
        Some(to)
    }

    /// A datagram has come; returns the path and the packet of the bundle if it has one.
    pub fn handle_datagram(&mut self, now: Time, from: Place, mut datagram: BytesMut) -> Option<(u8, Bytes)> {
        match Outer::read(&datagram) {
            Some(Outer::Sealed { kind, path, to, number }) => {
                self.open(now, from, (kind, path, to, number), &mut datagram)?;
                let end = datagram.len() - (SEAL_BYTES - HEADER_BYTES);
                datagram.truncate(end);
                let content = datagram.split_off(HEADER_BYTES).freeze();
                if kind == Kind::Data {
                    return Some((path, content));
                }
                Message::read_all(&content).for_each(|message| self.on_message(now, from, path, message));
            }
            Some(Outer::Hello { path, version, to, content }) => {
                self.on_hello(now, from, (path, version, to), content, &datagram)
            }
            Some(Outer::Reset { to, token }) => self.on_reset(now, to, token),
            None => self.counts.stray += 1,
        }
        None
    }

    /// Says goodbye on the path that brought the last datagram.
    pub fn close(&mut self) {
        self.send_message(self.last_path, None, Message::Close);
        (self.current, self.pending, self.previous, self.call) = (None, None, None, None);
        self.is_closed = true;
    }

    /// When something is due.
    pub fn poll_timeout(&self) -> Time {
        if !self.queue.is_empty() {
            return Time::ZERO;
        }
        let call = self.call.as_ref().filter(|_| self.has_way()).map_or(Time::NEVER, |call| call.due);
        let mut due = if self.is_idle() { self.retry } else { call };
        if self.current.is_some() {
            due = self.paths.iter().fold(due, |due, path| due.min(path.address.due()).min(path.size.due()));
            if self.config.calls && self.call.is_none() {
                due = due.min(self.waiting_since.map_or(Time::NEVER, |since| since + SILENCE));
                due = due.min(self.renewal_due());
            }
        }
        due
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.previous.take_if(|(_, until)| now >= *until);
        if self.config.calls && self.call.is_none() && self.current.is_some() {
            if self.waiting_since.is_some_and(|since| now >= since + SILENCE) {
                self.begin(now, false);
            } else if now >= self.renewal_due() {
                self.begin(now, true);
            }
        }
        if self.is_idle() && now >= self.retry {
            self.begin(now, false);
        }
        self.send_hellos(now);
        if self.current.is_none() {
            return;
        }
        for path in 0..MOST_PATHS as u8 {
            let own = &mut self.paths[usize::from(path)];
            let bytes = SEAL_BYTES + 9;
            if let Some((to, challenge)) = own.address.challenge(now, bytes) {
                self.send_message(path, Some(to), Message::Challenge(challenge));
            }
            let own = &mut self.paths[usize::from(path)];
            if own.size.handle_timeout(now) {
                self.note(Event::Longest { path, bytes: self.content_bytes(path), has_shrunk: true });
            }
            let own = &mut self.paths[usize::from(path)];
            for probe in own.size.next_probes(now).into_iter().flatten() {
                self.send_probe(path, probe);
            }
        }
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Datagram> {
        self.queue.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether a caller has neither keys nor a handshake, although there is a way to the peer.
    fn is_idle(&self) -> bool {
        self.config.calls && !self.is_closed && self.current.is_none() && self.call.is_none() && self.has_way()
    }

    fn note(&mut self, event: Event) {
        if self.events.len() < MOST_EVENTS {
            self.events.push_back(event);
        }
    }

    fn queue(&mut self, to: Place, bytes: Vec<u8>) {
        if self.queue.len() < MOST_QUEUED {
            self.queue.push_back(Datagram { to, bytes });
        }
    }

    /// Opens a sealed datagram in place.
    fn open(
        &mut self,
        now: Time,
        from: Place,
        (_, path, to, number): (Kind, u8, u32, u32),
        datagram: &mut BytesMut,
    ) -> Option<()> {
        let keys = [self.current.as_mut(), self.pending.as_mut(), self.previous.as_mut().map(|(keys, _)| keys)];
        let Some((which, keys)) =
            keys.into_iter().enumerate().find_map(|(which, keys)| Some((which, keys.filter(|it| it.own_id == to)?)))
        else {
            self.counts.stray += 1;
            self.send_reset(now, from, to, datagram.len());
            return None;
        };
        let is_newest = match keys.open(path, number, datagram) {
            Ok(is_newest) => is_newest,
            Err(NotOpened::Repeated) => {
                self.counts.repeated += 1;
                return None;
            }
            Err(NotOpened::Refused) => {
                self.counts.refused += 1;
                return None;
            }
        };
        self.counts.opened += 1;
        if which == 1 {
            let keys = self.pending.take();
            self.install(now, keys);
        }
        let is_configured = self.config.paths >> path & 1 == 1;
        let Some(own) = self.paths.get_mut(usize::from(path)).filter(|_| is_configured) else {
            self.note(Event::Fault(Fault::UnknownPath(path)));
            return None;
        };
        // A datagram under the previous keys does not show where the peer is now.
        own.address.on_opened(now, from, datagram.len(), is_newest && which != 2);
        if own.follow_family() {
            self.note(Event::Longest { path, bytes: self.content_bytes(path), has_shrunk: false });
        }
        self.last_path = path;
        self.waiting_since = None;
        Some(())
    }

    fn install(&mut self, now: Time, keys: Option<Keys>) {
        let before = std::mem::replace(&mut self.current, keys);
        let is_new = before.is_none();
        self.previous = before.map(|keys| (keys, now + KEEP_PREVIOUS));
        self.waiting_since = None;
        self.counts.handshakes += 1;
        self.note(Event::Opened { is_new });
    }

    fn on_message(&mut self, now: Time, from: Place, path: u8, message: Message) {
        let own = &mut self.paths[usize::from(path)];
        match message {
            Message::Challenge(bytes) => {
                if let Some(to) = own.address.back_to(from, SEAL_BYTES + 9) {
                    self.send_message(path, Some(to), Message::Answer(bytes));
                }
            }
            Message::Answer(bytes) => {
                if own.address.on_answer(&bytes) {
                    let place = own.address.proven().unwrap_or(from);
                    let has_other_headers = own.follow_family();
                    self.note(Event::Proven { path, place });
                    if has_other_headers {
                        self.note(Event::Longest { path, bytes: self.content_bytes(path), has_shrunk: false });
                    }
                }
            }
            Message::Probe(number) => {
                if let Some(to) = own.address.back_to(from, SEAL_BYTES + 5) {
                    self.send_message(path, Some(to), Message::Arrived(number));
                }
            }
            Message::Arrived(number) => {
                if own.size.on_answer(now, number) {
                    self.note(Event::Longest { path, bytes: self.content_bytes(path), has_shrunk: false });
                }
            }
            Message::Close => self.end(now, Closing::Closed),
        }
    }

    /// The peer has no keys any more.
    fn end(&mut self, now: Time, why: Closing) {
        if self.current.take().is_none() {
            return;
        }
        (self.pending, self.previous, self.waiting_since) = (None, None, None);
        self.note(Event::Closed(why));
        if self.config.calls {
            self.begin(now, false);
            if let (Closing::Closed, Some(call)) = (why, &mut self.call) {
                // It is not there at present.
                call.due = now + Time::from_secs(1);
            }
        }
    }

    fn on_reset(&mut self, now: Time, to: u32, token: &Mac) {
        match &self.current {
            Some(keys) if keys.peer_id == to && are_equal(&keys.peer_token, token) => self.end(now, Closing::Reset),
            _ => self.counts.stray += 1,
        }
    }

    /// Tells who sends with keys that are forgotten here. `[J10]`
    fn send_reset(&mut self, now: Time, from: Place, to: u32, bytes: usize) {
        if bytes > RESET_BYTES && self.load(now).1 < MOST_AGREEMENTS {
            self.load.2 += 1;
            let token = self.reset.token(to);
            self.queue(from, packet::reset(to, &token));
        }
    }

    /// Key agreements and resets of the present second.
    fn load(&mut self, now: Time) -> (u32, u32) {
        if now >= self.load.0 + Time::from_secs(1) {
            self.load = (now, 0, 0);
        }
        (self.load.1, self.load.2)
    }

    fn send_message(&mut self, path: u8, to: Option<Place>, message: Message) {
        let Some(keys) = self.current.as_mut() else { return };
        let mut bytes = Vec::with_capacity(SEAL_BYTES + 9);
        let to = to.or_else(|| self.paths.get_mut(usize::from(path))?.address.target(SEAL_BYTES + 9));
        if let Some(to) = to
            && keys.seal(Kind::Control, path, &mut bytes, |out| message.write(out))
        {
            self.queue(to, bytes);
        }
    }

    /// Only to a proven address: it is long.
    fn send_probe(&mut self, path: u8, probe: crate::mux::PathProbe) {
        let (Some(keys), Some(own)) = (self.current.as_mut(), self.paths.get(usize::from(path))) else { return };
        let Some(to) = own.address.proven() else { return };
        let content = own.size.content_of(probe.bytes);
        let mut bytes = Vec::with_capacity(SEAL_BYTES + content);
        let is_sealed = keys.seal(Kind::Control, path, &mut bytes, |out| {
            let start = out.len();
            Message::Probe(probe.number as u32).write(out);
            out.resize(start + content, 0);
        });
        if is_sealed {
            self.queue(to, bytes);
        }
    }

    fn new_id(&self) -> u32 {
        let taken = [self.current.as_ref(), self.pending.as_ref(), self.previous.as_ref().map(|(keys, _)| keys)];
        loop {
            let mut bytes = [0; 4];
            random::fill(&mut bytes);
            let id = u32::from_ne_bytes(bytes);
            if id != 0 && taken.iter().flatten().all(|keys| keys.own_id != id) {
                return id;
            }
        }
    }
}

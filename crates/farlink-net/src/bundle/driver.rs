//! Moves packets between the TUN device, the bundle, the session and the sockets, on one thread.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use farlink_core::Time;
use farlink_core::emulator::ip;
use farlink_core::endpoint::Ecn;
use farlink_core::paths::{PathBundle, PathId, PathState};
use farlink_core::rng::RandomSource as _;
use farlink_core::wire::paths;
use tokio::net::TcpListener;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::io::{Buffer, Clock, Socket, Timer, unix_us};
use crate::mss;
use crate::privileged::{Change, end_of};
use crate::seal::random::OsRandom;
use crate::tty::Said;

use super::capture::Way as Direction;
use super::config::At;
use super::error::BundleError;
use super::events::Event;
use super::flow;
use super::interfaces::Interfaces;
use super::metrics::{self, Own, Pages};
use super::outbox::Outbox;
use super::path_config::LONGEST_ON_LINE;
use super::serial::{self, Heard, Lines};
use super::session::{Datagram, Event as SessionEvent, MOST_PATHS, PathPlace, Place, Session};
use super::start::Bundle;
use super::ways::{self, Way};

/// Packets from the device in one turn, so that what has arrived waits for few.
const BATCH: usize = 64;
/// Longest packet of a device.
const LONGEST_PACKET: usize = 65_536;
/// Path sizes, routes of a fallback and metrics are looked at so often.
const TICK: Time = Time::from_millis(250);
/// Interfaces too, in case netlink has lost a message.
const LOOK: Time = Time::from_secs(10);
/// After a change of an interface others usually follow.
const SETTLE: Duration = Duration::from_millis(20);
/// The same fault is told again after this time.
const SAME_FAULT: Time = Time::from_secs(30);
const MOST_FAULTS: usize = 64;
/// A [`Time`] ends after 213 days: before that everything begins again.
const LONGEST_RUN: Time = Time::from_secs(200 * 86_400);
/// The bits of ECN within the byte of traffic class.
const ECN_BITS: u8 = 0b11;
/// Longest packets of paths to an end that listens, before they are searched.
const USUAL_LONGEST: u16 = 1500;

/// Commands to a running bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Read the configuration again.
    Reload,
    /// End.
    Stop,
}

pub(super) struct Driver<T> {
    pub(super) parts: Bundle,
    pub(super) tell: T,
    pub(super) clock: Clock,
    pub(super) session: Session,
    pub(super) bundle: PathBundle<Bytes>,
    /// The device, which is read like a pipe: tokio's other form for descriptors needs unsafe code.
    tun: Receiver,
    pub(super) sockets: Vec<Option<Socket>>,
    /// Paths over serial lines.
    lines: Lines,
    outboxes: Vec<Outbox>,
    /// Of an end that calls, by the number of the path, as all lists here.
    pub(super) ways: Vec<Result<Way, String>>,
    carriers: Vec<bool>,
    /// Packets that each path had lost when it was last looked at.
    losses: Vec<u64>,
    pub(super) has_routes: bool,
    faults: BTreeMap<String, Time>,
    /// The latest event of each path that the bundle reported.
    pub(super) told: BTreeMap<String, &'static str>,
    own: Own,
    metrics: Option<Pages>,
    next_tick: Time,
    pub(super) next_look: Time,
}

impl Bundle {
    /// Runs until `control` says so, or is closed. `tell` is told what happens.
    ///
    /// # Errors
    /// If the helper or the device ends, or the system refuses something.
    pub async fn run(self, control: UnboundedReceiver<Control>, tell: impl FnMut(Event)) -> Result<(), BundleError> {
        let (driver, heard) = Driver::start(self, tell)?;
        driver.run(control, heard).await
    }
}

/// The cause of a turn of the loop.
enum Woken {
    Work,
    Interfaces,
    Line(usize, Said),
    HelperEnded,
    Reload,
    Stop,
}

impl<T: FnMut(Event)> Driver<T> {
    /// Opens what is left to open, within a runtime of `tokio`.
    fn start(mut parts: Bundle, tell: T) -> Result<(Self, Heard), BundleError> {
        let clock = Clock::start();
        let session = parts.session()?;
        let bundle = new_bundle(&parts, clock.now());
        let tun = Receiver::from_owned_fd_unchecked(parts.tun.try_clone()?)?;
        let mut sockets: Vec<Option<Socket>> = (0..MOST_PATHS).map(|_| None).collect();
        if let At::Listens(addresses) = &parts.config.peer.at {
            sockets.clear();
            for address in addresses {
                let socket = parts.helper.bind(None, address.ip(), address.port())?;
                sockets.push(Some(Socket::from_std(socket)?));
            }
        }
        let metrics = parts.metrics.take();
        if let Some((_, Some(listener))) = &metrics {
            let listener = TcpListener::from_std(listener.try_clone()?)?;
            tokio::spawn(metrics::serve(listener, metrics.as_ref().map(|it| it.0.text()).unwrap_or_default()));
        }
        let metrics = metrics.map(|(pages, _)| pages);
        let (lines, heard) = Lines::start(&parts.config.paths);
        let mut driver = Driver {
            lines,
            outboxes: (0..MOST_PATHS).map(|_| Outbox::default()).collect(),
            ways: vec![Err("not looked for yet".to_owned()); MOST_PATHS],
            carriers: vec![false; MOST_PATHS],
            losses: vec![0; MOST_PATHS],
            has_routes: !parts.config.fallback,
            parts,
            tell,
            clock,
            session,
            bundle,
            tun,
            sockets,
            faults: BTreeMap::new(),
            told: BTreeMap::new(),
            own: Own::default(),
            metrics,
            next_tick: Time::ZERO,
            next_look: Time::ZERO,
        };
        driver.set_longest();
        Ok((driver, heard))
    }

    async fn run(mut self, mut control: UnboundedReceiver<Control>, mut heard: Heard) -> Result<(), BundleError> {
        let mut interfaces = Interfaces::watch()?;
        let helper = Receiver::from_owned_fd_unchecked(self.parts.helper.ended()?)?;
        let timer = Timer::new();
        let mut buffer = Buffer::new();
        let mut packet = vec![0; LONGEST_PACKET];
        self.look(&interfaces).await;
        let device = self.parts.device.as_str().to_owned();
        (self.tell)(Event::new(
            "started",
            format!("{device} is ready; helper process {}", self.parts.helper.process()),
        ));
        notify(&[sd_notify::NotifyState::Ready]);
        loop {
            self.take_from_device(&mut packet)?;
            self.take_from_sockets(&mut buffer);
            let now = self.turn();
            if now > LONGEST_RUN {
                self.begin_again()?;
            }
            let due = self.bundle.poll_timeout().unwrap_or(Time::NEVER).min(self.session.poll_timeout());
            let due = due.min(self.next_tick).min(self.next_look);
            let span = self.clock.until(due);
            match self.wait(&timer, span, &mut interfaces, &mut heard, &helper, &mut control).await {
                Woken::Work => {}
                Woken::Interfaces => {
                    tokio::time::sleep(SETTLE).await;
                    self.next_look = Time::ZERO;
                }
                Woken::Line(path, said) => self.on_line(path, said),
                Woken::Reload => self.reload(),
                Woken::HelperEnded => return Err(BundleError::Ended("the helper process")),
                Woken::Stop => break,
            }
            if self.clock.now() >= self.next_look {
                self.look(&interfaces).await;
            }
        }
        notify(&[sd_notify::NotifyState::Stopping]);
        self.end()
    }

    async fn wait(
        &self,
        timer: &Timer,
        span: Duration,
        interfaces: &mut Interfaces,
        heard: &mut Heard,
        helper: &Receiver,
        control: &mut UnboundedReceiver<Control>,
    ) -> Woken {
        let sockets = std::future::poll_fn(|cx| {
            let is_ready = self.sockets.iter().flatten().any(|socket| socket.poll_readable(cx).is_ready());
            if is_ready { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::select! {
            biased;
            told = control.recv() => if told == Some(Control::Reload) { Woken::Reload } else { Woken::Stop },
            () = end_of(helper) => Woken::HelperEnded,
            () = interfaces.changed() => Woken::Interfaces,
            Some((path, said)) = heard.recv() => Woken::Line(path, said),
            _ = self.tun.readable() => Woken::Work,
            () = sockets => Woken::Work,
            () = timer.wait_for(span) => Woken::Work,
        }
    }

    /// Packets from the device go to the bundle.
    fn take_from_device(&mut self, buffer: &mut [u8]) -> Result<(), BundleError> {
        let now = self.clock.now();
        for _ in 0..BATCH {
            let bytes = match self.tun.try_read(buffer) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // A device that somebody takes down gives EIO, one that was removed EBADFD.
                Err(error) => {
                    tracing::warn!(%error, "the device cannot be read");
                    return Err(BundleError::Ended("the TUN device"));
                }
            };
            let packet = &mut buffer[..bytes];
            mss::clamp(packet, self.parts.config.tun.mtu_bytes);
            let Some((class, flow)) = flow::of(packet, &self.parts.config.classes) else {
                self.own.no_ip += 1;
                continue;
            };
            if let Some(capture) = &mut self.parts.capture {
                capture.add(unix_us(), Direction::ToPeer, packet);
            }
            self.bundle.send(now, Bytes::copy_from_slice(packet), class, flow);
        }
        Ok(())
    }

    /// Datagrams go to the session, and what is in them to the bundle.
    fn take_from_sockets(&mut self, buffer: &mut Buffer) {
        let listens = matches!(self.parts.config.peer.at, At::Listens(_));
        for (number, socket) in self.sockets.iter().enumerate() {
            let Some(socket) = socket else { continue };
            let (session, bundle, own, clock) = (&mut self.session, &mut self.bundle, &mut self.own, &self.clock);
            let received = socket.try_receive(buffer, |route, ecn, datagram| {
                let now = clock.now(); // never earlier than it came
                let local = route.local.filter(|_| listens);
                let from = Place { socket: number, remote: route.remote, local };
                let Some((path, content)) = session.handle_datagram(now, from, datagram) else { return };
                match paths::decode(content) {
                    Some(packet) => bundle.handle_marked(now, PathId(path), &packet, ecn),
                    None => own.malformed += 1,
                }
            });
            if let Err(error) = received {
                tracing::debug!(%error, number, "a socket cannot be read");
            }
        }
    }

    /// The port of a serial line says something.
    fn on_line(&mut self, path: usize, said: Said) {
        let now = self.clock.now();
        match said {
            Said::Carrier(is_up) => {
                self.lines.on_carrier(path, is_up);
                let Some(config) = self.parts.config.path(path as u8) else { return };
                let is_last_resort = config.rules.is_standby;
                let (name, longest_bytes) = (config.name.clone(), LONGEST_ON_LINE);
                if matches!(self.parts.config.peer.at, At::Calls(_)) {
                    let at = PathPlace { place: serial::place(path), longest_bytes, is_last_resort };
                    self.session.set_path(now, path as u8, is_up.then_some(at));
                }
                let text = if is_up { "the line has carrier" } else { "the line has no carrier" };
                (self.tell)(Event::of_path("interface", &name, text));
            }
            Said::Bytes(bytes) => {
                let mut rest = &bytes[..];
                while let Some(datagram) = self.lines.next(path, &mut rest) {
                    let place = serial::place(path);
                    let Some((path, content)) = self.session.handle_datagram(now, place, datagram) else { continue };
                    match paths::decode(content) {
                        Some(packet) => self.bundle.handle_packet(now, PathId(path), &packet),
                        None => self.own.malformed += 1,
                    }
                }
            }
            Said::Sent(_) => self.lines.on_sent(path),
            Said::Released => {}
        }
    }

    /// Time passes, and everything goes on that can; returns the time.
    fn turn(&mut self) -> Time {
        let now = self.clock.now();
        self.session.handle_timeout(now);
        self.follow_session(now);
        self.set_carriers(now);
        self.bundle.handle_timeout(now);
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.tick();
        }
        self.send_packets(now);
        self.session.handle_timeout(now);
        while let Some(Datagram { to, bytes }) = self.session.poll_transmit() {
            let mut outbox = Outbox::default();
            outbox.push(to, 0, &bytes, 1);
            send(&self.sockets, &mut self.lines, &mut outbox, &mut self.own);
        }
        self.deliver();
        while let Some(event) = self.bundle.poll_event() {
            // A path that was taken away is no longer talked about.
            let Some(event) = Event::of_bundle(&self.parts.config, event) else { continue };
            // A path that was only suspected for a moment is up again, and nobody was told that it was not.
            if event.path.as_ref().is_none_or(|path| self.told.insert(path.clone(), event.kind) != Some(event.kind)) {
                (self.tell)(event);
            }
        }
        now
    }

    fn send_packets(&mut self, now: Time) {
        let mut sealed = Vec::with_capacity(2048);
        while let Some((PathId(path), packet)) = self.bundle.poll_transmit(now) {
            sealed.clear();
            let content_bytes = packet.wire_bytes();
            // `[J14]`: the normal mode of a tunnel's beginning (RFC 6040, section 4.1). A DSCP is copied only if asked for.
            let inner = self.bundle.traffic_class();
            let traffic_class = if self.parts.config.copy_dscp { inner } else { inner & ECN_BITS };
            let to = self.session.seal(now, path, content_bytes, &mut sealed, |out| {
                paths::encode_into(&packet, out);
            });
            let Some(to) = to else {
                self.own.unsent += 1;
                continue;
            };
            let most = self.sockets.get(to.socket).and_then(Option::as_ref).map_or(1, Socket::most_datagrams);
            let outbox = &mut self.outboxes[usize::from(path)];
            if !outbox.push(to, traffic_class, &sealed, most) {
                send(&self.sockets, &mut self.lines, outbox, &mut self.own);
                outbox.push(to, traffic_class, &sealed, most);
            }
        }
        for outbox in &mut self.outboxes {
            send(&self.sockets, &mut self.lines, outbox, &mut self.own);
        }
    }

    /// Packets of the peer go to the device.
    fn deliver(&mut self) {
        while let Some((packet, outer)) = self.bundle.receive_marked() {
            let Some(packet) = self.out_of_tunnel(packet, outer) else { continue };
            let packet = mss::clamped(packet, self.parts.config.tun.mtu_bytes);
            if let Some(capture) = &mut self.parts.capture {
                capture.add(unix_us(), Direction::FromPeer, &packet);
            }
            if rustix::io::write(&self.parts.tun, &packet).is_err() {
                self.own.untaken += 1;
            }
        }
    }

    /// The packet with the mark of its datagrams; `None` if they have one that its sender cannot understand.
    fn out_of_tunnel(&mut self, packet: Bytes, outer: Ecn) -> Option<Bytes> {
        if matches!(outer, Ecn::NotCapable | Ecn::Capable0) {
            return Some(packet);
        }
        let mut marked = BytesMut::from(&packet[..]);
        if !ip::leave_tunnel(&mut marked, outer) {
            self.own.wrongly_marked += 1;
            return None;
        }
        self.own.marked_on_the_way += u64::from(outer == Ecn::Congestion);
        Some(marked.freeze())
    }

    fn follow_session(&mut self, now: Time) {
        while let Some(event) = self.session.poll_event() {
            if let SessionEvent::Longest { path, bytes, .. } = event {
                self.bundle.set_mtu(now, PathId(path), bytes);
                let is_line = self.parts.config.path(path).is_none_or(|path| path.line.is_some());
                if !is_line {
                    self.bundle.set_overhead(PathId(path), self.session.overhead_bytes(path));
                }
            }
            let Some(event) = Event::of_session(&self.parts.config, &event) else { continue };
            if event.kind == "fault" && !self.is_new(now, &event.text) {
                continue;
            }
            (self.tell)(event);
        }
    }

    /// Whether a fault was not told lately.
    fn is_new(&mut self, now: Time, fault: &str) -> bool {
        self.faults.retain(|_, told| now < *told + SAME_FAULT);
        if self.faults.contains_key(fault) || self.faults.len() >= MOST_FAULTS {
            return false;
        }
        self.faults.insert(fault.to_owned(), now);
        true
    }

    fn set_carriers(&mut self, now: Time) {
        for (path, carrier) in (0..).zip(&mut self.carriers) {
            let is_usable = self.session.is_usable(path);
            if *carrier != is_usable {
                *carrier = is_usable;
                self.bundle.set_carrier(now, PathId(path), is_usable);
            }
        }
    }

    /// Work that need not be done at once.
    fn tick(&mut self) {
        let now = self.clock.now();
        for (path, lost) in (0..).zip(&mut self.losses) {
            let stats = self.bundle.stats(PathId(path));
            let has_lost = stats.lost_packets != *lost;
            *lost = stats.lost_packets;
            let timeout = stats.round_trip.map_or(1.0, |round_trip| round_trip + 4.0 * stats.variation).max(0.2);
            self.session.note_path(now, path, has_lost, Time::from_secs_f64(timeout));
        }
        if self.parts.config.fallback {
            self.set_routes();
        }
        if let Some(shared) = &self.metrics {
            let stats = self.parts.config.paths.iter().map(|path| {
                let stats = self.bundle.stats(PathId(path.number));
                (path.name.as_str(), stats, self.session.content_bytes(path.number))
            });
            let families = metrics::families(stats, &self.bundle.totals(), &self.session.counts(), &self.own);
            shared.set(&self.parts.config.peer.name, families);
        }
        if let Some(capture) = &mut self.parts.capture {
            capture.flush();
        }
    }

    /// With `fallback`, packets go through the device only while a path carries them.
    fn set_routes(&mut self) {
        let is_up = (0..MOST_PATHS as u8).any(|path| self.bundle.stats(PathId(path)).state == Some(PathState::Up));
        if is_up == self.has_routes {
            return;
        }
        self.has_routes = is_up;
        let change = if is_up { Change::Add } else { Change::Remove };
        for &to in &self.parts.config.routes {
            if let Err(error) = self.parts.helper.route(change, to) {
                (self.tell)(Event::new("fault", error.to_string()));
            }
        }
        let text = if is_up { "packets go through the bundle" } else { "packets leave by the machine's other routes" };
        (self.tell)(Event::new("fallback", text));
    }

    /// Looks which paths have a way, and opens sockets for those that have another one.
    async fn look(&mut self, interfaces: &Interfaces) {
        self.next_look = self.clock.now() + LOOK;
        if matches!(self.parts.config.peer.at, At::Listens(_)) {
            return;
        }
        let numbers = |it: &Self| it.parts.config.paths.iter().map(|path| path.number).collect::<Vec<_>>();
        let all = match interfaces.all().await {
            Ok(all) => all,
            Err(error) => {
                tracing::warn!(%error, "interfaces cannot be listed");
                return;
            }
        };
        for number in numbers(self).into_iter().map(usize::from) {
            let Some(config) = self.parts.config.path(number as u8).filter(|path| path.line.is_none()) else {
                continue;
            };
            let found = ways::of(config, &all);
            if found == self.ways[number] {
                // A route to the peer may have come.
                if found.is_ok() && self.session.place(number as u8).is_some() && !self.session.is_open() {
                    self.session.hurry(self.clock.now());
                }
                continue;
            }
            self.take_way(number, found);
        }
    }

    fn take_way(&mut self, number: usize, found: Result<Way, String>) {
        let (now, path) = (self.clock.now(), number as u8);
        let Some(config) = self.parts.config.path(path) else { return };
        let (name, is_last_resort) = (config.name.clone(), config.rules.is_standby);
        let opened = found.clone().and_then(|way| {
            let socket =
                self.parts.helper.bind(Some(way.device.clone()), way.source, 0).map_err(|error| error.to_string())?;
            Ok((Socket::from_std(socket).map_err(|error| error.to_string())?, way))
        });
        match opened {
            Ok((socket, way)) => {
                self.sockets[number] = Some(socket);
                let place = Place { socket: number, remote: way.remote, local: None };
                let place = PathPlace { place, longest_bytes: way.longest_bytes, is_last_resort };
                self.session.set_path(now, path, Some(place));
                let family = if way.remote.is_ipv4() { "" } else { " over IPv6" };
                (self.tell)(Event::of_path("interface", &name, format!("goes through {}{family}", way.device)));
                self.ways[number] = found;
            }
            Err(why) => {
                self.sockets[number] = None;
                self.session.set_path(now, path, None);
                let is_told = self.ways[number].as_ref().err() == Some(&why);
                self.ways[number] = Err(why.clone());
                if !is_told {
                    (self.tell)(Event::of_path("interface", &name, why));
                }
            }
        }
    }

    /// Sizes are searched up to what the config says, or what Ethernet carries.
    pub(super) fn set_longest(&mut self) {
        if let At::Listens(addresses) = &self.parts.config.peer.at {
            let is_ipv4 = addresses.iter().any(SocketAddr::is_ipv4);
            for path in &self.parts.config.paths {
                let longest = path.mtu_bytes.unwrap_or(USUAL_LONGEST);
                self.session.set_longest(path.number, longest, is_ipv4);
            }
        }
    }

    /// The clock has come to its end.
    fn begin_again(&mut self) -> Result<(), BundleError> {
        self.clock = Clock::start();
        self.session = self.parts.session()?;
        self.bundle = new_bundle(&self.parts, self.clock.now());
        (self.next_tick, self.next_look) = (Time::ZERO, Time::ZERO);
        self.faults.clear();
        self.carriers.fill(false);
        self.losses.fill(0);
        self.ways.fill(Err("looked for again".to_owned()));
        self.set_longest();
        Ok(())
    }

    /// Says goodbye and takes away what guards the routes. The device goes with the process.
    fn end(mut self) -> Result<(), BundleError> {
        self.session.close();
        while let Some(Datagram { to, bytes }) = self.session.poll_transmit() {
            let mut outbox = Outbox::default();
            outbox.push(to, 0, &bytes, 1);
            send(&self.sockets, &mut self.lines, &mut outbox, &mut self.own);
        }
        if self.has_routes {
            for &to in &self.parts.config.routes {
                self.parts.helper.route(Change::Remove, to)?;
            }
        }
        Ok(())
    }
}

fn new_bundle(parts: &Bundle, now: Time) -> PathBundle<Bytes> {
    let mut bundle: PathBundle<Bytes> = PathBundle::new(parts.config.scheduler.clone(), now, OsRandom.next_u64());
    bundle.read_packets_with(|packet| ip::traffic_class(packet), mark);
    for path in &parts.config.paths {
        let id = bundle.add_path(now, path.rules.clone());
        bundle.set_carrier(now, id, false);
    }
    bundle
}

/// Marks congestion in a packet that is ECN-capable.
fn mark(packet: &mut Bytes) -> bool {
    let is_capable = ip::ecn_of(ip::traffic_class(packet)) != Ecn::NotCapable;
    if is_capable {
        let mut marked = BytesMut::from(&packet[..]);
        ip::mark(&mut marked);
        *packet = marked.freeze();
    }
    is_capable
}

fn send(sockets: &[Option<Socket>], lines: &mut Lines, outbox: &mut Outbox, own: &mut Own) {
    let Some(to) = outbox.to() else { return };
    if let Some(is_taken) = lines.send(to, outbox.bytes()) {
        own.unsent += u64::from(!is_taken);
        return outbox.clear();
    }
    let sent = match sockets.get(to.socket) {
        Some(Some(socket)) => outbox.send(socket),
        _ => Err(io::ErrorKind::NotConnected.into()),
    };
    if let Err(error) = sent {
        own.unsent += 1;
        outbox.clear();
        tracing::debug!(%error, remote = %to.remote, "a datagram was not sent");
    }
}

/// Tells systemd, if it has started the bundle.
fn notify(state: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "systemd was not told");
    }
}

//! Drives endpoints over a socket in real time: datagrams in and out, and deadlines.

use std::fmt;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use farlink_core::endpoint::Ecn;
use farlink_core::protocol::aerotp::Segment;
use farlink_core::wire::aerotp::{Outside, Refusal, decode_segment, encode_segment_into};
use farlink_core::wire::ipv4::MAX_BYTES;
use farlink_core::{OriginShift, Rx, Time, Transmit};
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::command_line::Failure;

/// One or more connections and their files.
pub(crate) trait Party {
    fn handle_packet(&mut self, now: Time, from: SocketAddr, segment: &Segment<Bytes>, rx: Rx);
    fn handle_timeout(&mut self, now: Time);
    fn poll_transmit(&mut self, now: Time) -> Option<(SocketAddr, Transmit<Segment<Bytes>>)>;
    fn poll_timeout(&self) -> Option<Time>;
    /// The clock reads less from now on.
    fn move_origin(&mut self, by: OriginShift);
    /// Takes events, reads and writes as much as possible.
    fn step(&mut self, now: Time) -> Result<(), Failure>;
    /// Bytes transferred.
    fn moved_bytes(&self) -> u64;
    /// Total bytes to transfer, if known.
    fn size(&self) -> Option<u64>;
    /// Whether all data is transferred, even if connections are still open.
    fn is_safe(&self) -> bool;
    /// Whether nothing more is expected from the peers.
    fn is_closed(&self) -> bool;
}

/// The result of the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    Interrupted,
}

/// Counts of datagrams on the socket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    sent: u64,
    dropped: u64,
    received: u64,
    refused: [u64; Refusal::ALL.len()],
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} datagrams sent, {} of them dropped on purpose; {} received",
            self.sent, self.dropped, self.received
        )?;
        for (why, &count) in Refusal::ALL.iter().zip(&self.refused).filter(|(_, count)| **count > 0) {
            write!(f, ", {count} refused ({why:?})")?;
        }
        Ok(())
    }
}

pub(crate) struct Driver<P> {
    socket: UdpSocket,
    /// Sends and receives with the ECN bits of the IP header.
    datagrams: UdpSocketState,
    pub(crate) party: P,
    clock: Clock,
    drop: Dropper,
    out: Box<[u8]>,
    first_heard: Option<Instant>,
    finished: Option<Instant>,
    is_peer_gone: bool,
    pub(crate) account: Account,
    report: Option<Duration>,
}

/// Longer than any segment of this program.
const LARGEST_DATAGRAM: usize = 65_536;
/// Longest interval between checks of the signal and the progress, less than a second.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Time after the end in which the last acknowledgement is repeated on request.
const LINGER: Duration = Duration::from_millis(500);
/// Longest time for closing the connection once all data is transferred.
const LONGEST_CLOSING: Duration = Duration::from_secs(3);
/// Missed deadlines up to this age are caught up one by one, so that a sleep that is slightly too long does not reduce
/// the rate.
const CATCH_UP: Time = Time::from_millis(5);

impl<P: Party> Driver<P> {
    pub(crate) fn new(socket: UdpSocket, party: P, drop: f64, report: Option<Duration>) -> Result<Self, Failure> {
        let datagrams = UdpSocketState::new(UdpSockRef::from(&socket)).map_err(|error| broken(&error))?;
        socket.set_nonblocking(true).map_err(|error| broken(&error))?;
        Ok(Driver {
            socket,
            datagrams,
            party,
            clock: Clock::new(),
            drop: Dropper { state: unix_micros() | 1, below: (drop * 2_f64.powi(32)) as u64 },
            out: vec![0; MAX_BYTES].into(),
            first_heard: None,
            finished: None,
            is_peer_gone: false,
            account: Account::default(),
            report,
        })
    }

    /// From the first datagram to the last byte, seconds.
    pub(crate) fn busy_s(&self) -> f64 {
        let until = self.finished.unwrap_or_else(Instant::now);
        self.first_heard.map_or(0.0, |first| until.duration_since(first).as_secs_f64())
    }

    /// Runs until the transfer has ended.
    pub(crate) fn run(
        &mut self,
        is_interrupted: &AtomicBool,
        mut progress: impl FnMut(u64, Option<u64>),
    ) -> Result<Ended, Failure> {
        let mut buffer = vec![0; LARGEST_DATAGRAM];
        let mut told = Instant::now();
        let mut reported = Instant::now();
        let mut closed: Option<Instant> = None;
        loop {
            if let Some(by) = self.clock.move_origin() {
                self.party.move_origin(by);
            }
            let now = self.clock.now();
            self.catch_up(now);
            self.party.step(now)?;
            if self.party.is_closed() {
                closed = closed.or(Some(Instant::now()));
            }
            self.transmit(now);
            if self.party.is_safe() && self.finished.is_none() {
                self.finished = Some(Instant::now());
            }
            let is_closed_long = closed.is_some_and(|closed| closed.elapsed() > LINGER || self.is_peer_gone);
            let is_enough = self.finished.is_some_and(|finished| finished.elapsed() > LONGEST_CLOSING);
            if self.party.is_safe() && (is_closed_long || is_enough || self.is_peer_gone) {
                return Ok(Ended::Done);
            }
            if is_interrupted.load(Ordering::Relaxed) {
                return Ok(Ended::Interrupted);
            }
            if told.elapsed() > Duration::from_millis(500) {
                told = Instant::now();
                progress(self.party.moved_bytes(), self.party.size());
            }
            if let Some(every) = self.report.filter(|every| reported.elapsed() >= *every) {
                reported += every;
                self.print_report();
            }
            self.wait()?;
            while self.receive(&mut buffer)? {}
        }
    }

    /// A line of JSON with the counts so far.
    fn print_report(&self) {
        let (moved, Account { sent, received, .. }) = (self.party.moved_bytes(), self.account);
        let unix_s = unix_micros() as f64 / 1e6;
        println!("{{\"unix_s\": {unix_s:.6}, \"moved_bytes\": {moved}, \"sent\": {sent}, \"received\": {received}}}");
    }

    /// Handles the deadlines that have passed, at the time of each.
    fn catch_up(&mut self, now: Time) {
        let mut last = now.since(CATCH_UP);
        while let Some(due) = self.party.poll_timeout().filter(|due| *due <= now) {
            let at = due.max(last);
            self.party.handle_timeout(at);
            let is_sent = self.transmit(at);
            let is_later = self.party.poll_timeout().is_none_or(|next| next > due);
            if !is_sent && !is_later {
                break;
            }
            last = at;
        }
    }

    /// Sends all pending segments; returns whether there were any.
    fn transmit(&mut self, now: Time) -> bool {
        let mut is_sent = false;
        while let Some((to, transmit)) = self.party.poll_transmit(now) {
            is_sent = true;
            self.account.sent += 1;
            if self.drop.is_lost() {
                self.account.dropped += 1;
                continue;
            }
            let outside = Outside { ecn: transmit.ecn, ..Outside::default() };
            let encoded = encode_segment_into(&transmit.packet, &outside, &mut self.out);
            if let Ok(bytes) = encoded {
                let datagram = quinn_udp::Transmit {
                    destination: to,
                    ecn: to_codepoint(transmit.ecn),
                    contents: &self.out[..bytes],
                    segment_size: None,
                    src_ip: None,
                };
                let sent = self.datagrams.try_send(UdpSockRef::from(&self.socket), &datagram);
                // A datagram that the socket refuses counts as lost.
                if let Err(error) = sent {
                    self.is_peer_gone |= error.kind() == ErrorKind::ConnectionRefused;
                }
            }
        }
        is_sent
    }

    /// Waits for a datagram, until the next deadline. A socket's own timeout is rounded up to a tick of the kernel's scheduler, which
    /// takes as long as many packets; that of `ppoll` is not.
    fn wait(&self) -> Result<(), Failure> {
        let until = self.party.poll_timeout().map_or(LONGEST_WAIT, |due| self.clock.until(due).min(LONGEST_WAIT));
        if until.is_zero() {
            return Ok(());
        }
        let until = Timespec { tv_sec: 0, tv_nsec: until.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&until)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(broken(&error.into())),
        }
    }

    /// Receives what the socket has next, a datagram or several that the kernel has put together; returns whether there was any.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool, Failure> {
        let mut meta = [RecvMeta::default()];
        let received = self.datagrams.recv(UdpSockRef::from(&self.socket), &mut [IoSliceMut::new(buffer)], &mut meta);
        if let Err(error) = received {
            return match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(false),
                ErrorKind::ConnectionRefused => {
                    self.is_peer_gone = true;
                    Ok(false)
                }
                _ => Err(broken(&error)),
            };
        }
        let [RecvMeta { addr: from, len, stride, ecn, .. }] = meta;
        let now = self.clock.now();
        for datagram in buffer[..len].chunks(stride.max(1)) {
            self.handle_datagram(now, from, datagram, ecn);
        }
        Ok(true)
    }

    fn handle_datagram(&mut self, now: Time, from: SocketAddr, datagram: &[u8], ecn: Option<EcnCodepoint>) {
        self.account.received += 1;
        match decode_segment::<Bytes>(&Bytes::copy_from_slice(datagram)) {
            Ok(arrived) => {
                self.is_peer_gone = false;
                self.first_heard.get_or_insert_with(Instant::now);
                // A mark in either header is a mark.
                let ecn = if ecn == Some(EcnCodepoint::Ce) { Ecn::Congestion } else { arrived.outside.ecn };
                let rx = Rx { ecn, integrity: arrived.integrity };
                self.party.handle_packet(now, from, &arrived.segment, rx);
            }
            Err(why) => {
                let place = Refusal::ALL.iter().position(|known| *known == why);
                self.account.refused[place.expect("all are listed")] += 1;
            }
        }
    }
}

fn to_codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable0 => Some(EcnCodepoint::Ect0),
        Ecn::Capable1 => Some(EcnCodepoint::Ect1),
        Ecn::Congestion => Some(EcnCodepoint::Ce),
    }
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::new(format!("the socket fails: {error}"), "run it again")
}

/// The protocols' time. It continues across processes, so that a peer can tell new segments from old ones.
struct Clock {
    started: Instant,
    /// What it read at the start.
    offset: Duration,
    /// How far its origin has moved since, because a `Time` ends after 213 days.
    moved: OriginShift,
}

impl Clock {
    fn new() -> Self {
        // Timestamps have 32 bits of microseconds.
        let offset = Duration::from_micros(unix_micros() & 0xffff_ffff);
        Clock { started: Instant::now(), offset, moved: OriginShift::default() }
    }

    fn now(&self) -> Time {
        let unmoved = self.offset + self.started.elapsed();
        Time::from_ps((unmoved - Duration::from_secs(self.moved.as_secs())).as_nanos() as u64 * 1_000)
    }

    /// Moves the origin, if it is time; returns by how much.
    fn move_origin(&mut self) -> Option<OriginShift> {
        let by = OriginShift::due(self.now())?;
        self.moved += by;
        Some(by)
    }

    /// Time until `at`.
    fn until(&self, due: Time) -> Duration {
        Duration::from_nanos(due.since(self.now()).as_ps().div_ceil(1_000))
    }
}

pub(crate) fn unix_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Drops datagrams at random.
struct Dropper {
    state: u64,
    below: u64,
}

impl Dropper {
    /// Marsaglia's xorshift.
    fn is_lost(&mut self) -> bool {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 32) < self.below
    }
}

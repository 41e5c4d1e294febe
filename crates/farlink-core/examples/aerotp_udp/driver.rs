//! Drives an endpoint in real time: datagrams in and out, and its deadlines.

use std::fmt;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use farlink_core::protocol::aerotp::Connection;
use farlink_core::wire::aerotp::{Outside, Refusal, decode_segment, encode_segment_into};
use farlink_core::wire::ipv4::MAX_BYTES;
use farlink_core::{Endpoint, Event, Rx, Time};

use crate::Failure;

/// Who reads or writes the stream.
pub(crate) trait Application {
    /// Bytes that are through.
    fn moved_bytes(&self) -> u64;
    /// Bytes that there are to be, if that is known.
    fn size(&self) -> Option<u64>;
    /// Reads or writes what can be.
    fn step(&mut self, now: Time, end: &mut Connection<Bytes>) -> Result<(), Failure>;
    fn on_event(&mut self, now: Time, event: Event, end: &mut Connection<Bytes>);
    /// All data is through, whatever becomes of the connection.
    fn is_safe(&self) -> bool;
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    Interrupted,
}

/// What went over the socket.
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

pub(crate) struct Driver {
    socket: UdpSocket,
    is_connected: bool,
    end: Connection<Bytes>,
    clock: Clock,
    drop: Dropper,
    out: Box<[u8]>,
    first_heard: Option<Instant>,
    finished: Option<Instant>,
    is_peer_gone: bool,
    pub(crate) account: Account,
}

/// Longer than any segment that a peer of this program sends.
const LARGEST_DATAGRAM: usize = 65_536;
/// Something is looked at so often at least: the signal, the progress.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// After the end, the last acknowledgement is repeated for whoever asks.
const LINGER: Duration = Duration::from_millis(500);
/// Once all data is through, the closing of the connection may take so long.
const LONGEST_CLOSING: Duration = Duration::from_secs(3);
/// Deadlines that were missed by less are made up for, one by one: a sleep that lasts a little too long costs no rate.
const CATCH_UP: Time = Time::from_millis(5);

impl Driver {
    pub(crate) fn new(socket: UdpSocket, end: Connection<Bytes>, drop: f64) -> Result<Self, Failure> {
        let is_connected = socket.peer_addr().is_ok();
        socket.set_nonblocking(true).map_err(|error| broken(&error))?;
        Ok(Driver {
            socket,
            is_connected,
            end,
            clock: Clock::new(),
            drop: Dropper { state: unix_micros() | 1, below: (drop * 2_f64.powi(32)) as u64 },
            out: vec![0; MAX_BYTES].into(),
            first_heard: None,
            finished: None,
            is_peer_gone: false,
            account: Account::default(),
        })
    }

    /// From the first datagram to the last byte, seconds.
    pub(crate) fn busy_s(&self) -> f64 {
        let until = self.finished.unwrap_or_else(Instant::now);
        self.first_heard.map_or(0.0, |first| until.duration_since(first).as_secs_f64())
    }

    /// Runs until the connection is over.
    pub(crate) fn run(
        &mut self,
        application: &mut impl Application,
        is_interrupted: &AtomicBool,
        mut progress: impl FnMut(u64, Option<u64>),
    ) -> Result<Ended, Failure> {
        let mut buffer = vec![0; LARGEST_DATAGRAM];
        let mut told = Instant::now();
        let mut closed: Option<Instant> = None;
        loop {
            let now = self.clock.now();
            self.catch_up(now);
            application.step(now, &mut self.end)?;
            while let Some(event) = self.end.poll_event() {
                match event {
                    Event::Aborted(why) if !application.is_safe() => {
                        let what = format!("the transfer failed: {why:?}");
                        return Err(Failure::new(what, "start `receive` first, then `send`; give --wait more seconds"));
                    }
                    Event::Closed | Event::Aborted(_) => closed = closed.or(Some(Instant::now())),
                    event => application.on_event(now, event, &mut self.end),
                }
            }
            self.transmit(now);
            if application.is_safe() && self.finished.is_none() {
                self.finished = Some(Instant::now());
            }
            let is_closed_long = closed.is_some_and(|closed| closed.elapsed() > LINGER || self.is_peer_gone);
            let is_enough = self.finished.is_some_and(|finished| finished.elapsed() > LONGEST_CLOSING);
            if application.is_safe() && (is_closed_long || is_enough || self.is_peer_gone) {
                return Ok(Ended::Done);
            }
            if is_interrupted.load(Ordering::Relaxed) {
                return Ok(Ended::Interrupted);
            }
            if told.elapsed() > Duration::from_millis(500) {
                told = Instant::now();
                progress(application.moved_bytes(), application.size());
            }
            self.wait(&mut buffer)?;
            while self.receive(&mut buffer)? {}
        }
    }

    /// Lives through the deadlines that have passed, at the time of each.
    fn catch_up(&mut self, now: Time) {
        let mut last = now.since(CATCH_UP);
        while let Some(due) = self.end.poll_timeout().filter(|due| *due <= now) {
            let at = due.max(last);
            self.end.handle_timeout(at);
            let is_sent = self.transmit(at);
            let is_later = self.end.poll_timeout().is_none_or(|next| next > due);
            if !is_sent && !is_later {
                break;
            }
            last = at;
        }
    }

    /// Sends what there is to send; whether there was something.
    fn transmit(&mut self, now: Time) -> bool {
        let mut is_sent = false;
        while let Some(transmit) = self.end.poll_transmit(now) {
            is_sent = true;
            self.account.sent += 1;
            if self.drop.is_lost() {
                self.account.dropped += 1;
                continue;
            }
            let outside = Outside { ecn: transmit.ecn, ..Outside::default() };
            let encoded = encode_segment_into(&transmit.packet, &outside, &mut self.out);
            if let Some(bytes) = encoded.ok().filter(|_| self.is_connected) {
                // What the socket does not take is lost like anything else that is lost.
                if let Err(error) = self.socket.send(&self.out[..bytes]) {
                    self.is_peer_gone |= error.kind() == ErrorKind::ConnectionRefused;
                }
            }
        }
        is_sent
    }

    /// Waits for a datagram, until the next deadline.
    fn wait(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        let until = self.end.poll_timeout().map_or(LONGEST_WAIT, |due| self.clock.until(due).min(LONGEST_WAIT));
        if until.is_zero() {
            return Ok(());
        }
        let wait = || self.socket.set_read_timeout(Some(until)).and_then(|()| self.socket.set_nonblocking(false));
        wait().map_err(|error| broken(&error))?;
        let received = self.receive(buffer);
        self.socket.set_nonblocking(true).map_err(|error| broken(&error))?;
        received.map(|_| ())
    }

    /// Takes a datagram from the socket; whether there was one.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool, Failure> {
        let (bytes, from) = match self.socket.recv_from(buffer) {
            Ok(received) => received,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => return Ok(false),
                ErrorKind::ConnectionRefused => {
                    self.is_peer_gone = true;
                    return Ok(false);
                }
                _ => return Err(broken(&error)),
            },
        };
        self.account.received += 1;
        let now = self.clock.now();
        match decode_segment::<Bytes>(&Bytes::copy_from_slice(&buffer[..bytes])) {
            Ok(arrived) => {
                if !self.is_connected {
                    // Who speaks AeroTP first is the peer; the socket keeps all others out from now on.
                    self.socket.connect(from).map_err(|error| broken(&error))?;
                    self.is_connected = true;
                }
                self.is_peer_gone = false;
                self.first_heard.get_or_insert_with(Instant::now);
                let rx = Rx { ecn: arrived.outside.ecn, integrity: arrived.integrity };
                self.end.handle_packet(now, &arrived.segment, rx);
            }
            Err(why) => {
                let place = Refusal::ALL.iter().position(|known| *known == why);
                self.account.refused[place.expect("all are listed")] += 1;
            }
        }
        Ok(true)
    }
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::new(format!("the socket fails: {error}"), "run it again")
}

/// Time as the protocols have it. It goes on from process to process, so that a peer can tell new segments from old ones.
struct Clock {
    started: Instant,
    offset: Time,
}

impl Clock {
    fn new() -> Self {
        // Timestamps have 32 bits of microseconds.
        Clock { started: Instant::now(), offset: Time::from_ps((unix_micros() & 0xffff_ffff) * 1_000_000) }
    }

    fn now(&self) -> Time {
        self.offset + Time::from_ps(self.started.elapsed().as_nanos() as u64 * 1_000)
    }

    /// How long it takes until then.
    fn until(&self, due: Time) -> Duration {
        Duration::from_nanos(due.since(self.now()).as_ps().div_ceil(1_000))
    }
}

pub(crate) fn unix_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Loses datagrams at random.
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

//! Drives a path in real time.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use farlink_core::Time;
use farlink_core::emulator::{Emulator, End, Parcel};
use farlink_core::link::LinkState;
use farlink_core::path::PathSetup;

use super::{EmulateError, Lateness, Report, WayReport};

/// The two ends of a path: where its packets come from and go to.
pub trait Line {
    /// Its packets.
    type Packet: Parcel;

    /// Waits until packets may have come in, or for so long.
    ///
    /// # Errors
    /// If the system does not wait.
    fn wait(&mut self, at_most: Duration) -> io::Result<()>;

    /// The next packet that has come in at an end.
    ///
    /// # Errors
    /// If none will ever come.
    fn receive(&mut self, at: End) -> Result<Option<Self::Packet>, EmulateError>;

    /// Gives a packet to the system at an end; returns whether it took it.
    fn send(&mut self, at: End, packet: Self::Packet) -> bool;

    /// Whether it wants to know the link into which an end sends.
    fn wants_own_link(&self) -> bool {
        false
    }

    /// The link into which an end sends has another state now, or its first one.
    fn set_own_link(&mut self, _at: End, _state: LinkState) {}

    /// How many clients there are, if it knows any.
    fn clients(&self) -> u64 {
        0
    }
}

impl<L: Line> Line for &mut L {
    type Packet = L::Packet;

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        (**self).wait(at_most)
    }

    fn receive(&mut self, at: End) -> Result<Option<L::Packet>, EmulateError> {
        (**self).receive(at)
    }

    fn send(&mut self, at: End, packet: L::Packet) -> bool {
        (**self).send(at, packet)
    }

    fn wants_own_link(&self) -> bool {
        (**self).wants_own_link()
    }

    fn set_own_link(&mut self, at: End, state: LinkState) {
        (**self).set_own_link(at, state);
    }

    fn clients(&self) -> u64 {
        (**self).clients()
    }
}

/// The path that is emulated, and its duration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path.
    pub path: PathSetup,
    /// Seed of the random streams,
    pub seed: u64,
    /// and the number of the run.
    pub run: u64,
    /// When it ends; until it is stopped by default.
    pub duration: Option<Duration>,
    /// Most bytes of packets under way on each way.
    pub most_bytes: u64,
    /// Before a packet is due the driver stops to sleep and looks at the clock instead, for so long.
    pub spin: Duration,
}

/// Looks at a run from another thread.
#[derive(Debug, Default)]
pub struct Watch {
    is_stopped: AtomicBool,
    latest: Mutex<Report>,
}

impl Watch {
    /// Ends the run.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// The run so far, a tenth of a second ago at most.
    pub fn latest(&self) -> Report {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Packets that are taken from an end before those that are due.
const BATCH: usize = 32;
/// Longest wait, and the interval of reports.
const INTERVAL: Duration = Duration::from_millis(100);

/// Plays a path until its end, or until it is stopped.
///
/// # Errors
/// If the line breaks.
pub fn run<L: Line>(settings: &Settings, line: &mut L, watch: &Watch) -> Result<Report, EmulateError> {
    without_timer_slack();
    let emulator = Emulator::new(&settings.path, settings.seed, settings.run, settings.most_bytes);
    let slowest = |hops: &[farlink_core::hop::HopSetup]| hops.iter().map(|hop| hop.most_bps()).fold(f64::MAX, f64::min);
    let rates = [slowest(&settings.path.forward), slowest(&settings.path.back)];
    let first_change = if line.wants_own_link() { Time::ZERO } else { Time::NEVER };
    let driver = Driver {
        emulator,
        line,
        started: now(),
        started_unix: since_1970(),
        lateness: Default::default(),
        untaken: [0; 2],
        rates,
        next_change: [first_change; 2],
    };
    driver.run(settings, watch)
}

struct Driver<'a, L: Line> {
    emulator: Emulator<L::Packet>,
    line: &'a mut L,
    started: Instant,
    started_unix: Duration,
    /// Of the packets that left at the far end, and at the near one.
    lateness: [Lateness; 2],
    untaken: [u64; 2],
    rates: [f64; 2],
    /// When the links into which the ends send have other states, if anybody wants to know.
    next_change: [Time; 2],
}

impl<L: Line> Driver<'_, L> {
    fn run(mut self, settings: &Settings, watch: &Watch) -> Result<Report, EmulateError> {
        let end = settings.duration.map_or(Time::NEVER, time_of);
        let mut next_report = Time::ZERO;
        loop {
            self.send_due();
            self.tell_links();
            for from in End::BOTH {
                for _ in 0..BATCH {
                    let Some(packet) = self.line.receive(from)? else { break };
                    let now = self.now();
                    self.emulator.handle_packet(now, from, packet);
                }
            }
            let now = self.now();
            if now >= next_report {
                next_report = now + time_of(INTERVAL);
                if let Ok(mut latest) = watch.latest.try_lock() {
                    *latest = self.report(now);
                }
                if watch.is_stopped.load(Ordering::Relaxed) {
                    return Ok(self.report(now));
                }
            }
            if now >= end {
                return Ok(self.report(now));
            }
            let next = self.next_change.into_iter().fold(self.emulator.poll_timeout(), Time::min);
            let left = span_of(next.min(end).min(next_report).since(now));
            self.line.wait(left.saturating_sub(settings.spin)).map_err(EmulateError::Wait)?;
        }
    }

    #[inline]
    fn now(&self) -> Time {
        time_of(now() - self.started)
    }

    /// Gives the system what is due.
    fn send_due(&mut self) {
        for from in End::BOTH {
            while let Some(departure) = self.emulator.poll(self.now(), from.other()) {
                if !self.line.send(from.other(), departure.packet) {
                    self.untaken[from as usize] += 1;
                }
                let late = self.now().since(departure.due);
                self.lateness[from as usize].add(late);
            }
        }
    }

    /// Tells the line what the ends' own links have become.
    fn tell_links(&mut self) {
        for at in End::BOTH {
            let now = self.now();
            if now >= self.next_change[at as usize] {
                let (state, until) = self.emulator.own_link(now, at);
                self.next_change[at as usize] = until;
                self.line.set_own_link(at, state);
            }
        }
    }

    fn report(&mut self, now: Time) -> Report {
        let ways = End::BOTH.map(|from| {
            let counts = self.emulator.counts(from).clone();
            let packet_s = counts.mean_bytes().unwrap_or(0.0) * 8.0 / self.rates[from as usize];
            WayReport {
                held_bytes: self.emulator.held_bytes(from),
                untaken: self.untaken[from as usize],
                lateness: self.lateness[from as usize].clone(),
                is_up: self.emulator.are_up(now, from),
                packet_time: Time::from_secs_f64(packet_s),
                counts,
            }
        });
        Report { started: self.started_unix, elapsed: span_of(now), ways, clients: self.line.clients() }
    }
}

#[inline]
#[expect(clippy::disallowed_methods, reason = "who plays in real time has a clock")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a result says when it began")]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn time_of(span: Duration) -> Time {
    Time::from_ps(u64::try_from(span.as_nanos().saturating_mul(1_000)).unwrap_or(u64::MAX))
}

fn span_of(time: Time) -> Duration {
    Duration::from_nanos(time.as_ps().div_ceil(1_000))
}

/// The kernel may wake up a thread later than it asked for, so that it wakes up several at once: by 50 us unless the thread says otherwise.
fn without_timer_slack() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)) {
        tracing::debug!(%error, "timers keep their slack");
    }
}

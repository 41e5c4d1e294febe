//! Drives both ways over the devices in real time.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use farlink_core::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::json;

use crate::command_line::Failure;
use crate::counts::Lateness;
use crate::tun::Tun;
use crate::way::Way;

/// Longer than any packet of a TUN device.
const LONGEST_PACKET: usize = 65_536;
/// Packets that are read in a row before those that are due.
const BATCH: usize = 16;
/// Longest interval between checks of the signal, less than a second.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

pub(crate) struct Driver {
    devices: [Tun; 2],
    /// From the first device to the second, and back.
    ways: [Way; 2],
    every: Duration,
    started: Instant,
    lateness: Lateness,
}

impl Driver {
    pub(crate) fn new(devices: [Tun; 2], ways: [Way; 2], every: Duration) -> Self {
        Driver { devices, ways, every, started: Instant::now(), lateness: Lateness::default() }
    }

    /// Relays until it is interrupted.
    pub(crate) fn run(&mut self, is_interrupted: &AtomicBool) -> Result<(), Failure> {
        let mut buffer = vec![0; LONGEST_PACKET];
        let mut told = Instant::now();
        self.tell()?;
        while !is_interrupted.load(Ordering::Relaxed) {
            self.send_due();
            for from in [0, 1] {
                for _ in 0..BATCH {
                    let Some(bytes) = self.devices[from].read(&mut buffer)? else { break };
                    let now = self.now();
                    self.ways[from].handle_packet(now, buffer[..bytes].to_vec());
                }
            }
            if told.elapsed() >= self.every {
                told += self.every;
                self.tell()?;
            }
            self.wait()?;
        }
        self.tell()
    }

    fn now(&self) -> Time {
        Time::from_ps(self.started.elapsed().as_nanos() as u64 * 1_000)
    }

    /// Writes what is due to the device at the other end.
    fn send_due(&mut self) {
        for to in [1, 0] {
            while let Some((due, packet)) = self.ways[1 - to].poll(self.now()) {
                if !self.devices[to].write(&packet) {
                    self.lateness.refuse();
                }
                self.lateness.add(self.now().since(due));
            }
        }
    }

    /// Waits for a packet, until the next one is due.
    fn wait(&self) -> Result<(), Failure> {
        let due = self.ways[0].poll_timeout().min(self.ways[1].poll_timeout());
        let left = Duration::from_nanos(due.since(self.now()).as_ps().div_ceil(1_000)).min(LONGEST_WAIT);
        let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let [near, far] = &self.devices;
        match poll(&mut [PollFd::new(near, PollFlags::IN), PollFd::new(far, PollFlags::IN)], Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Failure::new(format!("cannot wait for packets: {error}"), "run it again")),
        }
    }

    /// Prints a line of counts.
    fn tell(&self) -> Result<(), Failure> {
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let [there, back] = self.ways.each_ref().map(|way| way.flows.to_json());
        let line = json!({ "unix_s": unix_s, "there": there, "back": back, "late": self.lateness.to_json() });
        let mut out = std::io::stdout().lock();
        let told = writeln!(out, "{line}").and_then(|()| out.flush());
        told.map_err(|error| Failure::new(format!("cannot print: {error}"), "look who reads it"))
    }
}

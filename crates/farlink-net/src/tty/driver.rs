//! Runs a bundle of lines: moves bytes, packets and time between it and the system.

use std::future::pending;

use bytes::Bytes;
use farlink_core::ppp::{Bundle, Event};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::capture::{Capture, Way};
use super::port::{Place, Said, run};
use super::{TtyConfig, TtyError, Tun};
use crate::io::{Clock, unix_us};
use crate::seal::random::OsRandom;

/// What ports have said and the bundle has not heard, at most: a port that says more waits.
const MOST_SAID: usize = 64;
/// From the end of the bundle to that of its ports: the peer hears of it.
const FAREWELL: std::time::Duration = std::time::Duration::from_millis(500);

/// A bundle of lines and its TUN device.
#[derive(Debug)]
pub struct Driver {
    bundle: Bundle<OsRandom>,
    clock: Clock,
    tun: Option<Tun>,
    told: Receiver<(usize, Said)>,
    ports: Vec<PortState>,
    capture: Option<Capture>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct PortState {
    out: Sender<Vec<u8>>,
    portion: usize,
    has_carrier: bool,
    is_busy: bool,
}

impl Driver {
    /// Starts the ports. Without a TUN device, packets that come are dropped.
    ///
    /// # Errors
    /// If the configuration is wrong.
    pub fn start(config: &TtyConfig, tun: Option<Tun>) -> Result<Self, TtyError> {
        let bundle = Bundle::new(config.bundle()?, OsRandom);
        let (tell, told) = channel(MOST_SAID);
        let mut tasks = JoinSet::new();
        let mut ports = Vec::new();
        for (line, place) in config.lines().iter().map(Place::of).enumerate() {
            let (out, taken) = channel(1);
            ports.push(PortState { out, portion: place.portion(), has_carrier: false, is_busy: false });
            tasks.spawn(run(line, place, taken, tell.clone()));
        }
        let capture = config.capture()?;
        Ok(Driver { bundle, clock: Clock::start(), tun, told, ports, capture, _tasks: tasks })
    }

    /// The bundle, to be asked how it stands.
    pub fn bundle(&self) -> &Bundle<impl farlink_core::rng::RandomSource> {
        &self.bundle
    }

    /// Runs until the next event; it may be cancelled.
    ///
    /// # Errors
    /// If the TUN device is gone.
    pub async fn next_event(&mut self) -> Result<Event, TtyError> {
        loop {
            if let Some(event) = self.bundle.poll_event() {
                return Ok(event);
            }
            self.write();
            let now = self.clock.now();
            let until = self.bundle.poll_timeout().map(|due| self.clock.until(due));
            let timeout = async {
                match until {
                    Some(until) => tokio::time::sleep(until).await,
                    None => pending().await,
                }
            };
            let packet = async {
                match &mut self.tun {
                    Some(tun) => tun.receive().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                said = self.told.recv() => if let Some((line, said)) = said { self.said(line, said) },
                () = timeout => self.bundle.handle_timeout(self.clock.now().max(now)),
                packet = packet => {
                    self.bundle.send(self.clock.now(), Bytes::from(packet?));
                }
            }
            while let Some(packet) = self.bundle.poll_packet() {
                if let Some(tun) = &self.tun {
                    tun.send(&packet);
                }
            }
        }
    }

    fn said(&mut self, line: usize, said: Said) {
        let now = self.clock.now();
        match said {
            Said::Carrier(is_up) => {
                (self.ports[line].has_carrier, self.ports[line].is_busy) = (is_up, false);
                self.bundle.on_carrier(now, line, is_up);
            }
            Said::Bytes(bytes) => {
                if let Some(capture) = &mut self.capture {
                    capture.add(unix_us(), line, Way::Received, &bytes);
                }
                self.bundle.receive(now, line, &bytes);
            }
            Said::Sent(count) => {
                self.ports[line].is_busy = false;
                self.bundle.sent(now, line, count);
            }
        }
    }

    /// Gives each port that is free its next bytes.
    fn write(&mut self) {
        for (line, port) in self.ports.iter_mut().enumerate() {
            if port.has_carrier
                && !port.is_busy
                && self.bundle.has_bytes(line)
                && let Ok(place) = port.out.try_reserve()
            {
                let mut bytes = Vec::new();
                self.bundle.poll_bytes(line, port.portion, &mut bytes);
                if let Some(capture) = &mut self.capture {
                    capture.add(unix_us(), line, Way::Sent, &bytes);
                }
                place.send(bytes);
                port.is_busy = true;
            }
        }
    }

    /// Ends all lines and tells the peer, for at most half a second.
    pub async fn close(mut self) {
        self.bundle.close(self.clock.now());
        let _ = tokio::time::timeout(FAREWELL, async { while self.next_event().await.is_ok() {} }).await;
    }
}

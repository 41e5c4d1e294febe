//! Runs a bundle of lines: moves bytes, packets and time between it and the system.

use std::future::pending;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use farlink_core::Time;
use farlink_core::ppp::{Bundle, Event};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded_channel};
use tokio::task::JoinSet;

use super::capture::{Capture, Way};
use super::port::{Place, Said, run, run_handed};
use super::tun::Tun;
use super::{TtyConfig, TtyError};
use crate::bundle::flow;
use crate::io::{Clock, unix_us};
use crate::mss;
use crate::seal::random::OsRandom;

/// Most reports of ports that the bundle has not taken: a port that has more waits.
const MOST_SAID: usize = 64;
/// From the end of the bundle to that of its ports: the peer hears of it.
const FAREWELL: std::time::Duration = std::time::Duration::from_millis(500);
/// A [`Time`] ends after 213 days: before that everything begins again.
const LONGEST_RUN: Time = Time::from_secs(200 * 86_400);

/// Events.
#[derive(Debug)]
pub(super) enum Happened {
    /// To the bundle.
    Bundle(Event),
    /// The terminal of a line is closed here.
    Released(usize),
}

/// A bundle of lines and its TUN device.
#[derive(Debug)]
pub(super) struct Driver {
    config: TtyConfig,
    bundle: Bundle<OsRandom>,
    clock: Clock,
    tun: Tun,
    told: Receiver<(usize, Said)>,
    ports: Vec<PortState>,
    released: Option<usize>,
    capture: Option<Capture>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct PortState {
    out: Sender<Vec<u8>>,
    /// Where terminals are handed over, for a line that gets them so.
    orders: Option<UnboundedSender<Option<OwnedFd>>>,
    portion: usize,
    has_carrier: bool,
    is_busy: bool,
    bytes_in: u64,
    bytes_out: u64,
}

/// Bytes that a port has carried, and whether it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) has_carrier: bool,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
}

impl Driver {
    /// Starts the ports, within a runtime of `tokio`.
    pub(super) fn start(config: TtyConfig, tun: OwnedFd, capture: Option<Capture>) -> Result<Self, TtyError> {
        let bundle = Bundle::new(config.bundle.clone(), OsRandom);
        let (tell, told) = channel(MOST_SAID);
        let mut tasks = JoinSet::new();
        let mut ports = Vec::new();
        for (line, place) in config.lines.iter().map(Place::of).enumerate() {
            let (out, taken) = channel(1);
            let portion = place.portion();
            let mut orders = None;
            if let Place::Handed { bytes_per_s } = place {
                let (order, ordered) = unbounded_channel();
                orders = Some(order);
                tasks.spawn(run_handed(line, bytes_per_s, ordered, taken, tell.clone()));
            } else {
                tasks.spawn(run(line, place, taken, tell.clone()));
            }
            ports.push(PortState {
                out,
                orders,
                portion,
                has_carrier: false,
                is_busy: false,
                bytes_in: 0,
                bytes_out: 0,
            });
        }
        let (tun, clock) = (Tun::new(tun)?, Clock::start());
        Ok(Driver { config, bundle, clock, tun, told, ports, released: None, capture, _tasks: tasks })
    }

    /// The bundle, to be asked how it stands.
    pub(super) fn bundle(&self) -> &Bundle<OsRandom> {
        &self.bundle
    }

    /// Bytes that a port has carried.
    pub(super) fn carried(&self, line: usize) -> Carried {
        self.ports.get(line).map_or(Carried::default(), |port| Carried {
            has_carrier: port.has_carrier,
            bytes_in: port.bytes_in,
            bytes_out: port.bytes_out,
        })
    }

    /// Hands a terminal over to a line, or asks for it back; `false` if the line has a port of its own.
    pub(super) fn hand_over(&mut self, line: usize, terminal: Option<OwnedFd>) -> bool {
        let orders = self.ports.get(line).and_then(|port| port.orders.as_ref());
        orders.is_some_and(|orders| orders.send(terminal).is_ok())
    }

    /// Runs until the next event; it may be cancelled.
    ///
    /// # Errors
    /// If the TUN device is gone.
    pub(super) async fn next_event(&mut self) -> Result<Happened, TtyError> {
        loop {
            if let Some(event) = self.bundle.poll_event() {
                return Ok(Happened::Bundle(event));
            }
            if let Some(line) = self.released.take() {
                return Ok(Happened::Released(line));
            }
            self.begin_again();
            self.write();
            let now = self.clock.now();
            let until = self.bundle.poll_timeout().map(|due| self.clock.until(due));
            let timeout = async {
                match until {
                    Some(until) => tokio::time::sleep(until).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                said = self.told.recv() => if let Some((line, said)) = said { self.said(line, said) },
                () = timeout => self.bundle.handle_timeout(self.clock.now().max(now)),
                packet = self.tun.receive() => {
                    let packet = packet.map_err(|error| {
                        tracing::warn!(%error, "the device cannot be read");
                        TtyError::Ended("the TUN device")
                    })?;
                    self.take(packet);
                }
            }
            self.deliver();
        }
    }

    /// A packet of the host goes to the bundle.
    fn take(&mut self, mut packet: Vec<u8>) {
        let flow = flow::of(&packet, &[0; 64]).map_or(0, |(_, flow)| flow);
        if let Some(properties) = self.bundle.properties() {
            mss::clamp(&mut packet, properties.mtu);
        }
        self.bundle.send(self.clock.now(), Bytes::from(packet), flow);
    }

    /// Packets of the peer go to the host.
    fn deliver(&mut self) {
        while let Some(packet) = self.bundle.poll_packet() {
            let own = self.config.bundle.link.lcp.multilink.as_ref().map_or(u16::MAX, |it| it.mrru);
            let longest = self.bundle.properties().map_or(own, |properties| own.min(properties.mtu));
            self.tun.send(&mss::clamped(packet, longest));
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
                self.ports[line].bytes_in += bytes.len() as u64;
                self.bundle.receive(now, line, &bytes);
            }
            Said::Sent(count) => {
                self.ports[line].is_busy = false;
                self.ports[line].bytes_out += count as u64;
                self.bundle.sent(now, line, count);
            }
            Said::Released => self.released = Some(line),
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

    /// The clock has come to its end: lines that have carrier negotiate anew.
    fn begin_again(&mut self) {
        if self.clock.now() < LONGEST_RUN {
            return;
        }
        self.clock = Clock::start();
        self.bundle = Bundle::new(self.config.bundle.clone(), OsRandom);
        let now = self.clock.now();
        for (line, port) in self.ports.iter().enumerate().filter(|(_, port)| port.has_carrier) {
            tracing::info!(line, busy = port.is_busy, "the clock begins anew");
            self.bundle.on_carrier(now, line, true);
        }
    }

    /// Ends all lines and tells the peer, for at most half a second.
    pub(super) async fn close(mut self) {
        self.bundle.close(self.clock.now());
        let _ = tokio::time::timeout(FAREWELL, async { while self.next_event().await.is_ok() {} }).await;
    }
}

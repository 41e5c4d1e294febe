//! The side that opens: one connection and the file that it sends.

use std::net::SocketAddr;

use bytes::Bytes;
use farlink_core::protocol::aerotp::{AerotpConfig, Connection, Segment};
use farlink_core::rng::RandomSource;
use farlink_core::{Endpoint, Event, Rx, Time, Transmit};

use crate::Failure;
use crate::driver::Party;
use crate::file::Outgoing;

pub(crate) struct Sending {
    end: Connection<Bytes>,
    to: SocketAddr,
    file: Outgoing,
    is_closed: bool,
}

impl Sending {
    pub(crate) fn new(config: &AerotpConfig, random: &mut dyn RandomSource, to: SocketAddr, file: Outgoing) -> Self {
        Sending { end: Connection::connect(config, random), to, file, is_closed: false }
    }
}

impl Party for Sending {
    fn handle_packet(&mut self, now: Time, _from: SocketAddr, segment: &Segment<Bytes>, rx: Rx) {
        self.end.handle_packet(now, segment, rx); // the connected socket accepts no other sender
    }

    fn handle_timeout(&mut self, now: Time) {
        self.end.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(SocketAddr, Transmit<Segment<Bytes>>)> {
        self.end.poll_transmit(now).map(|transmit| (self.to, transmit))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.end.poll_timeout()
    }

    fn step(&mut self, now: Time) -> Result<(), Failure> {
        self.file.step(now, &mut self.end)?;
        while let Some(event) = self.end.poll_event() {
            match event {
                Event::Aborted(why) if !self.file.is_safe() => {
                    let what = format!("the transfer failed: {why:?}");
                    return Err(Failure::new(what, "start `receive` first, then `send`; give --wait more seconds"));
                }
                Event::Closed | Event::Aborted(_) => self.is_closed = true,
                Event::Connected => self.file.on_connected(),
                _ => {}
            }
        }
        Ok(())
    }

    fn moved_bytes(&self) -> u64 {
        self.file.moved_bytes()
    }

    fn size(&self) -> Option<u64> {
        Some(self.file.size())
    }

    fn is_safe(&self) -> bool {
        self.file.is_safe()
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}

//! The side that opens: one connection at a time and the file that it sends.

use std::net::SocketAddr;

use bytes::Bytes;
use farlink_core::event::Abort;
use farlink_core::protocol::aerotp::{AerotpConfig, Connection, Segment};
use farlink_core::{Endpoint, Event, OriginShift, Rx, Time, Transmit};

use crate::command_line::Failure;
use crate::driver::Party;
use crate::file::Outgoing;
use crate::random::SystemRandom;

/// Time before another attempt at a receiver that does not know the connection.
const PAUSE: Time = Time::from_millis(200);

pub(crate) struct Sending {
    config: AerotpConfig,
    random: SystemRandom,
    end: Connection<Bytes>,
    to: SocketAddr,
    file: Outgoing,
    is_closed: bool,
    /// When more of the file last arrived; none before the first step.
    progress: Option<Time>,
    /// When the next attempt begins, if the receiver has lost the connection.
    again_at: Option<Time>,
    /// How far the origin of the clock has moved.
    moved: OriginShift,
}

impl Sending {
    pub(crate) fn new(config: &AerotpConfig, mut random: SystemRandom, to: SocketAddr, file: Outgoing) -> Self {
        let end = Connection::connect(config, &mut random);
        Sending {
            config: config.clone(),
            random,
            end,
            to,
            file,
            is_closed: false,
            progress: None,
            again_at: None,
            moved: OriginShift::default(),
        }
    }

    /// A receiver that was started again does not know the connection: another one sends the file from its beginning, unless nothing
    /// has arrived for as long as a silent peer is waited for.
    fn on_aborted(&mut self, now: Time, why: Abort) -> Result<(), Failure> {
        let is_lost = matches!(why, Abort::Reset | Abort::PeerRestarted);
        let until = self.progress.unwrap_or(now) + self.config.give_up_after_s.time();
        if is_lost && now < until {
            eprintln!("the receiver does not know the transfer ({why:?}); sending from the beginning");
            self.again_at = Some(now + PAUSE);
            return Ok(());
        }
        let what = format!("the transfer failed: {why:?}");
        Err(Failure::new(what, "start `receive` first, then `send`; give --wait more seconds"))
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
        self.again_at.or_else(|| self.end.poll_timeout())
    }

    fn move_origin(&mut self, by: OriginShift) {
        self.end.move_origin(by);
        self.moved += by;
        for at in [&mut self.progress, &mut self.again_at].into_iter().flatten() {
            *at = at.since(by.time());
        }
    }

    fn step(&mut self, now: Time) -> Result<(), Failure> {
        if let Some(at) = self.again_at {
            if now < at {
                return Ok(());
            }
            self.again_at = None;
            self.end = Connection::connect(&self.config, &mut self.random);
            self.end.move_origin(self.moved);
            self.file.begin_again()?;
        }
        let before = self.file.moved_bytes();
        self.file.step(now, &mut self.end)?;
        if self.progress.is_none() || self.file.moved_bytes() > before {
            self.progress = Some(now);
        }
        while let Some(event) = self.end.poll_event() {
            match event {
                Event::Aborted(why) if !self.file.is_safe() => return self.on_aborted(now, why),
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

//! The side that accepts: a host with a connection and a file for each sender.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use farlink_core::protocol::aerotp::{Acceptor, AcceptorLimits, AerotpConfig, Handle, Segment, State};
use farlink_core::{Event, OriginShift, Rx, Stream, Time, Transmit};

use crate::command_line::Failure;
use crate::driver::Party;
use crate::file::Incoming;
use crate::random::SystemRandom;

/// A sender without a file.
#[derive(Clone, Copy)]
struct Waiting {
    handle: Handle,
    /// Whether it has sent an empty file, whose end does not wait to be read.
    is_empty: bool,
}

pub(crate) struct Receiving {
    acceptor: Acceptor<SocketAddr, Bytes>,
    random: SystemRandom,
    /// Files without a sender, the next one last.
    free: Vec<Incoming>,
    /// Senders without a file, in the order in which they came.
    waiting: Vec<Waiting>,
    under_way: BTreeMap<Handle, Incoming>,
    whole: Vec<Incoming>,
    /// Complete files whose connections are not closed yet.
    closing: Vec<Handle>,
}

impl Receiving {
    pub(crate) fn new(config: &AerotpConfig, random: SystemRandom, mut files: Vec<Incoming>) -> Result<Self, Failure> {
        files.reverse();
        let acceptor = Acceptor::new(config, AcceptorLimits::default())
            .map_err(|error| Failure::new(error.to_string(), "this is a fault of the program"))?;
        let (waiting, under_way, whole, closing) = (Vec::new(), BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Receiving { acceptor, random, free: files, waiting, under_way, whole, closing })
    }

    /// Gives the files their names.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        self.whole.into_iter().try_for_each(Incoming::keep)
    }

    fn on_event(&mut self, now: Time, handle: Handle, event: Event) -> Result<(), Failure> {
        match event {
            Event::Connected => self.waiting.push(Waiting { handle, is_empty: false }),
            Event::Finished if self.under_way.contains_key(&handle) => self.complete(now, handle),
            Event::Finished => {
                self.waiting.iter_mut().filter(|it| it.handle == handle).for_each(|it| it.is_empty = true)
            }
            Event::Aborted(why) => {
                if let Some(mut file) = self.under_way.remove(&handle) {
                    eprintln!("a sender is gone ({why:?}) before its file was whole; waiting for another one");
                    file.clear()?;
                    self.free.push(file);
                }
                self.waiting.retain(|it| it.handle != handle);
                self.closing.retain(|closing| *closing != handle);
            }
            Event::Closed => self.closing.retain(|closing| *closing != handle),
            _ => {}
        }
        Ok(())
    }
}

impl Receiving {
    /// Gives files to senders that wait for one. A single datagram may be a stranger's: a sender has to have answered, or to have sent
    /// everything. The sender of a file may be gone, which shows after a while; therefore others wait while files are under way.
    fn assign(&mut self, now: Time) {
        let mut empty = Vec::new();
        let (acceptor, is_over) = (&mut self.acceptor, self.free.is_empty() && self.under_way.is_empty());
        self.waiting.retain(|&Waiting { handle, is_empty }| {
            if is_over {
                acceptor.remove(handle); // its sender gets a reset
                return false;
            }
            let is_sender =
                acceptor.get(handle).is_some_and(|end| !end.is_half_open() || end.state() == State::AfinRcvd);
            let Some(file) = (if is_sender { self.free.pop() } else { None }) else { return true };
            self.under_way.insert(handle, file);
            empty.extend(is_empty.then_some(handle));
            false
        });
        empty.into_iter().for_each(|handle| self.complete(now, handle));
    }

    /// A file is whole.
    fn complete(&mut self, now: Time, handle: Handle) {
        if let Some(file) = self.under_way.remove(&handle)
            && let Some(end) = self.acceptor.get_mut(handle)
        {
            self.whole.push(file);
            self.closing.push(handle);
            end.close(now);
        }
    }
}

impl Party for Receiving {
    fn handle_packet(&mut self, now: Time, from: SocketAddr, segment: &Segment<Bytes>, rx: Rx) {
        self.acceptor.handle_packet(now, from, segment, rx, &mut self.random);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.acceptor.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(SocketAddr, Transmit<Segment<Bytes>>)> {
        self.acceptor.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.acceptor.poll_timeout()
    }

    fn move_origin(&mut self, by: OriginShift) {
        self.acceptor.move_origin(by);
    }

    fn step(&mut self, now: Time) -> Result<(), Failure> {
        loop {
            self.assign(now);
            for (&handle, file) in &mut self.under_way {
                if let Some(end) = self.acceptor.get_mut(handle) {
                    file.step(end)?;
                }
            }
            let Some((handle, event)) = self.acceptor.poll_event() else { return Ok(()) };
            self.on_event(now, handle, event)?;
        }
    }

    fn moved_bytes(&self) -> u64 {
        self.under_way.values().chain(&self.whole).map(Incoming::moved_bytes).sum()
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn is_safe(&self) -> bool {
        self.free.is_empty() && self.under_way.is_empty()
    }

    fn is_closed(&self) -> bool {
        self.is_safe() && self.closing.is_empty()
    }
}

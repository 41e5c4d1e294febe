//! The side that accepts: a host with a connection and a file for each sender.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use farlink_core::protocol::aerotp::{Acceptor, AcceptorLimits, AerotpConfig, Handle, Segment};
use farlink_core::{Event, Rx, Stream, Time, Transmit};

use crate::Failure;
use crate::driver::Party;
use crate::file::Incoming;
use crate::random::SystemRandom;

pub(crate) struct Receiving {
    acceptor: Acceptor<SocketAddr, Bytes>,
    random: SystemRandom,
    /// Files without a sender, the next one last.
    free: Vec<Incoming>,
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
        let (under_way, whole, closing) = (BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Receiving { acceptor, random, free: files, under_way, whole, closing })
    }

    /// Gives the files their names.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        self.whole.into_iter().try_for_each(Incoming::keep)
    }

    fn on_event(&mut self, now: Time, handle: Handle, event: Event) -> Result<(), Failure> {
        match event {
            Event::Connected => match self.free.pop() {
                Some(file) => drop(self.under_way.insert(handle, file)),
                None => self.acceptor.remove(handle), // its sender gets a reset
            },
            Event::Finished => {
                if let Some(file) = self.under_way.remove(&handle)
                    && let Some(end) = self.acceptor.get_mut(handle)
                {
                    self.whole.push(file);
                    self.closing.push(handle);
                    end.close(now);
                }
            }
            Event::Aborted(why) => {
                if let Some(mut file) = self.under_way.remove(&handle) {
                    eprintln!("a sender is gone ({why:?}) before its file was whole; waiting for another one");
                    file.clear()?;
                    self.free.push(file);
                }
                self.closing.retain(|closing| *closing != handle);
            }
            Event::Closed => self.closing.retain(|closing| *closing != handle),
            _ => {}
        }
        Ok(())
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

    fn step(&mut self, now: Time) -> Result<(), Failure> {
        loop {
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

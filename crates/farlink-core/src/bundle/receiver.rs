//! The receiver of a bundle: that of RFC 1990, with or without a timer, or that of Linux.

use super::fragment::Fragment;
use super::linux;
use super::reassembly::{Counts, Reassembler};
use crate::payload::Payload;
use crate::time::Time;

/// Reassembles packets by one of two rules.
#[derive(Debug)]
pub(super) enum Receiver<D> {
    Rfc1990(Reassembler<D>),
    Linux(linux::Receiver<D>),
}

impl<D: Payload> Receiver<D> {
    pub(super) fn on_fragment(&mut self, now: Time, line: usize, fragment: Fragment<D>) {
        match self {
            Receiver::Rfc1990(receiver) => receiver.on_fragment(now, line, fragment),
            Receiver::Linux(receiver) => receiver.on_fragment(line, fragment),
        }
    }

    pub(super) fn set_up(&mut self, now: Time, line: usize, is_up: bool) {
        match self {
            Receiver::Rfc1990(receiver) => receiver.set_up(now, line, is_up),
            Receiver::Linux(receiver) => receiver.set_up(line, is_up),
        }
    }

    /// The bundle begins anew.
    pub(super) fn restart(&mut self) {
        match self {
            Receiver::Rfc1990(receiver) => receiver.restart(),
            Receiver::Linux(receiver) => receiver.restart(),
        }
    }

    /// When it stops waiting for a missing fragment; `None` without a timer.
    pub(super) fn deadline(&self) -> Option<Time> {
        match self {
            Receiver::Rfc1990(receiver) => receiver.deadline(),
            Receiver::Linux(_) => None,
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        match self {
            Receiver::Rfc1990(receiver) => receiver.on_timeout(now),
            Receiver::Linux(_) => {}
        }
    }

    pub(super) fn next_packet(&mut self, now: Time, pieces: &mut Vec<D>) -> bool {
        match self {
            Receiver::Rfc1990(receiver) => receiver.next_packet(now, pieces),
            Receiver::Linux(receiver) => receiver.next_packet(pieces),
        }
    }

    /// Number of fragments from the first on that were delivered or given up.
    pub(super) fn settled(&self) -> u64 {
        match self {
            Receiver::Rfc1990(receiver) => receiver.settled(),
            Receiver::Linux(receiver) => receiver.settled(),
        }
    }

    pub(super) fn held(&self) -> usize {
        match self {
            Receiver::Rfc1990(receiver) => receiver.held(),
            Receiver::Linux(receiver) => receiver.held(),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        match self {
            Receiver::Rfc1990(receiver) => receiver.counts(),
            Receiver::Linux(receiver) => receiver.counts(),
        }
    }
}

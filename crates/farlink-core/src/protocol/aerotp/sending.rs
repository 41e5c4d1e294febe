//! Senders of a stream: one variant for each family of modes, with a common interface for the connection.

use crate::origin::{MoveOrigin, OriginShift};
use crate::payload::Payload;
use crate::time::Time;

use super::coded;
use super::config::AerotpConfig;
use super::mack_fields::MackFields;
use super::mode::Mode;
use super::open_loop;
use super::outgoing::{Account, Outgoing};
use super::packet_size::PacketSize;
use super::rate::Outcomes;
use super::reliable;
use super::window_requests::RemainingWindow;

/// Sends a stream.
#[derive(Clone, Debug)]
pub(super) enum Sending<D> {
    Reliable(reliable::Sender<D>),
    OpenLoop(open_loop::Sender<D>),
    Datagrams(open_loop::Outbox<D>),
    Coded(Box<coded::Sender<D>>),
}

/// When a sender has to act.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// When [`on_timeout`](Sending::on_timeout) is due, apart from the pacer.
    pub(super) deadline: Time,
    /// When [`next`](Sending::next) will return something.
    pub(super) ready_at: Time,
    /// Since when an answer is due.
    pub(super) awaits_since: Time,
}

/// The same call for each variant.
macro_rules! each {
    ($self:expr, $sender:ident => $call:expr) => {
        match $self {
            Sending::Reliable($sender) => $call,
            Sending::OpenLoop($sender) => $call,
            Sending::Datagrams($sender) => $call,
            Sending::Coded($sender) => $call,
        }
    };
}

impl<D: Payload> MoveOrigin for Sending<D> {
    fn move_origin(&mut self, by: OriginShift) {
        each!(self, sender => sender.move_origin(by));
    }
}

impl<D: Payload> Sending<D> {
    pub(super) fn new(config: &AerotpConfig) -> Self {
        match config.mode {
            Mode::Reliable | Mode::NearReliable if config.coded.is_some() => {
                Sending::Coded(Box::new(coded::Sender::new(config)))
            }
            Mode::Reliable | Mode::NearReliable => Sending::Reliable(reliable::Sender::new(config)),
            Mode::QuasiReliable | Mode::Unreliable => Sending::OpenLoop(open_loop::Sender::new(config)),
            Mode::Datagram => Sending::Datagrams(open_loop::Outbox::new(config)),
        }
    }

    /// Takes data; returns the number of bytes taken.
    pub(super) fn write(&mut self, now: Time, data: &mut D) -> usize {
        each!(self, sender => sender.write(now, data))
    }

    /// Closes the stream: no more data will be written.
    pub(super) fn close(&mut self) {
        each!(self, sender => sender.close());
    }

    /// The next data or symbol to send, with at most `most_bytes` bytes of payload. It counts as sent.
    #[inline]
    pub(super) fn next(&mut self, now: Time, most_bytes: u32) -> Option<Outgoing<D>> {
        each!(self, sender => sender.next(now, most_bytes))
    }

    pub(super) fn on_mack(&mut self, now: Time, mack: &MackFields) {
        each!(self, sender => sender.on_mack(now, mack));
    }

    /// Outcomes of transmissions since they were last taken from here, where MACKs tell them.
    pub(super) fn outcomes(&mut self) -> Option<&mut Outcomes> {
        match self {
            Sending::Reliable(sender) => Some(sender.outcomes()),
            Sending::Coded(sender) => Some(&mut sender.outcomes),
            Sending::OpenLoop(sender) => sender.outcomes(),
            Sending::Datagrams(_) => None,
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        each!(self, sender => sender.on_timeout(now));
    }

    /// The link has come up or gone down.
    pub(super) fn on_link(&mut self, now: Time, is_up: bool) {
        each!(self, sender => sender.on_link(now, is_up));
    }

    /// Takes a report of the link's bit error rate.
    pub(super) fn on_ber(&mut self, now: Time, ber: f64) {
        match self {
            Sending::Reliable(sender) => sender.on_ber(now, ber),
            Sending::Coded(sender) => sender.on_ber(now, ber),
            Sending::OpenLoop(_) | Sending::Datagrams(_) => {}
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is due, apart from the pacer.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        each!(self, sender => sender.deadline())
    }

    /// When [`next`](Self::next) will return something; never if it has nothing.
    #[inline]
    pub(super) fn ready_at(&self) -> Time {
        each!(self, sender => sender.ready_at())
    }

    /// Whether [`next`](Self::next) has no effect before [`ready_at`](Self::ready_at).
    #[inline]
    pub(super) fn only_waits(&self) -> bool {
        match self {
            Sending::Reliable(sender) => sender.only_waits(),
            Sending::OpenLoop(sender) => sender.only_waits(),
            Sending::Datagrams(_) | Sending::Coded(_) => false,
        }
    }

    /// When it has to act, in one look: every segment asks for it.
    #[inline]
    pub(super) fn timing(&self) -> Timing {
        each!(self, sender => Timing {
            deadline: sender.deadline(),
            ready_at: sender.ready_at(),
            awaits_since: sender.awaits_since(),
        })
    }

    /// Since when an answer is due; never if none is.
    pub(super) fn awaits_since(&self) -> Time {
        each!(self, sender => sender.awaits_since())
    }

    /// The first unacknowledged position, and the position after all sent data including the end of the stream.
    #[inline]
    pub(super) fn limits(&self) -> (u64, u64) {
        each!(self, sender => sender.limits())
    }

    /// The rest of the peer's window, if there is data for it.
    pub(super) fn left(&self) -> Option<RemainingWindow> {
        match self {
            Sending::Reliable(sender) => sender.left(),
            Sending::Coded(sender) => sender.left(),
            Sending::OpenLoop(_) | Sending::Datagrams(_) => None,
        }
    }

    /// Bytes that were written and never sent; messages in the mode without a stream do not count.
    pub(super) fn unsent_bytes(&self) -> u64 {
        match self {
            Sending::Reliable(sender) => sender.unsent_bytes(),
            Sending::Coded(sender) => sender.unsent_bytes(),
            Sending::OpenLoop(sender) => sender.unsent_bytes(),
            Sending::Datagrams(_) => 0,
        }
    }

    /// The position before which no data will be retransmitted. `[U1]`, `[N3]`
    pub(super) fn settled_bytes(&self) -> u64 {
        match self {
            Sending::Reliable(_) | Sending::Coded(_) => self.limits().0,
            Sending::OpenLoop(sender) => sender.settled_bytes(),
            Sending::Datagrams(sender) => sender.limits().1,
        }
    }

    /// Whether all data was sent and acknowledged; its end may not be.
    pub(super) fn is_all_acknowledged(&self) -> bool {
        each!(self, sender => sender.is_all_acknowledged())
    }

    /// Whether the end was acknowledged as well.
    pub(super) fn is_done(&self) -> bool {
        each!(self, sender => sender.is_done())
    }

    /// The class of the last result of [`next`](Self::next).
    #[inline]
    pub(super) fn class(&self) -> u8 {
        if let Sending::Datagrams(outbox) = self { outbox.class() } else { 0 }
    }

    /// Switches codes across packets on or off, if the mode has any.
    pub(super) fn set_coded(&mut self, is_coded: bool) {
        if let Sending::OpenLoop(sender) = self {
            sender.set_coded(is_coded);
        }
    }

    /// Packets have another size from now on. Segments of data and datagrams are cut when they are sent. `[S2]`, `[S3]`
    pub(super) fn set_packet_size(&mut self, now: Time, size: PacketSize) {
        match self {
            Sending::Reliable(sender) => sender.set_packet_size(now, size),
            Sending::Coded(sender) => sender.set_packet_size(now, size),
            Sending::OpenLoop(_) | Sending::Datagrams(_) => {}
        }
    }

    /// Bytes given up because of their age since the last call.
    pub(super) fn take_expired(&mut self) -> u64 {
        match self {
            Sending::Reliable(sender) => sender.take_expired(),
            Sending::Coded(sender) => sender.take_expired(),
            Sending::OpenLoop(sender) => sender.take_expired(),
            Sending::Datagrams(sender) => sender.take_expired(),
        }
    }

    /// The position at which the stream continues after data that was given up, if the peer has to be told and `room` bytes
    /// suffice.
    #[inline]
    pub(super) fn tell_forward(&mut self, now: Time, room: u32) -> Option<u64> {
        match self {
            Sending::Reliable(sender) => sender.tell_forward(now, room),
            Sending::Coded(sender) => sender.tell_forward(now, room),
            Sending::OpenLoop(_) | Sending::Datagrams(_) => None,
        }
    }

    /// Whether data was given up, or there is room again for an application that waits for it.
    #[inline]
    pub(super) fn may_have_event(&self) -> bool {
        match self {
            Sending::Reliable(sender) => sender.may_have_event(),
            Sending::OpenLoop(sender) => sender.may_have_event(),
            Sending::Datagrams(_) | Sending::Coded(_) => true,
        }
    }

    /// Whether there is room again for an application that waits for it; returns `true` once.
    pub(super) fn take_writable(&mut self) -> bool {
        each!(self, sender => sender.take_writable())
    }

    pub(super) fn account(&self) -> &Account {
        each!(self, sender => &sender.account)
    }
}

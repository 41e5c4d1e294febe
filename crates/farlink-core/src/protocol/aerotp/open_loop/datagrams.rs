//! The datagram mode: single messages without a connection.

use std::collections::VecDeque;

use crate::origin::instants;
use crate::payload::Payload;
use crate::time::Time;

use super::super::config::AerotpConfig;
use super::super::incoming::{Incoming, most_pieces};
use super::super::mack_fields::MackFields;
use super::super::outgoing::{Account, Outgoing};
use super::super::segment::CLASS_BYTES;
use super::classes::{Classes, Service};

/// Messages to be sent.
#[derive(Clone, Debug)]
pub(in super::super) struct Outbox<D> {
    messages: Classes<D>,
    /// The class of the last message sent.
    class: usize,
    /// Total bytes sent.
    sent: u64,
    is_closing: bool,
    is_link_down: bool,
    pub(in super::super) account: Account,
}

instants! { Outbox<D>: messages; fixed: class, sent, is_closing, is_link_down, account }

impl<D: Payload> Outbox<D> {
    pub(in super::super) fn new(config: &AerotpConfig) -> Self {
        Outbox {
            messages: Classes::new(config.deadline_s.map(|deadline| deadline.time())),
            class: 0,
            sent: 0,
            is_closing: false,
            is_link_down: false,
            account: Account::default(),
        }
    }

    pub(in super::super) fn write(&mut self, now: Time, data: &mut D) -> usize {
        self.write_class(now, 0, data)
    }

    pub(in super::super) fn set_service(&mut self, class: usize, service: Service) {
        self.messages.set_service(class, service);
    }

    /// The class of the last message sent.
    pub(in super::super) fn class(&self) -> u8 {
        self.class as u8
    }

    pub(in super::super) fn write_class(&mut self, now: Time, class: usize, data: &mut D) -> usize {
        let n = data.len();
        if n == 0 || self.is_closing {
            return 0;
        }
        self.messages.push(now, class, std::mem::take(data));
        n
    }

    pub(in super::super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// The next message; one that is too long for a packet is sent in several. `[D2]`
    #[inline]
    pub(in super::super) fn next(&mut self, now: Time, most_bytes: u32) -> Option<Outgoing<D>> {
        if self.is_link_down {
            return None;
        }
        // Classes other than 0 need an optional field.
        let most =
            |class| if class == 0 { most_bytes } else { most_bytes.saturating_sub(u32::from(CLASS_BYTES)).max(1) };
        let (class, payload) = self.messages.pop(now, most)?;
        self.class = class;
        let position = self.sent;
        self.sent += payload.len() as u64;
        Some(Outgoing { position, payload, is_end: false, repair: None })
    }

    pub(in super::super) fn on_link(&mut self, _now: Time, is_up: bool) {
        self.is_link_down = !is_up;
    }

    #[inline]
    pub(in super::super) fn ready_at(&self) -> Time {
        if self.messages.is_empty() || self.is_link_down { Time::NEVER } else { Time::ZERO }
    }

    pub(in super::super) fn limits(&self) -> (u64, u64) {
        (0, self.sent)
    }

    pub(in super::super) fn is_done(&self) -> bool {
        self.is_closing && self.messages.is_empty()
    }

    pub(in super::super) fn is_all_acknowledged(&self) -> bool {
        self.is_done()
    }

    pub(in super::super) fn on_mack(&mut self, _now: Time, _mack: &MackFields) {}

    /// Messages that are too old are dropped. `[V1]`
    pub(in super::super) fn on_timeout(&mut self, now: Time) {
        self.messages.expire(now);
    }

    #[inline]
    pub(in super::super) fn deadline(&self) -> Time {
        self.messages.next_due()
    }

    pub(in super::super) fn take_expired(&mut self) -> u64 {
        self.messages.take_expired()
    }

    pub(in super::super) fn awaits_since(&self) -> Time {
        Time::NEVER
    }

    /// Writes always succeed, so there is never a wait for room.
    pub(in super::super) fn take_writable(&mut self) -> bool {
        false
    }
}

/// Messages that have arrived.
#[derive(Clone, Debug)]
pub(in super::super) struct Inbox<D> {
    messages: VecDeque<D>,
    bytes: u64,
    most_bytes: u64,
}

impl<D: Payload> Inbox<D> {
    pub(in super::super) fn new(config: &AerotpConfig) -> Self {
        Inbox { messages: VecDeque::new(), bytes: 0, most_bytes: config.first_buffer_bytes() }
    }

    /// Takes a message; returns whether there was room for it.
    pub(in super::super) fn on_segment(&mut self, _now: Time, incoming: Incoming<D>) -> bool {
        let payload = incoming.payload;
        let bytes = self.bytes + payload.len() as u64;
        if payload.is_empty() || bytes > self.most_bytes || self.messages.len() >= most_pieces(self.most_bytes) {
            return false;
        }
        self.bytes = bytes;
        self.messages.push_back(payload);
        true
    }

    pub(in super::super) fn read(&mut self) -> Option<D> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len() as u64;
        Some(message)
    }

    pub(in super::super) fn on_timeout(&mut self, _now: Time) {}

    pub(in super::super) fn deadline(&self) -> Time {
        Time::NEVER
    }

    pub(in super::super) fn next_position(&self) -> u64 {
        0
    }

    /// Datagrams have no end of stream.
    pub(in super::super) fn is_complete(&self) -> bool {
        false
    }

    pub(in super::super) fn is_read(&self) -> bool {
        false
    }

    /// No message waits for another.
    pub(in super::super) fn peak_bytes(&self) -> u64 {
        0
    }
}

//! Packets in flight on a path, their acknowledgements and losses.

use std::collections::VecDeque;

use super::control::RateSample;
use super::packet::TICK_SECONDS;
use super::repeats::{Chunk, Key};
use crate::time::Time;

/// Content of a packet that is sent again if it is lost.
#[derive(Clone, Debug)]
pub(super) enum Content<D> {
    /// A packet of the user, or a piece.
    Chunk(Chunk<D>),
    /// A piece that was handed on to other paths already.
    HandedOn(Key),
    /// A probe; whether it belongs to the trial of a path that was left out.
    Probe { is_trial: bool },
    /// A packet that was taken for lost; whether it was sent without load.
    Lost,
}

/// A packet in flight.
#[derive(Clone, Debug)]
pub(super) struct Sent<D> {
    pub(super) at: Time,
    /// Length with all headers.
    pub(super) bytes: u32,
    pub(super) content: Content<D>,
    pub(super) is_unloaded: bool,
    /// State of the delivery when it was sent.
    delivered: u64,
    delivered_at: Time,
    far_ticks: Option<u64>,
    /// When the packet was sent that was acknowledged last when this one was sent.
    acknowledged_from: Time,
    is_limited: bool,
}

/// The packets of one path that ask for an acknowledgement, in the order of their numbers.
#[derive(Clone, Debug)]
pub(super) struct Flight<D> {
    /// Number of the first element of `packets`.
    base: u64,
    /// `None`: asks for no acknowledgement, or has it.
    packets: VecDeque<Option<Sent<D>>>,
    /// Bytes in flight, headers included, and how many of them are of probes.
    bytes: u64,
    probe_bytes: u64,
    /// Bytes that were acknowledged, when the last were, and the far end's clock then.
    delivered: u64,
    delivered_at: Time,
    far_ticks: Option<u64>,
    /// When the packet was sent that was acknowledged last.
    acknowledged_from: Time,
    /// Less was sent than the path could carry, until so many bytes are acknowledged.
    limited_until: u64,
    largest: Option<u64>,
    /// A packet is lost when one with a number so much higher arrived.
    threshold: u64,
    last_progress: Time,
}

/// An acknowledged packet.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged<D> {
    pub(super) number: u64,
    pub(super) packet: Sent<D>,
}

/// RFC 9002, section 6.1.1.
const FIRST_THRESHOLD: u64 = 3;
const MOST_THRESHOLD: u64 = 128;

impl<D> Flight<D> {
    pub(super) fn new() -> Self {
        Flight {
            base: 0,
            packets: VecDeque::new(),
            bytes: 0,
            probe_bytes: 0,
            delivered: 0,
            delivered_at: Time::ZERO,
            far_ticks: None,
            acknowledged_from: Time::ZERO,
            limited_until: 0,
            largest: None,
            threshold: FIRST_THRESHOLD,
            last_progress: Time::ZERO,
        }
    }

    /// The number of the next packet.
    pub(super) fn next_number(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// Bytes in flight, headers included.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes in flight without probes, which hold no data back: a path with a round trip of minutes has many of them.
    pub(super) fn data_bytes(&self) -> u64 {
        self.bytes - self.probe_bytes
    }

    /// Number of packets that are remembered.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Takes the next number for a packet that asks for no acknowledgement.
    pub(super) fn pass(&mut self) {
        if self.packets.is_empty() {
            self.base += 1;
        } else {
            self.packets.push_back(None);
        }
    }

    /// Takes the next number for a packet.
    pub(super) fn send(&mut self, now: Time, bytes: u32, content: Content<D>, is_unloaded: bool) {
        if self.bytes == 0 {
            // A measurement over an idle time says nothing.
            self.delivered_at = now;
            self.acknowledged_from = now;
            self.far_ticks = None;
        }
        self.bytes += u64::from(bytes);
        if matches!(content, Content::Probe { .. }) {
            self.probe_bytes += u64::from(bytes);
        }
        self.packets.push_back(Some(Sent {
            at: now,
            bytes,
            content,
            is_unloaded,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            far_ticks: self.far_ticks,
            acknowledged_from: self.acknowledged_from,
            is_limited: self.limited_until > self.delivered,
        }));
    }

    /// The path could have carried more.
    pub(super) fn limit(&mut self) {
        self.limited_until = self.delivered + self.bytes.max(1);
    }

    /// Takes the packets with these numbers out.
    pub(super) fn acknowledge(&mut self, now: Time, start: u64, end: u64, into: &mut Vec<Acknowledged<D>>) {
        let first = start.max(self.base);
        for number in first..end.min(self.next_number()) {
            let Some(packet) = self.packets[(number - self.base) as usize].take() else { continue };
            if matches!(packet.content, Content::Lost) {
                self.threshold = (self.threshold * 2).min(MOST_THRESHOLD);
            } else {
                self.leave(&packet);
            }
            self.delivered += u64::from(packet.bytes);
            self.last_progress = now;
            into.push(Acknowledged { number, packet });
        }
    }

    /// A packet is no longer in flight.
    fn leave(&mut self, packet: &Sent<D>) {
        self.bytes -= u64::from(packet.bytes);
        if matches!(packet.content, Content::Probe { .. }) {
            self.probe_bytes -= u64::from(packet.bytes);
        }
    }

    /// After all packets of an acknowledgement: the rate at which the far end received, by the newest of them.
    pub(super) fn sample(&mut self, now: Time, newest: &Acknowledged<D>, far_ticks: u64) -> Option<RateSample> {
        self.delivered_at = now;
        let packet = &newest.packet;
        let bytes = self.delivered - packet.delivered;
        let sent = now.since(packet.delivered_at).as_secs_f64();
        let arrived = packet.far_ticks.map(|before| far_ticks.saturating_sub(before) as f64 * TICK_SECONDS);
        self.far_ticks = Some(far_ticks);
        // By the sender's clock the first flight after a pause takes a round trip, in which the path was not full.
        let took_to_send = packet.at.since(packet.acknowledged_from).as_secs_f64();
        let seconds = arrived.unwrap_or(sent).max(took_to_send);
        self.acknowledged_from = packet.at;
        let is_limited = packet.is_limited || arrived.is_none();
        (seconds > 2.0 * TICK_SECONDS).then(|| RateSample { rate: bytes as f64 / seconds, is_limited })
    }

    /// A number was acknowledged.
    pub(super) fn saw(&mut self, number: u64) {
        self.largest = Some(self.largest.map_or(number, |largest| largest.max(number)));
    }

    /// Packets that must be lost, as later ones arrived; and when the next one will be.
    pub(super) fn lose(&mut self, now: Time, delay: Time, into: &mut Vec<Sent<D>>) -> Time {
        let mut next = Time::NEVER;
        let Some(largest) = self.largest else { return next };
        let end = (largest + 1).saturating_sub(self.base).min(self.packets.len() as u64) as usize;
        let before = into.len();
        for (at, slot) in self.packets.iter_mut().take(end).enumerate() {
            let number = self.base + at as u64;
            let Some(packet) = slot.as_mut().filter(|packet| !matches!(packet.content, Content::Lost)) else {
                continue;
            };
            if number + self.threshold <= largest || packet.at + delay <= now {
                let content = std::mem::replace(&mut packet.content, Content::Lost);
                into.push(Sent { content, ..packet.without_content() });
            } else {
                next = next.min(packet.at + delay);
            }
        }
        into[before..].iter().for_each(|packet| self.leave(packet));
        self.trim();
        next
    }

    /// Forgets packets that are dealt with.
    fn trim(&mut self) {
        let largest = self.largest.unwrap_or(0);
        while let Some(first) = self.packets.front() {
            let is_done = match first {
                None => true,
                Some(packet) => matches!(packet.content, Content::Lost) && self.base + 2 * MOST_THRESHOLD < largest,
            };
            if !is_done {
                break;
            }
            self.packets.pop_front();
            self.base += 1;
        }
    }

    /// Since when the oldest packet in flight has had no acknowledgement, its own or of another one.
    pub(super) fn waiting_since(&self) -> Option<Time> {
        if self.bytes == 0 {
            return None;
        }
        let oldest = self.packets.iter().flatten().find(|packet| !matches!(packet.content, Content::Lost))?;
        Some(oldest.at.max(self.last_progress))
    }

    /// Every packet in flight, to hand its content on.
    pub(super) fn in_flight(&mut self) -> impl Iterator<Item = &mut Sent<D>> {
        self.packets.iter_mut().flatten().filter(|packet| !matches!(packet.content, Content::Lost))
    }

    /// Forgets all packets; returns them.
    pub(super) fn clear(&mut self) -> Vec<Sent<D>> {
        self.base = self.next_number();
        (self.bytes, self.probe_bytes) = (0, 0);
        self.packets.drain(..).flatten().filter(|packet| !matches!(packet.content, Content::Lost)).collect()
    }
}

impl<D> Sent<D> {
    fn without_content(&self) -> Sent<D> {
        Sent { content: Content::Lost, ..*self }
    }
}

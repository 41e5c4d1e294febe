//! Counts wrong bits, events and packets in a run.

use crate::scheme::Outcome;

use super::{Bursts, ErrorRate, Status};

/// Events longer than this number of gaps are counted as several, because at high error rates an event would never end.
const LONGEST_EVENT_GAPS: u64 = 20;

pub(super) struct Count {
    gap: u64,
    packet_bits: u64,
    pub(super) bits: u64,
    pub(super) wrong: Bursts,
    events: Bursts,
    packets: Bursts,
    gave_up: u64,
    open: Option<Event>,
    /// The packet that was last found to be wrong.
    last_packet: Option<u64>,
}

/// The event of the last wrong bit.
struct Event {
    first: u64,
    last: u64,
    wrong: u64,
    packets: u64,
}

impl Count {
    pub(super) fn new(gap: u64, packet_bits: u64, typical_event: f64) -> Count {
        Count {
            gap,
            packet_bits,
            bits: 0,
            wrong: Bursts::expecting(typical_event),
            events: Bursts::expecting(1.0),
            packets: Bursts::expecting(1.0),
            gave_up: 0,
            open: None,
            last_packet: None,
        }
    }

    /// Number of events that have ended.
    pub(super) fn events(&self) -> u64 {
        self.events.sum as u64
    }

    /// Counts the next batch.
    pub(super) fn add(&mut self, outcome: &Outcome, batch_bits: u64) {
        for &at in &outcome.wrong {
            self.wrong_bit(self.bits + u64::from(at));
        }
        self.bits += batch_bits;
        self.gave_up += outcome.gave_up;
    }

    fn wrong_bit(&mut self, at: u64) {
        let longest = LONGEST_EVENT_GAPS * self.gap;
        let belongs = |event: &Event| at - event.last - 1 < self.gap && at - event.first < longest;
        if self.open.as_ref().is_some_and(|event| !belongs(event)) {
            self.close();
        }
        let packet = at / self.packet_bits;
        let is_new_packet = self.last_packet != Some(packet);
        self.last_packet = Some(packet);
        let event = self.open.get_or_insert(Event { first: at, last: at, wrong: 0, packets: 0 });
        event.last = at;
        event.wrong += 1;
        event.packets += u64::from(is_new_packet);
    }

    fn close(&mut self) {
        if let Some(event) = self.open.take() {
            self.wrong.add(event.wrong as f64);
            self.events.add(1.0);
            // An event within a packet that is already wrong adds none.
            if event.packets > 0 {
                self.packets.add(event.packets as f64);
            }
        }
    }

    pub(super) fn finish(mut self, confidence: f64, status: Status) -> ErrorRate {
        self.close();
        let per_bit = 1.0 / self.bits.max(1) as f64;
        // A last, shortened packet counts as one.
        let packets = self.bits.div_ceil(self.packet_bits);
        ErrorRate {
            bits: self.bits,
            wrong_bits: self.wrong.sum as u64,
            events: self.events.sum as u64,
            gave_up: self.gave_up,
            packets,
            wrong_packets: self.packets.sum as u64,
            packet_bits: self.packet_bits,
            bit_error_rate: self.wrong.interval(confidence).scaled(per_bit).at_most(1.0),
            event_rate: self.events.interval(confidence).scaled(per_bit).at_most(1.0),
            packet_error_rate: self.packets.interval(confidence).scaled(1.0 / packets.max(1) as f64).at_most(1.0),
            status,
        }
    }
}

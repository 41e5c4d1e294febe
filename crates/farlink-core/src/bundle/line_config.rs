//! One line of a bundle, as a scenario gives it.

use super::arq::LinkArq;
use crate::channel::spell::Spell;
use crate::time::Time;
use crate::units::{BitRate, Count, Seconds};

/// One line of a bundle, both ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineConfig {
    /// Its rate.
    pub rate: BitRate,
    /// Its one-way delay.
    pub delay: Seconds,
    /// Room in its modem; as much as there is if none is given.
    pub modem_bytes: Option<Count>,
    /// Room in the buffer of its serial port.
    pub serial_bytes: Option<Count>,
    /// Rate of its serial line.
    pub serial_bps: Option<BitRate>,
    /// Repetition on it.
    pub arq: Option<LinkArq>,
    /// How long its calls last, if they drop at random.
    pub up: Option<Spell>,
    /// How long dialling takes on it.
    pub redial: Option<Spell>,
}

impl LineConfig {
    /// A line without repetition that takes what it is given and is always up.
    pub fn new(rate: BitRate, delay: Seconds) -> Self {
        LineConfig {
            rate,
            delay,
            modem_bytes: None,
            serial_bytes: None,
            serial_bps: None,
            arq: None,
            up: None,
            redial: None,
        }
    }

    /// How long a packet of so many bytes on the line may be behind those that were sent after it over other lines: the delay, and
    /// twice the mean time on the line, for the packet in front of it and its own.
    pub(super) fn usual_wait(&self, packet_bytes: u64) -> Time {
        let mean_bytes = self.arq.map_or(packet_bytes as f64, |arq| arq.mean_bytes(packet_bytes));
        let wait_s = self.delay.get() + 2.0 * 8.0 * mean_bytes / self.rate.get();
        Time::from_secs_f64(wait_s.min(MOST_WAIT_S))
    }
}

/// Nobody waits for longer than a scenario can say.
const MOST_WAIT_S: f64 = 1e7;

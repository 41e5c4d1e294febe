//! The settings of one line of a bundle.

use super::arq::LinkArq;
use crate::channel::random_duration::RandomDuration;
use crate::time::Time;
use crate::units::{BitRate, Count, Seconds};

/// The settings of one line of a bundle, for one direction. Only the rate may differ in the other one.
#[derive(Clone, Debug, PartialEq)]
pub struct LineConfig {
    /// Rate of the line in this direction.
    pub rate: BitRate,
    /// Rate in the other direction.
    pub return_rate: BitRate,
    /// Whether this direction leads to the near end, which dials.
    pub is_return: bool,
    /// One-way delay of the line.
    pub delay: Seconds,
    /// Room in its modem; `None` means no limit.
    pub modem_bytes: Option<Count>,
    /// Room in the buffer of its serial port, in addition to the modem's.
    pub serial_bytes: Option<Count>,
    /// Rate of its serial port; `None` means infinite.
    pub serial_bps: Option<BitRate>,
    /// Link-layer ARQ of the line.
    pub arq: Option<LinkArq>,
    /// How long its calls last, if they drop at random.
    pub up: Option<RandomDuration>,
    /// How long dialling the line takes.
    pub redial: Option<RandomDuration>,
}

impl LineConfig {
    /// A line without ARQ, of the same rate both ways and unlimited room, that is always up.
    pub fn new(rate: BitRate, delay: Seconds) -> Self {
        LineConfig {
            rate,
            return_rate: rate,
            is_return: false,
            delay,
            modem_bytes: None,
            serial_bytes: None,
            serial_bps: None,
            arq: None,
            up: None,
            redial: None,
        }
    }

    /// The same line in the other direction.
    #[must_use]
    pub fn reversed(&self) -> Self {
        LineConfig { rate: self.return_rate, return_rate: self.rate, is_return: !self.is_return, ..self.clone() }
    }

    /// Rates from the near end, which dials, and to it.
    pub(super) fn rates_of_near_end(&self) -> [BitRate; 2] {
        if self.is_return { [self.return_rate, self.rate] } else { [self.rate, self.return_rate] }
    }

    /// How much later than packets sent after it over other lines a packet of `packet_bytes` may arrive: the delay, and twice the
    /// mean time on the line, once for the packet in front of it and once for itself.
    pub(super) fn usual_wait(&self, packet_bytes: u64) -> Time {
        let mean_bytes = self.arq.as_ref().map_or(packet_bytes as f64, |arq| arq.mean_bytes(packet_bytes));
        let wait_s = self.delay.get() + 2.0 * 8.0 * mean_bytes / self.rate.get();
        Time::from_secs_f64(wait_s.min(MOST_WAIT_S))
    }
}

/// Upper limit of the wait, in s: the longest time that a scenario can express.
const MOST_WAIT_S: f64 = 1e7;

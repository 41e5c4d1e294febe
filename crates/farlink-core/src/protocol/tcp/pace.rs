//! Measurements of the path from the records of a connection's segments, and the resulting pacing rate.

use crate::payload::Payload;
use crate::protocol::parts::pacer::quantum;
use crate::time::Time;

use super::congestion::Control;
use super::connection::{State, TcpConnection};
use super::span::Span;
use super::variant::Reaction;
use super::window::Acked;

impl<D: Payload> TcpConnection<D> {
    /// An acknowledgement has arrived and is not processed yet.
    pub(super) fn begin_acknowledgement(&mut self, echo: Option<u32>) {
        self.check_app_limited();
        self.window.records.begin_acknowledgement();
        self.window.records.recent.original_end = None;
        self.window.records.recent.echo = echo.filter(|_| self.sizes.has_timestamps);
    }

    /// Checks whether the application has left the window unused.
    #[inline]
    pub(super) fn check_app_limited(&mut self) {
        if self.window.records.is_kept() {
            let has_unsent_data = self.window.nxt < self.window.end.max(self.written_end);
            self.window.records.check_app_limited(has_unsent_data, self.window.cwnd);
        }
    }

    /// A segment is sent: records it, and informs the congestion control if it is the first after an idle period.
    pub(super) fn record_sent(&mut self, now: Time, span: Span) {
        let records = &self.window.records;
        if records.in_flight() == 0 && records.is_app_limited() && self.state == State::Established {
            self.window.now = now;
            self.control.on_restart(&mut self.window);
            self.set_pace();
        }
        if self.window.records.is_ordered() {
            self.window.now = now;
        }
        self.window.records.on_sent(now, span);
    }

    /// Takes the sample of an acknowledgement, and sets the resulting pacing rate.
    #[inline(never)]
    pub(super) fn learn(&mut self, now: Time, acked: Acked) {
        if self.window.records.is_kept() {
            self.window.records.note_lost_below(self.running.lost_below(&self.window));
            self.find_lost();
            let mut sample = self.window.records.take_sample(now);
            if let Some(rtt) = sample.rtt {
                // Timestamps give a sample for new acknowledgements only.
                if !self.sizes.has_timestamps {
                    self.note_round_trip(rtt);
                }
                if !acked.is_new {
                    self.timer.on_reported(now, now - rtt, self.window.records.first_at());
                }
            }
            self.window.records.recent.least_rtt = self.window.rtt.least;
            self.running.on_processed(&mut self.window, &mut self.control, acked);
            (sample.newly_lost, sample.in_flight) = (self.window.records.newly_lost(), self.window.records.in_flight());
            // The segments of the handshake are too small for a rate.
            if self.state == State::Established {
                self.control.on_sample(&mut self.window, &sample);
            }
            if !self.control.wants_samples() && !self.running.wants_order() {
                self.window.records.stop();
            }
        }
        self.set_pace();
    }

    /// The connection is established: the round trip of the handshake determines the first pacing rate.
    pub(super) fn set_first_pace(&mut self) {
        self.control.on_established(&mut self.window);
        self.set_pace();
    }

    fn set_pace(&mut self) {
        if self.paces {
            let rate = self.control.pacing_rate(&self.window).unwrap_or_else(|| self.window.pacing_rate());
            self.pacer.set_bytes_per_s(rate);
            self.pacer.set_quantum(quantum(rate, self.window.mss));
        }
    }

    /// After a retransmission timeout nothing counts as in flight, unless the variant keeps its own account.
    pub(super) fn note_all_lost(&mut self) {
        if self.window.records.is_kept() && !self.running.wants_order() {
            self.window.records.note_all_lost();
            self.find_lost();
        }
    }

    fn find_lost(&mut self) {
        while let Some(lost) = self.window.records.next_lost() {
            self.control.on_lost(&mut self.window, &lost);
        }
    }
}

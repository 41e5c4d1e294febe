//! Data that the receiver of a flow got, and when.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farlink_core::Time;
use farlink_core::histogram::Histogram;

use super::ends::Stopwatch;
use super::tap::Counted;

/// Data that one flow delivered.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivered {
    /// Since the end of the warm-up.
    pub(super) bytes: u64,
    /// From the beginning of the stream.
    all_bytes: u64,
    pub(super) last: Option<Time>,
    /// Whether the sender has ended it.
    pub(super) is_done: bool,
    pub(super) failure: Option<String>,
    pub(super) delays: Histogram,
    pub(super) delay_sum_s: f64,
}

/// Notes what one flow delivers.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    flow: usize,
    delivered: Arc<Mutex<Delivered>>,
    counted: Arc<Mutex<Counted>>,
    watch: Stopwatch,
    span: [Time; 2],
}

impl Meter {
    pub(super) fn new(
        flow: usize,
        counted: Arc<Mutex<Counted>>,
        watch: Stopwatch,
        (warmup, end): (Duration, Duration),
    ) -> Self {
        let span = [warmup, end].map(|span| Time::from_secs_f64(span.as_secs_f64()));
        Meter { flow, delivered: Arc::default(), counted, watch, span }
    }

    /// Bytes of the stream have been read.
    pub(super) fn stream(&self, bytes: usize) {
        let now = self.watch.now();
        let mut delivered = self.delivered();
        delivered.all_bytes += bytes as u64;
        let stream_bytes = delivered.all_bytes;
        let first_sent = self.counted.lock().unwrap_or_else(PoisonError::into_inner).delivered(self.flow, stream_bytes);
        self.note(&mut delivered, now, bytes, first_sent.into_iter());
    }

    /// A message has come that was sent at some time.
    pub(super) fn message(&self, bytes: usize, sent: Time) {
        let now = self.watch.now();
        self.note(&mut self.delivered(), now, bytes, [sent].into_iter());
    }

    fn note(&self, delivered: &mut Delivered, now: Time, bytes: usize, sent: impl Iterator<Item = Time>) {
        if now < self.span[0] || now >= self.span[1] {
            return;
        }
        delivered.bytes += bytes as u64;
        delivered.last = Some(now);
        for sent in sent {
            let delay = now.since(sent);
            delivered.delays.record(delay, 1);
            delivered.delay_sum_s += delay.as_secs_f64();
        }
    }

    /// The sender has ended the flow.
    pub(super) fn done(&self) {
        let now = self.watch.now();
        let mut delivered = self.delivered();
        if now < self.span[1] {
            delivered.is_done = true;
            // The end itself may come late, and carries nothing.
            delivered.last.get_or_insert(now);
        }
    }

    /// The flow broke off.
    pub(super) fn failed(&self, why: impl ToString) {
        if self.watch.now() < self.span[1] {
            self.delivered().failure.get_or_insert(why.to_string());
        }
    }

    pub(super) fn is_over(&self) -> bool {
        let delivered = self.delivered();
        delivered.is_done || delivered.failure.is_some()
    }

    pub(super) fn read(&self) -> Delivered {
        self.delivered().clone()
    }

    fn delivered(&self) -> std::sync::MutexGuard<'_, Delivered> {
        self.delivered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

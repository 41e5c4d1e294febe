//! A bundle of lines that replaces a link.

use std::sync::Arc;

use super::{BundleSetup, Entry, Outcome, QueueLimit, Ticket};
use crate::bundle::{self, Availability, Calls, Counts, EmulatedBundle};
use crate::link::{LinkState, Verdict};
use crate::payload::Virtual;
use crate::rng::Rng;
use crate::time::Time;
use crate::units::BitRate;

/// One direction of a bundle.
#[derive(Debug)]
pub(super) struct Bundled {
    bundle: EmulatedBundle<Virtual>,
    view: View,
}

/// A second copy of the calls, for queries of the bundle's state, which may run ahead of its packets.
#[derive(Debug)]
struct View {
    calls: Option<Calls>,
    setup: Arc<BundleSetup>,
    /// Total rate of the lines that are up; while none is, the last rate.
    rate: BitRate,
}

impl Bundled {
    pub(super) fn new(setup: &Arc<BundleSetup>, limit: QueueLimit, is_reverse: bool, rng: Rng, hop: &Rng) -> Self {
        let calls = setup.config.start_calls(&setup.lines, hop);
        let bundle = EmulatedBundle::new(&setup.config, &setup.lines, limit, rng, hop);
        Bundled {
            bundle: if is_reverse { bundle.reversed() } else { bundle },
            view: View { calls, setup: Arc::clone(setup), rate: setup.rate() },
        }
    }

    /// A packet arrives: the bundle accepts or drops it.
    pub(super) fn send(&mut self, now: Time, bytes: u32) -> Entry {
        self.bundle.send(now, Virtual(bytes)).map_or(Entry::Sent(Verdict::Dropped), |slot| Entry::Waits(Ticket(slot)))
    }

    pub(super) fn poll_timeout(&self) -> Time {
        self.bundle.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.bundle.handle_timeout(now);
    }

    pub(super) fn poll(&mut self) -> Option<(Ticket, Outcome)> {
        let (slot, outcome) = self.bundle.poll()?;
        let outcome = match outcome {
            bundle::Outcome::Delivered => Outcome::ComesOut,
            bundle::Outcome::Lost => Outcome::Lost,
            bundle::Outcome::Cut => Outcome::CutOff,
        };
        Some((Ticket(slot), outcome))
    }

    pub(super) fn counts(&self) -> Counts {
        self.bundle.counts()
    }

    pub(super) fn begin_measurement(&mut self, now: Time) {
        self.bundle.begin_measurement(now);
    }

    pub(super) fn availability(&mut self, now: Time) -> Availability {
        self.bundle.availability(now)
    }

    /// The state of the bundle, as a link: it is up while any line seems to be up. Its rate is the sum over these
    /// lines, its delay the longest of all lines.
    pub(super) fn state(&mut self, now: Time) -> LinkState {
        let View { calls, setup, rate } = &mut self.view;
        let mut is_up = true;
        if let Some(calls) = calls {
            let mut changes = Vec::new();
            while calls.advance(now, &mut changes) {}
            let up = setup.lines.iter().enumerate().filter(|(index, _)| calls.seems_up(*index));
            let rates: f64 = up.map(|(_, line)| line.rate.get()).sum();
            is_up = rates > 0.0;
            *rate = BitRate::new(rates.min(1e13)).unwrap_or(*rate);
        }
        let delay = setup.lines.iter().map(|line| line.delay.time()).max().unwrap_or(Time::ZERO);
        LinkState { up: is_up, rate: *rate, delay, cn0_dbhz: None, ber: None, setting: Default::default() }
    }

    /// When [`state`](Bundled::state) may change next.
    pub(super) fn next_change(&self) -> Time {
        self.view.calls.as_ref().map_or(Time::NEVER, Calls::next_change)
    }
}

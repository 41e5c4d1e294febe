//! Rate and delay of all paths together, computed from time to time.

use super::packet::Ticks;
use super::path::{PathEnd, PathState};
use super::queue::Pressure;
use crate::payload::Payload;
use crate::time::Time;

/// How long an outlook is good for.
const GOOD_FOR: Time = Time::from_millis(20);

/// The slowest paths are not worth their delay if they add no more than this share of the rate.
const NOT_WORTH: f64 = 0.03;

/// Bytes of a flow's turn: a packet that was begun is finished before other flows with a backlog go on.
const QUANTUM: i64 = 1514;

/// A path that carried data within this time is in use.
const IN_USE: Time = Time::from_secs(5);

/// Packets wait for so long before slow paths help.
const WAIT_BEFORE_HELP: Time = Time::from_millis(50);

/// Slow paths help at least for so long.
const HELP: Time = Time::from_secs(2);

/// Between two advices to the receiver that say the same.
const ADVISE_AGAIN: Time = Time::from_secs(1);

/// Rate and delay of all paths together.
#[derive(Clone, Debug)]
pub(super) struct Outlook {
    until: Time,
    /// How long packets may wait in front.
    pub(super) pressure: Pressure,
    /// Paths that help while packets wait, bit by bit.
    pub(super) helpers: u16,
    /// Since when packets have waited without a break.
    waiting_since: Option<Time>,
    helps_until: Time,
    /// Difference between the longest and the shortest delay.
    spread: Time,
    /// How long the receiver should wait for a missing packet, and what it was told when.
    hold: Time,
    told: Option<(Time, Time)>,
}

impl Outlook {
    pub(super) fn new(now: Time) -> Self {
        let pressure = Pressure {
            target: Time::from_secs(1),
            interval: Time::from_secs(1),
            quantum: QUANTUM,
            first_quantum: QUANTUM,
        };
        Outlook {
            until: now,
            pressure,
            helpers: 0,
            waiting_since: None,
            helps_until: Time::ZERO,
            spread: Time::ZERO,
            hold: Time::ZERO,
            told: None,
        }
    }

    /// Something has changed.
    pub(super) fn expire(&mut self) {
        self.until = Time::ZERO;
    }

    /// Looks at the paths again, if it is time.
    pub(super) fn refresh<D: Payload>(
        &mut self,
        now: Time,
        paths: &mut [Option<PathEnd<D>>],
        latency: Time,
        shortest: u32,
    ) {
        if now < self.until {
            return;
        }
        paths.iter_mut().flatten().for_each(|end| end.fit_packets(latency, shortest));
        self.until = now + GOOD_FOR;
        let is_up = |end: &&PathEnd<D>| end.state == PathState::Up;
        let has_up = paths.iter().flatten().any(|end| end.state == PathState::Up && !end.rules.is_standby);
        let mut usable: Vec<&PathEnd<D>> =
            paths.iter().flatten().filter(is_up).filter(|end| !has_up || !end.rules.is_standby).collect();
        let total: f64 = usable.iter().map(|end| end.control.rate()).sum();
        let slowest = usable.iter().map(|end| end.delays.round_trip()).fold(0.0, f64::max);
        let packet_time = Time::from_secs_f64(1514.0 / total.max(1514.0));
        let used = |end: &&&PathEnd<D>| end.used_at.is_some_and(|at| now.since(at) < IN_USE);
        let interval = Time::from_millis(100).max(Time::from_secs_f64(slowest));
        // While a rate is being found, packets wait because the pace has yet to grow. Drops would end TCP's slow start at a fraction of
        // the rate.
        let is_exploring = usable.iter().filter(used).any(|end| !end.control.is_explored());
        let target = if is_exploring { interval } else { Time::from_millis(5).max(packet_time.times(2)) };
        self.pressure = Pressure {
            target,
            interval,
            quantum: QUANTUM,
            first_quantum: (total * latency.as_secs_f64()).clamp(300.0, 1514.0) as i64,
        };
        usable.sort_by(|a, b| b.transit(1400.0).total_cmp(&a.transit(1400.0)));
        self.helpers = 0;
        let mut left = 0.0;
        for end in &usable {
            left += end.control.rate();
            if left > NOT_WORTH * total {
                self.helpers |= 1 << end.id.0;
            }
        }
        let delays = usable.iter().filter(used).map(|end| end.delays.one_way());
        let (least, most) = delays.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), d| (a.min(d), b.max(d)));
        self.spread = Time::from_secs_f64((most - least).max(0.0));
        let patience = usable.iter().filter(used).map(|end| end.patience()).max();
        if let Some(patience) = patience {
            self.hold = patience.times(3) + self.spread + Time::from_millis(100);
        }
    }

    /// Packets wait for a path, or none does.
    pub(super) fn note_waiting(&mut self, now: Time, is_waiting: bool) {
        if !is_waiting {
            self.waiting_since = None;
            return;
        }
        let since = *self.waiting_since.get_or_insert(now);
        if now >= since + WAIT_BEFORE_HELP {
            self.helps_until = now + HELP.max(self.spread.times(4));
        }
    }

    /// Whether slow paths help.
    pub(super) fn is_short_of_rate(&self, now: Time) -> bool {
        now < self.helps_until
    }

    /// When slow paths begin to help, if packets wait until then.
    pub(super) fn helps_at(&self, now: Time) -> Time {
        match self.waiting_since {
            Some(since) if !self.is_short_of_rate(now) => since + WAIT_BEFORE_HELP,
            _ => Time::NEVER,
        }
    }

    /// The notice to the receiver about missing packets, if one is needed.
    pub(super) fn advice(&mut self, now: Time) -> Option<Ticks> {
        if self.hold == Time::ZERO {
            return None;
        }
        let is_due = self.told.is_none_or(|(hold, at)| {
            let (low, high) = (hold.min(self.hold), hold.max(self.hold));
            now.since(at) >= ADVISE_AGAIN || high.as_ps() > low.as_ps() + low.as_ps() / 8
        });
        is_due.then(|| {
            self.told = Some((self.hold, now));
            Ticks::of(self.hold)
        })
    }

    /// Whether [`advice`](Self::advice) has any.
    pub(super) fn has_advice(&self, now: Time) -> bool {
        self.clone().advice(now).is_some()
    }
}

//! Bytes that a path may still carry today.

use super::config::PathRules;
use crate::time::Time;

const DAY: Time = Time::from_secs(86_400);
const MINUTE: Time = Time::from_secs(60);

/// Share of a day's probes that may be sent at once.
const PROBES_AT_ONCE: f64 = 1.0 / 24.0;

/// At least so many bytes of probes may be sent at once.
const LEAST_AT_ONCE: f64 = 2000.0;

/// Bytes and minutes of a path. Days are counted from its start.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    day_began: Time,
    bytes: u64,
    minutes: u32,
    minute_ends: Time,
    probe_bytes: f64,
    probes_at: Time,
}

impl Budget {
    pub(super) fn new(now: Time, rules: &PathRules) -> Self {
        Budget {
            day_began: now,
            bytes: 0,
            minutes: 0,
            minute_ends: Time::ZERO,
            probe_bytes: most(rules),
            probes_at: now,
        }
    }

    /// Whether data may be sent.
    pub(super) fn allows_data(&mut self, now: Time, rules: &PathRules) -> bool {
        if now.since(self.day_began) >= DAY {
            let days = now.since(self.day_began).as_ps() / DAY.as_ps();
            (self.day_began, self.bytes, self.minutes) = (self.day_began + DAY.times(days), 0, 0);
        }
        rules.bytes_a_day.is_none_or(|most| self.bytes < most)
            && (now < self.minute_ends || rules.minutes_a_day.is_none_or(|most| self.minutes < most))
    }

    /// Data was sent.
    pub(super) fn sent(&mut self, now: Time, bytes: u32) {
        self.bytes += u64::from(bytes);
        if now >= self.minute_ends {
            (self.minutes, self.minute_ends) = (self.minutes + 1, now + MINUTE);
        }
    }

    fn refill(&mut self, now: Time, rules: &PathRules) {
        let more = rules.probe_bytes_a_day as f64 * now.since(self.probes_at).as_secs_f64() / DAY.as_secs_f64();
        (self.probe_bytes, self.probes_at) = ((self.probe_bytes + more).min(most(rules)), now);
    }

    /// When a probe of so many bytes may be sent: now or later. A path that seems to be fine leaves half of what may be sent at once
    /// for the time when it fails.
    pub(super) fn probe_at(&mut self, now: Time, bytes: u32, is_fine: bool, rules: &PathRules) -> Time {
        self.refill(now, rules);
        let reserve = if is_fine { most(rules) / 2.0 } else { 0.0 };
        let missing = f64::from(bytes) + reserve - self.probe_bytes;
        if missing <= 0.0 {
            return now;
        }
        now + Time::from_secs_f64(missing * DAY.as_secs_f64() / (rules.probe_bytes_a_day as f64).max(1e-9) + 1e-3)
    }

    /// A probe or the answer to one was sent.
    pub(super) fn probed(&mut self, bytes: u32) {
        self.probe_bytes -= f64::from(bytes);
    }
}

fn most(rules: &PathRules) -> f64 {
    (rules.probe_bytes_a_day as f64 * PROBES_AT_ONCE).max(LEAST_AT_ONCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_a_day_stay_within_the_budget() {
        let rules = PathRules { probe_bytes_a_day: 50_000, ..PathRules::default() };
        let mut budget = Budget::new(Time::ZERO, &rules);
        let (mut now, mut bytes) = (Time::ZERO, 0);
        while now < DAY {
            let at = budget.probe_at(now, 80, false, &rules);
            if at == now {
                budget.probed(80);
                bytes += 80;
                now += Time::from_secs(1);
            } else {
                now = at;
            }
        }
        assert!((49_000..=53_000).contains(&bytes), "{bytes}"); // what may be sent at once comes on top in the first day
    }

    #[test]
    fn data_stops_until_the_next_day() {
        let rules = PathRules { bytes_a_day: Some(1000), minutes_a_day: Some(2), ..PathRules::default() };
        let mut budget = Budget::new(Time::ZERO, &rules);
        budget.sent(Time::ZERO, 999);
        assert!(budget.allows_data(Time::ZERO, &rules));
        budget.sent(Time::ZERO, 1);
        assert!(!budget.allows_data(Time::from_secs(86_399), &rules));
        assert!(budget.allows_data(Time::from_secs(3 * 86_400 + 5), &rules));
        for minute in 0..2 {
            let now = Time::from_secs(3 * 86_400 + 100 * (minute + 1));
            assert!(budget.allows_data(now, &rules));
            budget.sent(now, 1);
            assert!(budget.allows_data(now + Time::from_secs(59), &rules));
        }
        assert!(!budget.allows_data(Time::from_secs(3 * 86_400 + 300), &rules));
    }
}

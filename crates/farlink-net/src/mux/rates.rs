//! The rate that the connections of a session share, and whose turn it is. `[Y21]`

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use farlink_core::protocol::aerotp::{AerotpConfig, CommonRate};
use farlink_core::{OriginShift, Time};

use super::place::Place;

/// Drivers wake up late by up to this, on a busy machine. What was due meanwhile is sent at once, and no more, whatever the delay.
pub(super) const TIMER_LATENESS: Time = Time::from_millis(20);

/// One rate for all connections with the same settings: nearly always a single one.
#[derive(Debug, Default)]
pub(super) struct Rates {
    rates: Vec<Turns>,
    /// Which of them had the last turn.
    last: usize,
    /// Whether there were connections with a rate each.
    has_others: bool,
    /// Classes other than the usual one. `[Y25]`
    classes: BTreeMap<Turn, u8>,
}

/// Of connections and datagrams to which nobody has given another one. `[Y25]`
pub(crate) const USUAL_CLASS: u8 = 6;

/// One of those that share a rate and want to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// Datagrams of a class.
    Datagrams(u8),
    Connection(Place),
}

/// Which of them a connection sends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateIndex(usize);

#[derive(Debug)]
struct Turns {
    rate: CommonRate,
    config: AerotpConfig,
    /// Connections that want it, and the one that had it last.
    waiting: BTreeSet<(u8, Turn)>,
    last: Option<(u8, Turn)>,
    /// Whether it was found closed, and nothing has happened since: a driver that looks again some microseconds later would send packets
    /// one by one.
    is_resting: bool,
}

impl Rates {
    /// The rate of connections with this configuration; `None` for those that have a rate each.
    pub(super) fn of(&mut self, config: &AerotpConfig) -> Option<RateIndex> {
        if let Some(known) = self.rates.iter().position(|it| it.rate.serves(config)) {
            return Some(RateIndex(known));
        }
        let Some(rate) = begin(config) else {
            self.has_others = true;
            return None;
        };
        self.rates.push(Turns {
            rate,
            config: config.clone(),
            waiting: BTreeSet::new(),
            last: None,
            is_resting: false,
        });
        Some(RateIndex(self.rates.len() - 1))
    }

    pub(super) fn get(&self, rate: RateIndex) -> &CommonRate {
        &self.rates[rate.0].rate
    }

    pub(super) fn get_mut(&mut self, rate: RateIndex) -> &mut CommonRate {
        &mut self.rates[rate.0].rate
    }

    /// No connection has used them for a while: what was learnt of the path may be out of date.
    pub(super) fn begin_anew(&mut self) {
        for turns in &mut self.rates {
            turns.rate = begin(&turns.config).unwrap_or_else(|| unreachable!("it was made of the same configuration"));
        }
    }

    /// Somebody has something to send.
    pub(super) fn want(&mut self, rate: RateIndex, turn: Turn) {
        let class = self.class_of(turn);
        let turns = &mut self.rates[rate.0];
        turns.waiting.insert((class, turn));
        turns.is_resting = false;
    }

    fn class_of(&self, turn: Turn) -> u8 {
        match turn {
            Turn::Datagrams(class) => class,
            Turn::Connection(_) => self.classes.get(&turn).copied().unwrap_or(USUAL_CLASS),
        }
    }

    /// The class of somebody from now on.
    pub(super) fn set_class(&mut self, turn: Turn, class: u8) {
        let before = self.class_of(turn);
        if class == USUAL_CLASS {
            self.classes.remove(&turn);
        } else {
            self.classes.insert(turn, class);
        }
        for turns in &mut self.rates {
            if turns.waiting.remove(&(before, turn)) {
                turns.waiting.insert((class, turn));
            }
        }
    }

    /// Somebody is there no more.
    pub(super) fn forget_class(&mut self, turn: Turn) {
        self.set_class(turn, USUAL_CLASS);
    }

    /// And has nothing more to send.
    pub(super) fn want_no_more(&mut self, rate: RateIndex, turn: Turn) {
        let class = self.class_of(turn);
        let turns = &mut self.rates[rate.0];
        turns.waiting.remove(&(class, turn));
        // The connection, which had nothing to send, has told the rate that nothing waits.
        turns.rate.set_waited_for(!turns.waiting.is_empty());
    }

    /// Whose turn it is to send a packet now.
    pub(super) fn next_turn(&mut self, now: Time) -> Option<(RateIndex, Turn)> {
        let (count, after) = (self.rates.len(), self.last + 1);
        let found = (0..count).find_map(|n| {
            let index = (after + n) % count;
            let turns = &mut self.rates[index];
            let Turns { rate, waiting, last, is_resting, .. } = turns;
            let first = waiting.first()?;
            if *is_resting || !rate.is_open(now) {
                return None;
            }
            let last_of_class = last.filter(|(class, _)| *class == first.0);
            let behind = last_of_class.and_then(|last| waiting.range((Bound::Excluded(last), Bound::Unbounded)).next());
            let next = *behind.filter(|(class, _)| *class == first.0).unwrap_or(first);
            *last = Some(next);
            Some((RateIndex(index), next.1))
        });
        self.last = found.map_or(self.last, |(index, _)| index.0);
        found
    }

    /// Bytes that all connections send in a millisecond; the largest number if one has no limit, or a rate of its own.
    pub(super) fn bytes_per_ms(&self) -> u64 {
        if self.has_others {
            return u64::MAX;
        }
        let bits_per_s = self.rates.iter().map(|turns| turns.rate.bits_per_s().unwrap_or(f64::INFINITY)).sum::<f64>();
        (bits_per_s / 8e3) as u64
    }

    /// The rates for which somebody waits, together.
    pub(super) fn contended_bits_per_s(&self) -> Option<f64> {
        let contended = self.rates.iter().filter(|turns| !turns.waiting.is_empty());
        contended.filter_map(|turns| turns.rate.bits_per_s()).reduce(|sum, rate| sum + rate)
    }

    /// No connection can send any more now. Only those that want to will catch up with what they miss meanwhile. `[P20]`
    pub(super) fn rest(&mut self) {
        for turns in &mut self.rates {
            turns.is_resting = !turns.waiting.is_empty();
            turns.rate.set_waited_for(turns.is_resting);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        for turns in self.rates.iter_mut().filter(|turns| turns.rate.next() <= now) {
            turns.is_resting = false;
        }
    }

    /// When the next one may send.
    pub(super) fn poll_timeout(&self) -> Time {
        let wanted = self.rates.iter().filter(|turns| !turns.waiting.is_empty());
        wanted.map(|turns| turns.rate.next()).min().unwrap_or(Time::NEVER)
    }

    /// A set rate that the path does not carry, as told to one of the connections. `[P17]`
    pub(super) fn take_lowered(&mut self) -> Option<(Place, u64)> {
        self.rates.iter_mut().find_map(|turns| {
            let Some((_, Turn::Connection(place))) = turns.last else { return None };
            Some((place, turns.rate.take_lowered()?))
        })
    }

    pub(super) fn move_origin(&mut self, by: OriginShift) {
        self.rates.iter_mut().for_each(|turns| turns.rate.move_origin(by));
    }
}

fn begin(config: &AerotpConfig) -> Option<CommonRate> {
    let mut rate = CommonRate::new(config)?;
    rate.set_timer_lateness(TIMER_LATENESS);
    Some(rate)
}

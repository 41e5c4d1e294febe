//! How long packets may be on a path (RFC 8899), and whether it still carries the longest. `[Y16]`, `[Y17]`

use farlink_core::Time;

/// Length that every path has to carry; sessions begin with it. `[Y14]`
pub(crate) const BASE_BYTES: u16 = 1200;
/// Sizes that paths often have: Ethernet and, below it, PPPoE, tunnels of IP in IP, WireGuard, IPv6's least.
const COMMON: [u16; 6] = [1500, 1492, 1480, 1420, 1400, 1280];
/// The search ends where sizes differ by less, bytes below and above that of Ethernet.
const CLOSE: (u16, u16) = (16, 64);
/// A size is too long if so many probes in a row have no answer.
const MOST_PROBES: u32 = 3;
/// While a search has ended below the longest size, it begins again after this time (RFC 8899, section 5.1.1).
const AGAIN_AFTER: Time = Time::from_secs(600);
/// Doublings of the time between probes of a path that answers none.
const MOST_DOUBLINGS: u32 = 5;

/// A probe to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathProbe {
    pub(crate) number: u64,
    /// Length of its packet, headers of IP and UDP included.
    pub(crate) bytes: u16,
}

/// The longest packet that a path is known to carry, and the search for longer ones.
///
/// Only a side that sends full packets searches, as probes would fill a slow way back. It tells [`on_full`](Self::on_full) of each of
/// them. If nothing is settled of what was sent in them for a timeout, both their size and the least are asked for: if only the least
/// comes through, the path has become a black hole for the longer ones.
#[derive(Clone, Debug)]
pub(crate) struct PathMtu {
    bytes: u16,
    /// The longest size that is looked for.
    most: u16,
    /// The shortest that is known not to come through; `most + 1` if there is none.
    too_long: u16,
    asked: Asked,
    /// When something is due: the next probe, or a look at whether anything was settled.
    due: Time,
    /// When a search that found its end begins again.
    again: Time,
    /// How much was settled when the wait for more began.
    settled: u64,
    next_number: u64,
}

/// The probe that has no answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    /// Whether a longer packet comes through; so many probes were sent.
    Longer {
        number: u64,
        bytes: u16,
        sent: u32,
    },
    /// Whether the present size still does, and the least one.
    Whether {
        present: u64,
        least: u64,
        sent: u32,
        has_least: bool,
    },
}

impl PathMtu {
    /// A path of which nothing is known; sizes up to `most` are looked for.
    pub(crate) fn new(most: u16) -> Self {
        PathMtu {
            bytes: BASE_BYTES.min(most),
            most,
            too_long: most + 1,
            asked: Asked::Nothing,
            due: Time::NEVER,
            again: Time::ZERO,
            settled: 0,
            next_number: 0,
        }
    }

    /// The path has become another one. Answers to earlier probes tell nothing any more.
    pub(crate) fn begin_again(&mut self) {
        *self = PathMtu { next_number: self.next_number, ..PathMtu::new(self.most) };
    }

    /// Packets may have so many bytes, headers of IP and UDP included.
    pub(crate) fn bytes(&self) -> u16 {
        self.bytes
    }

    /// A packet of full length was sent; of what was sent in all so far, this much is settled.
    pub(crate) fn on_full(&mut self, now: Time, settled: impl FnOnce() -> u64, timeout: impl FnOnce() -> Time) {
        if now >= self.again && self.asked == Asked::Nothing {
            if self.again > Time::ZERO {
                self.too_long = self.most + 1;
            }
            self.again = Time::NEVER;
            self.ask_for_longer(now);
        }
        if self.due == Time::NEVER && self.bytes > BASE_BYTES {
            (self.settled, self.due) = (settled(), now + timeout());
        }
    }

    /// When [`next_probe`](Self::next_probe) has something to do.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Time has passed; whether packets have become shorter.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Time,
        settled: impl FnOnce() -> u64,
        in_flight: impl FnOnce() -> bool,
    ) -> bool {
        if now < self.due {
            return false;
        }
        match self.asked {
            Asked::Nothing => {
                let settled = settled();
                if settled != self.settled || !in_flight() {
                    self.due = Time::NEVER; // the next full packet begins the wait again
                } else {
                    let [present, least] = [self.number(), self.number()];
                    self.asked = Asked::Whether { present, least, sent: 0, has_least: false };
                }
                false
            }
            Asked::Longer { bytes, sent: MOST_PROBES, .. } => {
                self.too_long = bytes;
                self.ask_for_longer(now);
                false
            }
            // The least size came through, and after another timeout the present one still has not.
            Asked::Whether { has_least: true, sent: 2.., .. } => {
                self.too_long = self.bytes;
                self.bytes = BASE_BYTES;
                self.again = Time::NEVER;
                self.ask_for_longer(now);
                true
            }
            Asked::Whether { .. } if !in_flight() => {
                (self.asked, self.due) = (Asked::Nothing, Time::NEVER);
                false
            }
            Asked::Longer { .. } | Asked::Whether { .. } => false,
        }
    }

    /// The next probes, if they are due: the second one is of the least size.
    pub(crate) fn next_probes(&mut self, now: Time, timeout: Time) -> [Option<PathProbe>; 2] {
        if now < self.due {
            return [None; 2];
        }
        match &mut self.asked {
            Asked::Nothing => [None; 2],
            Asked::Longer { number, bytes, sent } => {
                if *sent == MOST_PROBES {
                    return [None; 2]; // the next timeout says that it is too long
                }
                *sent += 1;
                self.due = now + timeout;
                [Some(PathProbe { number: *number, bytes: *bytes }), None]
            }
            Asked::Whether { present, least, sent, .. } => {
                self.due = now + timeout.times(1 << sent.saturating_sub(1).min(MOST_DOUBLINGS));
                *sent += 1;
                let probe = |number, bytes| Some(PathProbe { number, bytes });
                [probe(*present, self.bytes), probe(*least, BASE_BYTES)]
            }
        }
    }

    /// The answer to a probe has come; whether packets may be longer from now on.
    pub(crate) fn on_answer(&mut self, now: Time, answered: u64) -> bool {
        match &mut self.asked {
            Asked::Longer { number, bytes, .. } if *number == answered => {
                self.bytes = *bytes;
                self.ask_for_longer(now);
                true
            }
            Asked::Whether { present, .. } if *present == answered => {
                (self.asked, self.due) = (Asked::Nothing, Time::NEVER);
                false
            }
            Asked::Whether { least, has_least, sent, .. } if *least == answered && !*has_least => {
                // It was sent behind the other one, and so the other one may still come.
                (*has_least, *sent) = (true, 1);
                false
            }
            _ => false,
        }
    }

    pub(crate) fn move_origin(&mut self, by: Time) {
        for time in [&mut self.due, &mut self.again] {
            if *time != Time::NEVER {
                *time = time.since(by);
            }
        }
    }

    fn ask_for_longer(&mut self, now: Time) {
        self.asked = match self.longer() {
            Some(bytes) => Asked::Longer { number: self.number(), bytes, sent: 0 },
            None => Asked::Nothing,
        };
        (self.due, self.again) = match self.asked {
            Asked::Nothing if self.bytes < self.most => (Time::NEVER, now + AGAIN_AFTER),
            Asked::Nothing => (Time::NEVER, Time::NEVER),
            _ => (now, Time::NEVER),
        };
    }

    /// The size to ask for next; `None` if none is worth it.
    fn longer(&self) -> Option<u16> {
        let is_open = |size: u16| size > self.bytes && size < self.too_long;
        // First the most likely, then the best, then common ones, upwards: a size that comes through costs a round trip, another one three
        // timeouts.
        if is_open(COMMON[0]) {
            return Some(COMMON[0]);
        }
        if self.too_long > self.most {
            return is_open(self.most).then_some(self.most);
        }
        if let Some(&common) = COMMON.iter().rev().find(|&&size| is_open(size)) {
            return Some(common);
        }
        let close = if self.bytes < COMMON[0] { CLOSE.0 } else { CLOSE.1 };
        (self.too_long - self.bytes > close).then(|| self.bytes.midpoint(self.too_long))
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Time = Time::from_secs(1);

    /// A path that carries packets of this length; how many probes were sent, and how long it took.
    fn search(mtu: &mut PathMtu, carries: u16, now: &mut Time) -> u32 {
        let mut sent = 0;
        mtu.on_full(*now, || 0, || TIMEOUT);
        while mtu.due() != Time::NEVER {
            *now = (*now).max(mtu.due());
            if mtu.handle_timeout(*now, || sent.into(), || true) {
                continue;
            }
            for probe in mtu.next_probes(*now, TIMEOUT).into_iter().flatten() {
                sent += 1;
                assert!(probe.bytes <= mtu.most);
                if probe.bytes <= carries {
                    *now += Time::from_millis(500);
                    mtu.on_answer(*now, probe.number);
                }
            }
        }
        sent
    }

    #[test]
    fn common_sizes_are_found_exactly_and_others_nearly() {
        for most in [1200, 1280, 1500, 4000, 9000] {
            for carries in (1200..=9000).step_by(7).chain(COMMON).chain([9000]) {
                let (mut mtu, mut now) = (PathMtu::new(most), Time::ZERO);
                let sent = search(&mut mtu, carries, &mut now);
                let best = carries.min(most);
                assert!(mtu.bytes() <= best && sent <= 33, "{sent} probes");
                let close = if best < 1500 { CLOSE.0 } else { CLOSE.1 };
                assert!(mtu.bytes() + close >= best, "{} of {best}", mtu.bytes());
                if COMMON.contains(&best) || best == most {
                    assert_eq!(mtu.bytes(), best);
                }
            }
        }
        let (mut mtu, mut now) = (PathMtu::new(1500), Time::ZERO);
        assert_eq!(
            (search(&mut mtu, 1500, &mut now), now),
            (1, Time::from_millis(500)),
            "the usual case takes a round trip"
        );
    }

    #[test]
    fn a_path_that_carries_less_is_noticed_within_three_timeouts() {
        for (before, carries) in [(1500, 1400), (9000, 1500), (1500, 1200), (1300, 1280)] {
            let (mut mtu, mut now) = (PathMtu::new(before), Time::ZERO);
            search(&mut mtu, before, &mut now);
            let began = now;
            mtu.on_full(now, || 7, || TIMEOUT);
            let mut has_shrunk = None;
            while mtu.due() != Time::NEVER {
                now = now.max(mtu.due());
                if mtu.handle_timeout(now, || 7, || true) {
                    has_shrunk = has_shrunk.or(Some(now.since(began)));
                }
                for probe in mtu.next_probes(now, TIMEOUT).into_iter().flatten() {
                    if probe.bytes <= carries {
                        mtu.on_answer(now, probe.number);
                    }
                }
            }
            assert!(has_shrunk.is_some_and(|after| after <= TIMEOUT.times(3)), "{has_shrunk:?}");
            assert!(mtu.bytes() <= carries && mtu.bytes() + 64 >= carries, "{} of {carries}", mtu.bytes());
        }
    }

    #[test]
    fn an_outage_shortens_nothing() {
        let (mut mtu, mut now) = (PathMtu::new(1500), Time::ZERO);
        search(&mut mtu, 1500, &mut now);
        mtu.on_full(now, || 7, || TIMEOUT);
        let (back, mut probes) = (now + Time::from_secs(600), 0);
        while mtu.due() != Time::NEVER {
            now = now.max(mtu.due());
            assert!(!mtu.handle_timeout(now, || 7, || true));
            for probe in mtu.next_probes(now, TIMEOUT).into_iter().flatten() {
                probes += 1;
                if now > back {
                    mtu.on_answer(now, probe.number);
                }
            }
        }
        assert_eq!(mtu.bytes(), 1500);
        assert!(probes < 60, "{probes} probes in ten minutes");
    }

    #[test]
    fn a_search_that_ended_begins_again_after_ten_minutes() {
        let (mut mtu, mut now) = (PathMtu::new(1500), Time::ZERO);
        search(&mut mtu, 1400, &mut now);
        assert_eq!(mtu.bytes(), 1400);
        now += Time::from_secs(599);
        mtu.on_full(now, || 0, || TIMEOUT);
        mtu.handle_timeout(now + TIMEOUT, || 1, || true);
        assert_eq!(mtu.due(), Time::NEVER);
        now += Time::from_secs(2);
        search(&mut mtu, 1500, &mut now);
        assert_eq!(mtu.bytes(), 1500);
    }
}

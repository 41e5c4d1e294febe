//! The timestamp that acknowledgements echo, and by how long segments were overtaken.

use crate::origin::instants;
use crate::time::Time;

use super::clock::held;
use super::peer::Latest;
use super::segment::Mack;

/// How many acknowledgements report an overtaken segment, because some may be lost.
const REPORTS: u8 = 3;

/// A receiver's report on the timestamps that have arrived. `[A2]`, `[A10]`
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Echo {
    latest: Option<Latest>,
    /// The longest time by which a segment with new data was overtaken, in ticks of its sender.
    overtaken_by: u32,
    /// How many more acknowledgements report it.
    reports: u8,
}

instants! { Echo: latest; fixed: overtaken_by, reports }

impl Echo {
    /// A segment has arrived. Returns by how many ticks of its sender it was overtaken; 0 if it is the latest.
    #[inline]
    pub(super) fn on_segment(&mut self, now: Time, stamp: u32) -> u32 {
        match &mut self.latest {
            Some(latest) => {
                let behind = latest.behind(now, stamp);
                latest.update(now, stamp);
                behind
            }
            None => {
                self.latest = Some(Latest::new(now, stamp));
                0
            }
        }
    }

    /// A segment that was overtaken by so many ticks had new data. Copies that the network makes do not count.
    pub(super) fn on_overtaken_data(&mut self, ticks: u32) {
        self.overtaken_by = self.overtaken_by.max(ticks);
        self.reports = REPORTS;
    }

    /// Whether a segment has arrived.
    pub(super) fn is_known(&self) -> bool {
        self.latest.is_some()
    }

    /// A MACK that echoes the latest timestamp and has nothing else yet; none before the first segment.
    pub(super) fn mack(&self, now: Time) -> Option<Box<Mack>> {
        let latest = self.latest?;
        let mut mack = Box::<Mack>::default();
        (mack.echo, mack.held) = (latest.stamp, held(latest.at, now));
        Some(mack)
    }

    /// The next acknowledgement's report on overtaken segments.
    pub(super) fn take_overtaken(&mut self) -> Option<u32> {
        self.reports = self.reports.checked_sub(1)?;
        let overtaken_by = self.overtaken_by;
        if self.reports == 0 {
            self.overtaken_by = 0;
        }
        Some(overtaken_by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_is_reported_three_times() {
        let mut echo = Echo::default();
        let now = Time::from_secs(1);
        let late: Vec<u32> = [u32::MAX - 1, 5, 2, u32::MAX - 3].map(|stamp| echo.on_segment(now, stamp)).into();
        assert_eq!(late, [0, 0, 3, 9], "across the end of the numbers");
        assert_eq!((echo.take_overtaken(), echo.mack(now).unwrap().echo), (None, 5));
        echo.on_overtaken_data(9);
        assert_eq!(echo.take_overtaken(), Some(9));
        echo.on_overtaken_data(3);
        assert_eq!([0; 4].map(|_| echo.take_overtaken()), [Some(9), Some(9), Some(9), None]);
        echo.on_overtaken_data(3);
        assert_eq!(echo.take_overtaken(), Some(3));
    }
}

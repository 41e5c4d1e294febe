//! Reports of missing data by the receiver (SNACK of CCSDS 714.0-B-2).

use crate::payload::Payload;
use crate::protocol::tcp::reassembly::Receiver;
use crate::protocol::tcp::segment::SnackReport;

/// Chooses the content of a report. A new hole is reported at once. Otherwise, if one report cannot hold all holes, the reports
/// take turns.
#[derive(Clone, Debug)]
pub(super) struct Reporter {
    most_bytes: usize,
    /// The last report covered all holes below this offset.
    from: u64,
}

impl Reporter {
    pub(super) fn new(most_bytes: usize) -> Self {
        Reporter { most_bytes, from: 0 }
    }

    /// The next report, in blocks of `mss` bytes, into at most `room` bytes of options.
    pub(super) fn report<D: Payload>(&mut self, rx: &mut Receiver<D>, mss: u32, room: usize) -> Option<SnackReport> {
        let most_bytes = self.most_bytes.min((room & !3).saturating_sub(6));
        let (mss, next, highest) = (u64::from(mss), rx.stream.next, rx.stream.early_end());
        let reach = 8 * most_bytes as u64 * mss;
        let stream = &rx.stream;
        let lowest = stream.holes(next).next()?;
        let newest = rx.newest_hole.take().and_then(|newest| stream.holes(newest).next());
        let behind = |hole: (u64, u64)| next + (hole.1 - next).div_ceil(mss) * mss;
        let hole = match newest {
            Some(newest) if newest.1 > behind(lowest) + reach => newest,
            Some(_) => lowest,
            None => stream.holes(self.from).next().unwrap_or(lowest),
        };
        let offset = u16::try_from((hole.0 - next) / mss);
        let (hole, offset) = offset.map_or((lowest, 0), |offset| (hole, offset));
        let blocks = (hole.1 - next).div_ceil(mss) - u64::from(offset);
        let size = u16::try_from(blocks).unwrap_or(u16::MAX);
        let mut report = SnackReport::new(offset, size);

        let base = next + (u64::from(offset) + u64::from(size)) * mss;
        // A block counts as received only if all of it has arrived: then its bit is 1.
        let count = (highest.saturating_sub(base) / mss).min(8 * most_bytes as u64);
        report.set_bits(0, count as usize, true);
        for (start, end) in stream.holes(base) {
            let from = (start - base) / mss;
            if from >= count {
                break;
            }
            report.set_bits(from as usize, (end - base).div_ceil(mss).min(count) as usize, false);
        }
        report.trim(most_bytes);
        let told = base + count * mss;
        self.from = if stream.holes(told).next().is_some() { told } else { 0 };
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;
    use crate::protocol::tcp::reassembly::AckDelay;
    use crate::time::Time;

    /// Segments of 100 bytes from offset 1 on, of which those with the given numbers have arrived.
    fn receiver(segments: impl IntoIterator<Item = u64>) -> Receiver<Virtual> {
        let mut rx = Receiver::new(2, AckDelay::Fixed(Time::ZERO), 1 << 30, false);
        rx.stream.next = 1;
        for segment in segments {
            rx.on_data(Time::ZERO, 1 + segment * 100, &Virtual(100));
        }
        rx
    }

    /// Segments reported missing.
    fn missing(report: SnackReport) -> Vec<u64> {
        let hole = u64::from(report.offset)..u64::from(report.offset) + u64::from(report.size);
        let base = hole.end;
        let runs = report.runs().filter(|run| !run.2).flat_map(|(from, to, _)| base + from..base + to);
        hole.chain(runs).collect()
    }

    #[test]
    fn a_report_lists_the_first_hole_and_later_ones() {
        let mut rx = receiver([1, 2, 5, 7]);
        let report = Reporter::new(4).report(&mut rx, 100, 40).unwrap();
        assert_eq!((report.offset, report.size, report.vector()), (0, 1, &[0b1100_1010][..]));
        assert_eq!(missing(report), [0, 3, 4, 6]);
        assert_eq!(report.option_bytes(), 7);
    }

    #[test]
    fn a_hole_is_rounded_up_to_whole_blocks() {
        let mut rx = receiver([]);
        rx.on_data(Time::ZERO, 151, &Virtual(150));
        let report = Reporter::new(4).report(&mut rx, 100, 40).unwrap();
        assert_eq!((report.offset, report.size, report.vector()), (0, 2, &[0b1000_0000][..]));
    }

    #[test]
    fn a_distant_hole_is_reported_first_when_new_and_in_turn_later() {
        let mut rx = receiver((1..40).filter(|segment| segment % 10 != 0));
        let mut reporter = Reporter::new(1);
        assert_eq!(missing(reporter.report(&mut rx, 100, 40).unwrap()), [30], "the newest");
        // Then all holes, in reports of eight blocks each.
        let mut told = Vec::new();
        for _ in 0..4 {
            told.extend(missing(reporter.report(&mut rx, 100, 40).unwrap()));
        }
        assert_eq!(told, [0, 10, 20, 30]);
    }

    #[test]
    fn a_report_fits_into_the_available_space() {
        let mut rx = receiver(1..400);
        for (room, bytes) in [(40, 22), (28, 22), (24, 18), (8, 2)] {
            let report = Reporter::new(22).report(&mut rx, 100, room).unwrap();
            assert_eq!(report.vector().len(), bytes);
            assert!(usize::from(report.option_bytes().next_multiple_of(4)) <= room);
        }
    }
}

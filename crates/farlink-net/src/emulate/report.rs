//! Report of a run: counts of packets, and whether it kept its time.

use std::time::Duration;

use farlink_core::Time;
use farlink_core::emulator::Counts;
use farlink_core::histogram::Histogram;

/// How long after they were due packets left.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// Lateness of all packets.
    pub all: Histogram,
    /// The worst.
    pub max: Time,
}

impl Lateness {
    pub(super) fn add(&mut self, late: Time) {
        self.all.record(late, 1);
        self.max = self.max.max(late);
    }
}

/// One way.
#[derive(Clone, Debug, Default)]
pub struct WayReport {
    /// Outcomes of the packets.
    pub counts: Counts,
    /// Bytes of packets under way.
    pub held_bytes: u64,
    /// Packets that the system did not take: no room in its buffers, or a damaged header that it refuses.
    pub untaken: u64,
    /// How late packets left.
    pub lateness: Lateness,
    /// Whether each hop is up now.
    pub is_up: bool,
    /// The time of a packet of mean size on the slowest hop.
    pub packet_time: Time,
}

/// Lateness that is always allowed.
const ALLOWED: Time = Time::from_millis(1);
/// Where packets take long, this share of their time is allowed.
const ALLOWED_SHARE: u64 = 20;

impl WayReport {
    /// How late a packet in a hundred may be: 1 ms, or 5 % of a packet's time if that is longer.
    pub fn allowed(&self) -> Time {
        ALLOWED.max(Time::from_ps(self.packet_time.as_ps() / ALLOWED_SHARE))
    }

    /// Lateness that a packet in a hundred exceeds, seconds.
    pub fn p99_s(&self) -> f64 {
        self.lateness.all.quantile(0.99).unwrap_or(0.0)
    }
}

/// A run so far, or as a whole.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// When it began, since 1970 by the wall clock.
    pub started: Duration,
    /// How long it has lasted.
    pub elapsed: Duration,
    /// From the near end to the far one, and back.
    pub ways: [WayReport; 2],
    /// Clients of a relay.
    pub clients: u64,
}

impl Report {
    /// Why the run did not do what the scenario says; empty if it did.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, way) in ["forward", "return"].into_iter().zip(&self.ways) {
            let (late_s, allowed_s) = (way.p99_s(), way.allowed().as_secs_f64());
            if late_s > allowed_s {
                faults.push(format!(
                    "{name}: one packet in a hundred left more than {:.3} ms late, and {:.3} ms are allowed",
                    late_s * 1e3,
                    allowed_s * 1e3
                ));
            }
            if way.counts.refused > 0 {
                let refused = way.counts.refused;
                faults.push(format!("{name}: {refused} packets had no room in the memory that the emulator may use"));
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(late_us: u64, packet_us: u64) -> Report {
        let mut report = Report::default();
        report.ways[1].packet_time = Time::from_ps(packet_us * 1_000_000);
        (0..100).for_each(|_| report.ways[1].lateness.add(Time::from_ps(late_us * 1_000_000)));
        report
    }

    #[test]
    fn late_runs_are_told() {
        assert!(report(900, 1200).faults().is_empty());
        let faults = report(1100, 1200).faults();
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("return: ") && faults[0].contains("1.000 ms are allowed"), "{faults:?}");
        assert!(report(4500, 100_000).faults().is_empty(), "5 ms are allowed");
        assert!(!report(5500, 100_000).faults().is_empty());
    }

    #[test]
    fn a_full_memory_is_told() {
        let mut report = Report::default();
        report.ways[0].counts.refused = 3;
        assert!(report.faults()[0].contains("3 packets had no room"));
    }
}

//! How many bytes of a packet each member of a bundle carries.

use crate::time::Time;

/// A member as a scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// When a fragment that the member is given now would begin to arrive, after its backlog and its delay.
    pub ready: Time,
    /// Bytes per second.
    pub bytes_per_s: f64,
}

/// Equal shares of a packet for `members` members; if the length is not divisible, the first shares are a byte longer. Linux cuts
/// packets like this for the members that are free.
pub fn equal(bytes: u32, members: u32) -> impl Iterator<Item = u32> {
    let (each, longer) = bytes.checked_div(members).map_or((0, 0), |each| (each, bytes % members));
    (0..members).map(move |member| each + u32::from(member < longer))
}

/// Shares of a packet such that all its fragments arrive at the same time, as early as possible. The share is 0 for members that
/// would be too late or would get less than `least_bytes`. Appends one share per member to `shares`, in their order, and returns
/// when the fragments arrive; never if no member has a rate above 0.
///
/// Each fragment takes `overhead_bytes` in addition to its share. The method is water-filling: if the n lines that are ready
/// first are used, their fragments arrive at T = (bytes + n overhead + sum of rate x ready) / (sum of rates), and a line is used
/// if it is ready before T.
pub fn arriving_together(
    bytes: u32,
    overhead_bytes: u32,
    least_bytes: u32,
    lines: &[Line],
    shares: &mut Vec<u32>,
) -> Time {
    let begin = shares.len();
    shares.resize(begin + lines.len(), 0);
    let shares = &mut shares[begin..];
    let mut used: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].bytes_per_s > 0.0).collect();
    used.sort_by(|&a, &b| lines[a].ready.cmp(&lines[b].ready).then(a.cmp(&b)));
    while let Some(&first) = used.first() {
        let start = lines[first].ready;
        let wait = |at: usize| lines[at].ready.since(start).as_secs_f64();
        let rate: f64 = used.iter().map(|&at| lines[at].bytes_per_s).sum();
        let before: f64 = used.iter().map(|&at| lines[at].bytes_per_s * wait(at)).sum();
        let all = f64::from(bytes) + used.len() as f64 * f64::from(overhead_bytes);
        let together_s = (all + before) / rate;
        let share = |at: usize| (together_s - wait(at)) * lines[at].bytes_per_s - f64::from(overhead_bytes);
        let least = f64::from(least_bytes.max(1));
        // Leave out the line with the smallest share, and compute all shares again.
        let worst = used.iter().copied().min_by(|&a, &b| share(a).total_cmp(&share(b)));
        if let Some(worst) = worst.filter(|&at| used.len() > 1 && share(at) < least) {
            used.retain(|&at| at != worst);
            continue;
        }
        let mut left = bytes;
        for &at in &used {
            shares[at] = (share(at).max(0.0) as u32).min(left);
            left -= shares[at];
        }
        shares[first] += left; // the bytes lost by rounding down
        return start + Time::from_secs_f64(together_s);
    }
    Time::NEVER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ready_ms: u64, bytes_per_s: f64) -> Line {
        Line { ready: Time::from_millis(ready_ms), bytes_per_s }
    }

    fn together(bytes: u32, overhead: u32, least: u32, lines: &[Line]) -> Vec<u32> {
        let mut shares = Vec::new();
        arriving_together(bytes, overhead, least, lines, &mut shares);
        shares
    }

    #[test]
    fn equal_shares_differ_by_a_byte_at_most() {
        assert_eq!(equal(1500, 4).collect::<Vec<_>>(), [375, 375, 375, 375]);
        assert_eq!(equal(10, 4).collect::<Vec<_>>(), [3, 3, 2, 2]);
        assert_eq!(equal(10, 0).count(), 0);
    }

    #[test]
    fn equal_lines_share_equally_and_a_fast_one_carries_more() {
        assert_eq!(together(1200, 0, 1, &[line(0, 300.0); 4]), [300; 4]);
        assert_eq!(together(1200, 0, 1, &[line(0, 300.0), line(0, 900.0)]), [300, 900]);
    }

    #[test]
    fn a_line_that_is_ready_late_carries_less_or_nothing() {
        // Ready a second later at 300 bytes/s: 300 bytes less.
        assert_eq!(together(1200, 0, 1, &[line(0, 300.0), line(1000, 300.0)]), [750, 450]);
        assert_eq!(together(300, 0, 1, &[line(0, 300.0), line(1000, 300.0)]), [300, 0]);
        // The 30 bytes that the late line could carry are fewer than the least share.
        assert_eq!(together(360, 0, 64, &[line(0, 300.0), line(1000, 300.0)]), [360, 0]);
    }

    #[test]
    fn all_fragments_arrive_at_the_same_time() {
        let lines = [line(120, 300.0), line(0, 150.0), line(700, 1200.0), line(5000, 300.0)];
        let shares = together(1500, 8, 16, &lines);
        assert_eq!(shares.iter().sum::<u32>(), 1500);
        let ends: Vec<f64> = (0..4)
            .filter(|&at| shares[at] > 0)
            .map(|at| lines[at].ready.as_secs_f64() + f64::from(shares[at] + 8) / lines[at].bytes_per_s)
            .collect();
        assert_eq!((ends.len(), shares[3]), (3, 0));
        let (first, last) = ends.iter().fold((f64::MAX, 0.0_f64), |(low, high), &end| (low.min(end), high.max(end)));
        assert!(last - first < 2.0 / 150.0, "{ends:?}");
    }

    #[test]
    fn lines_without_rate_get_no_shares() {
        assert!(together(1500, 8, 16, &[]).is_empty());
        assert_eq!(together(1500, 8, 16, &[line(0, 0.0)]), [0]);
    }
}

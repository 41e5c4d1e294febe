//! Residual loss of erasure codes under independent losses of blocks, in closed form.

/// Probability that more than `limit` of `n` blocks are lost, each with probability `p` independently of the others: that
/// an MDS group of n = k + m blocks fails, with `limit` = m.
///
/// P(B > m) = sum over j = m + 1 .. n of C(n, j) p^j (1 - p)^(n - j).
///
/// NaN if `p` is no probability.
///
/// Source: Rizzo, Effective erasure codes for reliable computer communication protocols, ACM CCR 27(2) (1997), section 2;
/// RFC 5510, section 3 (an MDS code decodes from any k blocks).
pub fn group_failure(n: usize, limit: usize, p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if limit >= n {
        return 0.0;
    }
    if p == 0.0 || p == 1.0 {
        return p;
    }
    let mean = n as f64 * p;
    // Sum the tail that does not contain the mean: it is the smaller one, so that no digits are lost.
    if (limit + 1) as f64 >= mean { tail(n, limit + 1, p) } else { 1.0 - tail(n, n - limit, 1.0 - p) }
}

/// P(B >= from), for `from` at or above the mean: terms fall from the first on.
fn tail(n: usize, from: usize, p: f64) -> f64 {
    let (n, first) = (n as f64, from as f64);
    let ln_choose = libm::lgamma(n + 1.0) - libm::lgamma(first + 1.0) - libm::lgamma(n - first + 1.0);
    let mut term = libm::exp(ln_choose + first * libm::log(p) + (n - first) * libm::log1p(-p));
    let (mut sum, mut j) = (0.0, first);
    while term > sum * 1e-17 && j <= n {
        sum += term;
        term *= (n - j) / (j + 1.0) * (p / (1.0 - p));
        j += 1.0;
    }
    sum
}

/// Share of data blocks that stay lost behind a systematic MDS code of k data and m parity blocks, if blocks are lost
/// independently with probability `p`: p P(at least m of the other k + m - 1 are lost).
///
/// NaN if `p` is no probability.
///
/// Source: Barakat and Altman, Bandwidth tradeoff between TCP and link-level FEC, Computer Networks 39(2) (2002): a lost
/// block stays lost if its group has more than m losses.
pub fn residual_block_loss(k: usize, m: usize, p: f64) -> f64 {
    residual_packet_loss(k, m, 1, p)
}

/// Share of packets that stay lost behind a systematic MDS code of k data and m parity blocks, if each packet makes up
/// `blocks_per_packet` data blocks of one group and is lost as soon as one of them stays lost.
///
/// P = sum over j = 1 .. s of C(s, j) p^j (1 - p)^(s - j) P(more than m - j of the other k + m - s are lost): some block of
/// the packet is lost, and its group fails.
///
/// NaN if `p` is no probability or `blocks_per_packet` exceeds k; 0 if it is 0.
///
/// Source: as for [`residual_block_loss`].
pub fn residual_packet_loss(k: usize, m: usize, blocks_per_packet: usize, p: f64) -> f64 {
    let s = blocks_per_packet;
    if !(0.0..=1.0).contains(&p) || s > k {
        return f64::NAN;
    }
    if p == 0.0 || s == 0 {
        return 0.0;
    }
    if p == 1.0 {
        return 1.0;
    }
    let others = k + m - s;
    let mut sum = 0.0;
    let mut ways = libm::pow(1.0 - p, s as f64);
    for j in 1..=s {
        ways *= (s - j + 1) as f64 / j as f64 * (p / (1.0 - p));
        sum += ways * if j > m { 1.0 } else { group_failure(others, m - j, p) };
    }
    sum
}

/// Parity for each data block, m / k: what the code adds to the traffic. Its rate is 1 / (1 + overhead).
pub fn overhead(k: usize, m: usize) -> f64 {
    m as f64 / k as f64
}

/// Probability that RaptorQ does not decode from k + `extra` different symbols, at most and on the average: 1 in 100 for
/// `extra` = 0, and 100 times less for each one more, 10^(-2 (extra + 1)).
///
/// A rule of thumb: RFC 6330, section 5.8, demands it of a decoder for 0, 1 and 2 extra symbols with random identifiers.
/// Measured with the crate `raptorq` and repair symbols only, k = 10 to 100: 6.5e-3 for none (720 failures), 3.8e-5 for one
/// (10 failures). Source symbols among those received help: with all k of them, decoding cannot fail.
pub fn raptorq_failure(extra: usize) -> f64 {
    libm::pow(100.0, -(extra as f64 + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Sums over all patterns of losses, weighted by their probability.
    fn by_enumeration(k: usize, m: usize, p: f64, counts: impl Fn(u32) -> bool) -> f64 {
        let n = (k + m) as u32;
        (0..1u32 << n)
            .filter(|&lost| lost.count_ones() as usize > m && counts(lost))
            .map(|lost| p.powi(lost.count_ones() as i32) * (1.0 - p).powi((n - lost.count_ones()) as i32))
            .sum()
    }

    fn assert_close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-11 * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn closed_forms_agree_with_enumeration() {
        for (k, m) in [(1, 1), (4, 2), (6, 6), (9, 3), (3, 0), (2, 9)] {
            for p in [1e-6, 0.01, 0.3, 0.5, 0.9, 0.999] {
                assert_close(group_failure(k + m, m, p), by_enumeration(k, m, p, |_| true));
                assert_close(residual_block_loss(k, m, p), by_enumeration(k, m, p, |lost| lost & 1 != 0));
                for s in 1..=k {
                    let any = (1 << s) - 1;
                    assert_close(residual_packet_loss(k, m, s, p), by_enumeration(k, m, p, |lost| lost & any != 0));
                }
            }
        }
    }

    #[test]
    fn small_probabilities_keep_their_digits() {
        // n = 40, m = 8, p = 1e-4: the first terms by hand.
        let p: f64 = 1e-4;
        let term = |choose: f64, j: i32| choose * p.powi(j) * (1.0 - p).powi(40 - j);
        let expected = term(273_438_880.0, 9) + term(847_660_528.0, 10) + term(2_311_801_440.0, 11);
        assert!((group_failure(40, 8, p) / expected - 1.0).abs() < 1e-9);
        assert!(group_failure(10_000, 5_000, 1e-3) == 0.0 || group_failure(10_000, 5_000, 1e-3) < 1e-300);
        assert!((group_failure(56_000, 28_000, 0.5) - 0.5).abs() < 0.01);
    }

    #[test]
    fn bounds_and_nonsense() {
        assert_eq!(group_failure(10, 3, 0.0), 0.0);
        assert_eq!(group_failure(10, 3, 1.0), 1.0);
        assert_eq!(group_failure(3, 3, 1.0), 0.0);
        assert!(group_failure(10, 3, -0.1).is_nan() && group_failure(10, 3, f64::NAN).is_nan());
        assert_eq!(residual_packet_loss(4, 2, 0, 0.5), 0.0);
        assert!(residual_packet_loss(4, 2, 5, 0.5).is_nan() && residual_block_loss(4, 2, 1.5).is_nan());
        assert_eq!(overhead(32, 8), 0.25);
    }

    #[test]
    fn raptorq_fails_about_as_often_as_the_rule_says() {
        let (k, trials) = (10u32, 1200);
        let code = crate::erasure::RaptorQ::new(k as usize, 1).unwrap();
        let data: Vec<u8> = (0..k as u8).collect();
        let repair = code.encoder(&data).unwrap().repair(k..k + 5000).unwrap();
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut failures = 0;
        for _ in 0..trials {
            let mut symbols = std::collections::BTreeMap::new();
            while symbols.len() < k as usize {
                let at = rng.random_range(0..5000usize);
                symbols.insert(k + at as u32, &repair[at..=at]);
            }
            failures += u32::from(code.decode(symbols).is_err());
        }
        // 1200 trials: 12 by the rule, 7.8 by the measured 6.5e-3; fewer than 3 or more than 15 would be 1 in 100 each.
        assert!(
            (12.0 - f64::from(trials) * raptorq_failure(0)).abs() < 1e-9 && (3..=15).contains(&failures),
            "{failures}"
        );
    }
}

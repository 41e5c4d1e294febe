//! Confidence intervals for rates of events that come in bursts.

/// An estimate and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// Half the interval's width relative to the estimate; infinite for an estimate of 0.
    pub fn relative_half_width(&self) -> f64 {
        if self.value > 0.0 { (self.high - self.low) / (2.0 * self.value) } else { f64::INFINITY }
    }

    /// Whether two intervals overlap.
    pub fn overlaps(&self, other: &Estimate) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The estimate and both ends times a factor.
    pub(crate) fn scaled(self, factor: f64) -> Estimate {
        Estimate { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    /// The estimate and both ends limited to `most`, for a probability.
    pub(crate) fn at_most(self, most: f64) -> Estimate {
        Estimate { value: self.value.min(most), low: self.low.min(most), high: self.high.min(most) }
    }
}

/// Sums over independent bursts, each with a weight: its number of wrong bits, or 1 to count bursts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bursts {
    /// Sum of all weights.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_of_squares: f64,
    /// The largest weight; before the first burst, the weight that one would have.
    pub greatest: f64,
}

impl Bursts {
    /// No bursts yet, with an expected weight.
    pub fn expecting(weight: f64) -> Bursts {
        Bursts { sum: 0.0, sum_of_squares: 0.0, greatest: weight }
    }

    /// Counts a burst.
    pub fn add(&mut self, weight: f64) {
        self.sum += weight;
        self.sum_of_squares += weight * weight;
        self.greatest = self.greatest.max(weight);
    }

    /// Interval for the expected sum, if bursts are a Poisson process and their weights independent.
    /// The interval of M. P. Fay, E. J. Feuer, "Confidence intervals for directly standardized rates: a method based on the gamma
    /// distribution", Statistics in Medicine 16, 1997: exact for equal weights (Garwood 1936), conservative otherwise.
    /// distribution", Statistics in Medicine 16, 1997: exact for equal weights (Garwood 1936), else conservative.
    pub fn interval(&self, confidence: f64) -> Estimate {
        let alpha = 1.0 - confidence;
        let low = if self.sum > 0.0 {
            let scale = self.sum_of_squares / self.sum;
            scale * gamma_quantile(self.sum / scale, alpha / 2.0)
        } else {
            0.0
        };
        let (sum, squares) = (self.sum + self.greatest, self.sum_of_squares + self.greatest * self.greatest);
        let scale = squares / sum;
        Estimate { value: self.sum, low, high: scale * gamma_quantile(sum / scale, 1.0 - alpha / 2.0) }
    }
}

/// Quantile of the gamma distribution of a shape and scale 1.
fn gamma_quantile(shape: f64, p: f64) -> f64 {
    // Wilson and Hilferty 1931; its error decreases with the shape and is below 1e-7 of the value there.
    let z = normal_quantile(p);
    let guess = shape * (1.0 - 1.0 / (9.0 * shape) + z / (3.0 * shape.sqrt())).powi(3).max(1e-9);
    if shape > 1e5 {
        return guess;
    }
    let (mut low, mut high) = (guess, guess);
    while gamma_share(shape, low) > p && low > 1e-300 {
        low /= 2.0;
    }
    while gamma_share(shape, high) < p {
        high = high * 1.5 + 1e-3;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if gamma_share(shape, middle) < p {
            low = middle
        } else {
            high = middle
        }
        if high - low < 1e-12 * high {
            break;
        }
    }
    0.5 * (low + high)
}

/// Regularised lower incomplete gamma function, by its series or its continued fraction (Press et al., *Numerical Recipes*,
/// section 6.2).
fn gamma_share(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(shape * libm::log(x) - x - libm::lgamma(shape));
    if x < shape + 1.0 {
        let (mut term, mut sum, mut at) = (1.0 / shape, 1.0 / shape, shape);
        while term > sum * 1e-16 {
            at += 1.0;
            term *= x / at;
            sum += term;
        }
        return front * sum;
    }
    let tiny = 1e-300;
    let mut b = x + 1.0 - shape;
    let mut c = 1.0 / tiny;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..100_000 {
        let i = f64::from(i);
        let an = -i * (i - shape);
        b += 2.0;
        d = 1.0 / nonzero(an * d + b, tiny);
        c = nonzero(b + an / c, tiny);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    1.0 - front * h
}

fn nonzero(x: f64, tiny: f64) -> f64 {
    if x.abs() < tiny { tiny } else { x }
}

/// Quantile of the standard normal distribution, by bisection.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if crate::modulation::q(-middle) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::awgn::Noise;

    #[test]
    fn equal_weights_give_the_interval_of_a_poisson_count() {
        let mut bursts = Bursts::expecting(1.0);
        // Garwood 1936: with none seen, at most 3.689; with ten seen, 4.795 to 18.39.
        assert!((bursts.interval(0.95).high - 3.6889).abs() < 1e-4);
        (0..10).for_each(|_| bursts.add(1.0));
        let ten = bursts.interval(0.95);
        assert!((ten.low - 4.7954).abs() < 1e-4 && (ten.high - 18.3904).abs() < 1e-4, "{ten:?}");
    }

    #[test]
    fn quantiles_invert_the_distribution() {
        for shape in [0.3, 1.0, 7.5, 400.0, 9e4, 2e5] {
            for p in [0.001, 0.025, 0.5, 0.975] {
                let x = gamma_quantile(shape, p);
                assert!((gamma_share(shape, x) - p).abs() < 1e-5, "{shape} {p} {x}");
            }
        }
    }

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        // Bursts of 1 + geometric weight, about `mean` of them.
        for (mean, least) in [(3.0, 0.945), (12.0, 0.945), (150.0, 0.94)] {
            const RUNS: u32 = 2000;
            let mut covered = 0;
            for run in 0..RUNS {
                let mut noise = Noise::stream(mean as u64, u64::from(run));
                let mut bursts = Bursts::expecting(5.0);
                let mut time = -libm::log(1.0 - noise.uniform());
                while time < mean {
                    bursts.add(1.0 + noise.failures_before_success(0.25) as f64);
                    time -= libm::log(1.0 - noise.uniform());
                }
                let interval = bursts.interval(0.95);
                covered += u32::from((interval.low..=interval.high).contains(&(4.0 * mean)));
            }
            let share = f64::from(covered) / f64::from(RUNS);
            assert!(share > least && share < 0.999, "{mean}: {share}");
        }
    }
}

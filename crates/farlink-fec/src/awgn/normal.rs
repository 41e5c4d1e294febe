//! Standard normal numbers by the ziggurat method.

use super::Noise;

const LAYERS: usize = 256;
/// Start of the tail, and the area of every layer (G. Marsaglia, W. W. Tsang, "The ziggurat method for generating random
/// variables", J. Stat. Software 5(8), 2000).
const TAIL: f64 = 3.654_152_885_361_009;
const AREA: f64 = 0.004_928_673_233_99;

/// Tables of the ziggurat.
#[derive(Clone)]
pub(super) struct Normal {
    /// Right edge of each layer, widest first, then 0.
    edge: Vec<f64>,
    height: Vec<f64>,
}

impl Normal {
    pub(super) fn new() -> Normal {
        let mut edge = vec![AREA / bell(TAIL), TAIL];
        while edge.len() < LAYERS {
            let last = edge[edge.len() - 1];
            edge.push((-2.0 * libm::log(AREA / last + bell(last))).sqrt());
        }
        edge.push(0.0);
        let height = edge.iter().map(|&x| bell(x)).collect();
        Normal { edge, height }
    }

    /// A standard normal number.
    #[inline]
    pub(super) fn sample(&self, noise: &mut Noise) -> f64 {
        loop {
            let bits = noise.bits();
            let layer = bits as usize & (LAYERS - 1);
            // Uniform in [-1, 1) from the upper 53 bits, which are not used for the layer.
            let u = (bits >> 11) as f64 * (2.0 / (1u64 << 53) as f64) - 1.0;
            let x = u * self.edge[layer];
            if x.abs() < self.edge[layer + 1] {
                return x;
            }
            if layer == 0 {
                return tail(noise).copysign(u);
            }
            let y = self.height[layer] + (self.height[layer + 1] - self.height[layer]) * noise.uniform();
            if y < bell(x) {
                return x;
            }
        }
    }
}

fn bell(x: f64) -> f64 {
    libm::exp(-0.5 * x * x)
}

#[cold]
fn tail(noise: &mut Noise) -> f64 {
    loop {
        let x = -libm::log(1.0 - noise.uniform()) / TAIL;
        let y = -libm::log(1.0 - noise.uniform());
        if 2.0 * y >= x * x {
            return TAIL + x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modulation::q;

    #[test]
    fn the_layers_close_at_the_top() {
        let normal = Normal::new();
        // The topmost layer has the same area as the others.
        let top = normal.edge[LAYERS - 1] * (1.0 - normal.height[LAYERS - 1]);
        assert!((top / AREA - 1.0).abs() < 1e-6, "{top}");
    }

    #[test]
    fn shares_beyond_a_value_are_those_of_the_q_function() {
        let normal = Normal::new();
        let mut noise = Noise::stream(11, 0);
        const N: usize = 4_000_000;
        let bounds = [-3.7, -2.0, -0.5, 0.0, 0.2, 1.0, 2.5, 3.4, 3.8, 4.2];
        let mut beyond = [0u32; 10];
        for _ in 0..N {
            let x = normal.sample(&mut noise);
            for (count, bound) in beyond.iter_mut().zip(bounds) {
                *count += u32::from(x > bound);
            }
        }
        for (count, bound) in beyond.into_iter().zip(bounds) {
            let p = q(bound);
            let deviation = (N as f64 * p * (1.0 - p)).sqrt();
            assert!((f64::from(count) - N as f64 * p).abs() < 4.0 * deviation, "{bound}: {count}");
        }
    }
}

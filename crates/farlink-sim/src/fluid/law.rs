//! The growth laws, their constants, and the state of a flow that they need.

/// A growth law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// A segment per round trip (RFC 5681).
    Reno,
    /// A cubic function of time, and never slower than Reno (RFC 9438).
    Cubic(Constants),
}

/// CUBIC's constants (RFC 9438, section 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// Factor on the window after a loss.
    pub beta: f64,
    /// Segments per cubic second.
    pub c: f64,
    /// Whether a loss at a smaller window than the loss before lowers the plateau (fast convergence).
    pub fast_convergence: bool,
    /// Whether it grows at least as fast as Reno.
    pub reno_friendly: bool,
}

impl Default for Constants {
    fn default() -> Self {
        Constants { beta: 0.7, c: 0.4, fast_convergence: true, reno_friendly: true }
    }
}

/// The curve of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    /// Window at the plateau, in segments; 0 before the first loss.
    pub(super) w_max: f64,
    /// Time until the plateau, in s.
    pub(super) k_s: f64,
    /// When this stage of congestion avoidance began; NaN before it has.
    pub(super) epoch_s: f64,
    /// The window that Reno would have; 0 before the stage has begun.
    pub(super) w_est: f64,
    /// The window when the threshold was last set.
    pub(super) prior: f64,
}

impl Default for Curve {
    fn default() -> Self {
        Curve { w_max: 0.0, k_s: 0.0, epoch_s: f64::NAN, w_est: 0.0, prior: 0.0 }
    }
}

impl Curve {
    /// The state after a timeout, of which only the window before it is kept.
    pub(super) fn after(prior: f64) -> Self {
        Curve { prior, ..Curve::default() }
    }
}

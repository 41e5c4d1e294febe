//! Which growth laws there are, their constants, and what a flow remembers for them.

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
    /// What a loss leaves of the window.
    pub beta: f64,
    /// Segments per cubic second.
    pub c: f64,
    /// Whether a loss below the window of the loss before aims lower.
    pub fast_convergence: bool,
    /// Whether it is never slower than Reno.
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
    /// Where it is flat, segments; 0 while no loss has told.
    pub(super) w_max: f64,
    /// How long it takes to get there, s.
    pub(super) k_s: f64,
    /// When this stage of congestion avoidance began; NaN before it has.
    pub(super) epoch_s: f64,
    /// What Reno would have; 0 before the stage has begun.
    pub(super) w_est: f64,
    /// The window when the threshold was set last.
    pub(super) prior: f64,
}

impl Default for Curve {
    fn default() -> Self {
        Curve { w_max: 0.0, k_s: 0.0, epoch_s: f64::NAN, w_est: 0.0, prior: 0.0 }
    }
}

impl Curve {
    /// What a timeout leaves: nothing but the window before it.
    pub(super) fn after(prior: f64) -> Self {
        Curve { prior, ..Curve::default() }
    }
}

//! Outcome of data that only had to be taken: a shortcut of the simulator.

/// Data that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absorbed {
    /// Bytes in order, which count as read.
    pub bytes: u64,
    /// Whether a timer was set, so that the next one may be due earlier than before.
    pub has_set_timer: bool,
}

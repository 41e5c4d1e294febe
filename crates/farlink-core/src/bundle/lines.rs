//! The lines of a bundle as its sender sees them.

use super::fragment::Fragment;
use super::piece::Piece;
use crate::time::Time;

/// The lines of a bundle, by index: emulated or real modems.
///
/// The answers give the knowledge of the near end. A line is up from the time at which its call is connected until the
/// near end notices that it has dropped.
pub trait Lines<D> {
    /// How many lines there are, up or not.
    fn count(&self) -> usize;

    /// Whether a line is up, as far as the near end knows.
    fn is_up(&self, line: usize) -> bool;

    /// Whether a line is up and has nothing to send.
    fn is_idle(&self, line: usize, now: Time) -> bool;

    /// Whether a line takes a fragment that needs `bytes` bytes on it. An idle line takes a fragment of any length.
    fn has_room(&self, line: usize, now: Time, bytes: u32) -> bool;

    /// The time from which a line takes a fragment that needs `bytes` bytes on it; never if it is down.
    fn room_at(&self, line: usize, now: Time, bytes: u32) -> Time;

    /// Whether Linux gives a line a fragment of the next packet: it is up, and its port has taken all fragments before.
    fn is_free(&self, line: usize) -> bool;

    /// Bytes that have not left a line's modem yet.
    fn waiting_bytes(&self, line: usize, now: Time) -> u64;

    /// When a fragment that a line is given at `now` would begin to arrive, after its backlog and its delay.
    fn ready(&self, line: usize, now: Time) -> Time;

    /// When a fragment that needs `bytes` bytes would arrive if a line were given it at `now`.
    fn arrival(&self, line: usize, now: Time, bytes: u32) -> Time;

    /// Rate of a line.
    fn bytes_per_s(&self, line: usize) -> f64;

    /// Estimated drops of a line per second of up time; 0 if calls do not drop.
    fn drop_rate(&self, line: usize, now: Time) -> f64;

    /// Gives a line a fragment that needs `bytes` bytes on it.
    fn take(&mut self, line: usize, now: Time, fragment: Fragment<Piece<D>>, bytes: u32);
}

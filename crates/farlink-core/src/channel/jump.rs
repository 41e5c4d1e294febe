//! Jumping from one wrong bit to the next, for all channels with bit errors.

use super::Fate;

/// Carries a frame over a bit stream whose next wrong bit follows after `gap` correct ones. `next` draws the number of correct
/// bits between a wrong one and the next.
pub(super) fn damage(gap: &mut u64, bits: u32, errors: &mut Vec<u32>, mut next: impl FnMut() -> u64) -> Fate {
    let mut wrong = *gap;
    if wrong >= u64::from(bits) {
        *gap = wrong - u64::from(bits);
        return Fate::Delivered;
    }
    while wrong < u64::from(bits) {
        errors.push(wrong as u32);
        wrong = wrong.saturating_add(1).saturating_add(next());
    }
    *gap = wrong - u64::from(bits);
    Fate::Damaged
}

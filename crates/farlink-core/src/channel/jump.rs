//! From one wrong bit straight to the next: what the channels of bits share.

use super::Fate;

/// Carries a frame over a bit stream whose next wrong bit follows after `gap` right ones; `next` says how many right bits
/// follow a wrong one.
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

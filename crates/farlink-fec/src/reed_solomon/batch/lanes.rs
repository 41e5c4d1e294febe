//! The operations of the batch algorithms on a SIMD register with a byte of a different word in each lane.

use crate::gf256::{Field, Linear};

/// A register of bytes.
///
/// # Safety
/// Every unsafe function here requires a machine with the implementor's level of SIMD. Those that take pointers state further
/// requirements.
pub(super) trait Lanes: Copy {
    /// Bytes of the register, a multiple of 16, at most 64.
    const COUNT: usize;
    /// A linear map, ready to be applied.
    type Map: Copy;
    /// A truth value per lane.
    type Mask: Copy;
    /// Constants of the multiplication.
    type Algebra: Clone;

    /// The field in which [`multiply`](Lanes::multiply) works: the symbols' field or an isomorphic one.
    fn algebra(field: &Field) -> (Self::Algebra, Field);

    unsafe fn map(linear: &Linear) -> Self::Map;
    unsafe fn splat(byte: u8) -> Self;
    /// Also: `from` points to `COUNT` readable bytes.
    unsafe fn load(from: *const u8) -> Self;
    /// Also: `to` points to `COUNT` writable bytes.
    unsafe fn store(self, to: *mut u8);
    /// 16 bytes from each pointer. Also: `from` has `COUNT / 16` pointers to 16 readable bytes, `step` apart.
    unsafe fn load_pieces(from: &[*const u8], step: usize, offset: usize) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn apply(self, map: Self::Map) -> Self;
    unsafe fn multiply(self, other: Self, algebra: &Self::Algebra) -> Self;
    /// Inverse in each lane; that of 0 is 0.
    unsafe fn inverse(self, algebra: &Self::Algebra) -> Self;
    /// The entry of a table at the index in each lane.
    unsafe fn look_up(self, table: &[u8; 256]) -> Self;
    unsafe fn is_nonzero(self) -> Self::Mask;
    /// Difference of numbers, not of field elements, modulo 256.
    unsafe fn minus(self, other: Self) -> Self;
    /// The largest number in any lane.
    unsafe fn greatest(self) -> u8;
    /// Unsigned comparison.
    unsafe fn is_at_most(self, other: Self) -> Self::Mask;
    unsafe fn both(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    unsafe fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// Bit i is the truth value of lane i.
    unsafe fn bits(mask: Self::Mask) -> u64;
    /// Alternating bytes of the low halves of each 16 bytes.
    unsafe fn unpack_low(self, other: Self) -> Self;
    /// Alternating bytes of the high halves of each 16 bytes.
    unsafe fn unpack_high(self, other: Self) -> Self;
}

/// Transposes the matrices of 16 x 16 bytes that 16 registers hold side by side.
///
/// With an address of row and column bits, each of the four rounds rotates it by one bit.
///
/// # Safety
/// The machine has the level of `L`.
#[inline(always)]
pub(super) unsafe fn transpose<L: Lanes>(mut rows: [L; 16]) -> [L; 16] {
    // SAFETY: the caller's.
    unsafe {
        for _ in 0..4 {
            let before = rows;
            for i in 0..8 {
                rows[2 * i] = before[i].unpack_low(before[i + 8]);
                rows[2 * i + 1] = before[i].unpack_high(before[i + 8]);
            }
        }
    }
    rows
}

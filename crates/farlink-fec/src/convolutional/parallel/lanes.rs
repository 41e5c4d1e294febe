//! A vector of bytes, one for each frame that is decoded at once, and the operations of the decoder.

/// A vector of unsigned bytes for [`Lanes::LANES`] frames. Only the interleaving operations move bytes between lanes.
///
/// # Safety
/// Every method may use instructions that the machine must have: call them only within a function that enables them.
pub(super) trait Lanes: Copy + 'static {
    /// Bytes in the vector, a multiple of 16.
    const LANES: usize;
    /// Whether long functions are not inlined into their caller, because the compiler vectorises short ones only.
    const IN_PIECES: bool = false;

    /// The same byte in every lane.
    unsafe fn splat(byte: u8) -> Self;
    /// Sums, modulo 256.
    unsafe fn add(self, other: Self) -> Self;
    /// Differences, modulo 256.
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn min(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// Sets `bit` in `self` where `b < a`; `min` is the smaller of the two. The bit is clear in `self`.
    unsafe fn mark_less(self, b: Self, a: Self, min: Self, bit: Self) -> Self;
    /// `yes` where `b < a`, else `no`; `min` is the smaller of the two.
    unsafe fn select_less(b: Self, a: Self, min: Self, yes: Self, no: Self) -> Self;
    /// `one` where bit BIT of `self` is set, else `zero`.
    unsafe fn select_bit<const BIT: u32>(self, zero: Self, one: Self) -> Self;
    /// 0x11 << (self & 3).
    unsafe fn bit_of_low_two(self) -> Self;
    /// Twice `self`, plus 1 where `byte & mask` is not 0; `mask` has one bit set.
    unsafe fn append(self, byte: Self, mask: Self) -> Self;
    /// The bits of every byte in reverse order.
    unsafe fn reverse_bits(self) -> Self;
    /// The costs of deciding for a 0 and for a 1, from received symbols (signed bytes).
    unsafe fn costs(self, quantiser: &Quantiser) -> (Self, Self);
    /// Within every 16 bytes, interleaves the first 8 of both (`.0`) and the last 8 (`.1`).
    unsafe fn interleave(self, other: Self) -> (Self, Self);
    /// 16 bytes from each of LANES / 16 addresses, `apart` bytes apart.
    unsafe fn gather16(from: *const u8, apart: usize) -> Self;
    /// The bytes of four vectors from an address, distributed in turn: byte i of vector j is byte 4i + j.
    unsafe fn load_by_fours(from: *const Self) -> [Self; 4];
    /// The bytes of the table at the indices in `index`, each below 16.
    unsafe fn lookup(table: [u8; 16], index: Self) -> Self;
    /// The least byte.
    unsafe fn least(self) -> u8;
    /// Prefetches the data at an address; nothing is read.
    #[inline(always)]
    fn prefetch(_at: *const u8) {}

    /// The vector's bytes, 16 by 16.
    #[inline(always)]
    fn parts(self) -> [[u8; 16]; 4] {
        let mut parts = [[0; 16]; 4];
        // SAFETY: a vector is LANES bytes, at most 64.
        unsafe { std::ptr::copy_nonoverlapping((&raw const self).cast(), parts.as_mut_ptr(), Self::LANES / 16) };
        parts
    }
}

/// Converts a received symbol to a cost: min(|symbol|, full_scale) * scale / 128, rounded.
#[derive(Clone, Debug)]
pub(super) struct Quantiser {
    pub(super) full_scale: u8,
    pub(super) scale: i16,
    /// The cost of every |symbol| up to 127.
    pub(super) table: [u8; 128],
}

impl Quantiser {
    /// Maps symbols of magnitude `full_scale` (1 to 127) and above to a cost of `largest`.
    pub(super) fn new(full_scale: u8, largest: u8) -> Quantiser {
        let full = i32::from(full_scale.clamp(1, 127));
        let scale = (i32::from(largest) * 128 + full / 2) / full;
        let cost = |size: usize| ((size as i32).min(full) * scale + 64) / 128;
        let table = std::array::from_fn(|size| cost(size) as u8);
        Quantiser { full_scale: full as u8, scale: scale as i16, table }
    }
}

/// Transposes 16 x 16 bytes within every 16 bytes of 16 vectors.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub(super) unsafe fn transpose16<V: Lanes>(mut rows: [V; 16]) -> [V; 16] {
    // Four perfect shuffles of the 256 bytes.
    for _ in 0..4 {
        let old = rows;
        for i in 0..8 {
            // SAFETY: the caller's.
            (rows[2 * i], rows[2 * i + 1]) = unsafe { old[i].interleave(old[i + 8]) };
        }
    }
    rows
}

/// Sixteen bytes in plain Rust.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(super) struct Portable([u8; 16]);

/// A vector from an expression for each lane. This is a loop and not a closure, because it has to be inlined completely to become
/// vector instructions.
macro_rules! each {
    ($i:ident => $byte:expr) => {{
        let mut bytes = [0u8; 16];
        let mut $i = 0;
        while $i < 16 {
            bytes[$i] = $byte;
            $i += 1;
        }
        Portable(bytes)
    }};
}

impl Lanes for Portable {
    const LANES: usize = 16;
    const IN_PIECES: bool = true;

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        Portable([byte; 16])
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        each!(i => self.0[i].wrapping_add(other.0[i]))
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        each!(i => self.0[i].wrapping_sub(other.0[i]))
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        each!(i => if self.0[i] < other.0[i] { self.0[i] } else { other.0[i] })
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        each!(i => self.0[i] & other.0[i])
    }

    #[inline(always)]
    unsafe fn mark_less(self, _b: Self, a: Self, min: Self, bit: Self) -> Self {
        let less = each!(i => if min.0[i] == a.0[i] { 0 } else { 0xff });
        each!(i => self.0[i] | less.0[i] & bit.0[i])
    }

    #[inline(always)]
    unsafe fn select_less(_b: Self, a: Self, min: Self, yes: Self, no: Self) -> Self {
        let less = each!(i => if min.0[i] == a.0[i] { 0 } else { 0xff });
        each!(i => yes.0[i] & less.0[i] | no.0[i] & !less.0[i])
    }

    #[inline(always)]
    unsafe fn select_bit<const BIT: u32>(self, zero: Self, one: Self) -> Self {
        let mask = each!(i => (self.0[i] >> BIT & 1).wrapping_neg());
        each!(i => one.0[i] & mask.0[i] | zero.0[i] & !mask.0[i])
    }

    #[inline(always)]
    unsafe fn bit_of_low_two(self) -> Self {
        // Without a shift by a variable count, which SSE2 does not have.
        let low = each!(i => if self.0[i] & 1 == 0 { 0x11 } else { 0x22 });
        each!(i => if self.0[i] & 2 == 0 { low.0[i] } else { low.0[i] << 2 })
    }

    #[inline(always)]
    unsafe fn append(self, byte: Self, mask: Self) -> Self {
        let bits = each!(i => if byte.0[i] & mask.0[i] == 0 { 0 } else { 1 });
        each!(i => self.0[i].wrapping_add(self.0[i]) | bits.0[i])
    }

    #[inline(always)]
    unsafe fn reverse_bits(self) -> Self {
        each!(i => self.0[i].reverse_bits())
    }

    #[inline(always)]
    unsafe fn costs(self, quantiser: &Quantiser) -> (Self, Self) {
        let size = each!(i => self.0[i].cast_signed().unsigned_abs().min(quantiser.full_scale));
        // At most 127 * 255 * 128 / 127 + 64 < 2^16.
        let scale = quantiser.scale as u16;
        let cost = each!(i => (u16::from(size.0[i]).wrapping_mul(scale).wrapping_add(64) >> 7) as u8);
        let zero = each!(i => if self.0[i].cast_signed() < 0 { cost.0[i] } else { 0 });
        (zero, each!(i => cost.0[i] ^ zero.0[i]))
    }

    #[inline(always)]
    unsafe fn interleave(self, other: Self) -> (Self, Self) {
        (
            each!(i => if i % 2 == 0 { self.0[i / 2] } else { other.0[i / 2] }),
            each!(i => if i % 2 == 0 { self.0[8 + i / 2] } else { other.0[8 + i / 2] }),
        )
    }

    #[inline(always)]
    unsafe fn gather16(from: *const u8, _apart: usize) -> Self {
        // SAFETY: the caller vouches for 16 bytes there.
        Portable(unsafe { from.cast::<[u8; 16]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_by_fours(from: *const Self) -> [Self; 4] {
        // SAFETY: the caller vouches for four vectors there.
        let from = unsafe { &*from.cast::<[u8; 64]>() };
        [each!(i => from[4 * i]), each!(i => from[4 * i + 1]), each!(i => from[4 * i + 2]), each!(i => from[4 * i + 3])]
    }

    #[inline(always)]
    unsafe fn lookup(table: [u8; 16], index: Self) -> Self {
        each!(i => table[usize::from(index.0[i] & 15)])
    }

    #[inline(always)]
    unsafe fn least(self) -> u8 {
        self.0.into_iter().fold(u8::MAX, u8::min)
    }
}

//! Decoding of a batch: syndromes of all words, then correction of those with errors.

use super::Outcome;
use super::correct::{Correction, isomorphism, lanes_of};
use super::lanes::Lanes;
use super::syndromes::Syndromes;
use crate::reed_solomon::Code;

/// The decoder at one level of SIMD.
#[derive(Clone)]
pub(super) struct Decoder<L: Lanes> {
    n: usize,
    syndromes: Syndromes<L>,
    correction: Correction<L>,
    columns: Box<[L; 256]>,
    /// Syndromes of one word in each lane.
    computed: Vec<L>,
    /// Syndromes of words that wait for correction: byte `j * L::COUNT + lane`.
    waiting: Vec<u8>,
    gathered: Vec<L>,
}

impl<L: Lanes> Decoder<L> {
    /// # Safety
    /// The machine has the level of `L`.
    pub(super) unsafe fn new(code: &Code) -> Self {
        let (_, field) = L::algebra(&code.field);
        let (there, _) = isomorphism(&code.field, &field);
        // SAFETY: the caller's.
        unsafe {
            let zero = L::splat(0);
            Decoder {
                n: code.n,
                syndromes: Syndromes::new(code, code.n, &there),
                correction: Correction::new(code),
                columns: Box::new([zero; 256]),
                computed: vec![zero; code.parity_symbols()],
                waiting: vec![0; code.parity_symbols() * L::COUNT],
                gathered: vec![zero; code.parity_symbols()],
            }
        }
    }

    /// # Safety
    /// The machine has the level of `L`; there is an outcome for each word.
    #[inline(always)]
    pub(super) unsafe fn decode(&mut self, words: &mut [u8], outcomes: &mut [Outcome]) {
        let n = self.n;
        let nothing = [0u8; 255];
        let mut waiting = [0usize; 64];
        let mut waits = 0;
        let mut indices = [0usize; 64];
        // SAFETY: the caller's; a lane without a word has n zeros to read.
        unsafe {
            for first in (0..outcomes.len()).step_by(L::COUNT) {
                let mut pointers = [nothing.as_ptr(); 64];
                for lane in 0..L::COUNT.min(outcomes.len() - first) {
                    pointers[lane] = words.as_ptr().add((first + lane) * n);
                    indices[lane] = first + lane;
                    outcomes[first + lane] = Outcome::Decoded { corrected: 0 };
                }
                self.syndromes.compute(&pointers[..L::COUNT], &mut self.columns, &mut self.computed);
                let mut wrong = 0;
                for syndrome in &self.computed {
                    wrong |= L::bits(syndrome.is_nonzero());
                }
                if wrong.count_ones() as usize * 4 > L::COUNT * 3 {
                    self.correction.correct(&self.computed, &indices, words, outcomes);
                    continue;
                }
                for lane in lanes_of(wrong) {
                    for (j, syndrome) in self.computed.iter().enumerate() {
                        let bytes = std::ptr::from_ref(syndrome).cast::<u8>();
                        self.waiting[j * L::COUNT + waits] = *bytes.add(lane);
                    }
                    waiting[waits] = indices[lane];
                    waits += 1;
                    if waits == L::COUNT {
                        self.correct_waiting(&waiting, words, outcomes);
                        waits = 0;
                    }
                }
            }
            if waits > 0 {
                self.correct_waiting(&waiting, words, outcomes);
            }
        }
    }

    /// # Safety
    /// The machine has the level of `L`.
    #[inline(always)]
    unsafe fn correct_waiting(&mut self, waiting: &[usize; 64], words: &mut [u8], outcomes: &mut [Outcome]) {
        // SAFETY: the caller's; the chunks have as many bytes as the register.
        unsafe {
            for (syndrome, bytes) in self.gathered.iter_mut().zip(self.waiting.chunks_exact(L::COUNT)) {
                *syndrome = L::load(bytes.as_ptr());
            }
            self.waiting.fill(0);
            self.correction.correct(&self.gathered, waiting, words, outcomes);
        }
    }
}

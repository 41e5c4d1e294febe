//! Viterbi decoding of many frames at once, one in each SIMD lane.
//!
//! A decoder that works within one frame has to wait: for the metrics of the previous step, and in the trace-back for the
//! previous state. Here each byte of a vector belongs to another frame (16, 32 or 64 of them), so that every instruction of the
//! recursion and of the trace-back does useful work for all frames, and no lane depends on another. [`FrameDecoder`] takes frames
//! of equal length; [`StreamDecoder`] cuts one long stream into overlapping blocks.
//!
//! From K = 11 on, the metrics of that many frames do not fit in the fast caches. Then vectors contain neighbouring states of one
//! frame instead, and only the loads of the recursion move bytes between lanes. Both methods give the same bits.
//!
//! Path metrics are bytes. The cost of a symbol is its magnitude, quantised as finely as possible such that no two metrics differ
//! by more than a byte can express ([`FrameDecoder::largest_cost`]: 15 for K = 7 and rate 1/2, that is 31 levels). Therefore
//! nothing saturates or wraps for any symbols. If two paths have the same cost, the one whose oldest differing bit is 0 wins.

mod acs;
mod engine;
mod group;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod lanes_avx2;
#[cfg(target_arch = "x86_64")]
mod lanes_avx512;
mod states;
#[cfg(test)]
mod tests;
mod traceback;
mod trellis;

use engine::Engine;
use group::Plan;
use lanes::Quantiser;
use trellis::Trellis;

use super::{Code, Ending};
use crate::Soft;
use crate::bits::bytes_for;
use crate::simd::Simd;

/// Default length of the trace-back in constraint lengths, after which paths have merged.
const TRACEBACK_CONSTRAINT_LENGTHS: usize = 5;

/// The kind of received symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Only the sign counts: +1 and -1 (and larger magnitudes) are full scale, and 0 means unknown.
    Hard,
    /// The magnitude is the confidence; ±127 is full scale.
    Soft,
    /// The magnitude is the confidence; this magnitude (1 to 127) and larger ones are full scale.
    ///
    /// Costs have fewer levels than symbols: choose about the mean magnitude plus two standard deviations.
    SoftUpTo(u8),
}

impl Decision {
    fn full_scale(self) -> u8 {
        match self {
            Decision::Hard => 1,
            Decision::Soft => 127,
            Decision::SoftUpTo(size) => size,
        }
    }
}

/// Why symbols cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParallelError {
    /// The number of symbols is not a multiple of a frame.
    #[error("{symbols} symbols; frames of {frame} need a multiple of that")]
    Symbols {
        /// Number of symbols.
        symbols: usize,
        /// Number of symbols of a frame.
        frame: usize,
    },
    /// The output buffer does not have the size of the decoded bits.
    #[error("space for {given} bytes of data; the symbols decode to {needed}")]
    Data {
        /// Size of the buffer in bytes.
        given: usize,
        /// Required size in bytes.
        needed: usize,
    },
}

/// Decodes frames of equal length.
///
/// Frames are independent: a frame's bits depend neither on other frames nor on the level of SIMD. Use one decoder for many
/// frames; it is fastest with a multiple of 64 of them.
#[derive(Clone, Debug)]
pub struct FrameDecoder {
    plan: Plan,
    engine: Engine,
    simd: Simd,
    ending: Ending,
    data_bits: usize,
    /// Number of symbols of a frame.
    frame: usize,
    /// Number of steps by which a tail-biting frame is extended on either side.
    wrap: usize,
    wrapped: Vec<Soft>,
}

impl FrameDecoder {
    /// A decoder for frames of `data_bits` data bits with the given ending, and a trace-back of 5 K.
    ///
    /// Tail-biting frames are decoded with their own end before them and their own beginning after them, at least 8 K steps of
    /// each, starting from any state.
    pub fn new(code: &Code, ending: Ending, data_bits: usize, decision: Decision, simd: Simd) -> FrameDecoder {
        let trellis = Trellis::new(code);
        let constraint_length = trellis.constraint_length;
        let steps = ending.steps(data_bits, code.constraint_length());
        let wrap = if ending == Ending::TailBiting { (8 * constraint_length).next_multiple_of(8) } else { 0 };
        let frame = steps * trellis.outputs;
        let plan = Plan {
            quantiser: Quantiser::new(decision.full_scale(), trellis.largest_cost),
            traceback: TRACEBACK_CONSTRAINT_LENGTHS * constraint_length,
            steps: steps + 2 * wrap,
            starts_in_zero: ending != Ending::TailBiting,
            ends_in_zero: ending == Ending::Terminated,
            skip_bytes: wrap / 8,
            row_bytes: bytes_for(data_bits),
            trellis,
        };
        let engine = Engine::new(plan.clone(), simd);
        FrameDecoder { plan, engine, simd, ending, data_bits, frame, wrap, wrapped: Vec::new() }
    }

    /// The same decoder with another trace-back: at least `steps` steps are processed before a bit is decided.
    ///
    /// Decisions are stored for that many steps; if they cover a frame, decoding is maximum likelihood.
    pub fn with_traceback(mut self, steps: usize) -> FrameDecoder {
        self.plan.traceback = steps;
        self.engine = Engine::new(self.plan.clone(), self.simd);
        self
    }

    /// The cost of a full-scale symbol, which is the number of levels on either side of 0.
    pub fn largest_cost(&self) -> u8 {
        self.plan.trellis.largest_cost
    }

    /// Number of symbols of a frame.
    pub fn frame_symbols(&self) -> usize {
        self.frame
    }

    /// Decodes successive frames in `symbols` ([`FrameDecoder::frame_symbols`] each) into packed bits, each frame in whole bytes;
    /// bits after the last are 0.
    ///
    /// # Errors
    /// If the number of symbols is not a multiple of a frame, or the buffer does not have the required size.
    pub fn decode(&mut self, symbols: &[Soft], data: &mut [u8]) -> Result<(), ParallelError> {
        let frames = symbols.len().checked_div(self.frame).unwrap_or(0);
        if frames * self.frame != symbols.len() {
            return Err(ParallelError::Symbols { symbols: symbols.len(), frame: self.frame });
        }
        let row_bytes = self.plan.row_bytes;
        let needed = frames * row_bytes;
        if data.len() != needed {
            return Err(ParallelError::Data { given: data.len(), needed });
        }
        if needed == 0 {
            return Ok(());
        }
        let lanes = self.engine.rows();
        let groups = symbols.chunks(lanes * self.frame).zip(data.chunks_mut(lanes * row_bytes));
        for (symbols, data) in groups {
            if self.ending == Ending::TailBiting {
                self.decode_wrapped(symbols, data);
            } else {
                let mut rows: [&[Soft]; 64] = [&[]; 64];
                let count = fill(&mut rows, symbols.chunks_exact(self.frame));
                self.engine.decode(&rows[..count], data);
            }
        }
        for frame in data.chunks_exact_mut(row_bytes) {
            clear_after(frame, self.data_bits);
        }
        Ok(())
    }

    fn decode_wrapped(&mut self, symbols: &[Soft], data: &mut [u8]) {
        let wrap = self.wrap * self.plan.trellis.outputs;
        self.wrapped.clear();
        for frame in symbols.chunks_exact(self.frame) {
            // A frame shorter than the extension is repeated several times.
            let first = (self.frame - wrap % self.frame) % self.frame;
            let circle = frame.iter().cycle().skip(first).take(self.frame + 2 * wrap);
            self.wrapped.extend(circle);
        }
        let mut rows: [&[Soft]; 64] = [&[]; 64];
        let count = fill(&mut rows, self.wrapped.chunks_exact(self.frame + 2 * wrap));
        self.engine.decode(&rows[..count], data);
    }
}

/// Puts the available rows into the first places and returns their number.
fn fill<'a>(rows: &mut [&'a [Soft]; 64], from: impl Iterator<Item = &'a [Soft]>) -> usize {
    rows.iter_mut().zip(from).map(|(row, symbols)| *row = symbols).count()
}

/// Clears the bits after the first `bits` in the last byte.
fn clear_after(bytes: &mut [u8], bits: usize) {
    if let Some(last) = bytes.last_mut()
        && !bits.is_multiple_of(8)
    {
        *last &= !(0xff >> (bits % 8));
    }
}

/// Decodes one long stream.
/// The stream is cut into blocks, each with a run-up before it and a run-out after it; a block's bits do not depend on the level
/// of SIMD. Each bit is decided as by a decoder that starts in any state at least 10 K steps before it, which increases the bit
/// error rate by a few per cent at most.
/// few per cent in bit error rate at most.
#[derive(Clone, Debug)]
pub struct StreamDecoder {
    engine: Engine,
    outputs: usize,
    run_up: usize,
    run_out: usize,
    edge: Vec<Soft>,
}

/// Bits of a block. It is not a power of two, because then blocks would evict each other from the cache.
const BLOCK: usize = 1984;

impl StreamDecoder {
    /// A decoder with a trace-back of 5 K.
    pub fn new(code: &Code, decision: Decision, simd: Simd) -> StreamDecoder {
        let trellis = Trellis::new(code);
        let traceback = TRACEBACK_CONSTRAINT_LENGTHS * trellis.constraint_length;
        let run_up = (10 * trellis.constraint_length).next_multiple_of(8);
        let outputs = trellis.outputs;
        let plan = Plan {
            quantiser: Quantiser::new(decision.full_scale(), trellis.largest_cost),
            traceback,
            steps: run_up + BLOCK + traceback,
            starts_in_zero: false,
            ends_in_zero: false,
            skip_bytes: run_up / 8,
            row_bytes: BLOCK / 8,
            trellis,
        };
        StreamDecoder { engine: Engine::new(plan, simd), outputs, run_up, run_out: traceback, edge: Vec::new() }
    }

    /// Decodes a stream whose encoder began in state 0, into packed bits, one for each step; the last ones have less protection.
    /// Bits after the last are 0.
    ///
    /// # Errors
    /// If the number of symbols is not a multiple of a step, or the buffer does not have the required size.
    pub fn decode(&mut self, symbols: &[Soft], data: &mut [u8]) -> Result<(), ParallelError> {
        let n = self.outputs;
        let bits = symbols.len() / n;
        if bits * n != symbols.len() {
            return Err(ParallelError::Symbols { symbols: symbols.len(), frame: n });
        }
        let needed = bytes_for(bits);
        if data.len() != needed {
            return Err(ParallelError::Data { given: data.len(), needed });
        }
        let lanes = self.engine.rows();
        let row = (self.run_up + BLOCK + self.run_out) * n;
        let blocks = bits.div_ceil(BLOCK);
        for (group, data) in data.chunks_mut(lanes * BLOCK / 8).enumerate() {
            let first = group * lanes;
            let count = lanes.min(blocks - first);
            // Blocks that extend beyond the stream: before it the encoder sent zeros, after it nothing is known.
            let begins = |block: usize| (block * BLOCK) as isize - self.run_up as isize;
            let beyond = |block: &usize| begins(*block) < 0 || (begins(*block) as usize) * n + row > symbols.len();
            self.edge.clear();
            for block in (first..first + count).filter(beyond) {
                let before = (-begins(block)).max(0) as usize * n;
                let from = begins(block).max(0) as usize * n;
                let known = &symbols[from..symbols.len().min(from + row - before)];
                self.edge.extend(std::iter::repeat_n(Soft::MAX, before));
                self.edge.extend(known);
                self.edge.extend(std::iter::repeat_n(0, row - before - known.len()));
            }
            let mut edges = self.edge.chunks_exact(row);
            let mut rows: [&[Soft]; 64] = [&[]; 64];
            for (block, target) in (first..first + count).zip(&mut rows) {
                *target = if beyond(&block) {
                    edges.next().unwrap_or_default()
                } else {
                    let from = begins(block) as usize * n;
                    &symbols[from..from + row]
                };
            }
            self.engine.decode(&rows[..count], data);
        }
        clear_after(data, bits);
        Ok(())
    }
}

//! farlink's own codecs at a level of SIMD.

use farlink_fec::convolutional::parallel::{Decision, FrameDecoder, StreamDecoder};
use farlink_fec::convolutional::{self, Ending};
use farlink_fec::erasure::{Cauchy, Workspace};
use farlink_fec::reed_solomon::{Basis, BatchDecoder, BatchEncoder, Code, Outcome};
use farlink_fec::simd::Simd;

use crate::erasure::Task;
use crate::reed_solomon::{DATA, LENGTH, WORDS, spoil};
use crate::viterbi::Frames;
use crate::{Random, time};

/// `farlink`: all frames in one call, one in each lane. `farlink-stream`: the frames after each other as one stream, whose
/// tails are decoded but not counted.
pub fn viterbi(codec: &str, level: &str, frames: &Frames, seconds: f64, hard: bool) {
    let code = convolutional::Code::new(frames.constraint_length, &frames.generators).unwrap();
    // The middle of the scale lies between 127 and 128.
    let soft = |&symbol: &u8| {
        if symbol < 128 { (128 - symbol.max(1)) as i8 } else { (127 - i16::from(symbol)).max(-127) as i8 }
    };
    let symbols: Vec<i8> = frames.symbols.iter().flatten().map(soft).collect();
    let decision = if hard { Decision::Hard } else { Decision::Soft };
    let (count, bits) = (frames.data.len(), frames.bits);
    if codec == "farlink" {
        let mut decoder = FrameDecoder::new(&code, Ending::Terminated, bits, decision, simd(level));
        let mut decoded = vec![0; count * bits / 8];
        decoder.decode(&symbols, &mut decoded).unwrap();
        let each: Vec<Vec<u8>> = decoded.chunks_exact(bits / 8).map(<[u8]>::to_vec).collect();
        return time(seconds, count * bits, frames.error_rate(&each), || {
            decoder.decode(&symbols, &mut decoded).unwrap()
        });
    }
    let mut decoder = StreamDecoder::new(&code, decision, simd(level));
    let steps = symbols.len() / code.outputs();
    let mut decoded = vec![0; steps.div_ceil(8)];
    decoder.decode(&symbols, &mut decoded).unwrap();
    let frame = |at: usize| {
        let mut frame = vec![0; bits / 8];
        (0..bits).for_each(|bit| {
            farlink_fec::bits::set(&mut frame, bit, farlink_fec::bits::get(&decoded, at * steps / count + bit))
        });
        frame
    };
    let each: Vec<Vec<u8>> = (0..count).map(frame).collect();
    time(seconds, count * bits, frames.error_rate(&each), || decoder.decode(&symbols, &mut decoded).unwrap());
}

/// The code that libfec's fastest decoder has: CCSDS in the conventional basis, 512 words in one call.
pub fn reed_solomon(level: &str, data: &[Vec<u8>], errors: Option<usize>, seconds: f64) {
    let code = Code::ccsds(LENGTH, DATA, Basis::Conventional).unwrap();
    let mut encoder = BatchEncoder::new(&code, simd(level));
    let mut decoder = BatchDecoder::new(&code, simd(level));
    let mut sent = vec![0; LENGTH * WORDS];
    sent.chunks_exact_mut(LENGTH).zip(data).for_each(|(word, data)| word[..DATA].copy_from_slice(data));
    encoder.encode(&mut sent);
    let bits = WORDS * DATA * 8;
    let Some(errors) = errors else {
        return time(seconds, bits, 0.0, || encoder.encode(&mut sent));
    };
    let (mut random, mut received) = (Random(1), sent.clone());
    received.chunks_exact_mut(LENGTH).for_each(|word| spoil(word, errors, &mut random));
    let mut outcomes = vec![Outcome::TooManyErrors; WORDS];
    let mut work = received.clone();
    decoder.decode(&mut work, &mut outcomes);
    let failed = work.chunks_exact(LENGTH).zip(sent.chunks_exact(LENGTH)).filter(|(a, b)| a != b).count();
    time(seconds, bits, failed as f64 / WORDS as f64, || {
        work.copy_from_slice(&received);
        decoder.decode(&mut work, &mut outcomes);
    });
}

/// A group in one piece of memory, as farlink's transport keeps it; the flags of what is lost are made in each call.
pub fn erasure(level: &str, task: &Task) {
    let (k, m, bytes) = (task.shape.k, task.shape.m, task.shape.bytes);
    let codec = Cauchy::with_simd(k, m, simd(level)).unwrap();
    let data = task.data.concat();
    let mut parity = vec![0; m * bytes];
    codec.encode(&data, bytes, &mut parity).unwrap();
    let mut blocks = [&data[..], &parity].concat();
    let (mut flags, mut workspace) = (vec![false; k + m], Workspace::default());
    task.time(
        || codec.encode(&data, bytes, &mut parity).unwrap(),
        |lost, check| {
            flags.fill(false);
            lost.iter().for_each(|&at| flags[at] = true);
            if check {
                lost.iter().for_each(|&at| blocks[at * bytes..(at + 1) * bytes].fill(0));
            }
            codec.decode(&mut blocks, bytes, &flags, &mut workspace).unwrap();
            !check || blocks[..k * bytes] == data
        },
    );
}

fn simd(level: &str) -> Simd {
    let known = [("portable", Simd::Portable), ("avx2", Simd::Avx2), ("avx512-gfni", Simd::Avx512Gfni)];
    let (_, simd) = known.into_iter().find(|&(name, _)| name == level).expect("a level of SIMD");
    assert!(Simd::available().contains(&simd), "this machine has no {level}");
    simd
}

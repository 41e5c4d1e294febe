//! Viterbi decoders over frames from a file.

use crate::{farlink, time};

/// Frames as `frames.h` describes them.
pub struct Frames {
    pub constraint_length: u32,
    pub bits: usize,
    pub generators: Vec<u32>,
    /// Of each frame, one byte per received symbol: 0 a certain 0, 255 a certain 1.
    pub symbols: Vec<Vec<u8>>,
    /// Of each frame, its packed bits.
    pub data: Vec<Vec<u8>>,
}

impl Frames {
    pub fn read(path: &str) -> Frames {
        let file = std::fs::read(path).expect("a file of frames");
        let end = file.iter().position(|&byte| byte == b'\n').expect("a header");
        let header = std::str::from_utf8(&file[..end]).expect("a header");
        let words: Vec<&str> = header.split(' ').collect();
        let number = |at: usize| words[at].parse::<usize>().expect("a number");
        let (n, constraint_length, bits, count) = (number(0), number(1), number(2), number(3));
        let generators = words[4..].iter().map(|word| u32::from_str_radix(word, 8).expect("octal")).collect();
        let symbols_per_frame = (bits + constraint_length - 1) * n;
        let (symbols, data) = file[end + 1..].split_at(symbols_per_frame * count);
        Frames {
            constraint_length: constraint_length as u32,
            bits,
            generators,
            symbols: symbols.chunks(symbols_per_frame).map(<[u8]>::to_vec).collect(),
            data: data.chunks(bits / 8).map(<[u8]>::to_vec).collect(),
        }
    }

    /// Share of wrong bits.
    pub fn error_rate(&self, decoded: &[Vec<u8>]) -> f64 {
        let wrong: u32 =
            self.data.iter().zip(decoded).flat_map(|(a, b)| a.iter().zip(b)).map(|(a, b)| (a ^ b).count_ones()).sum();
        f64::from(wrong) / (self.bits * self.data.len()) as f64
    }

    /// Times a decoder of single frames; it is given the index of a frame.
    fn time_each(&self, seconds: f64, mut decode: impl FnMut(usize, &mut [u8])) {
        let mut decoded = vec![vec![0; self.bits / 8 + 8]; self.data.len()];
        decoded.iter_mut().enumerate().for_each(|(at, out)| decode(at, out));
        let error_rate = self.error_rate(&decoded);
        time(seconds, self.bits * self.data.len(), error_rate, || {
            decoded.iter_mut().enumerate().for_each(|(at, out)| decode(at, out));
        });
    }
}

pub fn time_frames(codec: &str, frames: &Frames, seconds: f64, hard: bool) {
    match codec.split_once(':') {
        Some((codec, level)) => farlink::viterbi(codec, level, frames, seconds, hard),
        _ => fec_crate(codec, frames, seconds, hard),
    }
}

/// The crate `fec`, in its own code (`fec`) or with SIMD (`fec-simd`).
fn fec_crate(codec: &str, frames: &Frames, seconds: f64, hard: bool) {
    let (n, k) = (frames.generators.len(), frames.constraint_length);
    // Its polynomials have the newest bit in the lowest place, and its tail is K + 1 zeros instead of K - 1.
    let polynomials: Vec<u16> = frames.generators.iter().map(|&g| (g.reverse_bits() >> (32 - k)) as u16).collect();
    let soft: Vec<Vec<u8>> = frames.symbols.iter().map(|one| [one.clone(), vec![0; 2 * n]].concat()).collect();
    let packed = |symbols: &Vec<u8>| -> Vec<u8> {
        let byte =
            |eight: &[u8]| eight.iter().enumerate().fold(0, |byte, (at, &symbol)| byte | (symbol >> 7) << (7 - at));
        symbols.chunks(8).map(byte).collect()
    };
    let signs: Vec<Vec<u8>> = soft.iter().map(packed).collect();

    macro_rules! run {
        ($decoder:expr) => {{
            let mut decoder = $decoder;
            frames.time_each(seconds, |at, out| {
                if hard {
                    decoder.decode_hard(&signs[at], soft[at].len(), out).expect("a decoded frame");
                } else {
                    decoder.decode_soft(&soft[at], out).expect("a decoded frame");
                }
            });
        }};
    }
    match codec {
        "fec" => run!(fec::ConvDecoder::new(n as u32, k, &polynomials)),
        #[cfg(feature = "fec-simd")]
        "fec-simd" => match (n, k) {
            (2, 4) => run!(fec::ConvSimdDecoder::<2, 4>::new(&polynomials)),
            (2, 7) => run!(fec::ConvSimdDecoder::<2, 7>::new(&polynomials)),
            (3, 7) => run!(fec::ConvSimdDecoder::<3, 7>::new(&polynomials)),
            (2, 9) => run!(fec::ConvSimdDecoder::<2, 9>::new(&polynomials)),
            (2, 12) => run!(fec::ConvSimdDecoder::<2, 12>::new(&polynomials)),
            _ => panic!("fec-simd is compiled for the codes of the benchmark only"),
        },
        _ => panic!("no Viterbi decoder {codec}"),
    }
}

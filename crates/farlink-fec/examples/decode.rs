//! Decodes frames or words from a file: what the tests against other decoders run.
//!
//! decode viterbi DECODER FRAMES OUTPUT
//!
//! FRAMES begins with a line `n K bits frames generator1 ... generatorn` (octal). Then, for each frame, follow its received
//! symbols, one byte each, 0 for a certain 0 and 255 for a certain 1, a symbol per coded bit of a terminated frame. OUTPUT
//! gets the packed data bits of each frame. DECODER is `serial`, `serial:TRACEBACK`, `parallel` (frames in lanes)
//! or `stream` (the frames after each other as one stream, in blocks).
//!
//! decode reed-solomon conventional|ccsds|ccsds-dual serial|batch WORDS OUTPUT
//!
//! WORDS are words of 255 symbols of a code (255, 223). OUTPUT gets, for each, the parity of its first 223 symbols, the 255
//! symbols that decoding gives, and one signed byte: how many were wrong, or -1.

use std::error::Error;
use std::fs;

use farlink_fec::bits;
use farlink_fec::convolutional::parallel::{Decision, FrameDecoder, StreamDecoder};
use farlink_fec::convolutional::{Code, Ending, Viterbi};
use farlink_fec::reed_solomon::{self, Basis, BatchDecoder, BatchEncoder, Outcome};
use farlink_fec::simd::Simd;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["viterbi", decoder, frames, output] => Ok(fs::write(output, viterbi(decoder, &Frames::read(frames)?)?)?),
        ["reed-solomon", code, decoder, words, output] => {
            let code = match code {
                "conventional" => reed_solomon::Code::conventional(255, 223)?,
                "ccsds" => reed_solomon::Code::ccsds(255, 223, Basis::Conventional)?,
                "ccsds-dual" => reed_solomon::Code::ccsds(255, 223, Basis::Dual)?,
                _ => return Err(format!("no code {code}").into()),
            };
            Ok(fs::write(output, reed_solomon(&code, decoder, &fs::read(words)?)?)?)
        }
        _ => Err("usage: decode viterbi|reed-solomon ...".into()),
    }
}

struct Frames {
    code: Code,
    bits: usize,
    count: usize,
    decision: Decision,
    /// Of all frames after each other.
    symbols: Vec<i8>,
}

impl Frames {
    fn read(path: &str) -> Result<Frames, Box<dyn Error>> {
        let file = fs::read(path)?;
        let end = file.iter().position(|&byte| byte == b'\n').ok_or("no header")?;
        let header: Vec<&str> = std::str::from_utf8(&file[..end])?.split(' ').collect();
        let [_, constraint_length, bits, count, ref generators @ ..] = header[..] else {
            return Err("a header of four numbers and the generators".into());
        };
        let code = Code::from_octal_of_length(constraint_length.parse()?, &generators.join(","))?;
        let (bits, count) = (bits.parse()?, count.parse()?);
        let symbols = Ending::Terminated.steps(bits, code.constraint_length()) * code.outputs() * count;
        let received = file.get(end + 1..end + 1 + symbols).ok_or("symbols are missing")?;
        // Hard decisions have the size 1; the middle of the scale of soft ones lies between 127 and 128.
        let is_hard = received.iter().all(|&symbol| symbol == 0 || symbol == 255);
        let decision = if is_hard { Decision::Hard } else { Decision::Soft };
        let soft = |&symbol: &u8| match symbol {
            0 if is_hard => 1,
            255 if is_hard => -1,
            0..128 => (128 - symbol.max(1)) as i8,
            128.. => (127 - i16::from(symbol)).max(-127) as i8,
        };
        Ok(Frames { symbols: received.iter().map(soft).collect(), code, bits, count, decision })
    }
}

/// Packed data bits of all frames.
fn viterbi(decoder: &str, frames: &Frames) -> Result<Vec<u8>, Box<dyn Error>> {
    let (kind, how) = decoder.split_once(':').unwrap_or((decoder, ""));
    match kind {
        "serial" => {
            let usual = Viterbi::usual_traceback(&frames.code);
            let mut viterbi = Viterbi::new(&frames.code, if how.is_empty() { usual } else { how.parse()? });
            let mut data = vec![0; bits::bytes_for(frames.bits) * frames.count];
            let symbols = frames.symbols.chunks_exact(frames.symbols.len() / frames.count);
            for (symbols, data) in symbols.zip(data.chunks_exact_mut(bits::bytes_for(frames.bits))) {
                viterbi.decode(symbols, Ending::Terminated, data)?;
            }
            Ok(data)
        }
        "parallel" => {
            let mut decoder =
                FrameDecoder::new(&frames.code, Ending::Terminated, frames.bits, frames.decision, Simd::best());
            let mut data = vec![0; bits::bytes_for(frames.bits) * frames.count];
            decoder.decode(&frames.symbols, &mut data)?;
            Ok(data)
        }
        "stream" => {
            let mut decoder = StreamDecoder::new(&frames.code, frames.decision, Simd::best());
            let steps = frames.symbols.len() / frames.code.outputs();
            let mut stream = vec![0; bits::bytes_for(steps)];
            decoder.decode(&frames.symbols, &mut stream)?;
            let bytes = bits::bytes_for(frames.bits);
            let mut data = vec![0; bytes * frames.count];
            for (frame, data) in data.chunks_exact_mut(bytes).enumerate() {
                let begin = frame * (steps / frames.count);
                (0..frames.bits).for_each(|at| bits::set(data, at, bits::get(&stream, begin + at)));
            }
            Ok(data)
        }
        _ => Err(format!("no decoder {decoder}").into()),
    }
}

/// Parity, decoded word and number of wrong symbols, of each word.
fn reed_solomon(code: &reed_solomon::Code, decoder: &str, words: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let (n, k) = (code.n(), code.k());
    let (mut encoded, mut decoded) = (words.to_vec(), words.to_vec());
    let mut wrong = vec![-1i8; words.len() / n];
    match decoder {
        "serial" => {
            for (at, word) in decoded.chunks_exact_mut(n).enumerate() {
                let (data, parity) = encoded[at * n..(at + 1) * n].split_at_mut(k);
                code.encode(data, parity);
                if let Ok(corrected) = code.decode(word, &[]) {
                    wrong[at] = corrected.errors as i8;
                }
            }
        }
        "batch" => {
            let mut outcomes = vec![Outcome::TooManyErrors; wrong.len()];
            BatchEncoder::new(code, Simd::best()).encode(&mut encoded);
            BatchDecoder::new(code, Simd::best()).decode(&mut decoded, &mut outcomes);
            for (wrong, outcome) in wrong.iter_mut().zip(outcomes) {
                *wrong = match outcome {
                    Outcome::Decoded { corrected } => corrected as i8,
                    Outcome::TooManyErrors => -1,
                };
            }
        }
        _ => return Err(format!("no decoder {decoder}").into()),
    }
    let each = encoded.chunks_exact(n).zip(decoded.chunks_exact(n)).zip(wrong);
    Ok(each.flat_map(|((encoded, decoded), wrong)| [&encoded[k..], decoded, &[wrong as u8]].concat()).collect())
}

//! Reed-Solomon (255, 223) over random words with so many wrong symbols.

use std::hint::black_box;

use crate::{Random, farlink, time};

pub const DATA: usize = 223;
pub const LENGTH: usize = 255;
pub const WORDS: usize = 512;

/// Spoils `errors` symbols of a word.
pub fn spoil(word: &mut [u8], errors: usize, random: &mut Random) {
    let sent = word.to_vec();
    let mut wrong = 0;
    while wrong < errors {
        let at = random.below(word.len());
        if word[at] == sent[at] {
            word[at] ^= 1 + random.below(255) as u8;
            wrong += 1;
        }
    }
}

/// Encodes (`errors` is none) or decodes.
pub fn time_words(codec: &str, errors: Option<usize>, seconds: f64) {
    let mut random = Random(88_172_645_463_325_252);
    let data: Vec<Vec<u8>> = (0..WORDS).map(|_| random.bytes(DATA)).collect();
    let bits = WORDS * DATA * 8;
    let spoiled = |words: Vec<Vec<u8>>, random: &mut Random| -> Vec<Vec<u8>> {
        words.into_iter().map(|mut word| (spoil(&mut word, errors.unwrap_or(0), random), word).1).collect()
    };
    match codec.split_once(':') {
        Some(("farlink", level)) => farlink::reed_solomon(level, &data, errors, seconds),
        _ if codec == "fec" => {
            let (mut encoder, mut decoder) = (fec::RsEncoder::new_ccsds(), fec::RsDecoder::new_ccsds());
            let mut words = vec![vec![0; LENGTH]; WORDS];
            let mut encode_all = |words: &mut [Vec<u8>]| {
                data.iter().zip(words).for_each(|(data, word)| assert!(encoder.encode(data, word).is_ok()))
            };
            encode_all(&mut words);
            if errors.is_none() {
                return time(seconds, bits, 0.0, || encode_all(&mut words));
            }
            let received = spoiled(words, &mut random);
            let mut decoded = vec![vec![0; LENGTH]; WORDS];
            let mut decode_all = |decoded: &mut [Vec<u8>]| {
                received.iter().zip(decoded).for_each(|(word, out)| assert!(decoder.decode(word, out).is_ok()))
            };
            decode_all(&mut decoded);
            let failed = decoded.iter().zip(&data).filter(|(decoded, data)| decoded[..DATA] != data[..]).count();
            time(seconds, bits, failed as f64 / WORDS as f64, || decode_all(&mut decoded));
        }
        _ if codec == "reed-solomon" => {
            let (encoder, decoder) =
                (reed_solomon::Encoder::new(LENGTH - DATA), reed_solomon::Decoder::new(LENGTH - DATA));
            if errors.is_none() {
                return time(seconds, bits, 0.0, || {
                    data.iter().for_each(|data| assert!(black_box(encoder.encode(data)).len() == LENGTH))
                });
            }
            let received = spoiled(data.iter().map(|data| encoder.encode(data).to_vec()).collect(), &mut random);
            let decode = |word: &Vec<u8>| decoder.correct(word, None).expect("few enough errors");
            let failed = received.iter().zip(&data).filter(|(word, data)| decode(word).data() != &data[..]).count();
            time(seconds, bits, failed as f64 / WORDS as f64, || {
                received.iter().for_each(|word| assert!(black_box(decode(word)).len() == LENGTH))
            });
        }
        _ => panic!("no Reed-Solomon codec {codec}"),
    }
}

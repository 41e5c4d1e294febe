//! Any code, any symbols: the decoders take them, give the same bits at every level of SIMD, and undo the encoder.
#![no_main]

use farlink_fec::bits::{bytes_for, get};
use farlink_fec::convolutional::parallel::{Decision, FrameDecoder, StreamDecoder};
use farlink_fec::convolutional::{Code, Encoder, Ending, Viterbi};
use farlink_fec::simd::Simd;
use libfuzzer_sys::arbitrary::{Result, Unstructured};

/// Room in a frame for all that one input can ask for.
const BITS_MAX: usize = 300;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = decode_anything(&mut Unstructured::new(bytes));
});

fn decode_anything(input: &mut Unstructured) -> Result<()> {
    let constraint_length =
        if input.ratio(1, 16)? { input.int_in_range(2..=10)? } else { input.int_in_range(3..=5)? };
    let generators: Vec<u32> = (0..input.int_in_range(1..=9)?)
        .map(|_| Ok(u32::from(input.arbitrary::<u16>()?) & ((1 << constraint_length) - 1)))
        .collect::<Result<_>>()?;
    let Ok(code) = Code::new(constraint_length, &generators) else { return Ok(()) };
    let ending = *input.choose(&[Ending::Terminated, Ending::Truncated, Ending::TailBiting])?;
    let data_bits = input.int_in_range(0..=BITS_MAX)?;
    let traceback = input.int_in_range(0..=200)?;
    let decision = match input.int_in_range(0..=2)? {
        0 => Decision::Hard,
        1 => Decision::Soft,
        _ => Decision::SoftUpTo(input.arbitrary()?),
    };
    let count = if input.ratio(1, 8)? { input.int_in_range(0..=70)? } else { input.int_in_range(0..=2)? };
    // A stream's blocks are long, however short the stream: now and then only.
    let with_stream = constraint_length <= 4 && input.ratio(1, 8)?;
    let data: Vec<u8> = (0..bytes_for(data_bits)).map(|_| input.arbitrary()).collect::<Result<_>>()?;
    let noise: Vec<i8> = input.arbitrary()?;

    // What the encoder sends at full scale, then any noise upon it, different in each frame.
    let coded = Encoder::new(&code).encode(&data, data_bits, ending);
    let symbols = ending.steps(data_bits, constraint_length) * code.outputs();
    let clean: Vec<i8> = (0..symbols).map(|at| if get(&coded, at) { -127 } else { 127 }).collect();
    let mut received: Vec<i8> = clean.repeat(count);
    let shift = noise.len() / 3 + 1;
    for (at, symbol) in received.iter_mut().enumerate() {
        if !noise.is_empty() {
            *symbol = symbol.wrapping_add(noise[(at + at / symbols * shift) % noise.len()]);
        }
    }

    let mut serial = Viterbi::new(&code, traceback);
    let mut decoded = vec![0; bytes_for(data_bits)];
    for frame in received.chunks_exact(symbols.max(1)).take(3) {
        let made = serial.decode(frame, ending, &mut decoded).expect("a whole frame");
        assert_eq!(made.data_bits, data_bits);
    }
    let _ = serial.decode(&noise, ending, &mut decoded);
    if ending != Ending::TailBiting {
        serial.decode(&clean, ending, &mut decoded).expect("a whole frame");
        assert!((0..data_bits).all(|at| get(&decoded, at) == get(&data, at)), "serial, no noise");
    }

    let mut first: Option<(Vec<u8>, Vec<u8>)> = None;
    for simd in Simd::available() {
        let mut frames = FrameDecoder::new(&code, ending, data_bits, decision, simd);
        if traceback > 100 {
            frames = frames.with_traceback(traceback);
        }
        let mut decoded = vec![0xa5; bytes_for(data_bits) * count];
        frames.decode(&received, &mut decoded).expect("whole frames");
        let _ = frames.decode(&noise, &mut decoded.clone());

        let mut stream = vec![0xa5; bytes_for(received.len() / code.outputs())];
        if with_stream {
            let mut streams = StreamDecoder::new(&code, decision, simd);
            streams.decode(&received, &mut stream).expect("whole steps");
            let _ = streams.decode(&noise, &mut stream.clone());
        }

        if ending != Ending::TailBiting && count > 0 {
            let mut of_clean = vec![0; bytes_for(data_bits)];
            frames.decode(&clean, &mut of_clean).expect("a whole frame");
            assert!((0..data_bits).all(|at| get(&of_clean, at) == get(&data, at)), "{simd:?}, no noise");
        }
        match &first {
            Some(first) => assert_eq!(first, &(decoded, stream), "{simd:?} differs"),
            None => first = Some((decoded, stream)),
        }
    }
    Ok(())
}

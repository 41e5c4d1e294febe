//! Times one codec for so many CPU seconds and prints bits, seconds and how much came out wrong, as JSON.
//!
//! codecs viterbi CODEC FRAMES SECONDS [hard]
//! codecs reed-solomon CODEC encode|ERRORS SECONDS
//! codecs erasure CODEC encode|decode K M BYTES SECONDS
//!
//! CODEC is the name of a crate, or `farlink:LEVEL` with a level of SIMD, or `farlink-stream:LEVEL`. FRAMES is a file as `frames.h` describes it.

mod erasure;
mod farlink;
mod reed_solomon;
mod viterbi;

/// CPU seconds of this process.
fn cpu_s() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 + 1e-9 * now.tv_nsec as f64
}

/// Runs `round` for at least `seconds` of CPU time, prints what it took; a round handles `bits` bits of user data.
fn time(seconds: f64, bits: usize, error_rate: f64, mut round: impl FnMut()) {
    let (begun, mut rounds) = (cpu_s(), 0u64);
    let spent = loop {
        round();
        rounds += 1;
        let spent = cpu_s() - begun;
        if spent >= seconds {
            break spent;
        }
    };
    println!("{{\"bits\": {}, \"cpu_s\": {spent:.9}, \"error_rate\": {error_rate:.6e}}}", rounds * bits as u64);
}

/// Random numbers (xorshift64*), as in `frames.h`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 56) as u8).collect()
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let seconds = |text: &str| text.parse().expect("seconds");
    match words[..] {
        ["viterbi", codec, frames, s] => viterbi::time_frames(codec, &viterbi::Frames::read(frames), seconds(s), false),
        ["viterbi", codec, frames, s, "hard"] => {
            viterbi::time_frames(codec, &viterbi::Frames::read(frames), seconds(s), true)
        }
        ["reed-solomon", codec, task, s] => reed_solomon::time_words(codec, task.parse().ok(), seconds(s)),
        ["erasure", codec, task, k, m, bytes, s] => {
            let number = |text: &str| text.parse().expect("a number");
            let shape = erasure::Shape { k: number(k), m: number(m), bytes: number(bytes) };
            erasure::time_blocks(codec, task == "encode", &shape, seconds(s));
        }
        _ => {
            eprintln!("error: codecs viterbi|reed-solomon|erasure CODEC ...");
            std::process::exit(2);
        }
    }
}

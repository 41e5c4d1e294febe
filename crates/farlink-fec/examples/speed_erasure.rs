//! Speed of the packet erasure codes on one core, in GB/s of user data (10^9 bytes).
//!
//! Decoding recovers m data blocks, drawn anew for each call. Run with `cargo run --release -p farlink-fec --example
//! speed_erasure`; a number after it sets the seconds for each figure.

use farlink_fec::erasure::{Cauchy, Many, RaptorQ, Workspace};
use farlink_fec::simd::Simd;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::time::{Duration, Instant};

/// k, m, block bytes.
const CASES: [(usize, usize, usize); 9] = [
    (32, 8, 1400),
    (65, 16, 23),
    (10, 2, 46),
    (20, 4, 1400),
    (65, 16, 46),
    (10, 2, 1400),
    (4, 1, 1400),
    (192, 64, 1400),
    (128, 128, 1400),
];

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.3);
    println!("{:>4} {:>4} {:>6}  {:<22} {:>8} {:>8}", "k", "m", "bytes", "code", "encode", "decode");
    let only = std::env::args().nth(2);
    for (k, m, block_bytes) in
        CASES.into_iter().filter(|(k, ..)| only.as_ref().is_none_or(|only| *only == k.to_string()))
    {
        let case = Case { k, m, block_bytes, seconds };
        for simd in Simd::available().into_iter().rev() {
            case.print(&format!("Cauchy {simd:?}"), &mut cauchy(k, m, simd));
        }
        case.print("reed-solomon-simd", &mut Many::new(k, m).unwrap());
        case.print("raptorq", &mut RaptorQ::new(k, block_bytes).unwrap());
    }
}

struct Case {
    k: usize,
    m: usize,
    block_bytes: usize,
    seconds: f64,
}

trait Codec {
    fn parity_block_bytes(&self, block_bytes: usize) -> usize {
        block_bytes
    }
    fn encode(&mut self, data: &[u8], block_bytes: usize, parity: &mut [u8]);
    fn decode(&mut self, blocks: &mut [u8], block_bytes: usize, lost: &[bool]);
}

impl Case {
    fn print(&self, name: &str, codec: &mut dyn Codec) {
        let Case { k, m, block_bytes, .. } = *self;
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let mut blocks = vec![0; k * block_bytes + m * codec.parity_block_bytes(block_bytes)];
        rng.fill(&mut blocks[..]);
        let sent = blocks[..k * block_bytes].to_vec();
        let encode = self.rate(|| {
            let (data, parity) = blocks.split_at_mut(k * block_bytes);
            codec.encode(data, block_bytes, parity);
        });
        // So many that nothing is learnt from one round to the next, drawn before so that drawing costs no time.
        let patterns: Vec<Vec<bool>> = (0..1024).map(|_| pattern(&mut rng, k, m)).collect();
        let mut fresh = patterns.iter().cycle();
        let decode = self.rate(|| codec.decode(&mut blocks, block_bytes, fresh.next().unwrap()));
        assert!(blocks[..k * block_bytes] == sent, "{name} gives the data back");
        println!("{k:>4} {m:>4} {block_bytes:>6}  {name:<22} {encode:>8.3} {decode:>8.3}");
    }

    /// GB/s of user data: the median of short batches, so that other work on the machine does not count.
    fn rate(&self, mut call: impl FnMut()) -> f64 {
        let start = Instant::now();
        (0..3).for_each(|_| call());
        let calls = (300e-6 / start.elapsed().as_secs_f64() * 3.0).clamp(1.0, 1e5) as usize;
        let (start, mut batches) = (Instant::now(), Vec::new());
        while start.elapsed() < Duration::from_secs_f64(self.seconds) || batches.len() < 3 {
            let start = Instant::now();
            (0..calls).for_each(|_| call());
            batches.push(start.elapsed().as_secs_f64());
        }
        batches.sort_by(f64::total_cmp);
        (calls * self.k * self.block_bytes) as f64 / batches[batches.len() / 2] / 1e9
    }
}

/// Losses of m data blocks, or of all.
fn pattern(rng: &mut Pcg64Mcg, k: usize, m: usize) -> Vec<bool> {
    let mut lost = vec![false; k + m];
    let mut count = 0;
    while count < k.min(m) {
        let at = rng.random_range(0..k);
        count += usize::from(!std::mem::replace(&mut lost[at], true));
    }
    lost
}

struct CauchyCodec(Cauchy, Workspace);

fn cauchy(k: usize, m: usize, simd: Simd) -> CauchyCodec {
    CauchyCodec(Cauchy::with_simd(k, m, simd).unwrap(), Workspace::default())
}

impl Codec for CauchyCodec {
    fn encode(&mut self, data: &[u8], block_bytes: usize, parity: &mut [u8]) {
        self.0.encode(data, block_bytes, parity).unwrap();
    }
    fn decode(&mut self, blocks: &mut [u8], block_bytes: usize, lost: &[bool]) {
        self.0.decode(blocks, block_bytes, lost, &mut self.1).unwrap();
    }
}

impl Codec for Many {
    fn parity_block_bytes(&self, block_bytes: usize) -> usize {
        Many::parity_block_bytes(block_bytes)
    }
    fn encode(&mut self, data: &[u8], block_bytes: usize, parity: &mut [u8]) {
        Many::encode(self, data, block_bytes, parity).unwrap();
    }
    fn decode(&mut self, blocks: &mut [u8], block_bytes: usize, lost: &[bool]) {
        Many::decode(self, blocks, block_bytes, lost).unwrap();
    }
}

impl Codec for RaptorQ {
    fn encode(&mut self, data: &[u8], block_bytes: usize, parity: &mut [u8]) {
        let k = self.k() as u32;
        let ids = k..k + (parity.len() / block_bytes) as u32;
        parity.copy_from_slice(&self.encoder(data).unwrap().repair(ids).unwrap());
    }
    fn decode(&mut self, blocks: &mut [u8], block_bytes: usize, lost: &[bool]) {
        let symbols = blocks.chunks(block_bytes).enumerate().filter(|(id, _)| !lost[*id]);
        // Now and then k symbols do not suffice: the attempt counts, and the blocks stay as they are.
        if let Ok(data) = RaptorQ::decode(self, symbols.map(|(id, symbol)| (id as u32, symbol))) {
            blocks[..data.len()].copy_from_slice(&data);
        }
    }
}

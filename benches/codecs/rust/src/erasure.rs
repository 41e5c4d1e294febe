//! Erasure codes of packets: encode, and decode of m lost data blocks, each time with another pattern of losses.

use std::hint::black_box;

use crate::{Random, farlink, time};

/// k data blocks, m more, of so many bytes each.
pub struct Shape {
    pub k: usize,
    pub m: usize,
    pub bytes: usize,
}

/// So many patterns that no cache of matrices holds them.
const PATTERNS: usize = 4096;
const BATCH: usize = 16;

/// What each codec is given.
pub struct Task<'a> {
    pub shape: &'a Shape,
    pub data: Vec<Vec<u8>>,
    /// Indices of the m lost data blocks, ascending.
    pub lost: Vec<Vec<usize>>,
    encode: bool,
    seconds: f64,
}

impl Task<'_> {
    /// Times one of two closures; `decode` is given a pattern and says whether all blocks are back.
    pub fn time(&self, mut encode: impl FnMut(), mut decode: impl FnMut(&[usize], bool) -> bool) {
        let bits = BATCH * self.shape.k * self.shape.bytes * 8;
        if self.encode {
            encode();
            return time(self.seconds, bits, 0.0, || (0..BATCH).for_each(|_| encode()));
        }
        let failed = self.lost[..64].iter().filter(|lost| !decode(lost, true)).count();
        let mut patterns = self.lost.iter().cycle();
        time(self.seconds, bits, failed as f64 / 64.0, || {
            patterns.by_ref().take(BATCH).for_each(|lost| {
                black_box(decode(lost, false));
            });
        });
    }
}

pub fn time_blocks(codec: &str, encode: bool, shape: &Shape, seconds: f64) {
    let mut random = Random(42);
    let pattern = |random: &mut Random| {
        let mut all: Vec<usize> = (0..shape.k).collect();
        (0..shape.m).for_each(|at| all.swap(at, at + random.below(shape.k - at)));
        all.truncate(shape.m);
        all.sort_unstable();
        all
    };
    let lost = (0..PATTERNS).map(|_| pattern(&mut random)).collect();
    let data = (0..shape.k).map(|_| random.bytes(shape.bytes)).collect();
    let task = Task { shape, data, lost, encode, seconds };
    match codec.split_once(':') {
        Some(("farlink", level)) => farlink::erasure(level, &task),
        _ => match codec {
            "reed-solomon-erasure" => reed_solomon_erasure_crate(&task),
            "reed-solomon-simd" => reed_solomon_simd_crate(&task),
            "rustfs-erasure-codec" => rustfs_erasure_codec_crate(&task),
            "leopard-codec" => leopard_codec_crate(&task),
            "raptorq" => raptorq_crate(&task),
            _ => panic!("no erasure code {codec}"),
        },
    }
}

/// Data and parity blocks after each other, the data wiped where it is lost.
fn wipe(blocks: &mut [Vec<u8>], lost: &[usize]) {
    lost.iter().for_each(|&at| blocks[at].fill(0));
}

fn reed_solomon_erasure_crate(task: &Task) {
    let codec = reed_solomon_erasure::galois_8::ReedSolomon::new(task.shape.k, task.shape.m).unwrap();
    let mut parity = vec![vec![0; task.shape.bytes]; task.shape.m];
    codec.encode_sep(&task.data, &mut parity).unwrap();
    let mut blocks = [task.data.clone(), parity.clone()].concat();
    task.time(
        || codec.encode_sep(&task.data, &mut parity).unwrap(),
        |lost, check| {
            if check {
                wipe(&mut blocks, lost);
            }
            let mut shards: Vec<(&mut [u8], bool)> = blocks.iter_mut().map(|block| (&mut block[..], true)).collect();
            lost.iter().for_each(|&at| shards[at].1 = false);
            codec.reconstruct_data(&mut shards).unwrap();
            !check || blocks[..task.shape.k] == task.data
        },
    );
}

fn rustfs_erasure_codec_crate(task: &Task) {
    use rustfs_erasure_codec::{CodecOptions, galois_8::ReedSolomon};
    let options = CodecOptions::builder().max_parallel_jobs(1).build();
    let codec = ReedSolomon::with_options(task.shape.k, task.shape.m, options).unwrap();
    let mut parity = vec![vec![0; task.shape.bytes]; task.shape.m];
    codec.encode_sep(&task.data, &mut parity).unwrap();
    let mut blocks = [task.data.clone(), parity.clone()].concat();
    task.time(
        || codec.encode_sep(&task.data, &mut parity).unwrap(),
        |lost, check| {
            if check {
                wipe(&mut blocks, lost);
            }
            let mut shards: Vec<(&mut [u8], bool)> = blocks.iter_mut().map(|block| (&mut block[..], true)).collect();
            lost.iter().for_each(|&at| shards[at].1 = false);
            codec.reconstruct_data(&mut shards).unwrap();
            !check || blocks[..task.shape.k] == task.data
        },
    );
}

/// It takes blocks of an even number of bytes only: odd ones are padded, and the user's bytes counted.
fn reed_solomon_simd_crate(task: &Task) {
    let Shape { k, m, bytes } = *task.shape;
    let even = bytes.next_multiple_of(2);
    let data: Vec<Vec<u8>> = task.data.iter().map(|block| [&block[..], &vec![0; even - bytes]].concat()).collect();
    let mut encoder = reed_solomon_simd::ReedSolomonEncoder::new(k, m, even).unwrap();
    let mut decoder = reed_solomon_simd::ReedSolomonDecoder::new(k, m, even).unwrap();
    data.iter().for_each(|block| encoder.add_original_shard(block).unwrap());
    let parity: Vec<Vec<u8>> = encoder.encode().unwrap().recovery_iter().map(<[u8]>::to_vec).collect();
    task.time(
        || {
            data.iter().for_each(|block| encoder.add_original_shard(block).unwrap());
            drop(black_box(encoder.encode().unwrap()));
        },
        |lost, check| {
            let kept = (0..k).filter(|at| !lost.contains(at));
            kept.for_each(|at| decoder.add_original_shard(at, &data[at]).unwrap());
            parity.iter().enumerate().for_each(|(at, block)| decoder.add_recovery_shard(at, block).unwrap());
            let result = decoder.decode().unwrap();
            !check || lost.iter().all(|&at| result.restored_original(at) == Some(&data[at][..]))
        },
    );
}

/// It takes blocks of a multiple of 64 bytes only: others are padded, and the user's bytes counted.
fn leopard_codec_crate(task: &Task) {
    let Shape { k, m, bytes } = *task.shape;
    let padded = bytes.next_multiple_of(64);
    let mut blocks: Vec<Vec<u8>> =
        task.data.iter().map(|block| [&block[..], &vec![0; padded - bytes]].concat()).collect();
    blocks.resize(k + m, vec![0; padded]);
    leopard_codec::encode(&mut blocks, k).unwrap();
    let sent = blocks.clone();
    let mut received = sent.clone();
    task.time(
        || leopard_codec::encode(&mut blocks, k).unwrap(),
        |lost, check| {
            lost.iter().for_each(|&at| received[at].clear());
            leopard_codec::reconstruct(&mut received, k).unwrap();
            !check || received == sent
        },
    );
}

/// A fountain code, which now and then needs a packet more than k: it is given them one after the other until it is done.
fn raptorq_crate(task: &Task) {
    use raptorq::{ObjectTransmissionInformation, SourceBlockDecoder, SourceBlockEncoder, SourceBlockEncodingPlan};
    let Shape { k, m, bytes } = *task.shape;
    let size = (k * bytes) as u64;
    let about = ObjectTransmissionInformation::new(size, bytes as u16, 1, 1, 1);
    let plan = SourceBlockEncodingPlan::generate(k as u16);
    let flat = task.data.concat();
    let block = || SourceBlockEncoder::with_encoding_plan(0, &about, &flat, &plan);
    let (source, repair) = (block().source_packets(), block().repair_packets(0, m as u32 + 8));
    task.time(
        || drop(black_box(block().repair_packets(0, m as u32))),
        |lost, check| {
            let mut decoder = SourceBlockDecoder::new(0, &about, size);
            let kept = (0..k).filter(|at| !lost.contains(at)).map(|at| source[at].clone());
            let mut result = decoder.decode(kept.chain(repair[..m].iter().cloned()));
            let mut more = repair[m..].iter();
            while result.is_none() {
                result = decoder.decode(more.next().cloned());
            }
            !check || result.as_deref() == Some(&flat[..])
        },
    );
}

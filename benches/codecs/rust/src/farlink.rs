//! farlink's own codecs at a level of SIMD.

use farlink_fec::erasure::{Cauchy, Workspace};
use farlink_fec::simd::Simd;

use crate::erasure::Task;
use crate::viterbi::Frames;

pub fn viterbi(_level: &str, _frames: &Frames, _seconds: f64) {
    panic!("farlink has no such codec yet")
}
pub fn reed_solomon(_level: &str, _data: &[Vec<u8>], _errors: Option<usize>, _seconds: f64) {
    panic!("farlink has no such codec yet")
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

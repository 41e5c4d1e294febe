//! farlink's own codecs at a level of SIMD.

use crate::erasure::Task;
use crate::viterbi::Frames;

pub fn viterbi(_level: &str, _frames: &Frames, _seconds: f64) {
    panic!("farlink has no such codec yet")
}
pub fn reed_solomon(_level: &str, _data: &[Vec<u8>], _errors: Option<usize>, _seconds: f64) {
    panic!("farlink has no such codec yet")
}
pub fn erasure(_level: &str, _task: &Task) {
    panic!("farlink has no such codec yet")
}

//! Payload that a reader can check against what was written.

use farlink_core::payload::{Payload, Virtual};

/// Payload that identifies its stream.
pub(crate) trait Content: Payload {
    fn of_stream(side: usize, start: usize, len: usize) -> Self;
    /// Whether these are the bytes at `start` in the stream of `side`.
    fn is_of_stream(&self, side: usize, start: usize) -> bool;
}

fn byte(side: usize, at: usize) -> u8 {
    // Periods of 251 and 241 are coprime to every segment size in use, so shifted data is detected.
    if side == 0 { (at % 251) as u8 } else { (at % 241) as u8 ^ 0x80 }
}

impl Content for Vec<u8> {
    fn of_stream(side: usize, start: usize, len: usize) -> Self {
        (start..start + len).map(|at| byte(side, at)).collect()
    }
    fn is_of_stream(&self, side: usize, start: usize) -> bool {
        self.iter().enumerate().all(|(i, &found)| found == byte(side, start + i))
    }
}

impl Content for Virtual {
    fn of_stream(_side: usize, _start: usize, len: usize) -> Self {
        Virtual(len as u32)
    }
    fn is_of_stream(&self, _side: usize, _start: usize) -> bool {
        true
    }
}

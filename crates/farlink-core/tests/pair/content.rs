//! Payload by which a reader knows that it is what was written.

use farlink_core::payload::{Payload, Virtual};

/// Payload that knows which stream it belongs to.
pub(crate) trait Content: Payload {
    fn of_stream(side: usize, start: usize, len: usize) -> Self;
    /// Whether this is what stands there in the stream of `side`.
    fn is_of_stream(&self, side: usize, start: usize) -> bool;
}

fn byte(side: usize, at: usize) -> u8 {
    // Periods of 251 and 241 are prime to every segment size in use, so shifted data is found out.
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

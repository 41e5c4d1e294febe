//! The store of custody: used, filled up, crashed and damaged in any order, what was acknowledged is there; and the frames between nodes.
#![no_main]

use farlink_net::fuzzing::{custody_frames, custody_store};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((0..64, rest)) => custody_frames(rest),
        Some((_, rest)) => custody_store(rest),
        None => {}
    }
});

//! For the fuzzer: what reads bytes of other nodes and of the disk. Not compiled otherwise.

use bytes::BytesMut;

use crate::framing::in_pieces;

use super::frame::Frames;
use super::model;
use super::record::{self, FileName};

/// Reads the files of a store that were damaged, or written, cut and crashed in some order.
pub fn custody_store(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    match first % 3 {
        0 => drop(model::play(rest)),
        1 => model::damage(rest),
        _ => {
            let scan = record::scan(&FileName { stream: [1; 16].into(), number: 0 }, rest);
            assert!(scan.damaged.iter().all(|range| range.start < range.end && range.end <= rest.len()));
        }
    }
}

/// Reads frames, in pieces of the length that the first byte says.
pub fn custody_frames(bytes: &[u8]) {
    let mut frames = Frames::default();
    in_pieces(bytes, |piece| {
        frames.push(piece);
        loop {
            match frames.take() {
                Ok(Some(frame)) => {
                    let (mut again, mut bytes) = (Frames::default(), BytesMut::new());
                    frame.put(&mut bytes);
                    again.push(&bytes);
                    assert_eq!(again.take(), Ok(Some(frame)));
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        }
    });
}

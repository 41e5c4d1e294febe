//! For the fuzzer: what reads the bytes of an untrusted sender. Not compiled otherwise.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::frame::{Frame, FrameReader};
use super::limits::ReceiveOptions;
use super::manifest::Decoder;

/// Reads frames of a transfer, whose manifests are taken as the receiver takes them. Returns how many there were.
pub fn frames(bytes: &[u8]) -> u32 {
    let (mut reader, mut count) = (FrameReader::new(bytes), 0);
    let mut decoder = Some(Decoder::new(&ReceiveOptions::default()));
    loop {
        let frame = {
            let mut next = pin!(reader.next());
            match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(frame)) => frame,
                Poll::Ready(Err(_)) => return count,
                Poll::Pending => unreachable!("bytes in memory are there at once"),
            }
        };
        count += 1;
        match frame {
            Frame::Manifest(entries) => {
                if decoder.as_mut().is_some_and(|decoder| decoder.frame(&entries).is_err()) {
                    decoder = None;
                }
            }
            Frame::ManifestEnd { entries, bytes } => {
                if let Some(manifest) = decoder.take().and_then(|decoder| decoder.finish(entries, bytes).ok()) {
                    for (index, _) in manifest.iter() {
                        let path = manifest.path(index);
                        assert!(
                            path.components().all(|part| matches!(part, std::path::Component::Normal(_))),
                            "{path:?}"
                        );
                    }
                }
            }
            _ => {}
        }
    }
}

//! Lengths in place of data, for the gateways of the simulator.

use std::convert::Infallible;

use farlink_core::gateway::{Span, Store, Writer};
use farlink_core::{Payload, Time};

use super::relay::RelayedFlow;
use super::source::BULK_WRITE_BYTES;

/// Data without content. Unlike [`farlink_core::Virtual`], it may be longer than 4 GB.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Length(pub(super) u64);

impl Payload for Length {
    fn len(&self) -> usize {
        self.0 as usize
    }

    fn split_to(&mut self, n: usize) -> Self {
        self.0 -= n as u64;
        Length(n as u64)
    }

    fn try_join(&mut self, next: Self) -> Result<(), Self> {
        self.0 += next.0;
        Ok(())
    }

    const HAS_CONTENT: bool = false;

    fn as_bytes(&self) -> &[u8] {
        &[]
    }

    fn with_content(len: usize, _content: impl FnOnce() -> Vec<u8>) -> Self {
        Length(len as u64)
    }
}

/// A store for data without content.
#[derive(Debug)]
pub(super) struct NoBytes;

impl Store for NoBytes {
    type Data = Length;
    type Error = Infallible;

    fn put(&mut self, _position: u64, _data: Length) -> Result<(), Infallible> {
        Ok(())
    }

    fn get(&mut self, span: Span) -> Result<Length, Infallible> {
        Ok(Length(span.len()))
    }

    fn release(&mut self, _position: u64) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The writing end of a connection, for the gateway.
pub(super) struct WritingEnd<'a>(pub(super) &'a mut dyn RelayedFlow);

impl Writer<Length> for WritingEnd<'_> {
    fn write(&mut self, now: Time, data: &mut Length) -> usize {
        let written = self.0.write(now, data.0.min(u64::from(BULK_WRITE_BYTES)) as u32);
        data.0 -= written;
        written as usize
    }

    fn close(&mut self, now: Time) {
        self.0.close(now);
    }
}

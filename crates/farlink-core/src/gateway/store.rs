//! Storage for the bytes that a gateway holds.

use std::collections::VecDeque;
use std::convert::Infallible;

use super::Span;
use crate::payload::Payload;

/// The bytes of one stream that a gateway holds, by position. A gateway stores them in rising order, reads each of them
/// once or more, and releases them in the same order.
pub trait Store {
    /// Data of the connections.
    type Data: Payload;
    /// Error of the store, such as a full disk.
    type Error;

    /// Stores `data`, whose first byte has `position`. No byte above `position` was stored before.
    ///
    /// # Errors
    /// If the data cannot be stored; the store is then unchanged.
    fn put(&mut self, position: u64, data: Self::Data) -> Result<(), Self::Error>;

    /// Stores that the stream ends at `position`.
    ///
    /// # Errors
    /// If that cannot be stored.
    fn put_end(&mut self, _position: u64) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A copy of the first bytes of `span`: at least one, and as many as one read gives. The store holds all of `span`.
    ///
    /// # Errors
    /// If they cannot be read.
    fn get(&mut self, span: Span) -> Result<Self::Data, Self::Error>;

    /// Releases the bytes below `position`, which are not needed again.
    ///
    /// # Errors
    /// If that cannot be stored.
    fn release(&mut self, position: u64) -> Result<(), Self::Error>;
}

/// A store in memory, lost in a crash: `custody = "memory"`.
#[derive(Debug, Default)]
pub struct MemoryStore<D> {
    /// Pieces with the positions of their first bytes.
    pieces: VecDeque<(u64, D)>,
}

impl<D: Payload> Store for MemoryStore<D> {
    type Data = D;
    type Error = Infallible;

    fn put(&mut self, position: u64, data: D) -> Result<(), Infallible> {
        self.pieces.push_back((position, data));
        Ok(())
    }

    fn get(&mut self, span: Span) -> Result<D, Infallible> {
        let index = self.pieces.partition_point(|&(begin, _)| begin <= span.from) - 1;
        let (begin, piece) = &self.pieces[index];
        let offset = (span.from - begin) as usize;
        let most = usize::try_from(span.len()).unwrap_or(usize::MAX);
        Ok(piece.slice(offset, most.min(piece.len() - offset)))
    }

    fn release(&mut self, position: u64) -> Result<(), Infallible> {
        while let Some((begin, piece)) = self.pieces.front_mut() {
            let end = *begin + piece.len() as u64;
            if end > position {
                break;
            }
            self.pieces.pop_front();
        }
        Ok(())
    }
}

//! Where a gateway keeps the bytes that it holds.

use std::collections::VecDeque;
use std::convert::Infallible;

use super::Span;
use crate::payload::Payload;

/// The bytes of one stream that a gateway holds, by position. A gateway puts them in rising order, reads each of them once or more, and
/// lets go of them in the same order.
pub trait Store {
    /// What the connections carry.
    type Data: Payload;
    /// Why a store may fail, such as a full disk.
    type Error;

    /// Keeps `data`, whose first byte stands at `position`. Nothing above was put before.
    ///
    /// # Errors
    /// If it cannot be kept; the store is as before.
    fn put(&mut self, position: u64, data: Self::Data) -> Result<(), Self::Error>;

    /// The stream ends at `position`.
    ///
    /// # Errors
    /// If that cannot be kept.
    fn put_end(&mut self, _position: u64) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A copy of the first bytes of `span`: at least one, and as many as are at hand. All of `span` is held.
    ///
    /// # Errors
    /// If they cannot be read.
    fn get(&mut self, span: Span) -> Result<Self::Data, Self::Error>;

    /// What stands below `position` is not needed again.
    ///
    /// # Errors
    /// If that cannot be kept.
    fn let_go(&mut self, position: u64) -> Result<(), Self::Error>;
}

/// A store in memory, lost in a crash: `custody = "memory"`.
#[derive(Debug, Default)]
pub struct MemoryStore<D> {
    /// Pieces and the positions where they begin.
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

    fn let_go(&mut self, position: u64) -> Result<(), Infallible> {
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

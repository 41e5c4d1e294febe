//! Block interleaving: written by rows, read by columns.

/// A block interleaver of any items: bits, bytes or symbols.
///
/// Items are written into `rows` x `columns` row by row and read column by column. Adjacent sent items are `columns` apart in the
/// data, and no two items of a burst of up to `rows` items are in the same row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    rows: usize,
    columns: usize,
}

/// Why something cannot be interleaved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterleaveError {
    /// A side of the block is zero.
    #[error("a block of {rows} rows and {columns} columns is empty; both are at least 1")]
    Empty {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// The items do not fill whole blocks.
    #[error("{items} items do not fill whole blocks of {block}; fill up the last")]
    Remainder {
        /// Items given.
        items: usize,
        /// Items of a block.
        block: usize,
    },
    /// The two slices differ in length.
    #[error("{items} items do not fit into a place for {place}; both are of one length")]
    Length {
        /// Items given.
        items: usize,
        /// Length of the output.
        place: usize,
    },
}

impl Block {
    /// A block of `rows` rows and `columns` columns.
    ///
    /// # Errors
    /// If one of them is zero.
    pub fn new(rows: usize, columns: usize) -> Result<Block, InterleaveError> {
        if rows == 0 || columns == 0 || rows.checked_mul(columns).is_none() {
            return Err(InterleaveError::Empty { rows, columns });
        }
        Ok(Block { rows, columns })
    }

    /// Number of items in a block.
    pub fn items(&self) -> usize {
        self.rows * self.columns
    }

    /// The position of item `at` of the data after interleaving.
    #[inline]
    pub fn place(&self, at: usize) -> usize {
        let (block, inside) = (at / self.items(), at % self.items());
        block * self.items() + (inside % self.columns) * self.rows + inside / self.columns
    }

    /// The position in the data of the item at `place` after interleaving.
    #[inline]
    pub fn origin(&self, place: usize) -> usize {
        Block { rows: self.columns, columns: self.rows }.place(place)
    }

    /// Interleaves whole blocks.
    ///
    /// # Errors
    /// If the items do not fill whole blocks, or the slices differ in length.
    pub fn interleave<T: Copy>(&self, data: &[T], out: &mut [T]) -> Result<(), InterleaveError> {
        self.check(data.len(), out.len())?;
        for (at, &item) in data.iter().enumerate() {
            out[self.place(at)] = item;
        }
        Ok(())
    }

    /// Undoes [`interleave`](Block::interleave).
    ///
    /// # Errors
    /// If the items do not fill whole blocks, or the slices differ in length.
    pub fn deinterleave<T: Copy>(&self, received: &[T], out: &mut [T]) -> Result<(), InterleaveError> {
        self.check(received.len(), out.len())?;
        for (at, item) in out.iter_mut().enumerate() {
            *item = received[self.place(at)];
        }
        Ok(())
    }

    fn check(&self, items: usize, place: usize) -> Result<(), InterleaveError> {
        if !items.is_multiple_of(self.items()) {
            return Err(InterleaveError::Remainder { items, block: self.items() });
        }
        if items != place {
            return Err(InterleaveError::Length { items, place });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_follow_each_other() {
        let mut out = [0; 6];
        Block::new(2, 3).unwrap().interleave(&[1, 2, 3, 4, 5, 6], &mut out).unwrap();
        assert_eq!(out, [1, 4, 2, 5, 3, 6]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let block = Block::new(2, 3).unwrap();
        assert_eq!(block.interleave(&[0; 7], &mut [0; 7]), Err(InterleaveError::Remainder { items: 7, block: 6 }));
        assert_eq!(block.deinterleave(&[0; 6], &mut [0; 12]), Err(InterleaveError::Length { items: 6, place: 12 }));
        assert!(Block::new(0, 3).is_err());
        assert!(Block::new(usize::MAX, 2).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_inverse_restores_the_data(rows in 1usize..20, columns in 1usize..20, blocks in 0usize..4) {
            let block = Block::new(rows, columns).unwrap();
            let data: Vec<usize> = (0..blocks * block.items()).collect();
            let (mut way, mut back) = (data.clone(), data.clone());
            block.interleave(&data, &mut way).unwrap();
            block.deinterleave(&way, &mut back).unwrap();
            prop_assert_eq!(&back, &data);
            prop_assert!(way.iter().enumerate().all(|(place, &at)| block.origin(place) == at && block.place(at) == place));
        }

        #[test]
        fn a_burst_touches_a_row_once(rows in 1usize..20, columns in 1usize..20, start in 0usize..400) {
            let block = Block::new(rows, columns).unwrap();
            let start = start % (block.items() - rows + 1);
            let mut touched: Vec<usize> = (start..start + rows).map(|place| block.origin(place) / columns).collect();
            touched.sort_unstable();
            touched.dedup();
            prop_assert_eq!(touched.len(), rows);
        }
    }
}

//! The list of a MACK.

use crate::protocol::aerotp::{Edges, Mack};
use crate::wire::Writer;

const FROM_START: u32 = 1 << 31;
const TO_END: u32 = 1 << 30;
/// The list counts missing symbols of coded blocks.
const COUNTS: u32 = 1 << 29;
/// The longest holding time that a receiver reports, in microseconds: 9 minutes.
const MOST_HELD: u32 = COUNTS - 1;

pub(super) fn write(mack: &Mack, out: &mut Writer<'_>) {
    let &Mack { echo, held, window, marked, damaged, is_from_start, is_to_end, counts_symbols, .. } = mack;
    let from_start = if is_from_start { FROM_START } else { 0 };
    let to_end = if is_to_end { TO_END } else { 0 };
    let counts = if counts_symbols { COUNTS } else { 0 };
    out.extend(echo.to_be_bytes());
    out.extend((from_start | to_end | counts | held.min(MOST_HELD)).to_be_bytes());
    out.extend(window.to_be_bytes());
    out.extend(marked.to_be_bytes());
    out.extend(damaged.to_be_bytes());
    for (start, end) in mack.edges.blocks() {
        out.extend(start.to_be_bytes());
        out.extend(end.to_be_bytes());
    }
}

/// `None` if its length is not that of a list; its values are not checked.
pub(super) fn read(bytes: &[u8]) -> Option<Mack> {
    let (words, rest) = bytes.as_chunks::<4>();
    let (&[echo, held, window, counters], edges) = words.split_first_chunk()?;
    let [held, counters] = [held, counters].map(u32::from_be_bytes);
    let (blocks, odd) = edges.as_chunks::<2>();
    if !rest.is_empty() || !odd.is_empty() {
        return None;
    }
    let mut list = Edges::default();
    for &[start, end] in blocks {
        if !list.push(u32::from_be_bytes(start), u32::from_be_bytes(end)) {
            return None;
        }
    }
    Some(Mack {
        echo: u32::from_be_bytes(echo),
        held: held & MOST_HELD,
        window: u32::from_be_bytes(window),
        marked: (counters >> 16) as u16,
        damaged: counters as u16,
        edges: list,
        is_from_start: held & FROM_START != 0,
        is_to_end: held & TO_END != 0,
        counts_symbols: held & COUNTS != 0,
    })
}

//! The list of a MACK.

use crate::protocol::aerotp::distances::{Distances, number_bytes};
use crate::protocol::aerotp::{Edges, Mack};
use crate::wire::Writer;

const FROM_START: u32 = 1 << 31;
const TO_END: u32 = 1 << 30;
/// The list counts missing symbols of coded blocks.
const COUNTS: u32 = 1 << 29;
/// The list has distances between edges.
const DISTANCES: u32 = 1 << 28;
/// The longest holding time that a receiver reports.
const MOST_HELD: u32 = DISTANCES - 1;

/// Writes the list behind ACK number 0.
pub(super) fn write(ack: u32, mack: &Mack, out: &mut Writer<'_>) {
    let &Mack { echo, held, window, marked, damaged, is_from_start, is_to_end, counts_symbols, has_distances, .. } =
        mack;
    let flags =
        [(is_from_start, FROM_START), (is_to_end, TO_END), (counts_symbols, COUNTS), (has_distances, DISTANCES)];
    let flags: u32 = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum();
    out.extend(echo.to_be_bytes());
    out.extend((flags | held.min(MOST_HELD)).to_be_bytes());
    out.extend(window.to_be_bytes());
    out.extend(marked.to_be_bytes());
    out.extend(damaged.to_be_bytes());
    if has_distances {
        write_distances(&Distances::new(ack, mack.edges.numbers()), out);
        return;
    }
    for (start, end) in mack.edges.blocks() {
        out.extend(start.to_be_bytes());
        out.extend(end.to_be_bytes());
    }
}

/// The unit, then the distances in units, if there are any. `[A11]`
fn write_distances(distances: &Distances<'_>, out: &mut Writer<'_>) {
    let mut is_first = true;
    for distance in distances.in_units() {
        if std::mem::take(&mut is_first) {
            write_number(distances.unit, out);
        }
        write_number(distance, out);
    }
}

/// As RFC 9000, section 16: the upper two bits of the first byte say how long it is.
fn write_number(number: u32, out: &mut Writer<'_>) {
    match number_bytes(number) {
        1 => out.extend([number as u8]),
        2 => out.extend((0x4000 | number as u16).to_be_bytes()),
        4 => out.extend((0x8000_0000 | number).to_be_bytes()),
        _ => out.extend((0xc000_0000_0000_0000 | u64::from(number)).to_be_bytes()),
    }
}

/// `None` if its length is not that of a list, or a distance is longer than the numbers reach; its values are not checked.
pub(super) fn read(ack: u32, bytes: &[u8]) -> Option<Mack> {
    let (&fields, list) = bytes.split_first_chunk::<16>()?;
    let (words, _) = fields.as_chunks::<4>();
    let &[echo, held, window, counters] = words.first_chunk()?;
    let [held, counters] = [held, counters].map(u32::from_be_bytes);
    let has_distances = held & DISTANCES != 0;
    Some(Mack {
        echo: u32::from_be_bytes(echo),
        held: held & MOST_HELD,
        window: u32::from_be_bytes(window),
        marked: (counters >> 16) as u16,
        damaged: counters as u16,
        edges: if has_distances { read_distances(ack, list)? } else { read_edges(list)? },
        is_from_start: held & FROM_START != 0,
        is_to_end: held & TO_END != 0,
        counts_symbols: held & COUNTS != 0,
        has_distances,
    })
}

fn read_edges(list: &[u8]) -> Option<Edges> {
    let (words, rest) = list.as_chunks::<4>();
    let (blocks, odd) = words.as_chunks::<2>();
    let mut edges = Edges::default();
    let fits = blocks.iter().all(|&[start, end]| edges.push(u32::from_be_bytes(start), u32::from_be_bytes(end)));
    (fits && rest.is_empty() && odd.is_empty()).then_some(edges)
}

fn read_distances(ack: u32, mut list: &[u8]) -> Option<Edges> {
    let mut edges = Edges::default();
    if list.is_empty() {
        return Some(edges);
    }
    let unit = read_number(&mut list)?;
    let mut at = ack;
    let mut next = |list: &mut &[u8]| {
        let distance = unit.checked_mul(read_number(list)?)?;
        at = at.wrapping_add(u32::try_from(distance).ok()?);
        Some(at)
    };
    while !list.is_empty() {
        let (start, end) = (next(&mut list)?, next(&mut list)?);
        if !edges.push(start, end) {
            return None;
        }
    }
    Some(edges)
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let length = 1_usize << (bytes.first()? >> 6);
    let (number, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let first = u64::from(number[0] & 0x3f);
    Some(number[1..].iter().fold(first, |number, &byte| number << 8 | u64::from(byte)))
}

//! A coded block at its receiver.

use farlink_fec::erasure::RaptorQ;

use crate::payload::Payload;

use super::super::segment::Repair;
use super::MOST_SYMBOLS;

/// The range of a block in the stream and how it is cut. `[K1]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: u64,
    pub(super) bytes: u64,
    symbol_bytes: u64,
    symbols: u32,
}

impl Place {
    /// The block that a segment at a position describes, if the description is consistent. `[K4]`
    pub(super) fn of(position: u64, repair: &Repair) -> Option<Place> {
        let start = position.checked_sub(u64::from((position as u32).wrapping_sub(repair.start)))?;
        let (bytes, symbol_bytes) = (u64::from(repair.bytes), u64::from(repair.symbol_bytes));
        let fits = bytes > 0
            && symbol_bytes > 0
            && bytes.div_ceil(symbol_bytes) == u64::from(repair.symbols)
            && u64::from(repair.symbols) <= MOST_SYMBOLS
            && repair.index < RaptorQ::ID_END
            && position < start + bytes;
        let place = Place { start, bytes, symbol_bytes, symbols: u32::from(repair.symbols) };
        fits.then_some(place)
    }

    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// Whether a segment with this description is a repair symbol, and not data.
    pub(super) fn is_repair(&self, repair: &Repair) -> bool {
        repair.index >= self.symbols
    }

    /// Whether `bytes` is the length of a repair symbol of it.
    pub(super) fn fits_repair(&self, bytes: usize) -> bool {
        bytes as u64 == self.symbol_bytes
    }
}

/// With this many more symbols than a block has, decoding fails only once in 256^8 times (RFC 6330). `[K8]`
const MOST_MORE: u32 = 8;

/// The received symbols of a block that is not complete.
#[derive(Clone, Debug)]
pub(super) struct Inbound<D> {
    pub(super) place: Place,
    /// The received source symbols, a bit each.
    sources: Vec<u64>,
    source_count: u32,
    /// The content of the source symbols, if the payload has content.
    content: Vec<u8>,
    /// Repair symbols with their numbers, ascending.
    repairs: Vec<(u32, D)>,
    /// How many more acknowledgements have to list it.
    pub(super) tellings: u32,
    /// Number of symbols that must have arrived before decoding is tried again.
    wanted: u32,
}

impl<D: Payload> Inbound<D> {
    pub(super) fn new(place: Place) -> Self {
        Inbound {
            place,
            sources: vec![0; (place.symbols as usize).div_ceil(64)],
            source_count: 0,
            content: if D::HAS_CONTENT { vec![0; (place.bytes) as usize] } else { Vec::new() },
            repairs: Vec::new(),
            tellings: 0,
            wanted: place.symbols,
        }
    }

    /// Takes data; only symbols that lie completely in it count.
    pub(super) fn add_source(&mut self, position: u64, payload: &D) {
        let Place { start, bytes, symbol_bytes, .. } = self.place;
        let from = position.max(start) - start;
        let Some(to) = (position + payload.len() as u64).min(self.place.end()).checked_sub(start) else { return };
        let skipped = start.saturating_sub(position);
        if from >= to {
            return;
        }
        if D::HAS_CONTENT {
            let data = &payload.as_bytes()[skipped as usize..][..(to - from) as usize];
            self.content[from as usize..to as usize].copy_from_slice(data);
        }
        let last = if to == bytes { u64::from(self.place.symbols) } else { to / symbol_bytes };
        for index in from.div_ceil(symbol_bytes)..last {
            let (word, bit) = ((index / 64) as usize, 1 << (index % 64));
            self.source_count += u32::from(self.sources[word] & bit == 0);
            self.sources[word] |= bit;
        }
    }

    /// Takes a repair symbol. Returns whether it is new. More symbols than a block can need are refused, because they must be
    /// inconsistent.
    pub(super) fn add_repair(&mut self, index: u32, payload: D) -> bool {
        match self.repairs.binary_search_by_key(&index, |(index, _)| *index) {
            Ok(_) => false,
            Err(_) if self.repairs.len() >= (self.place.symbols + MOST_MORE) as usize => false,
            Err(at) => {
                self.repairs.insert(at, (index, payload));
                true
            }
        }
    }

    /// Number of repair symbols kept.
    pub(super) fn repair_count(&self) -> usize {
        self.repairs.len()
    }

    /// Bytes of repair symbols kept.
    pub(super) fn repair_bytes(&self) -> u64 {
        self.repairs.len() as u64 * self.place.symbol_bytes
    }

    /// Estimated number of symbols that are still missing.
    pub(super) fn missing(&self) -> u32 {
        self.wanted.saturating_sub(self.source_count + self.repairs.len() as u32)
    }

    /// All data of the block, once the symbols suffice. `[K5]`
    pub(super) fn decode(&mut self) -> Option<D> {
        let Place { bytes, symbol_bytes, symbols, .. } = self.place;
        let len = bytes as usize;
        if self.source_count == symbols {
            self.content.truncate(len); // a failed attempt may have padded it
            return Some(D::with_content(len, || std::mem::take(&mut self.content)));
        }
        if self.missing() > 0 {
            return None;
        }
        let decoded = if D::HAS_CONTENT {
            self.content.resize(symbols as usize * symbol_bytes as usize, 0);
            self.solve(symbol_bytes as usize)
        } else {
            // Whether the symbols suffice does not depend on their content.
            self.solve(1)
        };
        match decoded {
            Some(mut content) => Some(D::with_content(len, || {
                content.truncate(len);
                content
            })),
            None => {
                self.wanted = self.source_count + self.repairs.len() as u32 + 1;
                None
            }
        }
    }

    fn solve(&self, symbol_bytes: usize) -> Option<Vec<u8>> {
        let code = RaptorQ::new(self.place.symbols as usize, symbol_bytes).ok()?;
        let is_here = |&index: &u32| self.sources[(index / 64) as usize] >> (index % 64) & 1 == 1;
        let sources = (0..self.place.symbols).filter(is_here).map(|index| {
            let symbol: &[u8] =
                if D::HAS_CONTENT { &self.content[index as usize * symbol_bytes..][..symbol_bytes] } else { &[0] };
            (index, symbol)
        });
        let repairs =
            self.repairs.iter().map(|(index, data)| (*index, if D::HAS_CONTENT { data.as_bytes() } else { &[0] }));
        code.decode(sources.chain(repairs)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::outbound::Outbound;
    use super::*;
    use crate::payload::Virtual;
    use crate::rng::Rng;
    use crate::time::Time;
    use proptest::prelude::*;

    fn noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut rng = Rng::for_component(seed, 0, "noise");
        (0..bytes).map(|_| rng.below(256) as u8).collect()
    }

    /// All source symbols of a block and as many repair symbols, with the block that they describe.
    fn symbols<D: Payload>(data: &D, symbol_bytes: u32, start: u64) -> (Place, Vec<(u64, D, u32)>) {
        let mut block = Outbound::new(start, symbol_bytes, MOST_SYMBOLS, Time::ZERO);
        block.append(data);
        block.is_closed = true;
        let mut all = Vec::new();
        while block.has_unsent() {
            let (position, payload, _) = block.next_source::<D>();
            all.push((position, payload, 0));
        }
        let mut place = None;
        for _ in 0..all.len() + 8 {
            let (payload, repair) = block.next_repair::<D>();
            place = Place::of(start, &repair);
            all.push((start, payload, repair.index));
        }
        (place.expect("a sender describes what is"), all)
    }

    fn receive<D: Payload>(place: Place, arrived: &[&(u64, D, u32)]) -> (usize, Option<D>) {
        let mut block = Inbound::new(place);
        for (n, (position, payload, index)) in arrived.iter().enumerate() {
            if *index == 0 {
                block.add_source(*position, payload);
            } else {
                block.add_repair(*index, payload.clone());
            }
            if let Some(data) = block.decode() {
                return (n + 1, Some(data));
            }
            assert!(block.missing() > 0, "an incomplete block needs more symbols");
        }
        (arrived.len(), None)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Enough symbols of any kind and in any order give the block, with and without content alike.
        #[test]
        fn enough_symbols_of_any_kind_give_the_block(
            bytes in 1..6000_usize, symbol_bytes in 1..200_u32, seed: u64, start in 0..u64::MAX / 4,
        ) {
            let symbol_bytes = symbol_bytes.max(bytes as u32 / 200);
            let data = noise(bytes, seed);
            let (place, real) = symbols(&data, symbol_bytes, start);
            let (same, lengths) = symbols(&Virtual(bytes as u32), symbol_bytes, start);
            prop_assert_eq!(place, same);
            let mut rng = Rng::for_component(seed, 0, "order");
            let mut order: Vec<usize> = (0..real.len()).collect();
            for n in (1..order.len()).rev() {
                order.swap(n, rng.below(n as u64 + 1) as usize);
            }
            let (count, decoded) = receive(place, &order.iter().map(|&n| &real[n]).collect::<Vec<_>>());
            prop_assert_eq!(decoded, Some(data));
            let k = real.len() / 2 - 4;
            prop_assert!((k..=k + 4).contains(&count), "{} of {}", count, k);
            let virtually = receive(place, &order.iter().map(|&n| &lengths[n]).collect::<Vec<_>>());
            prop_assert_eq!(virtually, (count, Some(Virtual(bytes as u32))));
        }

        #[test]
        fn symbols_count_once_and_pieces_of_them_not(cuts in proptest::collection::vec((0..1000_u64, 1..300_u64), 0..40)) {
            let data = noise(1000, 1);
            let (place, _) = symbols(&data, 64, 77);
            let mut block = Inbound::<Vec<u8>>::new(place);
            let mut whole = [false; 16];
            for (from, len) in cuts {
                let to = (from + len).min(1000);
                block.add_source(77 + from, &data[from as usize..to as usize].to_vec());
                for (n, symbol) in whole.iter_mut().enumerate() {
                    *symbol |= from <= n as u64 * 64 && to >= ((n as u64 + 1) * 64).min(1000);
                }
            }
            let count = whole.iter().filter(|symbol| **symbol).count() as u32;
            prop_assert_eq!(block.missing(), 16 - count);
        }
    }

    #[test]
    fn inconsistent_descriptions_are_refused() {
        let good = Repair { start: 100, bytes: 1000, symbol_bytes: 64, symbols: 16, index: 20 };
        let place = Place::of(100, &good).unwrap();
        assert_eq!((place.end(), place.is_repair(&good), place.fits_repair(64)), (1100, true, true));
        assert_eq!(Place::of((1 << 32) + 100, &good).unwrap().start, (1 << 32) + 100, "numbers wrap, positions do not");
        assert_eq!(Place::of(1099, &good), Some(place));
        assert_eq!(Place::of(1100, &good), None, "it is not within its block");
        assert_eq!(Place::of(99, &good), None);
        for bad in [
            Repair { symbols: 15, ..good },
            Repair { symbol_bytes: 0, ..good },
            Repair { bytes: 0, symbols: 0, ..good },
            Repair { bytes: 60_000, symbol_bytes: 1, symbols: 60_000, ..good },
            Repair { index: 1 << 24, ..good },
        ] {
            assert_eq!(Place::of(100, &bad), None, "{bad:?}");
        }
    }
}

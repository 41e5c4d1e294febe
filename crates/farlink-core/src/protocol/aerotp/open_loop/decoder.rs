//! Recovers lost data from repair symbols.

use std::collections::VecDeque;

use farlink_fec::erasure::{Cauchy, Workspace};

use crate::payload::Payload;

use super::super::segment::Repair;
use super::erasure::Erasure;

/// Number of blocks that are kept at a time. The repair symbols of a block follow its data, but may overtake those of others.
const MOST_BLOCKS: usize = 4;
/// Largest number of symbols of a block, source and repair together.
const MOST_SYMBOLS: usize = Cauchy::BLOCKS_MAX;
/// Largest number of pieces that are kept, which is more than two blocks have unless writes are small.
const MOST_PIECES: usize = 4 * MOST_SYMBOLS;

/// Keeps recent data until no data of its block can be missing. `[E7]`
#[derive(Clone, Debug)]
pub(super) struct Decoder<D> {
    /// In the order of arrival.
    recent: VecDeque<(u64, D)>,
    recent_bytes: u64,
    most_bytes: u64,
    blocks: VecDeque<Block<D>>,
    workspace: Workspace,
    buffer: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Block<D> {
    start: u64,
    repair: Repair,
    /// Repair symbols with their index after the source symbols.
    repairs: Vec<(u8, D)>,
    is_settled: bool,
}

impl<D: Payload> Decoder<D> {
    pub(super) fn new(config: &Erasure, packet_bytes: u64) -> Self {
        Decoder {
            recent: VecDeque::new(),
            recent_bytes: 0,
            most_bytes: 2 * (config.source.whole() + config.repair.whole()) * packet_bytes,
            blocks: VecDeque::new(),
            workspace: Workspace::default(),
            buffer: Vec::new(),
        }
    }

    /// Takes data that may still be needed for decoding.
    pub(super) fn on_data(&mut self, position: u64, payload: &D) {
        self.recent_bytes += payload.len() as u64;
        self.recent.push_back((position, payload.clone()));
        while (self.recent_bytes > self.most_bytes || self.recent.len() > MOST_PIECES)
            && let Some((_, oldest)) = self.recent.pop_front()
        {
            self.recent_bytes -= oldest.len() as u64;
        }
    }

    /// Takes a repair symbol of the block that begins at `start`. Returns `false`, and ignores the symbol, if its description is
    /// inconsistent.
    pub(super) fn on_repair(&mut self, start: u64, repair: Repair, payload: D) -> bool {
        let (symbols, length) = (u32::from(repair.symbols), u32::from(repair.symbol_bytes));
        let is_sound = symbols > 0
            && payload.len() == repair.symbol_bytes as usize
            && repair.bytes > (symbols - 1) * length
            && repair.bytes <= symbols * length
            && u64::from(repair.bytes) <= self.most_bytes
            && (repair.symbols as u32..MOST_SYMBOLS as u32).contains(&repair.index)
            && (u64::from(repair.index) + 1) * u64::from(length) <= self.most_bytes;
        if !is_sound {
            return false;
        }
        let number = (repair.index - symbols) as u8;
        let description = Repair { index: 0, ..repair };
        let known = self.blocks.iter_mut().find(|block| block.start == start && block.repair == description);
        if let Some(block) = known {
            if !block.is_settled && block.repairs.iter().all(|known| known.0 != number) {
                block.repairs.push((number, payload));
            }
            return true;
        }
        if self.blocks.len() == MOST_BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back(Block {
            start,
            repair: description,
            repairs: vec![(number, payload)],
            is_settled: false,
        });
        true
    }

    /// Whether the data that begins at a position has arrived recently.
    pub(super) fn knows(&self, position: u64) -> bool {
        self.recent.iter().any(|piece| piece.0 == position)
    }

    /// Calls `found` with the position and content of each recovered piece of lost data. Data before `settled` was read or given
    /// up.
    pub(super) fn recover(&mut self, settled: u64, mut found: impl FnMut(u64, D)) {
        for block in &mut self.blocks {
            block.is_settled |= block.end() <= settled;
            if block.is_settled {
                continue;
            }
            let missing = block.missing(&self.recent);
            let count = missing.iter().filter(|&&is_missing| is_missing).count();
            if count > block.repairs.len() {
                continue;
            }
            block.is_settled = true;
            if count > 0 {
                block.solve(&missing, &self.recent, &mut self.buffer, &mut self.workspace, &mut found);
            }
            block.repairs.clear();
        }
    }
}

impl<D: Payload> Block<D> {
    fn end(&self) -> u64 {
        self.start + u64::from(self.repair.bytes)
    }

    /// The range of a source symbol in the stream.
    fn symbol(&self, number: usize) -> (u64, u64) {
        let length = u64::from(self.repair.symbol_bytes);
        let start = self.start + number as u64 * length;
        (start, (start + length).min(self.end()))
    }

    /// The source symbols that have not arrived completely. Pieces of a symbol do not overlap, because each was sent once.
    fn missing<'a>(&self, recent: impl IntoIterator<Item = &'a (u64, D)>) -> [bool; MOST_SYMBOLS]
    where
        D: 'a,
    {
        let mut here = [0_u64; MOST_SYMBOLS];
        let length = u64::from(self.repair.symbol_bytes);
        for (position, payload) in recent {
            let (from, to) = (*position.max(&self.start), (position + payload.len() as u64).min(self.end()));
            if from >= to {
                continue;
            }
            for number in (from - self.start) / length..=(to - 1 - self.start) / length {
                let (start, end) = self.symbol(number as usize);
                here[number as usize] += to.min(end) - from.max(start);
            }
        }
        let mut missing = [false; MOST_SYMBOLS];
        for number in 0..usize::from(self.repair.symbols) {
            let (start, end) = self.symbol(number);
            missing[number] = here[number] < end - start;
        }
        missing
    }

    fn solve(
        &self,
        missing: &[bool; MOST_SYMBOLS],
        recent: &VecDeque<(u64, D)>,
        buffer: &mut Vec<u8>,
        workspace: &mut Workspace,
        found: &mut impl FnMut(u64, D),
    ) {
        let (symbols, length) = (usize::from(self.repair.symbols), usize::from(self.repair.symbol_bytes));
        let repairs = self.repairs.iter().map(|repair| usize::from(repair.0) + 1).max().unwrap_or(1);
        if D::HAS_CONTENT {
            let Ok(code) = Cauchy::new(symbols, repairs) else { return };
            buffer.clear();
            buffer.resize((symbols + repairs) * length, 0);
            for (position, payload) in recent {
                let (from, to) = (*position.max(&self.start), (position + payload.len() as u64).min(self.end()));
                if from < to {
                    let content = &payload.as_bytes()[(from - position) as usize..(to - position) as usize];
                    buffer[(from - self.start) as usize..(to - self.start) as usize].copy_from_slice(content);
                }
            }
            let mut lost = missing[..symbols].to_vec();
            lost.resize(symbols + repairs, true);
            for (number, payload) in &self.repairs {
                let place = symbols + usize::from(*number);
                lost[place] = false;
                buffer[place * length..][..length].copy_from_slice(payload.as_bytes());
            }
            if code.decode(buffer, length, &lost, workspace).is_err() {
                return;
            }
        }
        for number in (0..symbols).filter(|&number| missing[number]) {
            let (start, end) = self.symbol(number);
            let content = || buffer[(start - self.start) as usize..(end - self.start) as usize].to_vec();
            found(start, D::with_content((end - start) as usize, content));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::encoder::Encoder;
    use super::*;
    use crate::time::Time;
    use proptest::prelude::*;

    fn erasure(source: u32, repair: u32) -> Erasure {
        serde_json::from_value(serde_json::json!({ "source": source, "repair": repair })).expect("these are its keys")
    }

    proptest! {
        /// A block recovers from the loss of as many packets as it has repair packets, including their content, but not of one
        /// more.
        #[test]
        fn a_block_recovers_from_as_many_losses_as_it_has_repair_packets(
            source in 1_u32..20, repair in 1_u32..8, cut in 0_usize..200, order in proptest::collection::vec(any::<u32>(), 30),
        ) {
            let config = erasure(source, repair);
            let mut encoder = Encoder::<Vec<u8>>::new(&config);
            // The block and its last symbol may be short.
            let all = source as usize * 10;
            let stream: Vec<u8> = (0..all - cut.min(all - 1)).map(|at| (at * 7 % 251) as u8).collect();
            let start = 1000;
            let mut packets = vec![];
            let mut at = 0;
            while at < stream.len() {
                let most = encoder.most_bytes(Time::ZERO, start + at as u64, 26) as usize;
                let payload = stream[at..stream.len().min(at + most)].to_vec();
                encoder.on_sent(&payload);
                packets.push((start + at as u64, None, payload.clone()));
                at += payload.len();
            }
            encoder.close();
            while let Some(sent) = encoder.next(Time::ZERO, 26) {
                packets.push((sent.position, sent.repair, sent.payload));
            }
            let symbols = stream.len().div_ceil(10);
            let repairs = packets.len() - symbols;
            prop_assert_eq!(repairs, (symbols * repair as usize).div_ceil(source as usize));
            for lost in [repairs, repairs + 1] {
                let mut ranked: Vec<usize> = (0..packets.len()).collect();
                ranked.sort_by_key(|&i| order[i % 30]);
                let lost = &ranked[..lost.min(packets.len())];
                let mut decoder = Decoder::<Vec<u8>>::new(&config, 100);
                let mut known = vec![None; stream.len()];
                let mut store = |position: u64, data: &[u8]| {
                    for (i, byte) in data.iter().enumerate() {
                        known[(position - start) as usize + i] = Some(*byte);
                    }
                };
                for (i, (position, repair, payload)) in packets.iter().enumerate() {
                    match repair {
                        _ if lost.contains(&i) => {}
                        Some(repair) => prop_assert!(decoder.on_repair(*position, *repair, payload.clone())),
                        None => {
                            decoder.on_data(*position, payload);
                            store(*position, payload);
                        }
                    }
                }
                decoder.recover(0, |position, data| store(position, &data));
                let found: Vec<u8> = known.iter().filter_map(|&byte| byte).collect();
                let lost_data = lost.iter().filter(|&&i| i < symbols).count();
                if lost.len() <= repairs {
                    prop_assert_eq!(&found, &stream);
                } else {
                    prop_assert_eq!(found.len() < stream.len(), lost_data > 0);
                }
            }
        }

        /// Repair symbols with inconsistent descriptions are refused, whatever they contain.
        #[test]
        fn inconsistent_descriptions_are_refused(
            start in any::<u32>(), bytes in any::<u32>(), symbol_bytes in 0_u16..40, symbols in 0_u16..300, index in 0_u32..300,
        ) {
            let mut decoder = Decoder::<Vec<u8>>::new(&erasure(8, 2), 100);
            decoder.on_data(u64::from(start), &vec![1; 10]);
            let repair = Repair { start, bytes, symbol_bytes, symbols, index };
            decoder.on_repair(u64::from(start), repair, vec![2; usize::from(symbol_bytes)]);
            decoder.recover(0, |_, data| assert!(data.len() <= usize::from(symbol_bytes)));
        }
    }
}

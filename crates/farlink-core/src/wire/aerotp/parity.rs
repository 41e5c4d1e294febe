//! The parity in a packet: Reed-Solomon over the bytes after the header, in the codewords of [`Fec`].

use std::sync::OnceLock;

use bytes::Bytes;
use farlink_fec::reed_solomon::Code;

use crate::endpoint::Integrity;
use crate::protocol::aerotp::Fec;

/// Symbols of a full codeword. The codewords here are shortened: zeros precede them.
const SYMBOLS: usize = 255;

/// The code with `parity` parity symbols, 1 to 254. Its tables take up to a millisecond to compute.
fn code(parity: usize) -> &'static Code {
    static CODES: [OnceLock<Code>; SYMBOLS] = [const { OnceLock::new() }; SYMBOLS];
    CODES[parity].get_or_init(|| Code::conventional(SYMBOLS, SYMBOLS - parity).expect("1 to 254 symbols of parity"))
}

/// Positions of the symbols of a codeword among the bytes after the header.
struct Codeword {
    number: usize,
    codewords: usize,
    parity: usize,
    payload_bytes: usize,
    parity_bytes: usize,
    data_bytes: usize,
}

impl Codeword {
    fn all(fec: &Fec) -> impl Iterator<Item = Codeword> + use<> {
        let (codewords, parity) = (fec.codewords() as usize, fec.parity_of_each() as usize);
        let (payload_bytes, parity_bytes) = (fec.payload_bytes as usize, fec.parity_bytes as usize);
        let data_bytes = payload_bytes + fec.check_bytes as usize;
        let count = if parity == 0 { 0 } else { codewords };
        (0..count).map(move |number| Codeword { number, codewords, parity, payload_bytes, parity_bytes, data_bytes })
    }

    /// Number of data symbols, which is less than a full codeword has.
    fn data(&self) -> usize {
        (self.data_bytes - self.number.min(self.data_bytes)).div_ceil(self.codewords)
    }

    /// Number of zeros before them.
    fn shortened(&self) -> usize {
        SYMBOLS - self.parity - self.data()
    }

    /// For each symbol after the zeros, its byte after the header.
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let data = (0..self.data()).map(|symbol| self.number + symbol * self.codewords);
        // The check follows the parity.
        let data = data.map(|byte| if byte < self.payload_bytes { byte } else { byte + self.parity_bytes });
        data.chain((0..self.parity).map(|symbol| self.payload_bytes + self.number + symbol * self.codewords))
    }
}

/// Computes the parity in `behind`, which has the payload, room for the parity, and the check. `[F2]`
pub(super) fn fill(fec: &Fec, behind: &mut [u8]) {
    if behind.len() < (fec.payload_bytes + fec.parity_bytes + fec.check_bytes) as usize {
        return; // there is no room for all of it
    }
    for codeword in Codeword::all(fec) {
        let mut symbols = [0; SYMBOLS];
        let first = codeword.shortened();
        for (symbol, place) in symbols[first..].iter_mut().zip(codeword.places()) {
            *symbol = behind[place];
        }
        let (data, parity) = symbols.split_at_mut(SYMBOLS - codeword.parity);
        code(codeword.parity).encode(data, parity);
        for (symbol, place) in parity.iter().zip(codeword.places().skip(codeword.data())) {
            behind[place] = *symbol;
        }
    }
}

/// The result of decoding the bytes after a header.
pub(super) enum Mended {
    /// They are intact, as far as the code can tell.
    Right,
    /// They were corrected.
    Now { bytes: Vec<u8>, wrong_bits: u32 },
    /// They cannot be corrected.
    Never,
}

impl Mended {
    /// The bytes to use: those that arrived, unless some were corrected.
    pub(super) fn content(self, arrived: impl FnOnce() -> Bytes) -> Bytes {
        if let Mended::Now { bytes, .. } = self { bytes.into() } else { arrived() }
    }

    pub(super) fn integrity(&self) -> Option<Integrity> {
        match *self {
            Mended::Right => Some(Integrity::Intact),
            Mended::Now { wrong_bits, .. } => {
                Some(Integrity::Mended { bits: u16::try_from(wrong_bits).unwrap_or(u16::MAX) })
            }
            Mended::Never => None,
        }
    }
}

/// Decodes all codewords. If one cannot be decoded, the result is [`Never`](Mended::Never). `[F4]`
pub(super) fn mend(fec: &Fec, behind: &[u8]) -> Mended {
    if fec.parity_bytes == 0 {
        return Mended::Right;
    }
    let mut bytes = None;
    for codeword in Codeword::all(fec) {
        let mut symbols = [0; SYMBOLS];
        let first = codeword.shortened();
        for (symbol, place) in symbols[first..].iter_mut().zip(codeword.places()) {
            *symbol = behind[place];
        }
        // Most codewords are intact, and computing their parity is much faster than decoding.
        let mut again = [0; SYMBOLS];
        let (data, parity) = symbols.split_at(SYMBOLS - codeword.parity);
        let again = &mut again[..codeword.parity];
        code(codeword.parity).encode(data, again);
        if again == parity {
            continue;
        }
        let is_decoded = code(codeword.parity).decode(&mut symbols, &[]).is_ok();
        // The zeros before the word were never sent, so an error there means that decoding failed.
        if !is_decoded || symbols[..first].iter().any(|&symbol| symbol != 0) {
            return Mended::Never;
        }
        let bytes = bytes.get_or_insert_with(|| behind.to_vec());
        for (symbol, place) in symbols[first..].iter().zip(codeword.places()) {
            bytes[place] = *symbol;
        }
    }
    // Parity that does not divide evenly is zero and not part of any codeword. [F3]
    let from = (fec.payload_bytes + fec.parity_of_each() * fec.codewords()) as usize;
    let to = (fec.payload_bytes + fec.parity_bytes) as usize;
    if behind[from..to].iter().any(|&byte| byte != 0) {
        bytes.get_or_insert_with(|| behind.to_vec())[from..to].fill(0);
    }
    match bytes {
        None => Mended::Right,
        Some(bytes) => {
            let wrong_bits = bytes.iter().zip(behind).map(|(right, was)| (right ^ was).count_ones()).sum();
            Mended::Now { bytes, wrong_bits }
        }
    }
}

//! A key for the tests of what only the inside shows.

use std::cell::Cell;

use bytes::BytesMut;

use super::*;
use crate::protocol::aerotp::Segment;
use crate::wire::aerotp::Outside;

thread_local! {
    static DERIVED: Cell<u32> = const { Cell::new(0) };
}

/// Hides nothing; its tag says which key of the chain it is.
#[derive(Clone, Debug)]
pub(super) struct CountingKey {
    algorithm: Algorithm,
    changes: u32,
}

impl CountingKey {
    pub(super) fn new(algorithm: Algorithm) -> Self {
        CountingKey { algorithm, changes: 0 }
    }

    /// A key that is in no chain.
    pub(super) fn stranger() -> Self {
        CountingKey { algorithm: Algorithm::Aes256Gcm, changes: u32::MAX }
    }

    /// How many keys this thread has derived.
    pub(super) fn derived() -> u32 {
        DERIVED.get()
    }

    fn tag(&self) -> Tag {
        u128::from(self.changes).to_be_bytes()
    }
}

impl PacketKey for CountingKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn iv(&self) -> &Nonce {
        &[0; NONCE_BYTES]
    }

    fn seal(&self, _nonce: &Nonce, _associated: &[u8], _content: &mut [u8]) -> Tag {
        self.tag()
    }

    fn open(&self, _nonce: &Nonce, _associated: &[u8], _content: &mut [u8], tag: &Tag) -> bool {
        *tag == self.tag()
    }

    fn next(&self) -> Self {
        DERIVED.set(DERIVED.get() + 1);
        CountingKey { changes: self.changes.wrapping_add(1), ..self.clone() }
    }
}

pub(super) fn segment() -> Segment<Vec<u8>> {
    Segment { sequence: 9, payload: b"payload".to_vec(), ..Segment::default() }
}

/// A packet of the connection 7.
pub(super) fn packet(key: &CountingKey, number: u64) -> OuterPacket {
    packet_in(KeyPhase::default(), key, number)
}

pub(super) fn packet_in(phase: KeyPhase, key: &CountingKey, number: u64) -> OuterPacket {
    let mut sealer = Sealer::starting_at(number, Kind::Sealed, key.clone(), phase, 7);
    let mut bytes = BytesMut::zeroed(sealed_bytes(&segment()));
    sealer.seal_into(&segment(), &Outside::default(), &mut bytes).unwrap();
    OuterPacket::read(bytes).unwrap()
}

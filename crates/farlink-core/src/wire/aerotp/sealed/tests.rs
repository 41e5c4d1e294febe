//! A key for the tests of what only the inside shows.

use std::cell::Cell;

use bytes::BytesMut;

use super::*;
use crate::Time;
use crate::protocol::aerotp::Segment;
use crate::wire::aerotp::{Outside, Refusal};

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

/// A hello and a packet behind it, as in a first flight. `[O23]`
#[test]
fn a_hello_is_taken_from_the_front_of_a_datagram() {
    let header = OuterHeader {
        kind: Kind::Hello,
        key_phase: KeyPhase::default(),
        parity_words: 0,
        content_bytes: 3,
        connection_id: 0,
        number: 0,
    };
    let hello = [&header.encode()[..], b"abc"].concat();
    let mut sealer = Sealer::new(CountingKey::new(Algorithm::Aes256Gcm), 7);
    let mut sealed = [0; 64];
    let bytes = sealer.seal_message(b"\0", &mut sealed).unwrap();

    let mut datagram = BytesMut::from(&[&hello[..], &sealed[..bytes]].concat()[..]);
    assert!(OuterPacket::read(datagram.clone()).is_err(), "two packets are not one");
    let first = OuterPacket::take_first(&mut datagram).unwrap();
    assert_eq!((first.header(), first.behind()), (&header, &b"abc"[..]));
    assert_eq!(OuterPacket::read(datagram).unwrap().header().kind, Kind::Sealed);

    let mut reversed = BytesMut::from(&[&sealed[..bytes], &hello[..]].concat()[..]);
    let before = reversed.clone();
    assert_eq!(
        OuterPacket::take_first(&mut reversed).unwrap_err(),
        Refusal::Length,
        "only a hello has something behind it"
    );
    assert_eq!(reversed, before);
    assert!(OuterPacket::take_first(&mut BytesMut::from(&hello[..16])).is_err());
}

/// Messages of a session and segments are never taken for each other. `[O24]`
#[test]
fn a_message_is_no_segment() {
    let key = || CountingKey::new(Algorithm::Aes256Gcm);
    let (mut sealer, mut opener) = (Sealer::new(key(), 7), Unsealer::new(key(), 7, Time::from_secs(60)));
    let mut out = [0; 256];
    let mut open = |bytes: &[u8]| opener.open_content(OuterPacket::read(BytesMut::from(bytes)).unwrap(), Time::ZERO);
    for message in [&[1][..], &[0xff; 12], &[0; 100]] {
        let bytes = sealer.seal_message(message, &mut out).unwrap();
        let opened = open(&out[..bytes]).unwrap();
        assert_eq!(opened.message(), Some(message));
        assert!(opened.segment::<bytes::Bytes>().is_err());
    }
    let bytes = sealer.seal_into(&segment(), &Outside::default(), &mut out).unwrap();
    let opened = open(&out[..bytes]).unwrap();
    assert_eq!((opened.message(), opened.is_newest()), (None, true));
    assert!(opened.segment::<Vec<u8>>().is_ok());
}

#[test]
#[should_panic(expected = "this could be a segment")]
fn what_could_be_a_segment_is_no_message() {
    let _ = Sealer::new(CountingKey::new(Algorithm::Aes256Gcm), 7).seal_message(&[0x40; 13], &mut [0; 64]);
}

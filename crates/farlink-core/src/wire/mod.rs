//! Typed packets to bytes and back.
//!
//! The simulator never serialises: it carries typed packets and only their lengths. Sockets and captures need bytes, and
//! this is where both meet. [`Codec`] is implemented by every packet that has a form on the wire: [`tcp`], [`udp`], [`arq`],
//! [`stp`] and [`aerotp`], each inside the header of [`ipv4`]; AeroTP has a form for UDP sockets as well.
//!
//! Two lengths must be told apart. [`Packet::wire_bytes`] is what the *scenario* says that a packet costs (`header_bytes`,
//! often the constant 40); the encoded packet has the length of the headers as they *really* are, options included. They
//! agree only where the scenario counts options.
//!
//! # Damage
//!
//! [`Codec::decode`] agrees with [`Packet::inspect`]: bytes in which bits were flipped decode to nothing, whether the bits
//! lie in the IP header, the transport header or the payload; frames of [`arq`] and segments of [`aerotp`] check header and
//! payload apart, and keep the header if only the payload was hit. The agreement is exact for damage that lies within 15
//! consecutive bits. Beyond that the Internet checksum misses what cancels in its sum, about one pattern in 65,536 and
//! every exchange of two 16-bit words; `inspect`, and so the simulator, counts those as lost too. `docs/design/wire-codec.md`
//! has the argument.

pub mod aerotp;
pub mod arq;
pub mod ipv4;
pub mod mp;
pub mod stp;
pub mod tcp;
pub mod udp;
mod writer;

pub use ipv4::Envelope;
pub use writer::Writer;

use bytes::Bytes;

use crate::endpoint::{Integrity, Packet};
use crate::payload::{Payload, Virtual};

/// A packet that has a form on the wire.
///
/// Protocols give lengths, headers and reading; a packet goes into a buffer that the caller has, as a socket driver wants it
/// ([`encode_into`](Self::encode_into)), or onto a vector.
pub trait Codec: Packet {
    /// Length of all that [`write_headers`](Self::write_headers) writes.
    fn headers_bytes(&self) -> usize;

    /// Length of the whole packet, IPv4 header included.
    fn wire_length(&self) -> usize;

    /// Writes the packet's headers (IPv4 and transport), with the lengths and checksums of the whole packet.
    ///
    /// What a capture keeps of a packet whose payload is of no interest: all that is not payload or behind it. A packet longer
    /// than IPv4 can say gets the length 0, as captures of packets that a network card is yet to cut into segments have.
    fn write_headers(&self, envelope: &Envelope, out: &mut Writer<'_>);

    /// Writes the whole packet.
    fn write_packet(&self, envelope: &Envelope, out: &mut Writer<'_>);

    /// The packet at the start of `bytes`; `None` for anything malformed, damaged or of another protocol. Never panics.
    ///
    /// A payload of [`Bytes`] is a slice of `bytes` and keeps the whole buffer alive.
    fn decode(bytes: Bytes) -> Option<Decoded<Self>>;

    /// Appends the packet's headers to `out`.
    fn encode_headers(&self, envelope: &Envelope, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.headers_bytes(), 0);
        self.write_headers(envelope, &mut Writer::new(&mut out[start..]));
    }

    /// Appends the whole packet to `out`.
    ///
    /// # Errors
    /// If it is longer than IPv4 allows; `out` is then as it was.
    fn encode(&self, envelope: &Envelope, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let bytes = within_ipv4(self.wire_length())?;
        let start = out.len();
        out.resize(start + bytes, 0);
        self.write_packet(envelope, &mut Writer::new(&mut out[start..]));
        Ok(())
    }

    /// Writes the whole packet to the front of `out` and gives its length.
    ///
    /// # Errors
    /// If it is longer than IPv4 allows or than `out`, which is then as it was.
    fn encode_into(&self, envelope: &Envelope, out: &mut [u8]) -> Result<usize, EncodeError> {
        let bytes = within(within_ipv4(self.wire_length())?, out)?;
        self.write_packet(envelope, &mut Writer::new(out));
        Ok(bytes)
    }
}

/// What [`Codec::decode`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<P> {
    /// The packet.
    pub packet: P,
    /// Where it came from and goes to.
    pub envelope: Envelope,
    /// In which state it is.
    pub integrity: Integrity,
}

/// A packet does not fit into one IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a packet of {bytes} bytes is longer than the {max} that IPv4 allows", max = ipv4::MAX_BYTES)]
pub struct TooLong {
    /// Its length, headers included.
    pub bytes: usize,
}

/// A packet does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Into one IPv4 packet.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// Into the buffer.
    #[error("a packet of {bytes} bytes does not fit into a buffer of {room}; give a larger one")]
    NoRoom {
        /// Its length, headers included.
        bytes: usize,
        /// The buffer's.
        room: usize,
    },
}

fn within_ipv4(bytes: usize) -> Result<usize, TooLong> {
    if bytes > ipv4::MAX_BYTES { Err(TooLong { bytes }) } else { Ok(bytes) }
}

fn within(bytes: usize, out: &[u8]) -> Result<usize, EncodeError> {
    let room = out.len();
    if bytes > room { Err(EncodeError::NoRoom { bytes, room }) } else { Ok(bytes) }
}

/// A payload that can be put on the wire and read from it.
pub trait WirePayload: Payload {
    /// Its bytes; `None` if it has a length only and stands for zeros.
    fn content(&self) -> Option<&[u8]>;

    /// The payload that arrived as `bytes`.
    fn from_wire(bytes: Bytes) -> Self;
}

impl WirePayload for Vec<u8> {
    fn content(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn from_wire(bytes: Bytes) -> Self {
        bytes.into()
    }
}

/// Read without a copy: a slice of the buffer that arrived.
impl WirePayload for Bytes {
    fn content(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn from_wire(bytes: Bytes) -> Self {
        bytes
    }
}

/// Zeros of its length: they change no checksum, so headers can be written without them.
impl WirePayload for Virtual {
    fn content(&self) -> Option<&[u8]> {
        None
    }

    fn from_wire(bytes: Bytes) -> Self {
        Virtual(u32::try_from(bytes.len()).unwrap_or(u32::MAX))
    }
}

/// Writes headers, then the payload, then zeros up to the packet's length.
fn write_parts<P: Codec>(packet: &P, payload: &impl WirePayload, envelope: &Envelope, out: &mut Writer<'_>) {
    let start = out.position();
    packet.write_headers(envelope, out);
    out.extend(payload.content().unwrap_or_default());
    out.zeros_to(start + packet.wire_length());
}

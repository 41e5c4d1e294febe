//! Conversion of typed packets to bytes and back.
//!
//! The simulator never serialises packets: it carries typed packets and only their lengths. Sockets and captures need bytes,
//! which this module converts. [`Codec`] is implemented by every packet with a wire format: [`tcp`], [`udp`], [`arq`], [`stp`]
//! and [`aerotp`], each inside the header of [`ipv4`]; AeroTP also has a format for UDP sockets.
//!
//! Two lengths must be distinguished. [`Packet::wire_bytes`] is the length that the *scenario* gives a packet (`header_bytes`,
//! often the constant 40); the encoded packet has the *real* length of its headers, options included. They agree only if the
//! scenario counts options.
//!
//! # Damage
//!
//! [`Codec::decode`] agrees with [`Packet::inspect`]: bytes with flipped bits decode to nothing, whether the bits are in the IP
//! header, the transport header or the payload. Frames of [`arq`] and segments of [`aerotp`] have separate checks for header and
//! payload, and keep the header if only the payload is damaged. The agreement is exact for damage within 15 consecutive bits.
//! Beyond that the Internet checksum misses errors that cancel in its sum, about one pattern in 65,536 and every exchange of two
//! 16-bit words; `inspect`, and so the simulator, counts those as lost too. `docs/design/wire-codec.md` has the argument.

pub mod aerotp;
pub mod arq;
pub mod ipv4;
pub mod mp;
pub mod paths;
pub mod stp;
pub mod tcp;
pub mod udp;
mod writer;

pub use ipv4::Envelope;
pub use writer::Writer;

use bytes::Bytes;

use crate::endpoint::{Integrity, Packet};
use crate::payload::{Payload, Virtual};

/// A packet with a wire format.
///
/// Protocols implement lengths, headers and decoding. A packet is written into a buffer of the caller, as a socket driver needs
/// it ([`encode_into`](Self::encode_into)), or appended to a vector.
pub trait Codec: Packet {
    /// Length of the output of [`write_headers`](Self::write_headers).
    fn headers_bytes(&self) -> usize;

    /// Length of the whole packet, IPv4 header included.
    fn wire_length(&self) -> usize;

    /// Writes the packet's headers (IPv4 and transport), with the lengths and checksums of the whole packet.
    ///
    /// A capture without payloads keeps these bytes: all except the payload and what follows it. A packet longer than IPv4 allows
    /// gets the length 0, as in captures of packets that the network card has not segmented yet.
    fn write_headers(&self, envelope: &Envelope, out: &mut Writer<'_>);

    /// Writes the whole packet.
    fn write_packet(&self, envelope: &Envelope, out: &mut Writer<'_>);

    /// Decodes the packet at the start of `bytes`; `None` if it is malformed, damaged or of another protocol. Never panics.
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
    /// If it is longer than IPv4 allows; `out` then stays unchanged.
    fn encode(&self, envelope: &Envelope, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let bytes = within_ipv4(self.wire_length())?;
        let start = out.len();
        out.resize(start + bytes, 0);
        self.write_packet(envelope, &mut Writer::new(&mut out[start..]));
        Ok(())
    }

    /// Writes the whole packet to the start of `out` and returns its length.
    ///
    /// # Errors
    /// If it is longer than IPv4 allows or than `out`, which then stays unchanged.
    fn encode_into(&self, envelope: &Envelope, out: &mut [u8]) -> Result<usize, EncodeError> {
        let bytes = within(within_ipv4(self.wire_length())?, out)?;
        self.write_packet(envelope, &mut Writer::new(out));
        Ok(bytes)
    }
}

/// The result of [`Codec::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<P> {
    /// The packet.
    pub packet: P,
    /// Its source and destination.
    pub envelope: Envelope,
    /// Whether its payload is intact.
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
    /// It does not fit into one IPv4 packet.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// It does not fit into the buffer.
    #[error("a packet of {bytes} bytes does not fit into a buffer of {room}; give a larger one")]
    NoRoom {
        /// Its length, headers included.
        bytes: usize,
        /// Length of the buffer.
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

/// A payload with a wire format.
pub trait WirePayload: Payload {
    /// Its bytes; `None` if it has only a length and represents zeros.
    fn content(&self) -> Option<&[u8]>;

    /// The payload of the received `bytes`.
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

/// Decoded without a copy, as a slice of the received buffer.
impl WirePayload for Bytes {
    fn content(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn from_wire(bytes: Bytes) -> Self {
        bytes
    }
}

/// Represents zeros of its length. They change no checksum, so headers can be written without them.
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

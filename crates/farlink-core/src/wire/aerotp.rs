//! AeroTP segments on the wire, as `docs/aerotp.md` lays them out, inside IPv4 as protocol 254.
//!
//! [RFC 3692](https://www.rfc-editor.org/rfc/rfc3692) and the registry of IANA give number 254 to experiments.

use etherparse::IpNumber;
use farlink_fec::crc::crc_16_ibm_3740;

use crate::payload::Payload;
use crate::protocol::aerotp::{Flags, Segment};

use super::{Codec, Decoded, Envelope, TooLong, WirePayload, ipv4};

/// Use for experimentation and testing.
const PROTOCOL: IpNumber = IpNumber(254);

impl<D: WirePayload> Codec for Segment<D> {
    fn encode_headers(&self, envelope: &Envelope, out: &mut Vec<u8>) {
        ipv4::append_header(envelope, PROTOCOL, 20 + self.payload.len(), out);
        let start = out.len();
        out.extend(envelope.source.port().to_be_bytes());
        out.extend(envelope.destination.port().to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.timestamp.to_be_bytes());
        out.extend([self.mode.number(), self.flags.0]);
        out.extend(u16::try_from(self.payload.len()).unwrap_or(0).to_be_bytes());
        out.extend(self.tag.to_be_bytes());
        let check = crc_16_ibm_3740(&out[start..]);
        out.extend(check.to_be_bytes());
        let _ = Flags::default();
    }

    fn encode(&self, envelope: &Envelope, out: &mut Vec<u8>) -> Result<(), TooLong> {
        super::append_packet(self, &self.payload, envelope, out)
    }

    fn decode(_bytes: &[u8]) -> Option<Decoded<Self>> {
        None
    }
}

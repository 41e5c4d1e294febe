//! UDP datagrams on the wire (RFC 768).

use bytes::Bytes;
use etherparse::{IpNumber, UdpHeader, UdpSlice};

use crate::endpoint::Integrity;
use crate::protocol::udp::{Datagram, NUMBER_BYTES};

use super::{Codec, Decoded, Envelope, WirePayload, Writer, ipv4, write_parts};

/// Length of the IPv4 and the UDP header.
const HEADER_BYTES: u16 = ipv4::HEADER_BYTES + UdpHeader::LEN as u16;

/// Decoding sets [`Datagram::header_bytes`] to 28, the real length of the headers, whatever the scenario counted. It leaves a
/// datagram's number at the beginning of the payload, because UDP's header does not say whether there is one.
impl<D: WirePayload> Codec for Datagram<D> {
    fn headers_bytes(&self) -> usize {
        usize::from(HEADER_BYTES) + self.number.map_or(0, |_| NUMBER_BYTES)
    }

    fn wire_length(&self) -> usize {
        self.headers_bytes() + self.payload.len()
    }

    fn write_headers(&self, envelope: &Envelope, out: &mut Writer<'_>) {
        let number = self.number.map(u32::to_be_bytes);
        let number = number.as_ref().map_or(&[][..], |number| &number[..]);
        let bytes = UdpHeader::LEN + number.len() + self.payload.len();
        let mut header = UdpHeader {
            source_port: envelope.source.port(),
            destination_port: envelope.destination.port(),
            length: u16::try_from(bytes).unwrap_or(0),
            checksum: 0,
        };
        //= https://www.rfc-editor.org/rfc/rfc768
        //# If the computed  checksum  is zero,  it is transmitted  as all ones
        let checksum = envelope
            .pseudo_header(IpNumber::UDP, bytes)
            .add_slice(&header.to_bytes())
            .add_slice(number)
            .add_slice(self.payload.content().unwrap_or_default())
            .to_ones_complement_with_no_zero();
        header.checksum = checksum.to_be();

        ipv4::write_header(envelope, IpNumber::UDP, bytes, out);
        out.extend(header.to_bytes());
        out.extend(number);
    }

    fn write_packet(&self, envelope: &Envelope, out: &mut Writer<'_>) {
        write_parts(self, &self.payload, envelope, out);
    }

    fn decode(bytes: Bytes) -> Option<Decoded<Self>> {
        let (mut envelope, bytes) = ipv4::parse(&bytes, IpNumber::UDP)?;
        let datagram = UdpSlice::from_slice(&bytes).ok()?;
        // With a length other than the network layer's, the checksum would not cover all bytes.
        let is_whole = usize::from(datagram.length()) == bytes.len();
        //= https://www.rfc-editor.org/rfc/rfc1122#section-4.1.3.4
        //# An application MAY optionally be able to
        //# control whether UDP datagrams without checksums should be
        //# discarded or passed to the application.
        // They are discarded: every sender here uses checksums, so one that arrives without was damaged.
        let has_checksum = datagram.checksum() != 0;
        let is_sound = envelope.pseudo_header(IpNumber::UDP, bytes.len()).add_slice(&bytes).ones_complement() == 0;
        if !is_whole || !has_checksum || !is_sound {
            return None;
        }
        envelope.source.set_port(datagram.source_port());
        envelope.destination.set_port(datagram.destination_port());
        let packet = Datagram {
            header_bytes: HEADER_BYTES,
            number: None,
            payload: D::from_wire(bytes.slice_ref(datagram.payload())),
        };
        Some(Decoded { packet, envelope, integrity: Integrity::Intact })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;
    use crate::wire::TooLong;

    #[test]
    fn a_datagram_has_the_bytes_of_the_rfc() {
        let datagram = Datagram { header_bytes: 28, number: None, payload: b"ab".to_vec() };
        let mut bytes = Vec::new();
        datagram.encode(&Envelope::simulated(0), &mut bytes).unwrap();

        // The sum: addresses 1403, protocol 11, length a (twice), ports c000 and 9c40, data 6162 = 1d1ca -> d1cb.
        assert_eq!(bytes[20..], [0xc0, 0x00, 0x9c, 0x40, 0, 10, !0xd1, !0xcb, b'a', b'b']);
    }

    #[test]
    fn a_number_is_the_beginning_of_the_payload() {
        let datagram = Datagram { header_bytes: 32, number: Some(258), payload: b"ab".to_vec() };
        let mut bytes = Vec::new();
        datagram.encode(&Envelope::simulated(0), &mut bytes).unwrap();
        assert_eq!(bytes[20..26], [0xc0, 0x00, 0x9c, 0x40, 0, 14]);
        let decoded = Datagram::<Vec<u8>>::decode(bytes.into()).unwrap().packet;
        assert_eq!((decoded.number, decoded.payload), (None, [0, 0, 1, 2, b'a', b'b'].to_vec()));
    }

    #[test]
    fn a_datagram_without_checksum_is_dropped() {
        let mut bytes = Vec::new();
        Datagram { header_bytes: 28, number: None, payload: Virtual(4) }
            .encode(&Envelope::simulated(0), &mut bytes)
            .unwrap();
        assert!(Datagram::<Virtual>::decode(bytes.clone().into()).is_some());
        bytes[26..28].fill(0);
        assert_eq!(Datagram::<Virtual>::decode(bytes.into()), None);
    }

    #[test]
    fn datagrams_too_long_for_ipv4_are_refused_and_write_nothing() {
        let mut bytes = vec![7];
        let longest = Datagram { header_bytes: 28, number: None, payload: Virtual(65_507) };
        assert_eq!(longest.encode(&Envelope::simulated(0), &mut bytes), Ok(()));
        assert_eq!(bytes.len(), 1 + 65_535);

        bytes.truncate(1);
        let longer = Datagram { header_bytes: 28, number: None, payload: Virtual(65_508) };
        assert_eq!(longer.encode(&Envelope::simulated(0), &mut bytes), Err(TooLong { bytes: 65_536 }));
        assert_eq!(bytes, [7]);
    }
}

//! Captures of a run, for Wireshark and similar programs (pcapng).
//!
//! A capture has the packets at the interface of the simulated sender: those that it sends and those that it receives, from
//! 10.0.0.1 to 10.0.0.2 and back, with a pair of ports per flow. The clock starts at 0, shown as 1970-01-01. Simulated payload is
//! zeros and not stored: each packet keeps its headers, with the lengths and checksums of the whole packet. Lengths are those on
//! the wire and not those that the scenario counts (`header_bytes`), see [`farlink_core::wire`].

use std::borrow::Cow;
use std::time::Duration;

use farlink_core::wire::{Codec, Envelope};
use farlink_core::{Ecn, Time};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness};

/// Longest title that is stored; an option of a block holds 65,535 bytes.
const MAX_TITLE_CHARS: usize = 1_000;
/// Interface number of the capture point, the only one.
const SENDER: u32 = 0;
/// `if_tsresol`: units of 10^-9 seconds, the finest that Wireshark shows.
const NANOSECONDS: u8 = 9;

/// The direction in which a packet passes the capture point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the sender to the link: data.
    Outbound,
    /// From the link to the sender: acknowledgements.
    Inbound,
}

impl Direction {
    /// The direction bits of `epb_flags`.
    fn flags(self) -> u32 {
        match self {
            Direction::Inbound => 0b01,
            Direction::Outbound => 0b10,
        }
    }
}

/// Writes a capture into memory.
pub struct PcapWriter {
    writer: PcapNgWriter<Vec<u8>>,
    headers: Vec<u8>,
}

impl PcapWriter {
    /// An empty capture with the names of the scenario and of the version of farlink that it comes from.
    pub fn new(title: &str, version: &str) -> Self {
        let title: String = title.chars().take(MAX_TITLE_CHARS).collect();
        let section = SectionHeaderBlock {
            // Fixed, so that the same run gives the same bytes on every machine.
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::Comment(Cow::Owned(title)),
                SectionHeaderOption::UserApplication(Cow::Owned(format!("farlink {version}"))),
            ],
            ..SectionHeaderBlock::default()
        };
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed("sender")),
                InterfaceDescriptionOption::IfDescription(Cow::Borrowed("simulated; time 0 is the start of the run")),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        let mut writer = PcapNgWriter::with_section_header(Vec::new(), section).expect(MEMORY);
        writer.write_pcapng_block(interface).expect(MEMORY);
        PcapWriter { writer, headers: Vec::new() }
    }

    /// Adds the headers of a packet of a flow, with its congestion codepoint.
    pub fn packet<P: Codec>(&mut self, now: Time, direction: Direction, packet: &P, ecn: Ecn, flow: u32) {
        let forward = Envelope { ecn, ..Envelope::simulated(flow) };
        let envelope = match direction {
            Direction::Outbound => forward,
            Direction::Inbound => forward.reversed(),
        };
        let mut headers = std::mem::take(&mut self.headers);
        headers.clear();
        packet.encode_headers(&envelope, &mut headers);
        // IPv4's length also covers content after the payload; it is 0 if it cannot express the length.
        let whole = match headers[..] {
            [_, _, high, low, ..] => u32::from(u16::from_be_bytes([high, low])),
            _ => 0,
        };
        self.bytes(now, direction, whole.max(headers.len() as u32 + packet.payload_bytes()), &headers);
        self.headers = headers;
    }

    /// Adds the first `bytes` of an IPv4 packet that is `original_len` bytes long.
    pub fn bytes(&mut self, now: Time, direction: Direction, original_len: u32, bytes: &[u8]) {
        let block = EnhancedPacketBlock {
            interface_id: SENDER,
            // The library writes a count of nanoseconds, regardless of the interface.
            timestamp: Duration::from_nanos(now.as_ps() / 1_000),
            original_len,
            data: Cow::Borrowed(bytes),
            options: vec![EnhancedPacketOption::Flags(direction.flags())],
        };
        self.writer.write_pcapng_block(block).expect(MEMORY);
    }

    /// The capture as the content of a file.
    pub fn finish(self) -> Vec<u8> {
        self.writer.into_inner()
    }
}

const MEMORY: &str = "writing to memory to an interface that exists cannot fail";

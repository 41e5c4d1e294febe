//! Capture of the TUN device's packets for Wireshark (pcapng, LINKTYPE_RAW).

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::SectionHeaderBlock;
use pcap_file::{DataLink, Endianness};

use super::error::BundleError;

/// `if_tsresol`: units of 10^-9 seconds, which the library writes regardless of the interface.
const NANOSECONDS: u8 = 9;

/// Which way a packet goes; the values of `epb_flags`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    FromPeer = 0b01,
    ToPeer = 0b10,
}

/// A capture that is being written. The first error ends it.
pub(super) struct Capture(Option<PcapNgWriter<BufWriter<File>>>);

impl Capture {
    pub(super) fn create(path: &Path, device: &str) -> Result<Self, BundleError> {
        let failed = |error: std::io::Error| BundleError::Output { what: path.display().to_string(), error };
        let file = BufWriter::new(File::create(path).map_err(failed)?);
        let section = SectionHeaderBlock { endianness: Endianness::Little, ..SectionHeaderBlock::default() };
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(device.to_owned())),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        let refused = |error: pcap_file::PcapError| failed(std::io::Error::other(error.to_string()));
        let mut writer = PcapNgWriter::with_section_header(file, section).map_err(refused)?;
        writer.write_pcapng_block(interface).map_err(refused)?;
        Ok(Capture(Some(writer)))
    }

    /// Adds a packet, with the wall clock.
    pub(super) fn add(&mut self, unix_us: u64, way: Way, packet: &[u8]) {
        let Some(writer) = &mut self.0 else { return };
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_micros(unix_us),
            original_len: packet.len() as u32,
            data: Cow::Borrowed(packet),
            options: vec![EnhancedPacketOption::Flags(way as u32)],
        };
        if let Err(error) = writer.write_pcapng_block(block) {
            tracing::warn!(%error, "the capture ends here");
            self.0 = None;
        }
    }

    /// Writes what waits in memory.
    pub(super) fn flush(&mut self) {
        if let Some(writer) = &mut self.0
            && let Err(error) = writer.get_mut().flush()
        {
            tracing::warn!(%error, "the capture ends here");
            self.0 = None;
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.flush();
    }
}

//! Capture of the lines' packets for Wireshark (pcapng, LINKTYPE_PPP_WITH_DIR, one interface a line).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use farlink_core::ppp::hdlc::Decoder;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::SectionHeaderBlock;
use pcap_file::{DataLink, Endianness, PcapError};

/// Units of the interfaces' time, 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Longest frame that is kept.
const LONGEST: usize = 1 << 16;
/// Address and control, protocol of PAP, and its code Authenticate-Request (RFC 1334, section 2.2).
const PASSWORD: [u8; 5] = [0xff, 0x03, 0xc0, 0x23, 1];

/// Which way a frame goes: the first byte of LINKTYPE_PPP_WITH_DIR.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Received = 0,
    Sent = 1,
}

/// A capture that is being written. The first error ends it.
pub(super) struct Capture {
    writer: Option<PcapNgWriter<BufWriter<File>>>,
    /// Of each line and way.
    decoders: Vec<[Decoder; 2]>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").finish_non_exhaustive()
    }
}

impl Capture {
    pub(super) fn create<'a>(path: &Path, names: impl Iterator<Item = &'a str> + Clone) -> io::Result<Self> {
        let refused = |error: PcapError| io::Error::other(error.to_string());
        let section = SectionHeaderBlock { endianness: Endianness::Little, ..SectionHeaderBlock::default() };
        let mut writer =
            PcapNgWriter::with_section_header(BufWriter::new(File::create(path)?), section).map_err(refused)?;
        for name in names.clone() {
            let name = InterfaceDescriptionOption::IfName(Cow::Owned(name.to_owned()));
            let options = vec![name, InterfaceDescriptionOption::IfTsResol(NANOSECONDS)];
            let interface = InterfaceDescriptionBlock { linktype: DataLink::PPP_WITH_DIR, snaplen: 0, options };
            writer.write_pcapng_block(interface).map_err(refused)?;
        }
        let decoders = names.map(|_| [Decoder::new(LONGEST), Decoder::new(LONGEST)]).collect();
        Ok(Capture { writer: Some(writer), decoders })
    }

    /// Adds the frames that end in these bytes, with the wall clock. Passwords of PAP are left out.
    pub(super) fn add(&mut self, unix_us: u64, line: usize, way: Way, mut bytes: &[u8]) {
        while let (Some(writer), Some(frame)) = (&mut self.writer, self.decoders[line][way as usize].next(&mut bytes)) {
            let mut data = [&[way as u8], &frame[..]].concat();
            let behind = if frame.starts_with(&PASSWORD[..2]) { 0 } else { 2 };
            if frame.starts_with(&PASSWORD[behind..]) {
                data.truncate(1 + PASSWORD.len() - behind);
            }
            let block = EnhancedPacketBlock {
                interface_id: line as u32,
                timestamp: Duration::from_micros(unix_us),
                original_len: frame.len() as u32 + 1,
                data: Cow::Owned(data),
                options: Vec::new(),
            };
            let written = writer.write_pcapng_block(block).map(|_| ()).map_err(|error| error.to_string());
            if let Err(error) = written.and_then(|()| writer.get_mut().flush().map_err(|error| error.to_string())) {
                tracing::warn!(%error, "the capture ends here");
                self.writer = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use farlink_core::ppp::Accm;
    use farlink_core::ppp::hdlc::encode;

    use super::*;

    #[test]
    fn frames_are_kept_and_passwords_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.pcapng");
        let mut capture = Capture::create(&path, ["a", "b"].into_iter()).unwrap();
        for content in
            [&b"\xff\x03\xc0\x21echo"[..], b"\xff\x03\xc0\x23\x01\x01\x00\x10\x04ship\x06canary", b"\xc0\x23\x01canary"]
        {
            let mut bytes = Vec::new();
            encode(content, Accm::ALL, &mut bytes);
            let (first, second) = bytes.split_at(5);
            capture.add(1, 1, Way::Sent, first);
            capture.add(2, 1, Way::Sent, second);
        }
        drop(capture);
        let written = std::fs::read(&path).unwrap();
        let has = |text: &[u8]| written.windows(text.len()).any(|window| window == text);
        assert!(has(b"\x01\xff\x03\xc0\x21echo") && has(b"\xc0\x23\x01") && !has(b"canary"));
    }
}

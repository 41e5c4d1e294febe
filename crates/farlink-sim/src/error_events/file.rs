//! Error events on disk: a file per operating point, checked when it is read.
//!
//! Format: a line of text, a line of JSON with the operating point, the least and the mean gap (two little-endian f64), the
//! number of events (u64), and for each event the number of its wrong bits and the steps between them, in LEB128. The file ends
//! with a CRC-32 of all of it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use farlink_core::coding::OperatingPoint;
use farlink_fec::events::ErrorEvents;

/// The first line. It changes with every build whose code for collecting events differs; the number is the version of the format.
const HEADING: &str = concat!("farlink ", env!("CARGO_PKG_VERSION"), " error events 2, build ", env!("FARLINK_BUILD"));
/// The largest file that is read, in bytes, because a file must not decide how much memory is allocated. The largest library,
/// with 2e7 wrong bits, fits.
const LARGEST: u64 = 1 << 26;
const CHECKSUM_BYTES: usize = 4;

/// A folder of such files.
#[derive(Clone, Debug)]
pub(super) struct Folder(pub PathBuf);

impl Folder {
    /// The file of an operating point.
    pub(super) fn path(&self, point: &OperatingPoint) -> PathBuf {
        // The file contains the whole key, so two points with the same file name only overwrite each other.
        let key = crc32fast::hash(format!("{HEADING}\n{}", point.key()).as_bytes());
        self.0.join(format!("{}-{}dB-{key:08x}.events", point.code.kind(), point.ebn0_db.get()))
    }

    /// Reads the events of an operating point, if there is a file. A damaged file is not used.
    ///
    /// # Errors
    /// If the file cannot be used; the text says why.
    pub(super) fn read(&self, point: &OperatingPoint) -> Result<Option<ErrorEvents>, String> {
        let path = self.path(point);
        let refused = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let mut bytes = Vec::new();
        match std::fs::File::open(&path) {
            Ok(file) => file.take(LARGEST).read_to_end(&mut bytes).map_err(|error| refused(&error))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(&error)),
        };
        parse(&bytes, &point.key()).map(Some).map_err(|why| {
            let aside = path.with_extension("events.damaged");
            match std::fs::rename(&path, &aside) {
                Ok(()) => refused(&format!("{why}; set aside as {}", aside.display())),
                Err(_) => refused(&why),
            }
        })
    }

    /// Writes the events of an operating point. Readers see either the whole file or none.
    ///
    /// # Errors
    /// If the file cannot be written; the text says why.
    pub(super) fn write(&self, point: &OperatingPoint, events: &ErrorEvents) -> Result<(), String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let path = self.path(point);
        let bytes = serialise(events, &point.key());
        if bytes.len() as u64 > LARGEST {
            return Err(format!("{}: {} bytes are more than the {LARGEST} that are read", path.display(), bytes.len()));
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
        let write = || {
            std::fs::create_dir_all(&self.0)?;
            write_whole(&temporary, &bytes)?;
            std::fs::rename(&temporary, &path)
        };
        write().map_err(|error| {
            // If the temporary file cannot be removed either, it was not written.
            let _ = std::fs::remove_file(&temporary);
            format!("{}: {error}", path.display())
        })
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn serialise(events: &ErrorEvents, key: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(events.gap_min_bits().to_le_bytes());
    bytes.extend(events.gap_mean_bits().to_le_bytes());
    bytes.extend((events.len() as u64).to_le_bytes());
    for event in (0..events.len()).map(|at| events.event(at)) {
        push_number(&mut bytes, event.len() as u32);
        for pair in event.windows(2) {
            push_number(&mut bytes, pair[1] - pair[0]);
        }
    }
    sealed(&bytes, key)
}

/// A file with this content.
pub(super) fn sealed(content: &[u8], key: &str) -> Vec<u8> {
    let mut bytes = [format!("{HEADING}\n{key}\n").as_bytes(), content].concat();
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

/// Parses the bytes of a file; never panics.
pub(super) fn parse(bytes: &[u8], key: &str) -> Result<ErrorEvents, &'static str> {
    let (content, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or("it is too short")?;
    if crc32fast::hash(content) != u32::from_le_bytes(*checksum) {
        return Err("its checksum is wrong");
    }
    let mut rest = content
        .strip_prefix(format!("{HEADING}\n{key}\n").as_bytes())
        .ok_or("it holds something else than its name says")?;
    let gap_min = f64::from_le_bytes(take(&mut rest)?);
    let gap_mean = f64::from_le_bytes(take(&mut rest)?);
    let count = u64::from_le_bytes(take(&mut rest)?);
    let is_gap = gap_min >= 0.0 && gap_mean >= gap_min && gap_mean > 0.0;
    if !is_gap || (count > 0 && !gap_mean.is_finite()) {
        return Err("its gaps make no sense");
    }
    let mut positions = Vec::new();
    let mut ends = Vec::new();
    for _ in 0..count {
        let wrong = take_number(&mut rest)?;
        let mut at = 0_u32;
        for index in 0..wrong {
            if index > 0 {
                let step = take_number(&mut rest)?;
                at = at.checked_add(step).filter(|_| step > 0).ok_or("an event of it is too long")?;
            }
            positions.push(at);
        }
        if wrong == 0 {
            return Err("an event of it is empty");
        }
        ends.push(positions.len());
    }
    if !rest.is_empty() {
        return Err("it is longer than it says");
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    Ok(ErrorEvents::new(starts.zip(&ends).map(|(start, &end)| &positions[start..end]), gap_min, gap_mean))
}

const CUT: &str = "it ends too early";

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], &'static str> {
    let (taken, left) = rest.split_first_chunk().ok_or(CUT)?;
    *rest = left;
    Ok(*taken)
}

fn push_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(rest: &mut &[u8]) -> Result<u32, &'static str> {
    let mut number = 0_u64;
    for shift in (0..35).step_by(7) {
        let [byte] = take(rest)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(number).map_err(|_| "a number of it is too large");
        }
    }
    Err("a number of it is too large")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point(ebn0_db: f64) -> OperatingPoint {
        let json = format!(
            r#"{{"modulation": "qpsk", "decision": "soft", "ebn0_db": {ebn0_db},
                "code": {{"kind": "convolutional", "generators": "171,133"}}, "effort": {{"events": 100}}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    fn folder(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("farlink-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }

    fn events() -> ErrorEvents {
        ErrorEvents::new([&[0u32][..], &[0, 1, 300], &[0, u32::MAX]], 6.0, 812.25)
    }

    #[test]
    fn files_round_trip() {
        let folder = folder("events-round-trip");
        assert_eq!(folder.read(&point(3.0)), Ok(None));
        for events in [events(), ErrorEvents::new([], 6.0, f64::INFINITY)] {
            folder.write(&point(3.0), &events).unwrap();
            assert_eq!(folder.read(&point(3.0)), Ok(Some(events)));
        }
        assert_eq!(folder.read(&point(3.5)), Ok(None), "another point has another file");
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "no temporary file is left");
    }

    /// These checksums detect unintended changes of decoder, noise or choice of events. After an intended change, write down the
    /// new ones.
    #[test]
    fn events_match_the_stored_checksums() {
        let checksum = |ebn0_db| {
            let point = point(ebn0_db);
            let scheme = point.scheme().unwrap();
            let effort = farlink_fec::monte_carlo::Effort { events: Some(100), ..Default::default() };
            let library = farlink_fec::events::library(&scheme, ebn0_db, &effort, &|_, _| true).unwrap();
            let file = serialise(&library.events, "");
            crc32fast::hash(&file[HEADING.len()..file.len() - CHECKSUM_BYTES])
        };
        // Simulated, and importance-sampled.
        assert_eq!([checksum(3.0), checksum(6.0)], [2096044590, 283059299]);
    }

    #[test]
    fn a_file_of_another_point_is_ignored() {
        let folder = folder("events-swapped");
        folder.write(&point(3.0), &events()).unwrap();
        std::fs::rename(folder.path(&point(3.0)), folder.path(&point(4.0))).unwrap();
        assert!(folder.read(&point(4.0)).unwrap_err().contains("it holds something else than its name says"));
    }

    #[test]
    fn an_impossible_folder_is_an_error() {
        let file = folder("events-no-folder").0;
        std::fs::write(&file, "a file").unwrap();
        assert!(Folder(file.join("codes")).write(&point(3.0), &events()).is_err());
    }

    /// The content with a correct checksum, so that the checks after it are tested.
    fn checked(content: &[u8]) -> Vec<u8> {
        [content, &crc32fast::hash(content).to_le_bytes()].concat()
    }

    #[test]
    fn truncation_and_flipped_bits_are_detected() {
        let key = point(3.0).key();
        let whole = serialise(&events(), &key);
        for length in 0..whole.len() {
            assert!(parse(&whole[..length], &key).is_err(), "{length}");
            if length + CHECKSUM_BYTES < whole.len() {
                assert!(parse(&checked(&whole[..length]), &key).is_err(), "{length}, sealed");
            }
        }
        for bit in 0..whole.len() * 8 {
            let mut other = whole.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&other, &key).is_err(), "{bit}");
        }
        let mut endless = whole[..whole.len() - CHECKSUM_BYTES].to_vec();
        let gap_mean = HEADING.len() + key.len() + 2 + 8;
        endless[gap_mean..gap_mean + 8].copy_from_slice(&f64::INFINITY.to_le_bytes());
        assert_eq!(parse(&checked(&endless), &key), Err("its gaps make no sense"));
        let longer = checked(&[&whole[..whole.len() - CHECKSUM_BYTES], &[1]].concat());
        assert_eq!(parse(&longer, &key), Err("it is longer than it says"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_content_gives_events_or_an_error(mut content: Vec<u8>, gaps in proptest::array::uniform2(0.0..1e9f64), count in 0..9u64) {
            let key = point(3.0).key();
            let head = [gaps[0].to_le_bytes(), gaps[1].to_le_bytes(), count.to_le_bytes()].concat();
            let _ = parse(&checked(&[format!("{HEADING}\n{key}\n").as_bytes(), &head, &content].concat()), &key);
            content.splice(0..0, format!("{HEADING}\n{key}\n").into_bytes());
            let _ = parse(&checked(&content), &key);
        }
    }
}

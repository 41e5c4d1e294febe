//! The sender's list of files and folders with their names, sizes, modes and times, parents before children.
//!
//! An entry names its folder by that folder's index, so that a path cannot have a component that is no entry, and each
//! name is checked on its own.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use bytes::{Buf, BufMut};

use super::error::{FilesError, FormatError, Refusal};
use super::frame::MANIFEST_FRAME_BYTES;
use super::limits::{Limits, ReceiveOptions};
use super::names;
use super::printable::printable;

/// The parent of entries that stand in the receiver's directory itself.
const TOP: u32 = u32::MAX;

/// Parent, kind, mode, seconds, nanoseconds, size, length of the name.
const FIXED_BYTES: usize = 4 + 1 + 2 + 8 + 4 + 8 + 2;

/// The kind of frame that errors name.
const KIND: u8 = 0x01;

/// Permission bits: never setuid, setgid or sticky.
pub(super) const MODE_MASK: u16 = 0o777;

/// When a file was last modified, since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Modified {
    pub(super) seconds: i64,
    pub(super) nanoseconds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File { size: u64 },
}

/// One file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Index of the folder it stands in.
    pub(super) parent: Option<u32>,
    pub(super) name: OsString,
    pub(super) kind: Kind,
    pub(super) mode: u16,
    pub(super) modified: Modified,
}

impl Entry {
    /// Size of a file; `None` for a folder.
    pub(super) const fn size(&self) -> Option<u64> {
        match self.kind {
            Kind::File { size } => Some(size),
            Kind::Folder => None,
        }
    }
}

/// Every entry of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    entries: Vec<Entry>,
    total_bytes: u64,
}

impl Manifest {
    /// Adds an entry behind its folder and returns its index; `None` when there are too many or too much.
    pub(super) fn push(&mut self, entry: Entry) -> Option<u32> {
        let index = u32::try_from(self.entries.len()).ok().filter(|&index| index < TOP)?;
        self.total_bytes = self.total_bytes.checked_add(entry.size().unwrap_or(0))?;
        self.entries.push(entry);
        Some(index)
    }

    pub(super) fn get(&self, index: u32) -> Option<&Entry> {
        self.entries.get(usize::try_from(index).ok()?)
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("push bounds it")
    }

    pub(super) const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Entries with their indices.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &Entry)> {
        self.entries.iter().enumerate().map(|(index, entry)| (index as u32, entry))
    }

    /// Index of the first file at or behind this index.
    pub(super) fn next_file(&self, from: u32) -> Option<u32> {
        (from..self.len()).find(|&index| self.entries[index as usize].size().is_some())
    }

    /// The path of an entry, relative to the receiver's directory.
    pub(super) fn path(&self, index: u32) -> PathBuf {
        let mut names = Vec::new();
        let mut next = Some(index);
        while let Some(entry) = next.and_then(|index| self.get(index)) {
            names.push(&entry.name);
            next = entry.parent;
        }
        names.iter().rev().collect()
    }

    /// Bodies of the frames that carry it.
    pub(super) fn encode(&self) -> impl Iterator<Item = Vec<u8>> {
        let mut entries = self.entries.iter().peekable();
        std::iter::from_fn(move || {
            let mut body = Vec::new();
            while let Some(entry) = entries
                .next_if(|entry| body.len() + FIXED_BYTES + entry.name.len() <= MANIFEST_FRAME_BYTES || body.is_empty())
            {
                entry.encode(&mut body);
            }
            (!body.is_empty()).then_some(body)
        })
    }
}

impl Entry {
    fn encode(&self, body: &mut Vec<u8>) {
        body.put_u32(self.parent.unwrap_or(TOP));
        let (kind, size) = match self.kind {
            Kind::Folder => (0, 0),
            Kind::File { size } => (1, size),
        };
        body.put_u8(kind);
        body.put_u16(self.mode);
        body.put_i64(self.modified.seconds);
        body.put_u32(self.modified.nanoseconds);
        body.put_u64(size);
        // The operating system allows far less.
        body.put_u16(u16::try_from(self.name.len()).expect("names are short"));
        body.put_slice(self.name.as_encoded_bytes());
    }
}

/// Where an entry stands.
#[derive(Clone, Copy)]
struct Place {
    depth: u32,
    path_bytes: u32,
}

/// Builds a manifest from frames of a sender that nobody has reason to trust.
pub(super) struct Decoder {
    limits: Limits,
    case_sensitive: bool,
    manifest: Manifest,
    places: Vec<Place>,
    /// Names by folder, as [`names::fold`] has them.
    taken: BTreeSet<(u32, Vec<u8>)>,
    bytes: u64,
}

impl Decoder {
    pub(super) fn new(options: &ReceiveOptions) -> Self {
        Decoder {
            limits: options.limits.clone(),
            case_sensitive: options.case_sensitive,
            manifest: Manifest::default(),
            places: Vec::new(),
            taken: BTreeSet::new(),
            bytes: 0,
        }
    }

    /// Takes the body of one frame.
    ///
    /// # Errors
    ///
    /// The frame is against the format, or what it asks for against a limit.
    pub(super) fn frame(&mut self, mut body: &[u8]) -> Result<(), FilesError> {
        self.bytes = self.bytes.saturating_add(body.len() as u64);
        if self.bytes > self.limits.manifest_bytes {
            return Err(Refusal::new(
                format!("a manifest of {} bytes and more", self.bytes),
                format!("a manifest has at most {} bytes", self.limits.manifest_bytes),
                "send fewer files at a time, or raise the limit manifest_bytes",
            )
            .into());
        }
        while !body.is_empty() {
            self.entry(&mut body)?;
        }
        Ok(())
    }

    /// The manifest, if it is what the sender says at its end.
    ///
    /// # Errors
    ///
    /// The counts differ.
    pub(super) fn finish(self, entries: u32, bytes: u64) -> Result<Manifest, FormatError> {
        if (entries, bytes) == (self.manifest.len(), self.manifest.total_bytes) {
            Ok(self.manifest)
        } else {
            Err(FormatError::Fields(KIND))
        }
    }

    fn entry(&mut self, body: &mut &[u8]) -> Result<(), FilesError> {
        let fields = FormatError::Fields(KIND);
        if body.len() < FIXED_BYTES {
            return Err(fields.into());
        }
        let parent = body.get_u32();
        let kind = body.get_u8();
        let mode = body.get_u16();
        let modified = Modified { seconds: body.get_i64(), nanoseconds: body.get_u32() };
        let size = body.get_u64();
        let name_bytes = usize::from(body.get_u16());
        let name = body.split_off(..name_bytes).ok_or(fields)?;

        let kind = match (kind, size) {
            (0, 0) => Kind::Folder,
            (1, size) => Kind::File { size },
            _ => return Err(fields.into()),
        };
        if modified.nanoseconds >= 1_000_000_000 || mode & !MODE_MASK != 0 {
            return Err(fields.into());
        }
        names::check(name, self.limits.name_bytes as usize)?;
        let parent = match parent {
            TOP => None,
            index => match self.manifest.get(index) {
                Some(Entry { kind: Kind::Folder, .. }) => Some(index),
                _ => return Err(fields.into()),
            },
        };
        let place = self.place(parent, name_bytes)?;
        self.room_for(size)?;

        let folded = if self.case_sensitive { name.to_vec() } else { names::fold(name) };
        let is_new = self.taken.insert((parent.unwrap_or(TOP), folded));
        let entry = Entry { parent, name: OsString::from_vec(name.to_vec()), kind, mode, modified };
        let index = self.manifest.push(entry).ok_or(fields)?;
        self.places.push(place);
        if is_new {
            return Ok(());
        }
        Err(Refusal::new(
            format!("\"{}\"", printable(&self.manifest.path(index))),
            "another file of the same folder has this name, or one that differs by case alone",
            "rename one of them on the sending side, or receive with case_sensitive",
        )
        .into())
    }

    /// Where an entry of this folder would stand.
    fn place(&self, parent: Option<u32>, name_bytes: usize) -> Result<Place, Refusal> {
        let name_bytes = name_bytes as u32;
        let place = match parent.map(|index| self.places[index as usize]) {
            None => Place { depth: 1, path_bytes: name_bytes },
            Some(above) => Place {
                depth: above.depth.saturating_add(1),
                path_bytes: above.path_bytes.saturating_add(1).saturating_add(name_bytes),
            },
        };
        if place.depth > self.limits.depth {
            return Err(Refusal::new(
                format!("a path of {} components", place.depth),
                format!("a path has at most {} components", self.limits.depth),
                "send a folder further down, or raise the limit depth",
            ));
        }
        if place.path_bytes > self.limits.path_bytes {
            return Err(Refusal::new(
                format!("a path of {} bytes", place.path_bytes),
                format!("a path has at most {} bytes", self.limits.path_bytes),
                "send a folder further down, shorten names, or raise the limit path_bytes (4,095 at most)",
            ));
        }
        Ok(place)
    }

    /// Whether the limits leave room for one more entry of this size.
    fn room_for(&self, size: u64) -> Result<(), Refusal> {
        if self.manifest.len() >= self.limits.entries {
            return Err(Refusal::new(
                format!("more than {} files and folders", self.limits.entries),
                format!("a transfer has at most {} files and folders", self.limits.entries),
                "send fewer at a time, or raise the limit entries",
            ));
        }
        let total = self.manifest.total_bytes.saturating_add(size);
        if total > self.limits.total_bytes {
            return Err(Refusal::new(
                format!("files of {total} bytes and more"),
                format!("a transfer has at most {} bytes", self.limits.total_bytes),
                "send fewer files at a time, or raise the limit total_bytes",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Entries with parents before children, and names that are unique by their index.
    fn manifests() -> impl Strategy<Value = Manifest> {
        let entry = (
            any::<prop::sample::Index>(),
            prop::option::of(0..1_u64 << 20),
            0..=MODE_MASK,
            any::<i64>(),
            0..1_000_000_000_u32,
            "[a-z\u{e0}-\u{f0}]{0,40}",
        );
        prop::collection::vec(entry, 0..60).prop_map(|entries| {
            let mut manifest = Manifest::default();
            for (parent, size, mode, seconds, nanoseconds, name) in entries {
                let folders: Vec<Option<u32>> = std::iter::once(None)
                    .chain(
                        manifest.iter().filter(|(_, entry)| entry.kind == Kind::Folder).map(|(index, _)| Some(index)),
                    )
                    .collect();
                let name = format!("{}{name}", manifest.len()).into();
                let kind = size.map_or(Kind::Folder, |size| Kind::File { size });
                let parent = *parent.get(&folders);
                manifest.push(Entry { parent, name, kind, mode, modified: Modified { seconds, nanoseconds } }).unwrap();
            }
            manifest
        })
    }

    fn decode(frames: impl Iterator<Item = Vec<u8>>, entries: u32, bytes: u64) -> Result<Manifest, FilesError> {
        let mut decoder = Decoder::new(&ReceiveOptions::default());
        for frame in frames {
            decoder.frame(&frame)?;
        }
        Ok(decoder.finish(entries, bytes)?)
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(manifest in manifests()) {
            let decoded = decode(manifest.encode(), manifest.len(), manifest.total_bytes()).unwrap();
            prop_assert_eq!(decoded, manifest);
        }

        /// Whatever comes of changed bytes keeps the rules of paths.
        #[test]
        fn changed_bytes_never_panic_nor_lead_out(
            manifest in manifests(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut bytes = manifest.encode().next().unwrap_or_default();
            for (at, value) in changes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = value;
                }
            }
            let mut decoder = Decoder::new(&ReceiveOptions::default());
            let _ = decoder.frame(&bytes);
            for (index, _) in decoder.manifest.iter() {
                for component in decoder.manifest.path(index).components() {
                    prop_assert!(matches!(component, std::path::Component::Normal(_)));
                }
            }
        }

        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let _ = Decoder::new(&ReceiveOptions::default()).frame(&bytes);
        }
    }

    #[test]
    fn long_manifests_are_split_between_entries() {
        let mut manifest = Manifest::default();
        for index in 0..3_000 {
            let name = format!("{index:0200}").into();
            let modified = Modified { seconds: 0, nanoseconds: 0 };
            manifest.push(Entry { parent: None, name, kind: Kind::Folder, mode: 0, modified }).unwrap();
        }
        let frames: Vec<_> = manifest.encode().collect();
        assert!(frames.len() > 10 && frames.iter().all(|frame| frame.len() <= MANIFEST_FRAME_BYTES));
        assert_eq!(decode(frames.into_iter(), 3_000, 0).unwrap(), manifest);
    }
}

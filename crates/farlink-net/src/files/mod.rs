//! Files and folders over one stream of bytes, in order and without loss; a transfer that was cut goes on later.
//!
//! [`send_files`] and [`receive_files`] are the two ends. `docs/files-format.md` has every layout; in short,
//! big-endian:
//!
//! Each side begins with `FARFILES` and a version (u16). Then come frames: kind (u8), length of the body (u32), body.
//! No frame is longer than 1 MiB and 37 bytes.
//!
//! | from | frame | body |
//! |---|---|---|
//! | sender | manifest | entries: folder (u32), kind, mode, time, size, name |
//! | sender | manifest end | entries (u32), bytes (u64) |
//! | receiver | nothing | first file (u32), files (u32): send them from the beginning |
//! | receiver | claim | file (u32), length (u64), SHA-256 of that much, whether anything else is wanted (u8) |
//! | sender | begin | file (u32), offset (u64): 0 or the length of the claim |
//! | sender | chunk | SHA-256, 1 byte to 1 MiB |
//! | sender | end | SHA-256 of the whole file |
//! | sender | abandon, differs | file (u32), reason |
//! | receiver | verdict | file (u32), outcome (u8), reason |
//! | sender, receiver | done, finished | |
//! | both | refuse | whose fault (u8), reason: the transfer ends |
//!
//! **Why in this order.** The manifest has no hashes, so that nothing is read twice: a chunk's hash goes with the
//! chunk, the file's with its end. To resume, the receiver claims the beginning of a file with the SHA-256 of what its
//! disk has; the sender reads as much of its own file, and agrees only if the hash is the same. That hash is then also
//! the beginning of the whole file's. A file that stands under its name is a claim of its whole length. Data begins
//! after one round trip, and no later round trip is waited for.
//!
//! **What survives.** `.farlink-partial` in the receiver's directory has what is incomplete, in the same file system,
//! so that a complete file gets its name by one rename. Data is fsynced every 64 MB or 2 s, whichever is first.
//!
//! **Memory.** For each entry of the manifest at most about 400 bytes and three times its name, and less than 16 MB of
//! buffers.

#![expect(clippy::disallowed_methods, reason = "data is fsynced as real time passes")]

mod beneath;
mod digest;
mod directory;
mod durable;
mod error;
mod frame;
#[cfg(fuzzing)]
mod fuzzing;
mod limits;
mod manifest;
mod names;
mod printable;
mod receiving;
mod sending;
mod source;
mod store;
mod summary;
mod tree;

pub use error::{FilesError, FormatError, Refusal};
#[cfg(fuzzing)]
pub use fuzzing::frames;
pub use limits::{Limits, ReceiveOptions, SendOptions, SpecialFiles};
pub use names::WORK_FOLDER;
pub use printable::printable;
pub use receiving::receive_files;
pub(crate) use receiving::receive_files_in_turn;
pub use sending::send_files;
pub use summary::{Failure, LeftOut, Named, Progress, Summary};

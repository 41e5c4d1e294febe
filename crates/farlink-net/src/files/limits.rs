//! Limits of a receiver, against a sender that is not trusted with its disk and memory.

/// Bounds on what one transfer may bring.
///
/// The manifest is held in memory: at most about 400 bytes for each of `entries` and three times `manifest_bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sum of the sizes of all files, in bytes.
    pub total_bytes: u64,
    /// Number of files and folders.
    pub entries: u32,
    /// Components of a path.
    pub depth: u32,
    /// Bytes of a component.
    pub name_bytes: u32,
    /// Bytes of a path below the receiver's directory, separators included. Linux takes at most 4,095.
    pub path_bytes: u32,
    /// Bytes of the whole manifest on the wire.
    pub manifest_bytes: u64,
}

impl Default for Limits {
    /// 1 TiB in 200,000 files and folders, 64 levels, names of 255 bytes, paths of 3,800 bytes, a manifest of 16 MiB.
    fn default() -> Self {
        Limits {
            total_bytes: 1 << 40,
            entries: 200_000,
            depth: 64,
            name_bytes: 255,
            path_bytes: 3_800,
            manifest_bytes: 16 << 20,
        }
    }
}

/// How a receiver receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiveOptions {
    /// Limits of what it takes.
    pub limits: Limits,
    /// Whether a file replaces another one of its name whose bytes differ. If not, that file fails and the others go
    /// on.
    pub overwrite: bool,
    /// Whether names in one folder may differ by case alone. The receiver's file system must then tell them apart.
    pub case_sensitive: bool,
}

/// How a sender sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// Treatment of symbolic links, devices, sockets and pipes below the paths to send.
    pub special: SpecialFiles,
}

/// How a sender treats paths that are neither files nor folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecialFiles {
    /// Leaves them out and names them in the summary.
    #[default]
    Skip,
    /// Refuses to send anything.
    Refuse,
}

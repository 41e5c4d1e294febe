//! A bundle over IP paths: packets of users go over several paths of any kind, each with acknowledgements of its own.
//!
//! One end is a [`PathBundle`]. It owns no socket, clock or key: a driver seals its [`Packet`]s and sends them over the path that it
//! names. Reading order: [`packet`](Packet) (what is sent), `path` (one path), `control` (how fast it is sent into), `sending` (which
//! path a packet takes), `lanes` (the receiver). `docs/design/ip-paths.md` has the reasons.

mod budget;
mod bundle;
mod config;
mod control;
mod estimate;
mod flight;
mod lanes;
#[cfg(test)]
mod model;
mod outlook;
mod packet;
mod path;
pub(crate) mod queue;
mod received;
mod receiving;
mod repeats;
mod sending;

pub use bundle::{BundleStats, Event, PathBundle};
pub use config::{CLASSES, ClassRules, MOST_PATHS, PathBundleConfig, PathRules, Policy, SEAL_BYTES};
pub use lanes::Delivery;
pub use packet::{
    Acknowledgement, DATA_BYTES, Data, Frame, HEADER_BYTES, LANES, PIECE_BYTES, Packet, Ranges, Stamp, Ticks,
};
pub use path::{Cause, PathId, PathState, PathStats};

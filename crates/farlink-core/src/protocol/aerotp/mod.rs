//! AeroTP, the transport protocol of airborne telemetry (Pathapati et al.), complete as `docs/aerotp.md` specifies it.
//!
//! A connection opens with its first data, so that data never waits for a handshake. The mode decides how data is protected:
//! [`Sending`](sending::Sending) and [`Receiving`](receiving::Receiving) have one variant for each family of modes.
//!
//! One idea per file: the typed [`Segment`], the [`Fec`] in a packet, the modes ([`Mode`]), the states of a connection
//! ([`Lifecycle`](lifecycle::Lifecycle)), the [`Connection`] that combines them, the [`Acceptor`] that makes one for each peer of a
//! host and [`Side`], its form for one peer at a time, and a folder for each family of modes.
//!
//! Normative sentences have numbers in the specification; code cites them as `[C3]`.

#[cfg(feature = "trains")]
mod absorbed;
mod acceptor;
mod admission;
mod amplification;
mod clock;
mod coded;
mod config;
mod connection;
pub(crate) mod distances;
mod echo;
mod fec;
mod forward;
mod incoming;
mod lifecycle;
mod loss;
mod mack_fields;
mod mode;
mod mode_change;
mod open_loop;
mod outgoing;
mod packet_size;
mod parity;
mod peer;
mod rate;
mod rate_control;
mod receiving;
mod reliable;
mod reordering;
mod room;
mod round_trip;
mod segment;
mod sending;
mod side;
mod skipped_data;
mod way_back;
mod window_requests;
mod write_times;

#[cfg(feature = "trains")]
pub use absorbed::Absorbed;
pub use acceptor::{Acceptor, AcceptorLimits, Handle, Refused};
pub use coded::Coded;
pub use config::{AerotpConfig, Opens, PacketLength};
pub use connection::{Connection, Dropped, SwitchError};
pub use fec::Fec;
pub use lifecycle::{Lifecycle, State};
pub use mode::Mode;
pub use mode_change::ModeChange;
pub use open_loop::{AdaptiveFec, Erasure, Service};
pub use rate::CommonRate;
pub use rate_control::RateControl;
pub use segment::{Edges, Flags, Mack, Repair, Segment};
pub use side::Side;

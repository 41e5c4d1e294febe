//! Sans-IO building blocks of farlink: the effects of a link on frames, and the protocols that run over it.
//!
//! Nothing here owns a socket, a clock, a thread or a global random source. Time is an argument
//! ([`Time`]), randomness a seeded stream ([`Rng`]). The packet engine drives the same state machines in virtual time
//! that a network layer drives over sockets.
//!
//! Reading order: [`endpoint`] (the contract of every protocol), [`channel`], [`link`] and [`hop`] (the contract of
//! everything that loses or delays frames), then one protocol, for example [`protocol::tcp`].
#![forbid(unsafe_code)]

pub mod agenda;
pub mod bundle;
pub mod channel;
pub mod coding;
mod config_error;
pub mod correction;
pub mod emulator;
pub mod endpoint;
pub mod event;
pub mod gateway;
pub mod histogram;
pub mod hop;
pub mod link;
pub mod optics;
mod origin;
mod packet_size;
pub mod path;
pub mod paths;
pub mod payload;
pub mod ppp;
pub mod protocol;
pub mod registry;
pub mod rng;
pub mod scenario;
pub mod time;
pub mod trace;
pub mod tuning;
pub mod turns;
pub mod units;
pub mod wire;

pub use config_error::ConfigError;
pub use correction::PacketCode;
pub use endpoint::{Class, Damage, Ecn, Endpoint, Integrity, LinkHint, Packet, Rx, Stream, Transmit};
pub use event::Event;
pub use origin::OriginShift;
pub use payload::{Payload, Virtual};
pub use rng::Rng;
pub use time::Time;
pub use units::{BitRate, Probability};

//! The coded reliable mode: what is lost is made good by repair symbols of a fountain code, of which any will do
//! (`docs/design/aerotp-coded.md`).
//!
//! Data goes out as it is, in symbols of one size; some hundreds or thousands of them are a block of RaptorQ (RFC 6330). The
//! receiver says how many symbols each block still wants, not which. So the sender needs no answer for each symbol that was
//! lost a second time: it sends as many as are [`needed`](needed::needed) for the block to be complete with a set probability,
//! at the [`Loss`](super::loss::Loss) measured so far, and before the first answer adds what the expected loss asks for.
//!
//! One idea per file: how many symbols are needed, a block as its sender ([`Outbound`](outbound::Outbound)) and as its
//! receiver ([`Inbound`](inbound::Inbound)) has it, and the two halves of a stream.

mod config;
mod inbound;
mod needed;
mod outbound;
mod receiver;
mod sender;

pub use config::Coded;
pub(super) use receiver::Receiver;
pub(super) use sender::Sender;

/// Source symbols of a block, at most: what decoding it costs is bounded. `[K2]`, `[K4]`
const MOST_SYMBOLS: u64 = 8192;

//! The coded reliable mode: lost data is recovered from repair symbols of a fountain code, of which any can be used
//! (`docs/design/aerotp-coded.md`).
//!
//! Data is sent unchanged, in symbols of equal size; some hundreds or thousands of them make a block of RaptorQ (RFC 6330). The
//! receiver reports how many symbols each block still needs, not which ones. Thus the sender does not wait for a report on each
//! symbol that is lost a second time: it sends as many as are [`needed`](needed::needed) to complete the block with a given
//! probability, at the [`Loss`](super::loss::Loss) measured so far. Before the first answer it adds symbols for the expected
//! loss.
//!
//! One idea per file: the number of symbols needed, a block at its sender ([`Outbound`](outbound::Outbound)) and at its receiver
//! ([`Inbound`](inbound::Inbound)), and the two halves of a stream.

mod config;
mod inbound;
mod needed;
mod outbound;
mod receiver;
mod sender;

pub use config::Coded;
pub(super) use receiver::Receiver;
pub(super) use sender::Sender;

/// Largest number of source symbols of a block, which bounds the cost of decoding. `[K2]`, `[K4]`
const MOST_SYMBOLS: u64 = 8192;

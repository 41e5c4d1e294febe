//! Automatic repeat request: stop-and-wait, go-back-N and selective repeat, as in link layers.
//!
//! Data is cut into numbered frames of at most `segment_bytes`. The receiver acknowledges frames, and the sender retransmits
//! those whose acknowledgement does not arrive in time (or that the receiver requests by number). There is no congestion control
//! and no handshake; the end of a stream is a frame of its own, acknowledged like all others.
//!
//! One idea per file: [`Numbers`](number::Numbers) that wrap, [`Ranges`](ranges::Ranges) of frames, the
//! [`Sender`](sender::Sender), the [`Receiver`](receiver::Receiver), the decoding of several damaged copies of a frame together
//! ([`Partial`](combine::Partial)), the [`Length`](crate::protocol::parts::length) of frames where it varies, and the [`Station`]
//! that combines these.
//!
//! Sources: M. Schwartz, Telecommunication Networks (1987), chapter 4; B. Epple, Performance optimization of free-space optical
//! communication protocols, sections 3 and 4, for the limits of selective acknowledgements; D. Mandelbaum, An adaptive-feedback
//! coding scheme using incremental redundancy, IEEE Trans. Inf. Theory 20 (1974), for type II hybrid ARQ.

mod combine;
mod config;
mod frame;
mod number;
mod ranges;
mod receiver;
mod sender;
mod station;

pub use crate::protocol::parts::length::{AdaptiveLength, Estimate, LengthRule};
pub use config::{Acknowledgement, ArqConfig, Incremental, Mode, TimerSide};
pub use frame::{Block, Blocks, Flags, Frame};
pub use station::Station;

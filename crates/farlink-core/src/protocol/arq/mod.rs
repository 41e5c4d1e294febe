//! Automatic repeat request: stop-and-wait, go-back-N and selective repeat, as link layers have them.
//!
//! Data is cut into numbered frames of at most `segment_bytes`. The receiver acknowledges frames, the sender repeats those
//! whose acknowledgement does not come in time (or that the receiver asks for by name). There is no congestion control and no
//! handshake; the end of a stream is a frame of its own, acknowledged like all others.
//!
//! One idea per file: [`Numbers`](number::Numbers) that wrap, [`Ranges`](ranges::Ranges) of frames, the
//! [`Sender`](sender::Sender), the [`Receiver`](receiver::Receiver), what several damaged copies of a frame are worth together
//! ([`Partial`](combine::Partial)), the [`Length`](crate::protocol::parts::length) of frames where it varies, and the [`Station`] that is made of these.
//!
//! Sources: M. Schwartz, Telecommunication Networks (1987), chapter 4; B. Epple, Performance optimization of free-space optical
//! communication protocols, sections 3 and 4, for the limits of selective acknowledgements; D. Mandelbaum, An
//! adaptive-feedback coding scheme using incremental redundancy, IEEE Trans. Inf. Theory 20 (1974), for the second kind of
//! hybrid.

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
pub use frame::{Block, Blocks, Flags, Frame, PlainFrame};
pub use station::Station;

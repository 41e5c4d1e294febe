//! Custody: streams that are passed on from node to node, each of which acknowledges what it has on its disk. The mode near-reliable of
//! `docs/aerotp.md`, [N1] to [N6].
//!
//! A [`Source`] hands a stream to the first gateway, and is done when that has kept all of it. Gateways pass it on to each other and to a
//! [`Sink`], whatever happens to them meanwhile. `docs/gateway-protocol.md` says what stands in the streams between nodes, `[T14]` and so on.
//!
//! | part | task |
//! |---|---|
//! | `frame`, `link` | what stands in a stream between nodes |
//! | `record`, `store`, `medium`, `folder` | what a gateway has on its disk |
//! | `outgoing` | passes a stream on to the next node |
//! | `node` | one stream at a gateway |
//! | `relay` | all streams of a gateway |
//! | [`Source`], [`Sink`] | both ends |

mod counts;
mod folder;
mod frame;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod link;
mod medium;
#[cfg(any(test, fuzzing))]
mod model;
mod node;
mod outgoing;
mod record;
mod relay;
mod sink;
mod source;
mod store;
mod stream;
#[cfg(any(test, fuzzing))]
mod test_disk;
#[cfg(test)]
mod tests;
mod usage;

pub use crate::framing::Malformed;
pub use folder::StoreError;
pub use frame::{Frame, Frames, Refusal};
pub(crate) use relay::{Bounds, Relay, Routes};
pub use sink::{Piece, Sink, SinkStream};
pub use source::{Source, SourceError};
pub use stream::{Label, NoLabel, StreamId};

use farlink_core::protocol::aerotp::Mode;

use crate::io::Endpoint;

/// The port of streams in custody within a session. `[T14]`
pub const PORT: u16 = 7;

/// The same socket, whose connections are near-reliable. `[N1]`
pub(crate) fn near_reliable(endpoint: &Endpoint) -> Endpoint {
    endpoint.with_connections(|connection| connection.mode = Mode::NearReliable)
}

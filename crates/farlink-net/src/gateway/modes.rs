//! Which port of a session a mode has, and what its connections are like.

use std::time::Duration;

use farlink_core::protocol::aerotp::{Erasure, Mode as OfConnection};
use farlink_core::units::{Count, PositiveSeconds, Whole};

use crate::io::Endpoint;

use super::rules::Mode;

/// The port of TCP's connections and of datagrams within a session; files have 1, streams 2. `[T1]`, `[T11]`
pub(super) const PORT: u16 = 3;
/// Modes of datagrams in connections.
pub(super) const MODES: [Mode; 3] = [Mode::Reliable, Mode::QuasiReliable, Mode::Unreliable];

/// Half as many bytes again for repair: of a block of twelve packets four may be lost. Datagrams are shorter than packets and go out one
/// by one, so that a block has more packets than these. A block that does not fill up closes after this time.
const SOURCE_PACKETS: f64 = 8.0;
const REPAIR_PACKETS: f64 = 4.0;
const BLOCK_S: f64 = 0.05;

/// The port of a mode within a session, and the endpoint that opens and takes its connections. `[T12]`
pub(super) fn place(endpoint: &Endpoint, mode: Mode, deadline: Option<Duration>) -> (u16, Endpoint) {
    let (port, of_connection) = match mode {
        Mode::Reliable | Mode::Datagram => (PORT + 1, OfConnection::Reliable),
        Mode::QuasiReliable => (PORT + 2, OfConnection::QuasiReliable),
        Mode::Unreliable => (PORT + 3, OfConnection::Unreliable),
    };
    let endpoint = endpoint.with_connections(|connection| {
        connection.mode = of_connection;
        connection.deadline_s = deadline.and_then(|it| PositiveSeconds::new(it.as_secs_f64()).ok());
        if mode == Mode::QuasiReliable {
            connection.erasure = Some(erasure());
            // Parity corrects damaged packets, which only some links deliver: those have it in all modes.
            connection.fec_words = connection.fec_words.or(Whole::new(0.0).ok());
        }
        if mode == Mode::Unreliable {
            connection.fec_words = None;
        }
    });
    (port, endpoint)
}

fn erasure() -> Erasure {
    let count = |count| Count::new(count).expect("a constant within its range");
    let timeout_s = PositiveSeconds::new(BLOCK_S).expect("a constant within its range");
    Erasure { source: count(SOURCE_PACKETS), repair: count(REPAIR_PACKETS), timeout_s }
}

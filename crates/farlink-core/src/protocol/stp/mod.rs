//! The Satellite Transport Protocol (STP) as a sans-IO state machine.
//!
//! T. R. Henderson and R. H. Katz, "Satellite Transport Protocol (STP): An SSCOP-based Transport Protocol for Datagram Satellite
//! Networks", WOSBIS 1997, made ITU-T Recommendation Q.2110 (SSCOP) a transport over IP. This module implements SSCOP's data
//! transfer, in which the receiver sends no acknowledgements by itself. The sender polls from time to time (POLL), and the
//! receiver answers with a list of all missing data (STAT); it also reports each new gap once without a POLL (USTAT). For each
//! packet the sender keeps the number of the POLL before it. It retransmits the packet only if the answer to a later POLL lists
//! it as missing, so that no retransmission is repeated before a STAT can have seen it.
//!
//! Differences from SSCOP: positions count bytes in 32 bits, because packets may have different lengths. POLL and STAT carry the
//! sender's clock there and back, so that every answer is a round-trip sample. END carries the end of the stream and waits for
//! missing data, whereas SSCOP's END discards it. The RTO replaces SSCOP's Timer_CC and Timer_NO-RESPONSE.

mod config;
mod congestion;
mod connection;
mod pdu;
mod polling;
mod receiver;
mod sender;

pub use config::{RateControl, StpConfig};
pub use connection::StpConnection;
pub use pdu::{Kind, Pdu, Range, Report};

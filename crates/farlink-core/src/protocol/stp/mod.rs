//! The Satellite Transport Protocol (STP) as a sans-IO state machine.
//!
//! T. R. Henderson and R. H. Katz, "Satellite Transport Protocol (STP): An SSCOP-based Transport Protocol for Datagram
//! Satellite Networks", WOSBIS 1997, made ITU-T Recommendation Q.2110 (SSCOP) a transport over IP. What is built here is
//! SSCOP's data transfer: the receiver acknowledges nothing by itself. The sender asks from time to time (POLL), the receiver
//! answers with all that is missing (STAT), and reports a new gap once unasked (USTAT). Each packet remembers the number of
//! the POLL before it; it is sent again only if a later POLL's answer still misses it, so that no retransmission is repeated
//! before a STAT can know of it.
//!
//! What differs from SSCOP: the stream has byte numbers, as the paths below need not deliver packets of one size, and
//! 32 bits of them; POLL and STAT carry the sender's clock there and back, so that every answer is a round-trip sample; END
//! says where the stream ends and waits for data that is missing, where SSCOP's END discards it. The RTO stands for SSCOP's
//! Timer_CC and Timer_NO-RESPONSE.

mod config;
mod congestion;
mod connection;
mod pdu;
mod polling;
mod receiver;
mod sender;

pub use config::{RateControl, StpConfig};
pub use connection::Connection;
pub use pdu::{Kind, Pdu, PlainPdu, Range, Report};

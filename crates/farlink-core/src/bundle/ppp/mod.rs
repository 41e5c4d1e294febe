//! PPP on a line of a bundle: the exchange that sets it up, and the echoes by which an end finds out that its call has dropped.
//!
//! Both follow pppd 2.4.3 to 2.5 (`fsm.c`, `lcp.c`, `upap.c`), which implements RFC 1661 and RFC 1334.

mod config;
mod echo;
mod end;
mod negotiation;
mod set_up;

pub use config::{Authentication, EchoConfig, PppConfig};

pub(super) use echo::Echo;
pub(super) use set_up::{Outcome as SetUpOutcome, Ppp};

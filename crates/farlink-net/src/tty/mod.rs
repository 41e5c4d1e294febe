//! A bundle of PPP lines ([`farlink_core::ppp`]) over serial ports, pseudo-terminals and Unix sockets, with a TUN device for its packets.
//!
//! [`TtyConfig`] is read from TOML; [`Driver`] runs it. Each port has a task that opens it, again after each loss of carrier, and writes
//! no faster than the line sends ([`port`]), so that what waits is known here and not in a modem's buffer.

mod config;
mod driver;
mod error;
mod port;
mod tun;

pub use config::{Line, PeerKeys, TtyConfig};
pub use driver::Driver;
pub use error::TtyError;
pub use port::Place;
pub use tun::Tun;

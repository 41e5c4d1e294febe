//! A bundle of PPP lines ([`farlink_core::ppp`]) over serial ports, pseudo-terminals and Unix sockets, with a TUN device for its packets.
//!
//! Each port has a task that opens it, again after each loss of carrier, and writes no faster than the line sends ([`port`]), so that what
//! waits is known here and not in a modem's buffer.
//!
//! | part | task |
//! |---|---|
//! | [`TtyConfig`] | the TOML file, checked (`raw`: its keys; `secrets`: the file of secrets) |
//! | [`TtyBundle`] | starts: helper, device; then no capability is left |
//! | `running` | follows what happens: addresses, routes, metrics, terminals that are handed over |
//! | `driver` | moves bytes, packets and time |
//! | `port`, `tun` | one line's port, and the device |
//! | `events`, `metrics`, `capture` | what users see |

mod capture;
mod config;
mod driver;
mod error;
mod events;
mod metrics;
mod orders;
mod port;
mod raw;
mod running;
mod secrets;
mod start;
mod tun;

pub use config::{Line, TtyConfig};
pub use error::TtyError;
pub use events::Event;
pub use port::Place;
pub(crate) use port::{Said, run as run_port};
pub(crate) use raw::usual_baud;
pub use start::TtyBundle;

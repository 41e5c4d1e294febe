//! The path of a scenario in real time: what decides about packets is [`farlink_core::emulator`]; here are the clock, the sockets and the
//! devices.
//!
//! [`run`] drives a path between the two ends of a [`Line`]: [`Relay`] between UDP sockets, `Tunnel` between TUN devices on Linux. It takes the
//! calling thread, which may have a real-time priority; another thread may look at it and stop it through a [`Watch`].

mod driver;
mod error;
mod relay;
mod report;
#[cfg(target_os = "linux")]
mod tunnel;
mod waiting;

pub use driver::{Line, Settings, Watch, run};
pub use error::EmulateError;
pub use relay::{Relay, RelaySettings};
pub use report::{Lateness, Report, WayReport};
#[cfg(target_os = "linux")]
pub use tunnel::{Classes, Tunnel};

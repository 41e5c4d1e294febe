//! Sockets and clocks: the only part that touches the operating system's network.

mod clock;
mod datagrams;
mod driver;
mod endpoint;
mod shared;
mod socket;
mod sockets;
mod stream;
mod timer;

#[cfg(target_os = "linux")]
pub(crate) use clock::{Clock, unix_us};
pub use endpoint::{BindError, Endpoint, EndpointConfig};
pub(crate) use shared::UNSENT_BYTES;
#[cfg(target_os = "linux")]
pub(crate) use socket::{Buffer, Socket};
pub use stream::Connection;
pub(crate) use stream::Watch;
#[cfg(target_os = "linux")]
pub(crate) use timer::Timer;

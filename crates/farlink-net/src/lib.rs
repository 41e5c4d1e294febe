//! AeroTP over UDP, sealed: the state machines of `farlink-core` between real hosts.
//!
//! [`seal`] has keys and handshake, [`mux`] sessions and connections without a socket, [`files`] what sends files over a stream,
//! [`state`] the files of a host, [`transfer`] all of it together, [`streams`] the same without files, [`handover`] with gateways that have
//! custody between.
//! [`emulate`] plays the path of a scenario in real time, `live` its flows over it.
//! An application uses [`Endpoint`] and [`Connection`].

#[cfg(target_os = "linux")]
pub mod bundle;
mod config_file;
pub mod custody;
pub mod emulate;
pub mod files;
mod framing;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod gateway;
pub mod handover;
mod io;
#[cfg(target_os = "linux")]
pub mod live;
#[cfg(target_os = "linux")]
mod mss;
pub mod mux;
#[cfg(target_os = "linux")]
pub mod privileged;
mod remedy;
pub mod seal;
mod settings;
pub mod state;
pub mod streams;
pub mod transfer;
#[cfg(target_os = "linux")]
pub mod tty;

pub use config_file::ConfigFault;
pub use io::{BindError, Connection, Endpoint, EndpointConfig};
pub use settings::{Insecure, PathSettings};

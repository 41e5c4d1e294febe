//! The one part of a bundle that may change the network: a small process with CAP_NET_ADMIN and nothing else.
//!
//! The bundle's own process drops every capability ([`drop_all`]) once it has started this one. What it still needs for as long as it
//! lives, it asks for over a pair of Unix sockets, in five typed requests ([`Request`]): a TUN device, its addresses, routes through it,
//! its MTU, and UDP sockets bound to an interface or an address. Each is checked; everything else ends the helper. Why it is so:
//! `docs/design/bundle-helper.md`.
//!
//! | part | task |
//! |---|---|
//! | `request` | the requests and their rules |
//! | `channel` | messages with file descriptors over the socket |
//! | `rights` | capabilities that are dropped |
//! | `network` | what the helper asks of the kernel, by netlink |
//! | `server` | the helper |
//! | `client` | its other end |

pub(crate) mod channel;
mod client;
mod error;
mod network;
mod request;
mod rights;
mod server;

pub use client::Helper;
pub(crate) use client::end_of;
pub use error::PrivilegedError;
pub(crate) use request::check_requests;
pub use request::{Change, DeviceName, LONGEST_MTU, Request, SHORTEST_MTU};
pub use rights::drop_all;
pub(crate) use rights::may_change_network;
pub use server::serve;

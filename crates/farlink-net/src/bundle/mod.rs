//! A bundle of IP paths on a real machine: sealed datagrams over several sockets, and a TUN device at either end.
//!
//! The packets are those of [`farlink_core::paths`], which decides what goes over which path; `docs/bundle-protocol.md` says what stands
//! around them. One end calls, from an interface for each path; the other one listens.
//!
//! | part | task |
//! |---|---|
//! | [`Config`], [`PathConfig`] | the TOML file, checked; `raw` has its keys |
//! | [`session`] | keys, and where the peer is on each path; no socket, no clock |
//! | [`Bundle`] | starts: helper, device, routes; then no capability is left |
//! | `driver` | moves packets between device, bundle, session and sockets |
//! | `outbox` | datagrams of one path that the kernel takes at once |
//! | `serial` | paths over serial lines |
//! | `interfaces`, `ways` | interfaces that come, go and change their addresses |
//! | `reload` | another configuration while it runs |
//! | `together` | several peers in one process |
//! | `flow` | flow and class of a packet |
//! | `events`, `metrics`, `capture` | what users see |

mod capture;
mod config;
mod driver;
mod error;
mod events;
pub(crate) mod flow;
mod interfaces;
pub(crate) mod metrics;
mod outbox;
mod path_config;
mod raw;
mod reload;
mod serial;
pub mod session;
mod start;
mod together;
mod ways;

pub use config::{At, Config, Peer, USUAL_CLASS};
pub use driver::Control;
pub use error::BundleError;
pub use events::Event;
pub use path_config::PathConfig;
pub use raw::Tun;
pub use start::Bundle;
pub use together::check as check_together;

//! Gateways: TCP and UDP of applications that know nothing of it, over sealed sessions between two hosts.
//!
//! `docs/gateway-protocol.md` says what stands in the streams between gateways, `[T1]` and so on; `docs/design/gateway-service.md` why.
//!
//! | part | task |
//! |---|---|
//! | [`Config`] | the TOML file, checked; `allow` and `special` decide what a peer may reach |
//! | `frame` | what stands in a stream between gateways |
//! | `near`, `socks`, `http`, `transparent`, `udp` | clients: which connection they want |
//! | `requests`, `openings` | which of them give way, and wait, when there are many |
//! | `ready` | sessions that are open before they are needed |
//! | `rules` | how what goes to some destinations is treated: class, mode, deadline |
//! | `modes`, `messages`, `message_flows` | datagrams in connections |
//! | `far` | destinations: resolved, checked, connected |
//! | `tunnel` | carries one TCP connection, with its ends and resets |
//! | `custody` | which streams are taken into [custody](crate::custody) |
//! | [`run`] | all of it together: starts whole, reloads, drains |

mod allow;
mod check;
mod config;
mod core;
mod custody;
mod destination;
mod dscp;
mod error;
mod far;
mod fields;
mod flows;
mod frame;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod http;
mod message_flows;
mod messages;
mod metrics;
mod modes;
mod near;
mod openings;
mod passwords;
mod ready;
mod requests;
mod routes;
mod rules;
mod service;
mod socks;
mod special;
mod transparent;
mod tunnel;
mod udp;

pub use crate::framing::Malformed;
pub use allow::{AllowList, Entry, NoEntry};
pub use check::{Verdict, check};
pub use config::{Config, Limits, Listener, ListenerKind, Peer};
pub use custody::{Custody, Route};
pub use destination::{Destination, Host, NoDestination};
pub use error::GatewayError;
pub use frame::{Frame, Frames, Open, Refusal};
pub use metrics::{Count, Metrics};
pub use passwords::Passwords;
pub(crate) use passwords::read_secret;
pub use rules::{Mode, Protocol, Rule, Treatment};
pub use service::{Control, Event, run};

//! Two endpoints and the network between them, driven by hand in virtual time: no engine, no link, no channel.

mod configs;
pub(crate) mod content;
pub(crate) mod examples;
pub(crate) mod forgery;
mod lengths;
mod network;
pub(crate) mod operations;
pub(crate) mod outer_packets;
pub(crate) mod shared_host;

pub(crate) use configs::{configs, count, scps_configs, small};
pub(crate) use content::Content;
pub(crate) use lengths::WithoutContent;
pub(crate) use network::{Fault, ONE_WAY, Pair, Sent, fault, faults};

//! Files from one host to another: an endpoint, the keys of the host, and the files, put together.

mod error;
mod receive;
mod send;

pub use error::TransferError;
pub use receive::{ReceiveSettings, Received, receive};
pub(crate) use send::own_address;
pub use send::{SendSettings, send};

use std::time::Duration;

use farlink_core::protocol::aerotp::{AerotpConfig, RateControl};
use farlink_core::units::BitRate;

use crate::io::EndpointConfig;
use crate::mux::MuxConfig;

/// The UDP port at which files are received unless another one is given.
pub const UDP_PORT: u16 = 47_470;
/// The port within a session.
const FILES_PORT: u16 = 1;

/// After a transfer, its last acknowledgements are waited for this long.
const LAST_WORDS: Duration = Duration::from_secs(10);

fn endpoint_config(mux: MuxConfig, damaged_links: bool) -> EndpointConfig {
    let config = EndpointConfig::new(mux);
    if damaged_links { config.for_damaged_links() } else { config }
}

/// A rate that is set is kept; otherwise it is learnt, and safe on a path that others share.
pub(crate) fn with_rate(mut config: AerotpConfig, rate: Option<BitRate>) -> AerotpConfig {
    if rate.is_some() {
        (config.rate_bps, config.rate_control) = (rate, Some(RateControl::Fixed));
    }
    config
}

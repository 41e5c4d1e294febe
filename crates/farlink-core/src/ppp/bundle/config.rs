//! Configuration of a bundle of PPP lines.

use crate::time::Time;
use crate::units::BitRate;

use super::super::ipcp::Addresses;
use super::super::link::LinkConfig;
use super::super::secret::Identities;

/// A bundle and its lines.
#[derive(Clone, Debug)]
pub struct BundleConfig {
    /// Configuration of all lines. With `multilink` in its options, lines may join; without, there is one.
    pub link: LinkConfig,
    /// Nominal rate of each line, which counts until it is measured. As many lines as rates.
    pub rates: Vec<BitRate>,
    /// Identities of both ends.
    pub identities: Identities,
    /// Addresses of IP version 4; `None`: not carried.
    pub ipv4: Option<Addresses>,
    /// Whether IP version 6 is carried.
    pub ipv6: bool,
    /// How long the network stays when the last line is lost.
    pub linger: Time,
    /// How long a small packet may wait behind fragments of others on its line.
    pub latency: Time,
    /// No fragment is shorter, unless its packet is, bytes.
    pub least_fragment: u16,
    /// Most bytes that wait for a line.
    pub queue_bytes: usize,
    /// From the end of a line's negotiation to the first fragment over it, unless one comes from the peer: pppd attaches a line to its
    /// bundle a while after it has said that it will, and loses what comes before.
    pub settle: Time,
    /// How long a missing fragment is waited for, if the lines' order does not tell that it is lost.
    pub patience: Time,
}

impl Default for BundleConfig {
    /// No line. 10 s of patience are the slowest fragment of 1500 bytes at 2400 bit/s twice.
    fn default() -> Self {
        BundleConfig {
            link: LinkConfig::default(),
            rates: Vec::new(),
            identities: Identities::default(),
            ipv4: None,
            ipv6: false,
            linger: Time::ZERO,
            latency: Time::from_secs(1),
            least_fragment: 64,
            queue_bytes: 64 * 1024,
            settle: Time::from_millis(300),
            patience: Time::from_secs(10),
        }
    }
}

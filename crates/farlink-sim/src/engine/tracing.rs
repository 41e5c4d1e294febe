//! Tracing of a run: a type parameter of the engine, so that it costs nothing in an ordinary run.

use farlink_core::endpoint::Probe;
use farlink_core::wire::Codec;
use farlink_core::{Ecn, Time};

/// Receives the packets at the sender's interface and the sender's state.
pub trait Tracer {
    /// Whether it needs every packet in full; if not, common ones take a shortcut
    /// ([`tcp::trains`](farlink_core::protocol::tcp::trains)).
    const LOOKS: bool = true;

    /// A packet at the sender's interface, and its congestion codepoint: `direction` 1 is sent, 0 is received.
    fn packet<P: Codec + 'static>(&mut self, now: Time, direction: usize, flow: u32, packet: &P, ecn: Ecn);

    /// The sender acted; `probe` reads its state.
    fn probe(&mut self, now: Time, flow: u32, probe: impl FnOnce() -> Probe);

    /// How many packets the sender has sent, and how many of them queues and policers dropped, since the end of the warm-up.
    #[inline]
    fn packets(&mut self, _now: Time, _flow: u32, _sent: u64, _dropped: u64) {}
}

/// A tracer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Tracer for NoTrace {
    const LOOKS: bool = false;

    #[inline]
    fn packet<P: Codec + 'static>(&mut self, _now: Time, _direction: usize, _flow: u32, _packet: &P, _ecn: Ecn) {}
    #[inline]
    fn probe(&mut self, _now: Time, _flow: u32, _probe: impl FnOnce() -> Probe) {}
}

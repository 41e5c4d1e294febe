//! Shortcuts of an endpoint for the engine, beside [`Stream`], if it has any.

use farlink_core::protocol::aerotp::Absorbed;
use farlink_core::protocol::tcp::trains::PlainSegment;
use farlink_core::protocol::tcp::trains::{Plain, Train};
use farlink_core::protocol::tcp::{Segment, TcpConnection};
use farlink_core::{Rx, Stream, Time, Virtual};

use super::path::OnLink;

/// An endpoint that the engine runs. The shortcuts save computing time and change no result; without them, an endpoint keeps the
/// default implementations.
pub(super) trait Runs<P: OnLink>: Stream<Virtual, Packet = P> {
    /// As [`Endpoint::handle_packet`](farlink_core::Endpoint::handle_packet), for an intact packet without rare options. Returns
    /// `false`, without any effect, if `handle_packet` is to be used.
    #[inline(always)]
    fn handle_plain(&mut self, _now: Time, _plain: &P::Common) -> bool {
        false
    }

    /// As [`Endpoint::handle_packet`](farlink_core::Endpoint::handle_packet), for data for which nothing else is to be done: nothing is to be
    /// sent, and no event to be told. Data in order counts as read. Returns `None`, without any effect, if `handle_packet` is to be used.
    #[inline(always)]
    fn absorb(&mut self, _now: Time, _packet: &P, _rx: Rx) -> Option<Absorbed> {
        None
    }

    /// As [`Endpoint::poll_transmit`](farlink_core::Endpoint::poll_transmit), for packets whose loss is not reported to the
    /// endpoint.
    #[inline(always)]
    fn poll_plain(&mut self, _now: Time) -> Plain<P::Common> {
        Plain::Ask
    }

    /// Handles as many of a train's first packets as it can, and appends what it sends to `sent`; returns their number. See
    /// [`TcpConnection::handle_train`].
    #[inline(always)]
    fn handle_train(&mut self, _train: &Train<P::Common>, _sent: &mut Vec<Train<P::Common>>) -> u32 {
        0
    }
}

impl Runs<Segment<Virtual>> for TcpConnection<Virtual> {
    #[inline(always)]
    fn handle_plain(&mut self, now: Time, plain: &PlainSegment) -> bool {
        TcpConnection::handle_plain(self, now, plain)
    }

    #[inline(always)]
    fn poll_plain(&mut self, now: Time) -> Plain<PlainSegment> {
        TcpConnection::poll_plain(self, now)
    }

    #[inline(always)]
    fn handle_train(&mut self, train: &Train<PlainSegment>, sent: &mut Vec<Train<PlainSegment>>) -> u32 {
        TcpConnection::handle_train(self, train, sent)
    }
}

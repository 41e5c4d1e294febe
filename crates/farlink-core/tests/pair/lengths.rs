//! Packets with only the length of their payload, as the simulator has them.

use farlink_core::payload::{Payload, Virtual};
use farlink_core::protocol::aerotp::Segment as AerotpSegment;
use farlink_core::protocol::arq::Frame;
use farlink_core::protocol::stp::Pdu;
use farlink_core::protocol::tcp::Segment as TcpSegment;

/// A packet whose payload can be replaced by its length.
pub(crate) trait WithoutContent {
    type Lengths;
    fn without_content(&self) -> Self::Lengths;
}

macro_rules! without_content {
    ($($packet:ident { $($field:ident),+ },)+) => {$(
        impl<D: Payload> WithoutContent for $packet<D> {
            type Lengths = $packet<Virtual>;
            fn without_content(&self) -> $packet<Virtual> {
                let $packet { $($field,)+ payload } = self.clone();
                $packet { $($field,)+ payload: Virtual(payload.len() as u32) }
            }
        }
    )+};
}

without_content! {
    TcpSegment { seq, ack, flags, header_bytes, window, timestamps, syn, sack, snack, corruption_experienced },
    Frame {
        flags, number, position, skipped_bytes, ack, nak, nak_count, increment, timestamp, echo, header_bytes, parity_bytes,
        blocks
    },
    Pdu { kind, header_bytes, position, poll, clock, window, report },
    AerotpSegment {
        tag, mode, class, flags, header_bytes, fec_words, sequence, timestamp, opening, mack, repair, forward, skipped,
        overtaken_by, mack_bytes_per_s
    },
}

//! The contract of every protocol: typed packets in, typed packets out, time as an argument.

use crate::correction::PacketCode;
use crate::event::Event;
use crate::payload::Payload;
use crate::time::Time;
use crate::units::BitRate;

/// Explicit congestion notification codepoint (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable,
    /// ECN-capable transport, ECT(0).
    Capable0,
    /// ECN-capable transport, ECT(1).
    Capable1,
    /// Congestion experienced.
    Congestion,
}

/// Damage that the link did to the bits of a packet that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Integrity {
    /// As it was sent.
    #[default]
    Intact,
    /// A code in the packet corrected it.
    Mended {
        /// Number of corrected bits.
        bits: u16,
    },
    /// The header is intact, the payload is damaged.
    PayloadDamaged,
    /// The header is intact, and this many symbols of the code over the rest are wrong. Only the simulated channel
    /// knows the number; a real decoder has to find the errors.
    PayloadErrors {
        /// Number of wrong symbols.
        symbols: u16,
    },
}

/// How a packet arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rx {
    /// The congestion mark of the packet.
    pub ecn: Ecn,
    /// The damage to the packet.
    pub integrity: Integrity,
}

/// Class of service; lower goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class(pub u8);

/// An outgoing packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<P> {
    /// The packet.
    pub packet: P,
    /// Its class of service.
    pub class: Class,
    /// Its congestion mark.
    pub ecn: Ecn,
    /// Identifies the packet in [`LinkHint::Dropped`]; 0 if the endpoint does not want that hint.
    pub token: u32,
}

impl<P> Transmit<P> {
    /// A packet of the default class that is not ECN-capable and whose drop is not reported.
    #[inline]
    pub fn plain(packet: P) -> Self {
        Transmit { packet, class: Class(0), ecn: Ecn::NotCapable, token: 0 }
    }
}

/// Advice from the local link: the one that the endpoint sends into and, for [`Corrupted`](LinkHint::Corrupted), the
/// one that it receives from. Endpoints work without it.
///
/// Endpoints get hints only about the link they are attached to. An endpoint assumes that its link is up until a hint
/// says otherwise. If several things change at one instant, `Down` comes first and `Up` last.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum LinkHint {
    /// The link carries frames again.
    Up,
    /// The link carries nothing.
    Down,
    /// The link's rate changed.
    Rate(BitRate),
    /// The link's bit error rate changed.
    Ber(f64),
    /// A packet was dropped before it was sent, because the queue is full. A retransmission sent at once would be
    /// dropped too.
    Dropped {
        /// The [`Transmit::token`] of the packet.
        token: u32,
    },
    /// A frame arrived damaged beyond use. Its header is lost, so its flow is unknown and every endpoint at this end of
    /// the link gets the hint. Frames that the channel loses entirely, or that fail on an earlier link, cause no hint.
    Corrupted,
}

/// Bit errors in a packet, and the code that may correct them.
#[derive(Clone, Copy, Debug)]
pub struct Damage<'a> {
    /// Positions of wrong bits in the packet as sent, in ascending order; bit 0 is the first on the wire.
    pub bits: &'a [u32],
    /// The code around the packet.
    pub code: PacketCode,
}

impl Damage<'_> {
    /// The state of a packet of `wire_bytes` whose checksum covers all of it; `None` if it is lost.
    pub fn all_or_nothing(&self, wire_bytes: u32) -> Option<Integrity> {
        match self.code.mends(wire_bytes, self.bits)? {
            0 => Some(Integrity::Intact),
            bits => Some(Integrity::Mended { bits }),
        }
    }
}

/// A typed packet, which knows its length on the wire and how bit errors affect it.
pub trait Packet: Clone {
    /// Bytes on the wire, headers included.
    fn wire_bytes(&self) -> u32;

    /// Bytes of application data.
    fn payload_bytes(&self) -> u32;

    /// Position of its payload in the sender's stream (32 bits, wrapping), if it carries stream data.
    fn stream_position(&self) -> Option<u32>;

    /// Where the sender's stream begins, if the packet says so. Data between that position and its own may have been
    /// given up.
    #[inline(always)]
    fn stream_start(&self) -> Option<u32> {
        None
    }

    /// Whether its payload is a message of its own, not part of a stream.
    #[inline(always)]
    fn is_datagram(&self) -> bool {
        false
    }

    /// The number of a message that is sent several times: copies have the same one.
    #[inline(always)]
    fn datagram_number(&self) -> Option<u32> {
        None
    }

    /// The class of service in the packet's header, which queues on the path read; 0 if there is none.
    #[inline(always)]
    fn class(&self) -> Class {
        Class(0)
    }

    /// How the receiver judges the damaged packet; `None` if the header is lost, and with it the packet.
    ///
    /// This agrees with the wire codec: decoding the encoded bytes with the same bits flipped gives the same result.
    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity>;
}

/// A protocol endpoint that owns no socket, thread or clock.
///
/// A driver calls a `handle_*` method, drains [`poll_transmit`](Endpoint::poll_transmit) and
/// [`poll_event`](Endpoint::poll_event) until both return `None` (it may stop at any time, when a queue is full, and
/// poll later), then waits for input or for [`poll_timeout`](Endpoint::poll_timeout).
pub trait Endpoint {
    /// The packets that it sends and receives; [`crate::wire`] encodes and decodes them.
    type Packet: Packet;

    /// A packet arrived. This never fails: invalid packets are counted and dropped.
    fn handle_packet(&mut self, now: Time, packet: &Self::Packet, rx: Rx);

    /// Whether the endpoint uses [`handle_link`](Endpoint::handle_link); the answer never changes. If no endpoint wants
    /// hints, the driver skips link monitoring.
    #[inline(always)]
    fn wants_hints(&self) -> bool {
        false
    }

    /// Advice from the link. Hints come from the start of a run on, whether there is data or not.
    fn handle_link(&mut self, _now: Time, _hint: LinkHint) {}

    /// Time has passed. Early or repeated calls do nothing.
    fn handle_timeout(&mut self, now: Time);

    /// The next packet to send, if any.
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Self::Packet>>;

    /// The next event for the application, if any.
    fn poll_event(&mut self) -> Option<Event>;

    /// When to call [`handle_timeout`](Endpoint::handle_timeout). O(1).
    fn poll_timeout(&self) -> Option<Time>;

    /// Counters for the result table.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// State for the time series, of the sending side.
    fn probe(&self) -> Probe {
        Probe::default()
    }
}

/// An endpoint that carries a stream of bytes (or of datagrams, one per write).
pub trait Stream<D: Payload>: Endpoint {
    /// Takes as much from the front of `data` as fits and returns the number of bytes; 0 means full, and
    /// [`Event::Writable`] follows when there is room again.
    fn write(&mut self, now: Time, data: &mut D) -> usize;

    /// The next data in order, if any. Unread data closes the window.
    fn read(&mut self) -> Option<D>;

    /// Nothing more will be written.
    fn close(&mut self, now: Time);

    /// The number of bytes from the beginning of the stream that will not be sent again, because they were
    /// acknowledged, given up, or, in modes without acknowledgements, sent. Copies of them are no longer needed. It
    /// never decreases.
    fn settled_bytes(&self) -> u64;
}

/// Counts of an endpoint since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmits (recoveries entered on duplicate or selective acknowledgements).
    pub fast_retransmits: u64,
    /// Largest number of bytes held for reordering.
    pub peak_reorder_bytes: u64,
    /// Largest number of bytes sent and not yet acknowledged.
    pub peak_send_buffer_bytes: u64,
}

/// State of the sending side at one instant; `None` for quantities that the protocol does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Probe {
    /// Congestion window, bytes.
    pub cwnd_bytes: Option<f64>,
    /// Slow-start threshold, bytes; infinite until it is first set.
    pub ssthresh_bytes: Option<f64>,
    /// Latest round-trip time sample.
    pub rtt: Option<Time>,
    /// Bytes sent and not acknowledged.
    pub in_flight_bytes: Option<u64>,
    /// First byte of the stream that is not acknowledged yet. [`Stream::settled_bytes`] also works without
    /// acknowledgements.
    pub acknowledged_bytes: Option<u64>,
    /// Pacing rate.
    pub pacing_bps: Option<f64>,
    /// Bandwidth of the path, estimated by the congestion control.
    pub bandwidth_bps: Option<f64>,
}

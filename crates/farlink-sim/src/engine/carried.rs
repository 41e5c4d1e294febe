//! How packets are kept while they are under way: the fields of every packet in one ring, rare options beside it.
//!
//! A TCP segment with all its options is three times as large as a usual one, and copying it was the largest single cost of a packet.
//! Packets of other protocols are kept whole.

use farlink_core::protocol::tcp::trains::{PlainSegment, Train};
use farlink_core::protocol::tcp::{Flags, SackBlocks, Segment, SnackReport, SynOptions, Timestamps};
use farlink_core::wire::Codec;
use farlink_core::{Ecn, Packet, Rx, Virtual};

/// A packet type that links carry.
pub(super) trait Carried: Load<Self> + Default + Codec + 'static {
    /// The fields of every packet; the packet itself if it is kept whole.
    type Common: Load<Self> + Default;
    /// Rare options.
    type Rare: Clone;
    /// Whether packets at equal distances are kept as one train.
    const FORMS_TRAINS: bool = false;

    /// A packet without rare options.
    fn plain(common: Self::Common) -> Self;

    /// The packet itself, if it is kept whole.
    #[inline(always)]
    fn whole(_common: &Self::Common) -> Option<&Self> {
        None
    }

    /// Adds rare options.
    fn add(&mut self, rare: Self::Rare);

    /// Writes the congestion codepoint into the common part; `false` if that has no place for it.
    #[inline(always)]
    fn write_ecn(_common: &mut Self::Common, _ecn: Ecn) -> bool {
        false
    }

    /// The congestion codepoint in the common part.
    #[inline(always)]
    fn ecn(_common: &Self::Common) -> Ecn {
        Ecn::NotCapable
    }

    /// The packet `n` steps later in a train.
    #[inline(always)]
    fn ahead(common: &Self::Common, _step: u32, _n: u32) -> Self::Common {
        common.clone()
    }

    /// Appends `next` to `train`; returns `false`, without any effect, if it does not continue it.
    #[inline(always)]
    fn couple(_train: &mut Train<Self::Common>, _next: &Train<Self::Common>) -> bool {
        false
    }

    /// The stream position that it acknowledges, if its sender takes three equal acknowledgements for a loss.
    fn asks_for(&self) -> Option<u32> {
        None
    }

    /// A packet with the same acknowledgement and nothing else.
    fn duplicate(&self) -> Option<Self> {
        None
    }
}

/// A packet on its way into a link's ring: a whole one, or one without rare options.
pub(super) trait Load<P: Carried>: Packet {
    /// Writes the common part into its place, field by field. A packet that is kept whole is moved there and is empty afterwards.
    fn write(&mut self, place: &mut P::Common);

    /// Its rare options.
    #[inline(always)]
    fn rare(&self) -> Option<P::Rare> {
        None
    }
}

/// A segment's options.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpRare {
    timestamps: Option<Timestamps>,
    syn: SynOptions,
    sack: SackBlocks,
    snack: Option<SnackReport>,
    corruption_experienced: bool,
}

impl Carried for Segment<Virtual> {
    type Common = PlainSegment;
    type Rare = TcpRare;
    const FORMS_TRAINS: bool = true;

    #[inline(always)]
    fn plain(common: PlainSegment) -> Self {
        let PlainSegment { seq, ack, payload_bytes, header_bytes, window, flags, ecn: _, sack } = common;
        let payload = Virtual(payload_bytes);
        Segment { seq, ack, flags, header_bytes, window, sack: sack.into(), payload, ..Segment::default() }
    }

    #[inline(always)]
    fn add(&mut self, rare: TcpRare) {
        self.timestamps = rare.timestamps;
        self.syn = rare.syn;
        self.sack = rare.sack;
        self.snack = rare.snack;
        self.corruption_experienced = rare.corruption_experienced;
    }

    #[inline(always)]
    fn write_ecn(common: &mut PlainSegment, ecn: Ecn) -> bool {
        common.ecn = ecn;
        true
    }

    #[inline(always)]
    fn ecn(common: &PlainSegment) -> Ecn {
        common.ecn
    }

    #[inline(always)]
    fn ahead(common: &PlainSegment, step: u32, n: u32) -> PlainSegment {
        common.ahead(step, n)
    }

    #[inline(always)]
    fn couple(train: &mut Train<PlainSegment>, next: &Train<PlainSegment>) -> bool {
        train.couple(next)
    }

    fn asks_for(&self) -> Option<u32> {
        let ends = Flags::SYN.with(Flags::FIN).with(Flags::RST);
        (self.flags.has(Flags::ACK) && self.flags.0 & ends.0 == 0).then_some(self.ack)
    }

    fn duplicate(&self) -> Option<Self> {
        let seq = self.seq.wrapping_add(self.payload.0);
        Some(Segment { seq, payload: Virtual(0), flags: Flags::ACK, ..*self })
    }
}

impl Load<Segment<Virtual>> for Segment<Virtual> {
    #[inline(always)]
    fn write(&mut self, place: &mut PlainSegment) {
        place.seq = self.seq;
        place.ack = self.ack;
        place.payload_bytes = self.payload.0;
        place.header_bytes = self.header_bytes;
        place.window = self.window;
        place.flags = self.flags;
        place.ecn = Ecn::NotCapable; // it stands beside a whole segment
        place.sack = self.sack.at_most_one().unwrap_or_default();
    }

    #[inline(always)]
    fn rare(&self) -> Option<TcpRare> {
        let &Segment { timestamps, syn, sack, snack, corruption_experienced, .. } = self;
        let has_rare = timestamps.is_some()
            || sack.at_most_one().is_none()
            || snack.is_some()
            || corruption_experienced
            || self.flags.has(Flags::SYN);
        if has_rare { Some(TcpRare { timestamps, syn, sack, snack, corruption_experienced }) } else { None }
    }
}

impl Load<Segment<Virtual>> for PlainSegment {
    #[inline(always)]
    fn write(&mut self, place: &mut PlainSegment) {
        place.seq = self.seq;
        place.ack = self.ack;
        place.payload_bytes = self.payload_bytes;
        place.header_bytes = self.header_bytes;
        place.window = self.window;
        place.flags = self.flags;
        place.ecn = self.ecn;
        place.sack = self.sack;
    }
}

/// Keeps the packets of a protocol whole, and runs its endpoints without shortcuts: for protocols whose packets are small, or that few
/// scenarios use.
macro_rules! whole {
    ($packet:ty, $endpoint:ty) => {
        carried::whole_packet!($packet);

        impl runs::Runs<$packet> for $endpoint {}
    };
}
pub(super) use whole;

/// As `whole`, with endpoints that absorb data.
macro_rules! absorbed {
    ($packet:ty, $endpoint:ty) => {
        carried::whole_packet!($packet);

        impl runs::Runs<$packet> for $endpoint {
            #[inline(always)]
            fn absorb(&mut self, now: Time, packet: &$packet, rx: Rx) -> Option<aerotp::Absorbed> {
                Self::absorb(self, now, packet, rx)
            }
        }
    };
}
pub(super) use absorbed;

/// Keeps the packets of a protocol whole.
macro_rules! whole_packet {
    ($packet:ty) => {
        impl carried::Carried for $packet {
            type Common = Self;
            type Rare = ();

            #[inline(always)]
            fn plain(common: Self) -> Self {
                common
            }

            #[inline(always)]
            fn whole(common: &Self) -> Option<&Self> {
                Some(common)
            }

            fn add(&mut self, _rare: ()) {}
        }

        impl carried::Load<$packet> for $packet {
            #[inline(always)]
            fn write(&mut self, place: &mut Self) {
                *place = std::mem::take(self);
            }
        }
    };
}
pub(super) use whole_packet;

/// Packets that form trains: this file has the packet's parts, `runs.rs` the endpoint's shortcuts.
macro_rules! in_trains {
    ($packet:ty, $endpoint:ty) => {};
}
pub(super) use in_trains;

/// The rare options of a packet, and what links did to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extras<R> {
    pub(super) rare: Option<R>,
    pub(super) rx: Rx,
}

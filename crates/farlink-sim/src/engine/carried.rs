//! How packets are kept while they are under way: what every packet has in one ring, what few have beside it.
//!
//! A segment with all its options is three times as large as what a usual one needs, and copying it was the largest
//! single cost of a packet.

use farlink_core::endpoint::Integrity;
use farlink_core::protocol::tcp::{Flags, SackBlocks, Segment, SynOptions, Timestamps};
use farlink_core::protocol::udp::Datagram;
use farlink_core::{Packet, Virtual};

/// A packet type that links carry.
pub(super) trait Carried: Packet + 'static {
    /// What every packet has.
    type Common: Copy + Default;
    /// What few packets have.
    type Rare: Copy;

    /// Takes a packet apart.
    fn take_apart(&self) -> (Self::Common, Option<Self::Rare>);

    /// Writes the common part into its place, field by field.
    fn write(place: &mut Self::Common, common: Self::Common);

    /// Puts it together again.
    fn put_together(common: Self::Common, rare: Option<Self::Rare>) -> Self;
}

/// A segment without options.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpCommon {
    seq: u32,
    ack: u32,
    payload: Virtual,
    header_bytes: u16,
    window: u16,
    flags: Flags,
}

/// A segment's options.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpRare {
    timestamps: Option<Timestamps>,
    syn: SynOptions,
    sack: SackBlocks,
}

impl Carried for Segment<Virtual> {
    type Common = TcpCommon;
    type Rare = TcpRare;

    #[inline(always)]
    fn take_apart(&self) -> (TcpCommon, Option<TcpRare>) {
        let &Segment { seq, ack, flags, header_bytes, window, timestamps, syn, sack, payload } = self;
        let has_options = timestamps.is_some() || !sack.is_empty() || flags.has(Flags::SYN);
        let rare = if has_options { Some(TcpRare { timestamps, syn, sack }) } else { None };
        (TcpCommon { seq, ack, payload, header_bytes, window, flags }, rare)
    }

    #[inline(always)]
    fn write(place: &mut TcpCommon, common: TcpCommon) {
        place.seq = common.seq;
        place.ack = common.ack;
        place.payload = common.payload;
        place.header_bytes = common.header_bytes;
        place.window = common.window;
        place.flags = common.flags;
    }

    #[inline(always)]
    fn put_together(common: TcpCommon, rare: Option<TcpRare>) -> Self {
        let TcpCommon { seq, ack, payload, header_bytes, window, flags } = common;
        match rare {
            None => Segment { seq, ack, flags, header_bytes, window, payload, ..Segment::default() },
            Some(TcpRare { timestamps, syn, sack }) => {
                Segment { seq, ack, flags, header_bytes, window, timestamps, syn, sack, payload }
            }
        }
    }
}

impl Carried for Datagram<Virtual> {
    type Common = Self;
    type Rare = ();

    #[inline(always)]
    fn take_apart(&self) -> (Self, Option<()>) {
        (*self, None)
    }

    #[inline(always)]
    fn write(place: &mut Self, common: Self) {
        *place = common;
    }

    #[inline(always)]
    fn put_together(common: Self, _rare: Option<()>) -> Self {
        common
    }
}

/// What a packet has besides itself if a link did something to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside<R> {
    pub(super) rare: Option<R>,
    pub(super) integrity: Integrity,
}

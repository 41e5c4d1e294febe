//! How packets are kept while they are under way: what every packet has in one ring, what few have beside it.
//!
//! A segment with all its options is three times as large as what a usual one needs, and copying it was the largest
//! single cost of a packet.

use farlink_core::protocol::aerotp;
use farlink_core::protocol::arq::{Blocks, Frame, PlainFrame};
use farlink_core::protocol::stp::{Pdu, PlainPdu, Report};
use farlink_core::protocol::tcp::{Flags, PlainSegment, SackBlocks, Segment, SnackReport, SynOptions, Timestamps};
use farlink_core::protocol::udp::Datagram;
use farlink_core::wire::Codec;
use farlink_core::{Ecn, Packet, PlainPacket, Rx, Virtual};

/// A packet type that links carry.
pub(super) trait Carried: Load<Self> + Codec + 'static {
    /// What every packet has; a packet by itself if there is nothing rare.
    type Common: Load<Self> + PlainPacket;
    /// What few packets have.
    type Rare: Clone;

    /// A packet that has nothing rare.
    fn plain(common: &Self::Common) -> Self;

    /// Gives it what is rare.
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

    /// The position in the stream that it acknowledges everything before, of a protocol whose sender takes three equal ones for a loss.
    fn asks_for(&self) -> Option<u32> {
        None
    }

    /// What acknowledges the same and nothing else.
    fn duplicate(&self) -> Option<Self> {
        None
    }
}

/// A packet on its way into a link's ring: all of it, or one that is known to have nothing rare.
pub(super) trait Load<P: Carried>: Packet {
    /// Writes the common part into its place, field by field.
    fn write(&self, place: &mut P::Common);

    /// What few packets have.
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

    #[inline(always)]
    fn plain(common: &PlainSegment) -> Self {
        let &PlainSegment { seq, ack, payload_bytes, header_bytes, window, flags, ecn: _, sack } = common;
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
    fn write(&self, place: &mut PlainSegment) {
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
    fn write(&self, place: &mut PlainSegment) {
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

/// A packet type that is kept as it is: for protocols whose packets are small, or that few runs use.
macro_rules! kept_whole {
    ($packet:ty) => {
        impl Carried for $packet {
            type Common = Self;
            type Rare = ();

            #[inline(always)]
            fn plain(common: &Self) -> Self {
                common.clone()
            }

            fn add(&mut self, _rare: ()) {}
        }

        impl Load<$packet> for $packet {
            #[inline(always)]
            fn write(&self, place: &mut Self) {
                *place = self.clone();
            }
        }
    };
}

kept_whole!(Datagram<Virtual>);

impl Carried for Frame<Virtual> {
    type Common = PlainFrame;
    type Rare = Blocks;

    #[inline(always)]
    fn plain(common: &PlainFrame) -> Self {
        Frame::from(common)
    }

    fn add(&mut self, blocks: Blocks) {
        self.blocks = blocks;
    }
}

impl Load<Frame<Virtual>> for Frame<Virtual> {
    #[inline(always)]
    fn write(&self, place: &mut PlainFrame) {
        *place = self.plain();
    }

    #[inline(always)]
    fn rare(&self) -> Option<Blocks> {
        (!self.blocks.is_empty()).then(|| self.blocks.clone())
    }
}

impl Load<Frame<Virtual>> for PlainFrame {
    #[inline(always)]
    fn write(&self, place: &mut PlainFrame) {
        *place = *self;
    }
}

impl Carried for Pdu<Virtual> {
    type Common = PlainPdu;
    /// What is missing.
    type Rare = Report;

    #[inline(always)]
    fn plain(common: &PlainPdu) -> Self {
        common.pdu()
    }

    #[inline(always)]
    fn add(&mut self, rare: Report) {
        self.report = rare;
    }
}

impl Load<Pdu<Virtual>> for Pdu<Virtual> {
    #[inline(always)]
    fn write(&self, place: &mut PlainPdu) {
        place.kind = self.kind;
        place.header_bytes = self.header_bytes;
        place.position = self.position;
        place.poll = self.poll;
        place.clock = self.clock;
        place.window = self.window;
        place.payload_bytes = self.payload.0;
    }

    #[inline(always)]
    fn rare(&self) -> Option<Report> {
        if self.report.is_empty() { None } else { Some(self.report.clone()) }
    }
}

impl Load<Pdu<Virtual>> for PlainPdu {
    #[inline(always)]
    fn write(&self, place: &mut PlainPdu) {
        place.kind = self.kind;
        place.header_bytes = self.header_bytes;
        place.position = self.position;
        place.poll = self.poll;
        place.clock = self.clock;
        place.window = self.window;
        place.payload_bytes = self.payload_bytes;
    }
}

/// What few AeroTP segments have.
#[derive(Clone, Copy, Debug)]
pub(super) struct AerotpRare {
    mack: Option<aerotp::Mack>,
    repair: Option<aerotp::Repair>,
    forward: Option<u32>,
    skipped: Option<u32>,
}

impl Carried for aerotp::Segment<Virtual> {
    type Common = aerotp::PlainSegment;
    type Rare = AerotpRare;

    #[inline(always)]
    fn plain(common: &aerotp::PlainSegment) -> Self {
        aerotp::Segment::from(common)
    }

    #[inline(always)]
    fn add(&mut self, rare: AerotpRare) {
        (self.mack, self.repair) = (rare.mack, rare.repair);
        (self.forward, self.skipped) = (rare.forward, rare.skipped);
    }
}

impl Load<aerotp::Segment<Virtual>> for aerotp::Segment<Virtual> {
    #[inline(always)]
    fn write(&self, place: &mut aerotp::PlainSegment) {
        *place = self.plain();
    }

    #[inline(always)]
    fn rare(&self) -> Option<AerotpRare> {
        let &aerotp::Segment { mack, repair, forward, skipped, .. } = self;
        let is_rare = mack.is_some() || repair.is_some() || forward.is_some();
        is_rare.then_some(AerotpRare { mack, repair, forward, skipped })
    }
}

impl Load<aerotp::Segment<Virtual>> for aerotp::PlainSegment {
    #[inline(always)]
    fn write(&self, place: &mut aerotp::PlainSegment) {
        *place = *self;
    }
}

/// What a packet has besides itself if it has something rare, or a link did something to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside<R> {
    pub(super) rare: Option<R>,
    pub(super) rx: Rx,
}

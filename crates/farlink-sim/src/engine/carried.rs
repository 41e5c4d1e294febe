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

    /// Writes the common part into its place, field by field.
    fn write(&self, place: &mut Self::Common);

    /// Whether there is more.
    fn has_rare(&self) -> bool;

    /// The rest.
    fn rare(&self) -> Self::Rare;

    /// A packet that has nothing rare.
    fn plain(common: &Self::Common) -> Self;

    /// Gives it what is rare.
    fn add(&mut self, rare: Self::Rare);
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
    fn write(&self, place: &mut TcpCommon) {
        place.seq = self.seq;
        place.ack = self.ack;
        place.payload = self.payload;
        place.header_bytes = self.header_bytes;
        place.window = self.window;
        place.flags = self.flags;
    }

    #[inline(always)]
    fn has_rare(&self) -> bool {
        self.timestamps.is_some() || !self.sack.is_empty() || self.flags.has(Flags::SYN)
    }

    #[inline(always)]
    fn rare(&self) -> TcpRare {
        TcpRare { timestamps: self.timestamps, syn: self.syn, sack: self.sack }
    }

    #[inline(always)]
    fn plain(common: &TcpCommon) -> Self {
        let &TcpCommon { seq, ack, payload, header_bytes, window, flags } = common;
        Segment { seq, ack, flags, header_bytes, window, payload, ..Segment::default() }
    }

    #[inline(always)]
    fn add(&mut self, rare: TcpRare) {
        self.timestamps = rare.timestamps;
        self.syn = rare.syn;
        self.sack = rare.sack;
    }
}

impl Carried for Datagram<Virtual> {
    type Common = Self;
    type Rare = ();

    #[inline(always)]
    fn write(&self, place: &mut Self) {
        *place = *self;
    }

    #[inline(always)]
    fn has_rare(&self) -> bool {
        false
    }

    fn rare(&self) {}

    #[inline(always)]
    fn plain(common: &Self) -> Self {
        *common
    }

    fn add(&mut self, _rare: ()) {}
}

/// What a packet has besides itself if a link did something to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside<R> {
    pub(super) rare: Option<R>,
    pub(super) integrity: Integrity,
}

impl<R: Copy> Beside<R> {
    /// What a packet has besides its common part.
    pub(super) fn of<P: Carried<Rare = R>>(packet: &P, integrity: Integrity) -> Self {
        Beside { rare: packet.has_rare().then(|| packet.rare()), integrity }
    }
}

//! The network of [`Pair`] between two stations, with a limit of frames and the checks that only ARQ allows.

use farlink_core::protocol::Pairs;
use farlink_core::protocol::arq::{ArqConfig, Flags, Frame, Station};
use farlink_core::{Event, Time};

use crate::pair::{Content, Fault, Pair};

pub(crate) type Network<D> = Pair<D, Station<D>>;

/// A frame that left a side.
pub(crate) type Sent<D> = (Time, usize, Frame<D>);

/// Long enough for any number of timeouts that the faults can cause.
pub(crate) const LONG: Time = Time::from_secs(1_000_000);

/// Limit of frames sent by both sides per frame that arrives or meets a fault: its retransmissions and their
/// acknowledgements. Below five in 12,000 random networks, mostly with few blocks; needless requests could be any
/// number.
const PER_FRAME: usize = 10;
/// Frames in flight when the network becomes good.
const MOST_WINDOW: usize = 20;

/// A run ends with fewer than [`PER_FRAME`] frames for each one written and each that meets a fault. Tests that make a
/// side wait raise this limit.
pub(crate) fn stations<D: Content>(config: &ArqConfig, faults: &[Fault]) -> Network<D> {
    let shortest_bytes =
        config.adaptive_length.map_or(config.segment_bytes, |length| length.min_bytes).whole() as usize;
    let mut network: Network<D> = Pair::of(Pairs::<D>::pair(config, 1), faults);
    network.most_sent = PER_FRAME * (faults.len() + MOST_WINDOW);
    network.most_sent_for = Box::new(move |bytes| PER_FRAME * bytes.div_ceil(shortest_bytes));
    network.header_bytes = |frame| frame.header_bytes.into();
    network.takes_all_writes = true;
    network
}

pub(crate) fn transfer<D: Content>(
    config: &ArqConfig,
    faults: &[Fault],
    bytes: [usize; 2],
    piece: usize,
) -> Network<D> {
    let mut network = stations(config, faults);
    network.write_all(0, bytes[0], piece);
    network.write_all(1, bytes[1], piece);
    network.run_until(LONG);
    network
}

/// All data has arrived or was given up, and no event is left.
pub(crate) fn assert_done<D: Content>(network: &Network<D>, bytes: [usize; 2]) {
    network.assert_done(bytes);
    for side in [0, 1] {
        let events = &network.events[side];
        assert_eq!(events.first(), Some(&Event::Connected));
        let finished = events.iter().filter(|&&event| event == Event::Finished).count();
        assert_eq!(finished, 1, "side {side}: {events:?}");
        let (skipped, given_up) = (network.skipped[side], network.ends[1 - side].given_up_bytes());
        assert!(skipped as u64 <= given_up, "{skipped} skipped, {given_up} given up");
    }
}

impl<D: Content> Network<D> {
    /// Frames that a side sent and that have all of these flags.
    pub(crate) fn sent(&self, side: usize, flags: Flags) -> Vec<&Sent<D>> {
        self.log.iter().filter(|sent| sent.1 == side && sent.2.flags.has(flags)).collect()
    }
}

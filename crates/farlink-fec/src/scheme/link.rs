//! What a simulation of a scheme is made of.

/// Asked now and then, from any thread; `false` stops the work.
pub(crate) type GoesOn<'a> = &'a (dyn Fn() -> bool + Sync);

/// A scheme at some signal-to-noise ratio, simulated batch by batch.
///
/// The batches of a seed are one endless run, cut in pieces: which bits are wrong is a function of the seed and the place in
/// the run alone. So batches can be run on any threads in any order.
pub(crate) trait Link: Sync + Send {
    /// Data bits of a batch.
    fn batch_bits(&self) -> u64;

    /// Runs a batch: random data, coded, sent, decoded.
    fn run(&self, seed: u64, batch: u64) -> Outcome;

    /// The same, unless told to stop: then whatever was done by then, which is good for nothing. Links whose batches take
    /// seconds ask in between.
    fn run_while(&self, seed: u64, batch: u64, _goes_on: GoesOn<'_>) -> Outcome {
        self.run(seed, batch)
    }
}

/// What came out of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Wrong data bits, counted from the batch's first, ascending.
    pub(crate) wrong: Vec<u32>,
    /// Frames that a decoder gave up.
    pub(crate) gave_up: u64,
}

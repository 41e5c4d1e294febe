//! The interface of simulated schemes.

/// Callback that is called now and then from any thread; `false` stops the work.
pub(crate) type GoesOn<'a> = &'a (dyn Fn() -> bool + Sync);

/// A scheme at some signal-to-noise ratio, simulated batch by batch.
///
/// The batches of a seed are parts of one endless run: the wrong bits depend only on the seed and the position in the run.
/// Therefore batches can be run on any threads in any order.
pub(crate) trait Link: Sync + Send {
    /// Data bits of a batch.
    fn batch_bits(&self) -> u64;

    /// Runs a batch: random data, coded, sent, decoded.
    fn run(&self, seed: u64, batch: u64) -> Outcome;

    /// As `run`, but stops on request; its outcome is then invalid. Links whose batches take seconds check the callback in
    /// between.
    fn run_while(&self, seed: u64, batch: u64, _goes_on: GoesOn<'_>) -> Outcome {
        self.run(seed, batch)
    }
}

/// The outcome of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Wrong data bits, counted from the batch's first, ascending.
    pub(crate) wrong: Vec<u32>,
    /// Number of frames that a decoder could not decode.
    pub(crate) gave_up: u64,
}

//! Channels: what happens to the bits of each frame.
//!
//! A channel is one file and one line in `channels!`. Its configuration (the keys of a scenario) and its running state (of one
//! direction of one hop in one run) are separate types. The computing time depends on the number of errors, not of frames: if a
//! channel knows that it will not disturb the next frames, it says so in [`Channel::quiet`], and the link only counts them.

use std::sync::Arc;

use crate::ConfigError;
use crate::coding::EventsError;
use crate::rng::Rng;
use crate::time::Time;
use crate::trace::{TraceError, TraceSource};
use crate::units::BitRate;

/// A frame on its way through a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When its first bit is sent.
    pub start: Time,
    /// When its last bit is sent.
    pub end: Time,
    /// Its length: all bits on the wire.
    pub bits: u32,
    /// Which modulation and coding it was sent with.
    pub setting: SettingId,
}

/// Index of a modulation and coding. Links without adaptive coding use only [`SettingId::default`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettingId(pub u16);

/// Outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Every bit arrived as it was sent.
    Delivered,
    /// It arrived with wrong bits; their positions were appended to `errors`.
    Damaged,
    /// It did not arrive.
    Lost,
}

/// A promise of a channel: frames arrive intact as long as all three limits hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// At most this many more frames,
    pub frames: u64,
    /// with at most this many bits together,
    pub bits: u64,
    /// all of which end no later than this.
    pub until: Time,
}

impl Quiet {
    /// No promise: each frame has to be carried.
    pub const NONE: Quiet = Quiet { frames: 0, bits: 0, until: Time::ZERO };
    /// No frame will ever be lost or damaged.
    pub const FOREVER: Quiet = Quiet { frames: u64::MAX, bits: u64::MAX, until: Time::NEVER };
}

/// The condition of a channel at one instant, as far as it depends on time alone. Errors that are drawn for each frame are not
/// part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelState {
    /// Whether frames can get through.
    pub up: bool,
    /// Carrier to noise density; `None` if the channel does not know it.
    pub cn0_dbhz: Option<f32>,
    /// Share of wrong bits among those that arrive; `None` if the channel does not know it.
    pub ber: Option<f64>,
}

impl ChannelState {
    /// A channel that is up, without further knowledge.
    pub const UP: ChannelState = ChannelState { up: true, cn0_dbhz: None, ber: None };
}

/// The running state of one direction of one hop.
///
/// A driver sends frames in order. For each it either checks that the promise of [`quiet`](Channel::quiet) covers the frame and
/// reports it later with [`skip`](Channel::skip), or calls [`carry`](Channel::carry).
///
/// A driver may also ask for the channel's [`state`](Channel::state), at times before or after those of the frames. Asking does
/// not change what happens to frames: a channel with a random state draws it from a stream of its own ([`Rng::detach`]).
pub trait Channel: Send {
    /// How many of the next frames are certain to arrive intact.
    fn quiet(&self) -> Quiet {
        Quiet::NONE
    }

    /// Reports that `frames` frames with `bits` bits together passed under the last promise of [`quiet`](Channel::quiet).
    fn skip(&mut self, _frames: u64, _bits: u64) {}

    /// Carries one frame and appends the positions of its wrong bits (ascending, below `frame.bits`) to `errors`.
    fn carry(&mut self, frame: &Frame, rng: &mut Rng, errors: &mut Vec<u32>) -> Fate;

    /// The channel's condition at `now`. Calls of this and of [`next_change`](Channel::next_change) must be in order of time, but
    /// need not be in order with the frames.
    fn state(&mut self, _now: Time) -> ChannelState {
        ChannelState::UP
    }

    /// The next time after `now` at which the state changes; [`Time::NEVER`] if it never does.
    fn next_change(&mut self, _now: Time) -> Time {
        Time::NEVER
    }
}

/// The configuration of a channel in a scenario.
pub trait ChannelConfig {
    /// Reads trace files once per scenario and checks the rules between keys that the types of single keys cannot express.
    ///
    /// # Errors
    /// If a trace is missing or of the wrong kind, or keys contradict each other.
    fn prepare(&self, site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError>;
}

/// The properties of the link that a channel may use when it is prepared.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The source of trace files.
    pub traces: &'a dyn TraceSource,
    /// The rate of the link, if it is constant.
    pub rate: Option<BitRate>,
    /// When a run ends at the latest.
    pub duration: Option<Time>,
}

impl<'a> Site<'a> {
    /// A site of which only the source of traces is known.
    pub fn anywhere(traces: &'a dyn TraceSource) -> Self {
        Site { traces, rate: None, duration: None }
    }
}

/// A channel that is ready to start any number of runs.
pub trait Prepared: Send + Sync + std::fmt::Debug {
    /// Begins a run.
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel>;

    /// As [`start`](Prepared::start), with a stream `hop` that is the same for both directions of a hop. Random values that both
    /// directions share are drawn from a copy of it.
    fn start_on_hop(&self, rng: &mut Rng, _hop: &Rng) -> Box<dyn Channel> {
        self.start(rng)
    }

    /// Notes for the user about this channel that are not errors.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Why a channel cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// A trace file cannot be used.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The value of a key is not allowed, or keys contradict each other. Paths are relative to the channel.
    #[error("{}", .0.message())]
    Key(#[from] ConfigError),
    /// The error events of a decoder are not available.
    #[error(transparent)]
    Events(#[from] EventsError),
}

impl ChannelError {
    /// The same error for a channel whose table is at `path` (such as `link.channel`).
    pub fn at(&self, path: &str) -> ConfigError {
        match self {
            ChannelError::Trace(error) => error.at(&format!("{path}.file")),
            ChannelError::Key(error) => error.clone().within(path),
            ChannelError::Events(EventsError::Impossible { message, remedy }) => {
                ConfigError::new(path, message, remedy.clone())
            }
            ChannelError::Events(_) => ConfigError::new(path, self, "run the scenario again"),
        }
    }
}

crate::registry::registry! {
    /// A channel, by its `kind`.
    channels: ChannelKind as ChannelConfig {
        None = "none" => none::Clear,
        Loss = "loss" => loss::Loss,
        Ber = "ber" => ber::Ber,
        GilbertElliott = "gilbert-elliott" => gilbert_elliott::GilbertElliott,
        RoundLoss = "round-loss" => round_loss::RoundLoss,
        Outage = "outage" => outage::Outage,
        CallDrops = "call-drops" => call_drops::CallDrops,
        PacketTrace = "packet-trace" => packet_trace::PacketTrace,
        BitTrace = "bit-trace" => bit_trace::BitTrace,
        Coded = "coded" => crate::coding::Coding,
        Fading = "fading" => fading::Fading,
        BerTrace = "ber-trace" => ber_trace::BerTrace,
        Chain = "chain" => chain::Chain,
    }
}

pub mod ber;
pub mod ber_trace;
pub mod bit_trace;
pub mod call_drops;
pub mod chain;
mod coded;
pub mod fading;
mod failed_blocks;
pub mod gilbert_elliott;
mod jump;
pub mod loss;
pub mod none;
pub mod outage;
pub mod packet_trace;
pub mod random_duration;
mod replay;
pub mod round_loss;
pub mod varying;

impl ChannelKind {
    /// Prepares the channel; see [`ChannelConfig::prepare`].
    ///
    /// # Errors
    /// As there.
    pub fn prepare(&self, site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        self.as_dyn().prepare(site)
    }
}

impl Default for ChannelKind {
    fn default() -> Self {
        ChannelKind::None(none::Clear {})
    }
}

#[cfg(test)]
mod tests;

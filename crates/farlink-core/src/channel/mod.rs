//! Channels: what happens to the bits of each frame.
//!
//! A channel is one file and one line in `channels!`. Its configuration (what a scenario says) and its running state
//! (what one direction of one hop remembers in one run) are separate types. Cost follows the number of errors, not of
//! frames: a channel that knows that nothing will happen for a while says so in [`Channel::quiet`], and the link only
//! counts.

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

/// Which modulation and coding; links without adaptive coding have just [`SettingId::default`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettingId(pub u16);

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Every bit arrived as it was sent.
    Delivered,
    /// It arrived with wrong bits; their positions were appended to `errors`.
    Damaged,
    /// It did not arrive.
    Lost,
}

/// How far a channel surely does nothing: as long as all three hold, frames arrive intact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// This many more frames,
    pub frames: u64,
    /// this many more bits,
    pub bits: u64,
    /// of frames that end no later than this.
    pub until: Time,
}

impl Quiet {
    /// Nothing is promised: ask about each frame.
    pub const NONE: Quiet = Quiet { frames: 0, bits: 0, until: Time::ZERO };
    /// Nothing will ever happen.
    pub const FOREVER: Quiet = Quiet { frames: u64::MAX, bits: u64::MAX, until: Time::NEVER };
}

/// What a channel is like at one instant, as far as time alone decides it: frame by frame errors are not in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelState {
    /// Whether anything can get through.
    pub up: bool,
    /// Carrier to noise density; `None` if the channel does not know it.
    pub cn0_dbhz: Option<f32>,
    /// Share of wrong bits among those that arrive; `None` if the channel does not know it.
    pub ber: Option<f64>,
}

impl ChannelState {
    /// Frames pass, as far as anyone knows.
    pub const UP: ChannelState = ChannelState { up: true, cn0_dbhz: None, ber: None };
}

/// The running state of one direction of one hop.
///
/// A driver sends frames in order. For each it either checks that the frame is covered by [`quiet`](Channel::quiet) and
/// accounts for it later with [`skip`](Channel::skip), or calls [`carry`](Channel::carry).
///
/// Beside that, and at any time before or after the frames, it may ask for the channel's [`state`](Channel::state). What
/// frames meet does not depend on whether anyone asks: a channel with a random state draws it from a stream of its own
/// ([`Rng::detach`]).
pub trait Channel: Send {
    /// What is surely intact from here on.
    fn quiet(&self) -> Quiet {
        Quiet::NONE
    }

    /// So many frames, of so many bits together, passed under the last promise of [`quiet`](Channel::quiet).
    fn skip(&mut self, _frames: u64, _bits: u64) {}

    /// Carries one frame; positions of wrong bits (ascending, below `frame.bits`) are appended to `errors`.
    fn carry(&mut self, frame: &Frame, rng: &mut Rng, errors: &mut Vec<u32>) -> Fate;

    /// What the channel is like at `now`. This and [`next_change`](Channel::next_change) are asked in the order of time,
    /// whatever the times of the frames.
    fn state(&mut self, _now: Time) -> ChannelState {
        ChannelState::UP
    }

    /// From `now` until then, and not at that instant, the state is the same; later than `now`. [`Time::NEVER`] if it
    /// stays.
    fn next_change(&mut self, _now: Time) -> Time {
        Time::NEVER
    }
}

/// What a scenario says about a channel.
pub trait ChannelConfig {
    /// Reads what it needs (trace files) once per scenario and checks what the types cannot.
    ///
    /// # Errors
    /// If a trace is missing or unfit, or keys contradict each other.
    fn prepare(&self, site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError>;
}

/// Where a channel is: what it may ask about when it is prepared.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// Where traces come from.
    pub traces: &'a dyn TraceSource,
    /// The rate of the link, if it is the same all the time.
    pub rate: Option<BitRate>,
    /// When a run ends at the latest.
    pub duration: Option<Time>,
}

impl<'a> Site<'a> {
    /// A place of which nothing is known but where its traces come from.
    pub fn anywhere(traces: &'a dyn TraceSource) -> Self {
        Site { traces, rate: None, duration: None }
    }
}

/// A channel that is ready to start any number of runs.
pub trait Prepared: Send + Sync + std::fmt::Debug {
    /// Begins a run.
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel>;

    /// As [`start`](Prepared::start), with a stream that is the same for both directions of a hop: what they share is drawn
    /// from a copy of it.
    fn start_on_hop(&self, rng: &mut Rng, _hop: &Rng) -> Box<dyn Channel> {
        self.start(rng)
    }

    /// What a user should know of it that is no error.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Why a channel cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// A trace file cannot be used.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The value of a key does not fit, or keys contradict each other; paths begin at the channel.
    #[error("{}", .0.message())]
    Key(#[from] ConfigError),
    /// There are no error events to play.
    #[error(transparent)]
    Events(#[from] EventsError),
}

impl ChannelError {
    /// What it says of the channel whose table stands at `path` (`link.channel`).
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
pub mod gilbert_elliott;
mod jump;
pub mod loss;
pub mod none;
pub mod outage;
pub mod packet_trace;
mod replay;
pub mod round_loss;
pub mod spell;
pub mod varying;

impl ChannelKind {
    /// See [`ChannelConfig::prepare`].
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

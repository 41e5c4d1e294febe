//! One side of an AeroTP connection: ties the states, the sending and the receiving half together behind
//! [`Endpoint`](crate::endpoint::Endpoint).

mod composing;
mod endpoint;
mod hearing;
mod identity;
#[cfg(test)]
mod model;
mod patience;
mod switching;

use farlink_fec::awgn::split_mix64;

use crate::event::Abort;
use crate::payload::Payload;
use crate::time::Time;

use super::asking::Asking;
use super::clock::Clock;
use super::config::AerotpConfig;
use super::lifecycle::{Lifecycle, State};
use super::mode::Mode;
use super::open_loop::Estimate;
use super::peer::{Marks, Peer};
use super::rate::Rate;
use super::receiving::Receiving;
use super::sending::Sending;
use identity::Reset;

pub use switching::SwitchError;

/// One side of an AeroTP connection.
#[derive(Clone, Debug)]
pub struct Connection<D> {
    config: AerotpConfig,
    mode: Mode,
    /// Parity in each segment with data, 32-bit words.
    fec_words: u16,
    /// What is known of the errors that it is against, if it follows them.
    errors: Option<Estimate>,
    lifecycle: Lifecycle,
    /// It awaits another peer when a connection is over.
    is_listener: bool,
    sending: Sending<D>,
    receiving: Receiving<D>,
    rate: Rate,
    /// When the peer's window is too short.
    asking: Asking,
    /// Segments that arrived with a congestion mark, and damaged; both wrap.
    marked: u16,
    damaged: u16,
    /// Tells this connection from those that this side had before. `[L10]`
    tag: u16,
    /// The number of the first byte of the own stream.
    initial: u32,
    peer: Option<Peer>,
    /// A peer that is gone: what bears its tag, or is no newer than what it sent last, is of the past.
    past: Option<Peer>,
    reset: Option<Reset>,
    clock: Clock,
    /// When the first segment went out, and when the own stream had come so far, in ticks: no answer is to anything older.
    first_sent: Option<u64>,
    marks: Marks<u64>,
    /// When something was heard or sent last.
    last_sign: Time,
    last_heard: Time,
    is_question_due: bool,
    /// Since when a question is unanswered.
    asked: Option<Time>,
    /// When the end of the own stream went out first.
    end_sent: Option<Time>,
    is_link_down: bool,
    news: News,
    dropped: Dropped,
    /// What the model checker takes away to see that it is needed.
    #[cfg(test)]
    without: Option<model::Without>,
}

/// What the application has yet to be told, and what it was told.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    has_told_connected: bool,
    has_told_finished: bool,
    has_told_closed: bool,
    aborted: Option<Abort>,
    has_told_aborted: bool,
    /// An earlier connection of a listener ended so.
    earlier: Option<Abort>,
}

/// Segments that were dropped, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Header fine, payload damaged beyond what its code mends.
    pub damaged: u64,
    /// Of no connection, or of one that is past, or of a past round of the sequence numbers.
    pub stray: u64,
    /// Acknowledgements of what was never sent, or that echo what was never sent.
    pub forged: u64,
    /// Data outside the window, or beyond the end of its stream.
    pub outside: u64,
    /// Flags and content that contradict each other.
    pub malformed: u64,
}

impl<D: Payload> Connection<D> {
    /// A side that opens the connection with its first data.
    pub(super) fn connecting(config: &AerotpConfig, seed: u64) -> Self {
        let mut side = Self::new(config, seed);
        if side.has_states() {
            side.lifecycle.connect();
        }
        side
    }

    /// Opens at once, with a question if there is no data to open with. `[C1]`
    pub(super) fn calling(mut self) -> Self {
        self.is_question_due = self.has_states();
        self
    }

    /// A side that waits for a peer.
    pub(super) fn listening(config: &AerotpConfig, seed: u64) -> Self {
        let mut side = Self::new(config, seed);
        side.is_listener = side.has_states();
        if side.is_listener {
            side.lifecycle.listen();
        }
        side
    }

    fn new(config: &AerotpConfig, seed: u64) -> Self {
        let random = split_mix64(seed);
        Connection {
            config: config.clone(),
            mode: config.mode,
            fec_words: if config.mode == Mode::QuasiReliable { config.fec_words.whole() as u16 } else { 0 },
            errors: config.adaptive_fec.filter(|_| config.mode == Mode::QuasiReliable).map(|fec| Estimate::new(&fec)),
            lifecycle: Lifecycle::default(),
            is_listener: false,
            sending: Sending::new(config),
            receiving: Receiving::new(config),
            rate: Rate::new(config),
            asking: Asking::default(),
            marked: 0,
            damaged: 0,
            tag: random as u16,
            initial: (random >> 16) as u32,
            peer: None,
            past: None,
            reset: None,
            clock: config.clock(),
            first_sent: None,
            marks: Marks::of_own_stream(),
            last_sign: Time::ZERO,
            last_heard: Time::ZERO,
            is_question_due: false,
            asked: None,
            end_sent: None,
            is_link_down: false,
            news: News::default(),
            dropped: Dropped::default(),
            #[cfg(test)]
            without: None,
        }
    }

    /// Its state (`docs/aerotp.md`, section 4).
    pub fn state(&self) -> State {
        self.lifecycle.state()
    }

    /// What it dropped so far.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// The mode of what it sends.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Parity in each segment with data, 32-bit words.
    pub fn fec_words(&self) -> u16 {
        self.fec_words
    }

    /// Whether there are connections at all: datagrams go by themselves.
    #[inline]
    fn has_states(&self) -> bool {
        self.mode != Mode::Datagram
    }

    /// Whether it still answers and is answered.
    fn is_alive(&self) -> bool {
        self.news.aborted.is_none()
    }

    /// Whether there is a connection that is not over, or none is needed.
    #[inline]
    fn may_send(&self) -> bool {
        !self.has_states() || (self.lifecycle.is_open() && !self.lifecycle.is_over())
    }

    /// Whether nothing is left to be done, and all was read.
    fn is_over(&self) -> bool {
        if self.has_states() { self.lifecycle.is_over() && self.receiving.is_read() } else { self.sending.is_done() }
    }

    /// Whether there is no connection, nor is one awaited: what comes is answered by a reset.
    fn is_closed(&self) -> bool {
        !self.is_alive() || self.lifecycle.state() == State::Closed
    }

    /// The number of a position in the own stream. `[L9]`, `[R7]`
    fn number(&self, position: u64) -> u32 {
        self.initial.wrapping_add(position as u32)
    }
}

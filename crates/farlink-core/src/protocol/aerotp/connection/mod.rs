//! One AeroTP connection, active or passive, from its opening to its end: combines the states, the sending and the
//! receiving half as an [`Endpoint`](crate::endpoint::Endpoint).

#[cfg(feature = "trains")]
mod absorb;
mod challenge;
mod deadlines;
mod endpoint;
mod identity;
mod inbound;
#[cfg(test)]
mod model;
mod origin;
mod outbound;
mod proof;
mod shared_rate;
mod switching;

use std::ops::AddAssign;

use crate::event::Abort;
use crate::origin::OriginShift;
use crate::payload::Payload;
use crate::protocol::parts::pacer::Pacer;
use crate::rng::RandomSource;
use crate::time::Time;

use super::admission::{Reset, Screened};
use super::amplification::{Allowance, Confirmation};
use super::clock::Clock;
use super::config::AerotpConfig;
use super::lifecycle::{Lifecycle, State};
use super::mode::Mode;
use super::open_loop::Estimate;
use super::packet_size::PacketSize;
use super::peer::{HighWaterMarks, Peer};
use super::rate::{Rate, Told};
use super::receiving::Receiving;
use super::segment::{FORWARD_BYTES, OPENING_BYTES};
use super::sending::Sending;
use super::way_back::WayBack;
use super::window_requests::WindowRequests;
use challenge::Challenge;
use identity::Identity;

pub(super) use endpoint::Arrival;

pub use switching::SwitchError;

/// One side of one connection. An active one opens it; a passive one is opened by the first segment of a peer. It ends
/// once and never serves another peer: [`Acceptor`](super::Acceptor) and [`Side`](super::Side) make the next one.
#[derive(Clone, Debug)]
pub struct Connection<D> {
    config: AerotpConfig,
    constants: Constants,
    /// The present packet size, which follows the path MTU, and the parity of segments with data. `[S1]`
    size: PacketSize,
    mode: Mode,
    /// How many of the configured changes of the mode have been made.
    mode_changes_made: usize,
    /// Estimate of the bit errors, if the parity adapts to them.
    errors: Option<Estimate>,
    lifecycle: Lifecycle,
    /// Whether the peer opens it.
    is_passive: bool,
    sending: Sending<D>,
    receiving: Receiving<D>,
    rate: Rate,
    /// Reports in the peer's MACKs for the rate.
    told: Told,
    /// The queue of the peer's MACKs, once some came, and the pace of the own ones. `[M2]`
    way_back: Option<Box<WayBack>>,
    mack_pacer: Pacer,
    /// Requests for a longer window of the peer.
    window_requests: WindowRequests,
    /// Counts of segments that arrived with a congestion mark, and of damaged ones; both wrap.
    marked: u16,
    damaged: u16,
    /// Connection tag, which differs from those of this side's earlier connections. `[L10]`
    tag: u16,
    /// Initial sequence number of the own stream.
    initial: u32,
    peer: Option<Peer>,
    reset: Option<Reset>,
    /// Limit of what may be sent to the peer's address.
    allowance: Allowance,
    confirmation: Confirmation,
    /// An opening of another sender, until it is known whether the peer has restarted.
    challenge: Option<Box<Challenge<D>>>,
    clock: Clock,
    /// By how much the origin of the clock has moved since the start of the run.
    moved: OriginShift,
    /// When the first segment was sent, in ticks; no valid answer refers to an earlier time.
    first_sent: Option<u64>,
    /// Times at which the own stream reached two earlier positions, in ticks: valid answers refer to no earlier times.
    high_water_marks: HighWaterMarks<u64>,
    /// When the last segment was sent or received.
    last_sign: Time,
    last_received: Time,
    is_question_due: bool,
    /// Whether a question is due whose answer proves an address. `[G3]`, `[G4]`
    is_proof_due: bool,
    /// Since when a segment that needs an answer is unanswered.
    asked: Option<Time>,
    /// When the end of the own stream was first sent.
    end_sent: Option<Time>,
    is_link_down: bool,
    pending_events: PendingEvents,
    dropped: Dropped,
    /// A rule that the model checker switches off, to see that the rule is needed.
    #[cfg(test)]
    without: Option<model::Without>,
}

/// Values of the configuration that every segment needs, converted once.
#[derive(Clone, Copy, Debug)]
struct Constants {
    /// Bytes of headers without optional fields.
    header_bytes: u64,
    /// Wire bytes of the longest question.
    question_bytes: u64,
    give_up_after: Time,
}

impl Constants {
    fn new(config: &AerotpConfig) -> Self {
        let header_bytes = config.header_bytes.whole();
        Constants {
            header_bytes,
            question_bytes: header_bytes + u64::from(OPENING_BYTES) + u64::from(FORWARD_BYTES),
            give_up_after: config.give_up_after_s.time(),
        }
    }
}

/// Events that are pending, and those that the application has taken.
#[derive(Clone, Copy, Debug, Default)]
struct PendingEvents {
    has_told_connected: bool,
    has_told_finished: bool,
    has_told_closed: bool,
    aborted: Option<Abort>,
    has_told_aborted: bool,
}

/// Counts of dropped segments, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The header was intact, but the payload had more errors than its code corrects.
    pub damaged: u64,
    /// Segments of no connection, of a past one, or of a past cycle of the sequence numbers.
    pub stray: u64,
    /// Acknowledgements of data, or echoes of timestamps, that were never sent.
    pub forged: u64,
    /// Data outside the window or after the end of the stream.
    pub outside: u64,
    /// Flags and content that contradict each other.
    pub malformed: u64,
}

impl Dropped {
    /// Counts a segment that did not pass the checks that need no connection.
    pub(super) fn count(&mut self, screened: Screened) {
        match screened {
            Screened::Passed => {}
            Screened::Damaged => self.damaged += 1,
            Screened::Stray => self.stray += 1,
            Screened::Malformed => self.malformed += 1,
        }
    }
}

impl AddAssign for Dropped {
    fn add_assign(&mut self, more: Dropped) {
        self.damaged += more.damaged;
        self.stray += more.stray;
        self.forged += more.forged;
        self.outside += more.outside;
        self.malformed += more.malformed;
    }
}

impl<D: Payload> Connection<D> {
    /// An active connection, which opens with its first data. Its tag and first sequence number are the next of
    /// `random`; on a real network no peer must be able to guess them.
    pub fn connect(config: &AerotpConfig, random: &mut dyn RandomSource) -> Self {
        let mut side = Self::new(config, &Identity::draw(random));
        if side.has_states() {
            side.lifecycle.connect();
        }
        side
    }

    /// Opens the connection at once, with an empty segment if there is no data. `[C1]`
    pub fn calling(mut self) -> Self {
        self.is_question_due = self.has_states();
        self
    }

    /// A passive connection, which waits for a peer.
    pub(super) fn listen(config: &AerotpConfig, random: &mut dyn RandomSource) -> Self {
        let identity = Identity::draw(random);
        let mut side = Self::new(config, &identity);
        side.is_passive = side.has_states();
        if side.is_passive {
            side.clock = side.clock.behind(identity.lag);
            side.allowance = Allowance::UNPROVEN;
            side.lifecycle.listen();
        }
        side
    }

    fn new(config: &AerotpConfig, &Identity { tag, initial, .. }: &Identity) -> Self {
        Connection {
            config: config.clone(),
            constants: Constants::new(config),
            size: config.packet_size(),
            mode: config.mode,
            mode_changes_made: 0,
            errors: config
                .adaptive_fec
                .filter(|_| config.has(Mode::QuasiReliable))
                .map(|fec| Estimate::new(&fec, config.has_rate_reports())),
            lifecycle: Lifecycle::default(),
            is_passive: false,
            sending: Sending::new(config),
            receiving: Receiving::new(config),
            rate: Rate::new(config),
            told: Told::default(),
            way_back: None,
            mack_pacer: Pacer::default(),
            window_requests: WindowRequests::default(),
            marked: 0,
            damaged: 0,
            tag,
            initial,
            peer: None,
            reset: None,
            allowance: Allowance::PROVEN,
            confirmation: Confirmation::NONE,
            challenge: None,
            clock: config.clock(),
            moved: OriginShift::default(),
            first_sent: None,
            high_water_marks: HighWaterMarks::of_own_stream(),
            last_sign: Time::ZERO,
            last_received: Time::ZERO,
            is_question_due: false,
            is_proof_due: false,
            asked: None,
            end_sent: None,
            is_link_down: false,
            pending_events: PendingEvents::default(),
            dropped: Dropped::default(),
            #[cfg(test)]
            without: None,
        }
    }

    /// Its state (`docs/aerotp.md`, section 4).
    pub fn state(&self) -> State {
        self.lifecycle.state()
    }

    /// Bytes that were written and never sent. Messages of the mode `datagram` do not count.
    pub fn unsent_bytes(&self) -> u64 {
        self.sending.unsent_bytes()
    }

    /// Counts of the segments dropped so far.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// The mode of the segments that it sends.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Parity in a full segment with data, 32-bit words.
    pub fn fec_words(&self) -> u16 {
        self.size.full_words()
    }

    /// Whether the mode has connections; datagrams have none.
    #[inline]
    fn has_states(&self) -> bool {
        self.mode != Mode::Datagram
    }

    /// Whether the connection still exchanges segments.
    fn is_alive(&self) -> bool {
        self.pending_events.aborted.is_none()
    }

    /// Whether data may be sent: the connection is not over, or the mode needs none.
    #[inline]
    fn may_send(&self) -> bool {
        !self.has_states() || (self.lifecycle.is_open() && !self.lifecycle.is_over())
    }

    /// Whether the connection has ended and all data was read.
    fn is_over(&self) -> bool {
        if self.has_states() { self.lifecycle.is_over() && self.receiving.is_read() } else { self.sending.is_done() }
    }

    /// A passive connection for the next peer, over the same link.
    pub(super) fn next(&self, random: &mut dyn RandomSource) -> Self {
        let mut next = Self::listen(&self.config, random);
        next.move_origin(self.moved);
        if self.is_link_down {
            next.set_link_down();
        }
        #[cfg(test)]
        (next.without = self.without);
        next
    }

    /// Waits until the link is up.
    pub(super) fn set_link_down(&mut self) {
        self.is_link_down = true;
        self.sending.on_link(Time::ZERO, false);
    }

    /// State of the peer, once a segment of it has arrived.
    pub(super) fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    /// When the last segment of the peer was accepted.
    pub(super) fn last_received(&self) -> Time {
        self.last_received
    }

    /// Whether the peer opened it and has not yet shown that it receives this side's segments. `[B7]`
    pub fn is_half_open(&self) -> bool {
        self.is_passive && self.lifecycle.is_opening()
    }

    /// Whether the peer has shown that it receives at its address what this side sends. Until then at most three times the
    /// bytes that arrived are sent. `[G1]`
    pub fn is_address_proven(&self) -> bool {
        self.allowance.is_proven()
    }

    /// The peer's segments come from another address from now on, which has to be proven like the first one. The layer that
    /// knows addresses calls it. `[G5]`
    pub fn address_changed(&mut self) {
        if self.has_states() {
            self.allowance = Allowance::UNPROVEN;
        }
    }

    /// The layer that knows addresses has proof that the peer receives at its address: this connection need not wait for its own
    /// proof with what it sends. `[G5]`
    pub fn address_proven(&mut self) {
        self.allowance.lift();
    }

    /// Opens the connection though nothing is written yet, by a question. It does nothing once anything was sent. `[C1]`
    pub fn announce(&mut self) {
        self.is_question_due |= self.first_sent.is_none();
    }

    /// A driver calls it whose timers are late by up to `late`. It then gets at once, from [`poll_transmit`](crate::Endpoint::poll_transmit),
    /// what was due in that time, so that the rate is kept. Timers are exact unless it is called. `[P20]`
    pub fn set_timer_lateness(&mut self, late: Time) {
        self.rate.pacer.set_catch_up(late);
    }

    /// Whether the application has got `Connected` but not the end of the connection.
    pub(super) fn is_unfinished(&self) -> bool {
        self.pending_events.has_told_connected && !self.pending_events.has_told_closed
    }

    /// Whether it has ended, and at most answers what its peer repeats. `[C18]`
    pub(super) fn has_ended(&self) -> bool {
        self.is_closed() || self.answers_until() != Time::NEVER
    }

    /// Until when its peer is remembered after its end. `[H5]`
    pub(super) fn remembered_until(&self) -> Time {
        (self.last_received + self.config.listen_timeout()).max(self.questions_until())
    }

    /// Whether it has ended, and its last acknowledgement is still to go out, which it does three times. Who destroys the connection
    /// before leaves the peer with an end that it repeats until it gives up. `[A7]`
    pub fn owes_last_acknowledgement(&self) -> bool {
        self.is_alive() && self.has_ended() && self.receiving.owes_mack()
    }

    /// Whether a RESET has ended it.
    pub(super) fn was_reset(&self) -> bool {
        self.pending_events.aborted == Some(Abort::Reset)
    }

    /// Whether the connection is alive, or its failure was reported to the application.
    pub(super) fn has_told_end(&self) -> bool {
        self.is_alive() || self.pending_events.has_told_aborted
    }

    /// Whether there is no connection and this side does not listen either, so that segments are answered with a reset.
    pub(super) fn is_closed(&self) -> bool {
        !self.is_alive() || self.lifecycle.state() == State::Closed
    }

    /// The sequence number of a position in the own stream. `[L9]`, `[R7]`
    fn number(&self, position: u64) -> u32 {
        self.initial.wrapping_add(position as u32)
    }
}

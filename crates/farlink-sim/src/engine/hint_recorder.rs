//! For the engine's own tests: wraps any endpoint, and records the hints of its link.

use std::cell::{Cell, RefCell};

use farlink_core::endpoint::{Counters, Probe};
use farlink_core::protocol::tcp::trains::{Plain, Train};
use farlink_core::{Endpoint, Event, LinkHint, Payload, Rx, Stream, Time, Transmit};

use super::path::OnLink;
use super::runs::Runs;

/// How an endpoint uses hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Manner {
    /// It does not want hints, like an endpoint without a recorder.
    #[default]
    WithoutHints,
    /// It records them.
    Records,
    /// It records them, and gives each of its packets a token.
    Tokens,
    /// It records them, and sends nothing while its link is down.
    Waits,
}

/// When a hint arrived, at which side, and the hint.
pub(super) type ReceivedHint = (Time, usize, LinkHint);

thread_local! {
    static MANNER: Cell<Manner> = const { Cell::new(Manner::WithoutHints) };
    static RECEIVED: RefCell<Vec<ReceivedHint>> = const { RefCell::new(Vec::new()) };
}

/// Runs with endpoints that use hints in this manner, on this thread; also returns the hints that they received.
pub(super) fn with<R>(manner: Manner, run: impl FnOnce() -> R) -> (R, Vec<ReceivedHint>) {
    MANNER.set(manner);
    let result = run();
    MANNER.set(Manner::WithoutHints);
    (result, RECEIVED.take())
}

pub(super) fn attach<E>((client, server): (E, E)) -> (End<E>, End<E>) {
    let manner = MANNER.get();
    let end = |side, inner| End { inner, side, manner, is_down: false, tokens: 0 };
    (end(0, client), end(1, server))
}

/// An endpoint with a recorder of hints.
pub(super) struct End<E> {
    inner: E,
    side: usize,
    manner: Manner,
    is_down: bool,
    tokens: u32,
}

impl<E> End<E> {
    fn holds_back(&self) -> bool {
        self.manner == Manner::Waits && self.is_down
    }
}

impl<E: Endpoint> Endpoint for End<E> {
    type Packet = E::Packet;

    fn handle_packet(&mut self, now: Time, packet: &E::Packet, rx: Rx) {
        self.inner.handle_packet(now, packet, rx);
    }

    fn wants_hints(&self) -> bool {
        self.manner != Manner::WithoutHints
    }

    fn handle_link(&mut self, now: Time, hint: LinkHint) {
        RECEIVED.with_borrow_mut(|received| received.push((now, self.side, hint)));
        match hint {
            LinkHint::Down => self.is_down = true,
            LinkHint::Up => self.is_down = false,
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<E::Packet>> {
        if self.holds_back() {
            return None;
        }
        let transmit = self.inner.poll_transmit(now)?;
        if self.manner != Manner::Tokens {
            return Some(transmit);
        }
        self.tokens += 1;
        Some(Transmit { token: self.tokens, ..transmit })
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn probe(&self) -> Probe {
        self.inner.probe()
    }
}

impl<D: Payload, E: Stream<D>> Stream<D> for End<E> {
    fn write(&mut self, now: Time, data: &mut D) -> usize {
        self.inner.write(now, data)
    }

    fn read(&mut self) -> Option<D> {
        self.inner.read()
    }

    fn close(&mut self, now: Time) {
        self.inner.close(now);
    }

    fn settled_bytes(&self) -> u64 {
        self.inner.settled_bytes()
    }
}

impl<P: OnLink, E: Runs<P>> Runs<P> for End<E> {
    fn handle_plain(&mut self, now: Time, plain: &P::Common) -> bool {
        self.inner.handle_plain(now, plain)
    }

    fn poll_plain(&mut self, now: Time) -> Plain<P::Common> {
        if self.manner == Manner::Tokens || self.holds_back() { Plain::Ask } else { self.inner.poll_plain(now) }
    }

    fn handle_train(&mut self, train: &Train<P::Common>, sent: &mut Vec<Train<P::Common>>) -> u32 {
        if self.manner == Manner::Tokens || self.holds_back() { 0 } else { self.inner.handle_train(train, sent) }
    }
}

//! Hints about the link that an endpoint sends into.

use crate::endpoint::LinkHint;
use crate::link::LinkState;

/// Turns the state of a link into [hints](LinkHint) about what has changed since the last update.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkWatch {
    reported: Option<LinkState>,
}

impl LinkWatch {
    /// A watch that has reported nothing yet. Endpoints then assume only that the link is up.
    pub fn new() -> Self {
        LinkWatch::default()
    }

    /// The hints about a new state, in the order of delivery. `Down` comes first and `Up` last, so that an endpoint
    /// that sends on `Up` already knows the new rate.
    pub fn update(&mut self, state: LinkState) -> [Option<LinkHint>; 4] {
        changes(self.reported.replace(state), state)
    }

    /// The hints for a listener that joins later, about the state that was last reported.
    pub fn current_hints(&self) -> [Option<LinkHint>; 4] {
        self.reported.map_or([None; 4], |state| changes(None, state))
    }
}

fn changes(reported: Option<LinkState>, state: LinkState) -> [Option<LinkHint>; 4] {
    let was_up = reported.is_none_or(|reported| reported.up);
    let same_rate = reported.is_some_and(|reported| reported.rate == state.rate);
    [
        (was_up && !state.up).then_some(LinkHint::Down),
        (!same_rate).then_some(LinkHint::Rate(state.rate)),
        state.ber.filter(|_| reported.is_none_or(|reported| reported.ber != state.ber)).map(LinkHint::Ber),
        (!was_up && state.up).then_some(LinkHint::Up),
    ]
}

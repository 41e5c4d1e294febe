//! What an endpoint is told of the link that it sends into.

use crate::endpoint::LinkHint;
use crate::link::LinkState;

/// Makes [hints](LinkHint) of what a link is like: only what has changed since the last look is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkWatch {
    told: Option<LinkState>,
}

impl LinkWatch {
    /// Nothing has been told yet. Then nothing is taken for granted but that the link is up.
    pub fn new() -> Self {
        LinkWatch::default()
    }

    /// What to tell, in this order, now that the link is like this: first that it went down, last that it is up, so that an
    /// endpoint that sends at once knows the new rate.
    pub fn look(&mut self, state: LinkState) -> [Option<LinkHint>; 4] {
        changes(self.told.replace(state), state)
    }

    /// What to tell one who begins to listen after others were told.
    pub fn introduction(&self) -> [Option<LinkHint>; 4] {
        self.told.map_or([None; 4], |state| changes(None, state))
    }
}

fn changes(told: Option<LinkState>, state: LinkState) -> [Option<LinkHint>; 4] {
    let was_up = told.is_none_or(|told| told.up);
    let same_rate = told.is_some_and(|told| told.rate == state.rate);
    [
        (was_up && !state.up).then_some(LinkHint::Down),
        (!same_rate).then_some(LinkHint::Rate(state.rate)),
        state.ber.filter(|_| told.is_none_or(|told| told.ber != state.ber)).map(LinkHint::Ber),
        (!was_up && state.up).then_some(LinkHint::Up),
    ]
}

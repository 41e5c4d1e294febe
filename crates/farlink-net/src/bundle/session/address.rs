//! Where the peer is on each path, and whether it has shown that it receives there. `[J8]`, `[J9]`

use std::net::{IpAddr, SocketAddr};

use farlink_core::Time;

use crate::seal::random;

/// An address of the peer, and through which socket and with which own address it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Number of the socket, which the driver chooses.
    pub socket: usize,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The own one, if several are possible.
    pub local: Option<IpAddr>,
}

/// Until an address is proven, so many times the bytes that came from it go there.
const FACTOR: u64 = 3;
/// Challenges of one address, and the time between the first two; later ones twice as far apart.
const MOST_ASKED: u32 = 7;
const FIRST_WAIT: Time = Time::from_millis(500);
/// Longest time between challenges of a path that does not answer.
const LONGEST_WAIT: Time = Time::from_secs(30);

/// The peer's address on a path.
#[derive(Debug, Default)]
pub(super) struct Address {
    proven: Option<Place>,
    candidate: Option<Candidate>,
    /// Whether the proven one is configured, so that none takes its place.
    is_fixed: bool,
    /// Asks whether a configured one answers.
    asking: Option<Asking>,
}

#[derive(Debug)]
struct Candidate {
    place: Place,
    received: u64,
    sent: u64,
    asking: Asking,
}

#[derive(Clone, Debug)]
struct Asking {
    challenge: [u8; 8],
    asked: u32,
    due: Time,
}

impl Asking {
    fn new(now: Time) -> Self {
        let mut challenge = [0; 8];
        random::fill(&mut challenge);
        Asking { challenge, asked: 0, due: now }
    }

    fn ask(&mut self, now: Time) -> [u8; 8] {
        let wait = FIRST_WAIT.times(1 << self.asked.min(6));
        self.due = now + if wait < LONGEST_WAIT { wait } else { LONGEST_WAIT };
        self.asked += 1;
        self.challenge
    }
}

impl Address {
    /// A configured address. It is asked whether it answers.
    pub(super) fn fixed(now: Time, place: Place) -> Self {
        Address { proven: Some(place), candidate: None, is_fixed: true, asking: Some(Asking::new(now)) }
    }

    /// Asks a configured one again, because the way there may have changed.
    pub(super) fn ask_again(&mut self, now: Time) {
        if self.is_fixed {
            self.asking = Some(Asking::new(now));
        }
    }

    /// A sealed datagram has come; `is_newest` if none with a higher number has.
    pub(super) fn on_opened(&mut self, now: Time, place: Place, bytes: usize, is_newest: bool) {
        if self.is_fixed {
            return;
        }
        if self.proven == Some(place) {
            if is_newest {
                self.candidate = None;
            }
            return;
        }
        match &mut self.candidate {
            Some(candidate) if candidate.place == place => candidate.received += bytes as u64,
            _ if is_newest => {
                let asking = Asking::new(now);
                self.candidate = Some(Candidate { place, received: bytes as u64, sent: 0, asking });
            }
            _ => {}
        }
    }

    /// An answer to a challenge has come; whether that proves a new address, or that a configured one answers.
    pub(super) fn on_answer(&mut self, answer: &[u8; 8]) -> bool {
        if self.asking.as_ref().is_some_and(|asking| asking.challenge == *answer) {
            self.asking = None;
            return true;
        }
        match self.candidate.take_if(|candidate| candidate.asking.challenge == *answer) {
            Some(candidate) => {
                self.proven = Some(candidate.place);
                true
            }
            None => false,
        }
    }

    /// Where a datagram of this length goes: to the proven address, or else to a new one within three times what came from it.
    pub(super) fn target(&mut self, bytes: usize) -> Option<Place> {
        self.proven.or_else(|| self.candidate.as_mut()?.spend(bytes))
    }

    /// Where answers to what came from `place` go.
    pub(super) fn back_to(&mut self, place: Place, bytes: usize) -> Option<Place> {
        if self.is_fixed || self.proven == Some(place) {
            return self.proven;
        }
        self.candidate.as_mut().filter(|it| it.place == place)?.spend(bytes)
    }

    /// The challenge that is due, and where it goes, for a datagram of this length.
    pub(super) fn challenge(&mut self, now: Time, bytes: usize) -> Option<(Place, [u8; 8])> {
        if let Some(asking) = self.asking.as_mut().filter(|asking| now >= asking.due) {
            return Some((self.proven?, asking.ask(now)));
        }
        let candidate = self.candidate.as_mut().filter(|it| now >= it.asking.due)?;
        if candidate.asking.asked >= MOST_ASKED {
            self.candidate = None;
            return None;
        }
        let challenge = candidate.asking.ask(now);
        Some((candidate.spend(bytes)?, challenge))
    }

    pub(super) fn due(&self) -> Time {
        let candidate = self.candidate.as_ref().map_or(Time::NEVER, |it| it.asking.due);
        self.asking.as_ref().map_or(Time::NEVER, |it| it.due).min(candidate)
    }

    /// The proven address.
    pub(super) fn proven(&self) -> Option<Place> {
        self.proven
    }

    /// Where packets go at present, proven or not.
    pub(super) fn present(&self) -> Option<Place> {
        self.proven.or(self.candidate.as_ref().map(|it| it.place))
    }

    /// Whether something can be sent there.
    pub(super) fn is_known(&self) -> bool {
        self.proven.is_some() || self.candidate.is_some()
    }
}

impl Candidate {
    fn spend(&mut self, bytes: usize) -> Option<Place> {
        if self.sent + bytes as u64 > FACTOR * self.received {
            return None;
        }
        self.sent += bytes as u64;
        Some(self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(port: u16) -> Place {
        Place { socket: 0, remote: ([127, 0, 0, 1], port).into(), local: None }
    }

    fn proven(port: u16) -> Address {
        Address { proven: Some(place(port)), ..Address::default() }
    }

    #[test]
    fn a_new_address_gets_three_times_what_came_from_it() {
        let mut address = Address::default();
        assert_eq!(address.target(1), None);
        address.on_opened(Time::ZERO, place(1), 100, true);
        let (to, challenge) = address.challenge(Time::ZERO, 34).unwrap();
        assert_eq!(to, place(1));
        assert_eq!(address.target(267), None);
        assert_eq!(address.target(266), Some(place(1)));
        assert_eq!(address.target(1), None);
        assert!(!address.on_answer(&[0; 8]));
        assert!(address.on_answer(&challenge));
        assert_eq!(address.target(100_000), Some(place(1)));
    }

    #[test]
    fn the_newest_datagram_moves_a_path_once_its_address_is_proven() {
        let mut address = proven(1);
        address.on_opened(Time::ZERO, place(2), 100, false);
        assert_eq!(address.due(), Time::NEVER, "an old one, repeated from elsewhere");
        address.on_opened(Time::ZERO, place(2), 100, true);
        assert_eq!(address.target(50), Some(place(1)), "not yet");
        let (to, challenge) = address.challenge(Time::ZERO, 34).unwrap();
        assert_eq!(to, place(2));
        assert!(address.on_answer(&challenge));
        assert_eq!((address.target(50), address.due()), (Some(place(2)), Time::NEVER));
    }

    #[test]
    fn a_copied_datagram_moves_nothing_when_the_path_goes_on() {
        let mut address = proven(1);
        address.on_opened(Time::ZERO, place(2), 100, true);
        address.on_opened(Time::ZERO, place(1), 100, true);
        assert_eq!((address.due(), address.target(1)), (Time::NEVER, Some(place(1))));
    }

    #[test]
    fn who_does_not_answer_is_forgotten() {
        let mut address = proven(1);
        address.on_opened(Time::ZERO, place(2), 10_000, true);
        let mut asked = 0;
        while address.due() != Time::NEVER {
            asked += u32::from(address.challenge(address.due(), 34).is_some());
        }
        assert_eq!((asked, address.target(1)), (MOST_ASKED, Some(place(1))));
    }

    #[test]
    fn a_configured_address_stays_and_is_asked_until_it_answers() {
        let mut address = Address::fixed(Time::ZERO, place(1));
        address.on_opened(Time::ZERO, place(2), 100, true);
        let (to, challenge) = address.challenge(Time::ZERO, 34).unwrap();
        assert_eq!((to, address.back_to(place(2), 1)), (place(1), Some(place(1))));
        for _ in 0..20 {
            let due = address.due();
            assert!(address.challenge(due, 34).is_some() && address.due() <= due + LONGEST_WAIT);
        }
        assert!(address.on_answer(&challenge));
        assert_eq!(address.due(), Time::NEVER);
    }
}

//! When a session gets new keys, and the two messages by which it does. `[Y18]`, `[Y19]`

use std::sync::Arc;

use bytes::Bytes;
use farlink_core::Time;
use farlink_core::wire::aerotp::sealed::{Algorithm, KeyPhase, Sealer, Unsealer};

use crate::seal::renewal::{Answer, Renewal};
use crate::seal::{PresharedKey, PublicKey, SealingKey, StaticKey};

/// Keys are used for so many round trips at least.
const ROUND_TRIPS: u64 = 8;
/// A question that is not answered is repeated after twice as long each time, up to this.
const LONGEST_WAIT: Time = Time::from_secs(64);

/// The keys of this host.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) key: StaticKey,
    pub(super) shared: PresharedKey,
}

/// How old the keys of a session are, and where the next ones stand.
#[derive(Debug)]
pub(super) struct Renewals {
    own: Arc<Own>,
    peer: PublicKey,
    /// How long keys are used.
    life: Time,
    /// When the present keys came, and when the next are due. Never on the side that did not begin the session.
    since: Time,
    due: Time,
    asking: Option<Box<Asking>>,
    answered: Option<Box<Answered>>,
}

#[derive(Debug)]
struct Asking {
    renewal: Renewal,
    message: Bytes,
    again: Time,
    wait: Time,
}

#[derive(Debug)]
struct Answered {
    question: Bytes,
    message: Bytes,
    /// The own new key and its phase, until the peer has shown that it has it; it does by the so-manieth agreed key of its own.
    key: Option<(SealingKey, KeyPhase)>,
    agreed_keys: u64,
}

impl Renewals {
    pub(super) fn new(own: Arc<Own>, peer: PublicKey, life: Time) -> Self {
        Renewals { own, peer, life, since: Time::ZERO, due: Time::NEVER, asking: None, answered: None }
    }

    /// The side that began the session has new keys.
    pub(super) fn begin(&mut self, now: Time) {
        (self.since, self.due) = (now, now + self.life);
    }

    /// A segment goes out. Returns the question for new keys, if it is time for them.
    pub(super) fn on_segment(
        &mut self,
        now: Time,
        sealer: &Sealer<SealingKey>,
        round_trip: impl FnOnce() -> Option<Time>,
        wait: impl FnOnce() -> Time,
    ) -> Option<Bytes> {
        if now < self.due || self.asking.is_some() {
            return None;
        }
        let least = round_trip().unwrap_or(Time::ZERO).times(ROUND_TRIPS);
        if now < self.since + least {
            self.due = self.since + least;
            return None;
        }
        Some(self.ask(now, sealer, wait()))
    }

    fn ask(&mut self, now: Time, sealer: &Sealer<SealingKey>, wait: Time) -> Bytes {
        let phase = sealer.key_phase().next();
        let (renewal, message) = Renewal::begin(&self.own.key, &self.peer, &self.own.shared, phase);
        let message = Bytes::from(message);
        self.asking = Some(Box::new(Asking { renewal, message: message.clone(), again: now + wait, wait }));
        message
    }

    /// The question again, if it has waited for long enough; another one, if a limit has changed the key meanwhile.
    pub(super) fn handle_timeout(&mut self, now: Time, sealer: &Sealer<SealingKey>) -> Option<Bytes> {
        let asking = self.asking.as_mut().filter(|asking| now >= asking.again)?;
        asking.wait = asking.wait.times(2).min(LONGEST_WAIT);
        asking.again = now + asking.wait;
        if asking.renewal.phase == sealer.key_phase().next() {
            return Some(asking.message.clone());
        }
        let wait = asking.wait;
        Some(self.ask(now, sealer, wait))
    }

    pub(super) fn poll_timeout(&self) -> Time {
        self.asking.as_ref().map_or(Time::NEVER, |asking| asking.again)
    }

    /// The peer asks for new keys. Returns the answer; `None` if there is none to give.
    pub(super) fn on_question(
        &mut self,
        question: &Bytes,
        algorithm: Algorithm,
        sealer: &Sealer<SealingKey>,
        opener: &mut Unsealer<SealingKey>,
    ) -> Option<Bytes> {
        if let Some(answered) = self.answered.as_ref().filter(|answered| answered.question == *question) {
            return Some(answered.message.clone());
        }
        let phase = sealer.key_phase().next();
        let answer = Answer::to(question, &self.own.key, &self.peer, &self.own.shared, (algorithm, phase))?;
        if answer.phase != opener.key_phase().next() {
            return None; // an old question, or one whose sender has come to a limit since
        }
        let agreed_keys = opener.agreed_keys() + 1;
        opener.agree(answer.keys.receiving);
        let message = Bytes::from(answer.message);
        let key = Some((answer.keys.sending, phase));
        self.answered =
            Some(Box::new(Answered { question: question.clone(), message: message.clone(), key, agreed_keys }));
        Some(message)
    }

    /// The peer has answered. Returns whether the new keys are used from now on.
    pub(super) fn on_answer(
        &mut self,
        now: Time,
        message: &[u8],
        algorithm: Algorithm,
        sealer: &mut Sealer<SealingKey>,
        opener: &mut Unsealer<SealingKey>,
    ) -> bool {
        let Some(asking) = &mut self.asking else { return false };
        let Some((phase, keys)) = asking.renewal.finish(message, algorithm) else { return false };
        let is_in_time = asking.renewal.phase == sealer.key_phase().next();
        self.asking = None;
        if is_in_time {
            // The peer has the key, as it has answered.
            sealer.change_key_to(keys.sending);
        }
        if phase == opener.key_phase().next() {
            opener.agree(keys.receiving);
        }
        self.begin(now);
        is_in_time
    }

    /// A packet has opened: if it is the first under the peer's new key, the peer has the own one. Returns whether it was.
    pub(super) fn on_opened(&mut self, sealer: &mut Sealer<SealingKey>, opener: &Unsealer<SealingKey>) -> bool {
        let Some(answered) = &mut self.answered else { return false };
        if answered.key.is_none() || opener.agreed_keys() < answered.agreed_keys {
            return false;
        }
        if let Some((key, _)) = answered.key.take().filter(|(_, phase)| *phase == sealer.key_phase().next()) {
            sealer.change_key_to(key);
        }
        true
    }

    pub(super) fn move_origin(&mut self, by: Time) {
        let moved = |time: Time| if time == Time::NEVER { time } else { time.since(by) };
        (self.since, self.due) = (moved(self.since), moved(self.due));
        if let Some(asking) = &mut self.asking {
            asking.again = moved(asking.again);
        }
    }
}

//! Sessions of a process of the peer that is gone without a word, while another one of it is there. `[Y28]`

use std::collections::BTreeMap;

use farlink_core::Time;
use farlink_core::event::Abort;
use farlink_core::rng::RandomSource as _;

use super::Mux;
use super::session::Session;

/// So many questions in a row have to be answered by the newest session alone.
const QUESTIONS: u32 = 10;
/// An answer may come so much later than that of the newest session, or half of the time that this one took.
const LEAST_GRACE: Time = Time::from_millis(500);
/// Without an answer of the newest session a question counts nothing, and the next one waits for twice as long, this at most.
const LONGEST_WAIT: Time = Time::from_secs(32);
/// A session that has been silent for so long may end, if its peer was certainly to be reached at its address.
const SILENCE: Time = Time::from_secs(5);
/// Which is so if it was heard as late as this before the newest one began: translators remember for longer.
const REMEMBERED: Time = Time::from_secs(20);
/// Otherwise it may be silent for so long: an idle side shows where it is within 60 s. After an answer it is asked again then.
const LONG_SILENCE: Time = Time::from_secs(75);
/// Between questions that only wait for this.
const PAUSE: Time = Time::from_secs(5);

/// The sessions to which the peer has begun a newer one.
#[derive(Debug, Default)]
pub(super) struct LeftBehind(BTreeMap<u32, Asked>);

/// A session that is asked whether it is still there.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// The newest one of its peer.
    newest: u32,
    /// The silence after which it may end.
    silence: Time,
    state: State,
    /// Numbers of all questions are from the first one to the present one.
    first: u64,
    number: u64,
    /// So many questions in a row were answered by the newest session alone.
    missed: u32,
    due: Time,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// It has answered, and is asked again when it is silent.
    Resting,
    /// It is asked next.
    Begins,
    /// Both are asked, for the answer of the newest one there is so much time.
    Asks { began: Time, wait: Time },
    /// The newest one has answered.
    Answered { began: Time },
}

impl LeftBehind {
    pub(super) fn due(&self) -> Time {
        self.0.values().map(|asked| asked.due).min().unwrap_or(Time::NEVER)
    }

    /// An answer has come over a session.
    pub(super) fn on_answer(&mut self, now: Time, session: u32, number: u64) {
        if let Some(asked) = self.0.get_mut(&session)
            && number.wrapping_sub(asked.first) <= asked.number.wrapping_sub(asked.first)
        {
            asked.rest(now);
        }
        for asked in self.0.values_mut().filter(|asked| asked.newest == session && asked.number == number) {
            if let State::Asks { began, .. } = asked.state {
                let grace = Time::from_ps(now.since(began).as_ps() / 2).max(LEAST_GRACE);
                let pause = if asked.missed >= QUESTIONS { began + PAUSE } else { now };
                (asked.state, asked.due) = (State::Answered { began }, pause.max(now + grace));
            }
        }
    }

    pub(super) fn forget(&mut self, session: u32) {
        self.0.remove(&session);
    }

    pub(super) fn move_origin(&mut self, by: Time) {
        for asked in self.0.values_mut() {
            asked.due = asked.due.since(by);
            if let State::Asks { began, .. } | State::Answered { began } = &mut asked.state {
                *began = began.since(by);
            }
        }
    }
}

impl Asked {
    fn rest(&mut self, now: Time) {
        (self.state, self.missed, self.silence) = (State::Resting, 0, LONG_SILENCE);
        self.due = now + LONG_SILENCE;
    }
}

impl Mux {
    /// A session that a peer has begun is proven: those that it began before are asked whether they are still there. `[Y28]`
    pub(super) fn on_newest(&mut self, now: Time, newest: u32) {
        let Some(new) = self.sessions.get(&newest) else { return };
        let (began, address) = (new.began, new.route.remote.ip());
        let before: Vec<u32> = self.begun_by_peer(new).filter(|it| it.began <= began).map(|it| it.own_id).collect();
        for id in before {
            let (first, state) = (self.random.next_u64(), State::Begins);
            let new = Asked { newest, silence: LONG_SILENCE, state, first, number: first, missed: 0, due: now };
            let asked = self.left_behind.0.entry(id).or_insert(new);
            (asked.newest, asked.state, asked.due) = (newest, state, now);
            let it = &self.sessions[&id];
            if it.route.remote.ip() == address && began <= it.last_opened + REMEMBERED {
                asked.silence = SILENCE;
            }
        }
    }

    /// The other sessions that the peer of a session has begun.
    fn begun_by_peer<'a>(&'a self, of: &'a Session) -> impl Iterator<Item = &'a Session> {
        let has_begun = |it: &&Session| self.answered.get(&it.code) == Some(&it.own_id);
        self.sessions.values().filter(|it| it.peer == of.peer && it.own_id != of.own_id).filter(has_begun)
    }

    /// Asks those whose turn it is, and ends those that are gone.
    pub(super) fn ask_left_behind(&mut self, now: Time) {
        while let Some((&id, &asked)) = self.left_behind.0.iter().find(|(_, asked)| asked.due <= now) {
            match self.ask_one(now, id, asked) {
                Some(asked) => drop(self.left_behind.0.insert(id, asked)),
                None => self.left_behind.forget(id),
            }
        }
    }

    /// The next question; `None` if there is none left.
    fn ask_one(&mut self, now: Time, id: u32, mut asked: Asked) -> Option<Asked> {
        let it = self.sessions.get(&id)?;
        if it.connections.is_idle() {
            asked.rest(now); // it is forgotten by itself `[Y12]`
            return Some(asked);
        }
        if !self.sessions.contains_key(&asked.newest) {
            let later = self.begun_by_peer(it).filter(|other| other.began >= it.began && other.proven().is_some());
            asked.newest = later.max_by_key(|other| other.began)?.own_id;
            asked.state = State::Begins;
        }
        let mut wait = Time::ZERO;
        match asked.state {
            State::Resting if now < it.last_opened + LONG_SILENCE => {
                asked.due = it.last_opened + LONG_SILENCE;
                return Some(asked);
            }
            State::Resting | State::Begins => {}
            State::Asks { wait: last, .. } => wait = last.times(2).min(LONGEST_WAIT),
            State::Answered { began } => {
                asked.missed = if it.last_opened < began { asked.missed + 1 } else { 0 };
                if asked.missed >= QUESTIONS && now >= it.last_opened + asked.silence {
                    self.remove(id, Abort::PeerRestarted);
                    return None;
                }
            }
        }
        asked.number = asked.number.wrapping_add(1);
        let newest = self.sessions.get_mut(&asked.newest)?;
        wait = wait.max(newest.round_trip().unwrap_or_default().times(2)).max(LEAST_GRACE);
        (asked.state, asked.due) = (State::Asks { began: now, wait }, now + wait);
        for session in [asked.newest, id] {
            self.sessions.get_mut(&session)?.challenge(asked.number);
            self.agenda.touch(session);
        }
        Some(asked)
    }
}

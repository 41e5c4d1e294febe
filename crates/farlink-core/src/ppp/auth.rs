//! Both ends of a line prove who they are: PAP (RFC 1334) and CHAP with MD5 (RFC 1994).

use bytes::Bytes;

use super::control::ControlPacket;
use super::lcp::Proof;
use super::negotiator::Limits;
use super::secret::{Identities, chap_response};
use crate::rng::RandomSource;
use crate::time::Time;

/// The protocol number of PAP.
pub const PAP: u16 = 0xc023;
/// The protocol number of CHAP.
pub const CHAP: u16 = 0xc223;

/// Codes of PAP (RFC 1334, section 2.2).
mod pap {
    pub(super) const REQUEST: u8 = 1;
    pub(super) const ACK: u8 = 2;
    pub(super) const NAK: u8 = 3;
}

/// Codes of CHAP (RFC 1994, section 4).
mod chap {
    pub(super) const CHALLENGE: u8 = 1;
    pub(super) const RESPONSE: u8 = 2;
    pub(super) const SUCCESS: u8 = 3;
    pub(super) const FAILURE: u8 = 4;
}

/// Bytes of a challenge: as many as the response, as RFC 1994, section 4.1, advises at least.
const CHALLENGE_BYTES: usize = 16;

/// How the proof of one side stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not known yet.
    Open,
    /// The side has proven itself; with the peer's name if the peer has one.
    Proven(Option<Vec<u8>>),
    /// It has not.
    Failed,
    /// No answer came in time.
    Silent,
}

/// How the proof of one side stands, and how long an answer is waited for.
#[derive(Clone, Debug)]
struct Progress {
    standing: Standing,
    due: Option<Time>,
    left: u8,
    limits: Limits,
}

impl Progress {
    fn start(now: Time, limits: Limits) -> Self {
        Progress { standing: Standing::Open, due: Some(now + limits.restart), left: limits.max_configure, limits }
    }

    /// When [`repeats`](Self::repeats) is due.
    fn poll_timeout(&self) -> Option<Time> {
        self.due.filter(|_| self.standing == Standing::Open)
    }

    /// Whether it is time to send again; after the last time the other side is silent.
    fn repeats(&mut self, now: Time) -> bool {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return false;
        }
        self.left = self.left.saturating_sub(1);
        self.due = (self.left > 0).then(|| now + self.limits.restart);
        if self.left == 0 {
            self.standing = Standing::Silent;
        }
        self.left > 0
    }
}

/// The peer proves itself to us.
#[derive(Clone, Debug)]
pub struct Verifier {
    proof: Proof,
    id: u8,
    challenge: [u8; CHALLENGE_BYTES],
    progress: Progress,
}

impl Verifier {
    /// Asks the peer for a proof.
    pub fn start(
        now: Time,
        proof: Proof,
        limits: Limits,
        known: &Identities,
        random: &mut dyn RandomSource,
        out: &mut Vec<(u16, ControlPacket)>,
    ) -> Self {
        let progress = Progress::start(now, limits);
        let mut started = Verifier { proof, id: 0, challenge: [0; CHALLENGE_BYTES], progress };
        let halves = [random.next_u64(), random.next_u64()].map(u64::to_be_bytes);
        started.challenge = halves.as_flattened().try_into().expect("two halves of 8 bytes");
        started.id = random.next_u64() as u8;
        started.ask(known, out);
        started
    }

    /// The challenge.
    pub(super) fn challenge(&self) -> [u8; CHALLENGE_BYTES] {
        self.challenge
    }

    /// How the peer's proof stands.
    pub fn standing(&self) -> &Standing {
        &self.progress.standing
    }

    fn ask(&self, known: &Identities, out: &mut Vec<(u16, ControlPacket)>) {
        if self.proof == Proof::ChapMd5 {
            // The peer chooses its secret by our name.
            let name = known.own.as_ref().map_or(&[][..], |own| &own.name);
            let data = [&[CHALLENGE_BYTES as u8], &self.challenge[..], name].concat();
            out.push((CHAP, ControlPacket { code: chap::CHALLENGE, id: self.id, data: data.into() }));
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.progress.poll_timeout()
    }

    /// Asks again, or gives up.
    pub fn on_timeout(&mut self, now: Time, known: &Identities, out: &mut Vec<(u16, ControlPacket)>) {
        if self.progress.repeats(now) {
            self.ask(known, out);
        }
    }

    /// Takes what the peer sends as its proof.
    pub fn handle(
        &mut self,
        protocol: u16,
        packet: &ControlPacket,
        known: &Identities,
        out: &mut Vec<(u16, ControlPacket)>,
    ) {
        let checked = match (protocol, self.proof, packet.code) {
            (PAP, Proof::Pap, pap::REQUEST) => {
                let Some((name, rest)) = counted(&packet.data) else { return };
                let Some((password, _)) = counted(rest) else { return };
                Some((name, known.is_proven(name, |secret| secret.is(password))))
            }
            (CHAP, Proof::ChapMd5, chap::RESPONSE) if packet.id == self.id => {
                counted(&packet.data).map(|(response, name)| {
                    (name, known.is_proven(name, |secret| secret.answers(self.id, &self.challenge, response)))
                })
            }
            _ => return,
        };
        let Some((name, is_good)) = checked else { return };
        // The first answer counts: a peer that has not got ours repeats its own, and nobody has more than one try on a line.
        if self.progress.standing == Standing::Open {
            self.progress.standing = if is_good { Standing::Proven(Some(name.to_vec())) } else { Standing::Failed };
        }
        let is_proven = matches!(self.progress.standing, Standing::Proven(_)) && is_good;
        let code = match (self.proof, is_proven) {
            (Proof::Pap, true) => pap::ACK,
            (Proof::Pap, false) => pap::NAK,
            (Proof::ChapMd5, true) => chap::SUCCESS,
            (Proof::ChapMd5, false) => chap::FAILURE,
        };
        // PAP's answers have a message with its length, CHAP's only a message: there is none.
        let data = if self.proof == Proof::Pap { Bytes::from_static(&[0]) } else { Bytes::new() };
        out.push((protocol, ControlPacket { code, id: packet.id, data }));
    }
}

/// We prove ourselves to the peer.
#[derive(Clone, Debug)]
pub struct Prover {
    proof: Proof,
    id: u8,
    progress: Progress,
    /// The response that is repeated until it is answered.
    response: Option<ControlPacket>,
}

impl Prover {
    /// Shows who we are, or waits for the peer's challenge.
    pub fn start(
        now: Time,
        proof: Proof,
        limits: Limits,
        known: &Identities,
        out: &mut Vec<(u16, ControlPacket)>,
    ) -> Self {
        let started = Prover { proof, id: 1, progress: Progress::start(now, limits), response: None };
        started.show(known, out);
        started
    }

    /// How our proof stands.
    pub fn standing(&self) -> &Standing {
        &self.progress.standing
    }

    fn show(&self, known: &Identities, out: &mut Vec<(u16, ControlPacket)>) {
        if self.proof == Proof::ChapMd5 {
            out.extend(self.response.clone().map(|response| (CHAP, response)));
        } else if let Some(own) = &known.own {
            let mut data = Vec::new();
            for part in [&own.name[..], own.secret.as_bytes()] {
                data.push(u8::try_from(part.len()).unwrap_or(u8::MAX));
                data.extend(&part[..part.len().min(255)]);
            }
            out.push((PAP, ControlPacket { code: pap::REQUEST, id: self.id, data: data.into() }));
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.progress.poll_timeout()
    }

    /// Shows it again, or gives up.
    pub fn on_timeout(&mut self, now: Time, known: &Identities, out: &mut Vec<(u16, ControlPacket)>) {
        if self.progress.repeats(now) {
            self.show(known, out);
        }
    }

    /// Takes the peer's challenge or its judgement. `is_ours` says whether a challenge is one that we ask others.
    pub fn handle(
        &mut self,
        protocol: u16,
        packet: &ControlPacket,
        known: &Identities,
        is_ours: impl Fn(&[u8]) -> bool,
        out: &mut Vec<(u16, ControlPacket)>,
    ) {
        let judgement = match (protocol, self.proof, packet.code) {
            (PAP, Proof::Pap, pap::ACK) if packet.id == self.id => Standing::Proven(None),
            (PAP, Proof::Pap, pap::NAK) if packet.id == self.id => Standing::Failed,
            (CHAP, Proof::ChapMd5, chap::CHALLENGE) => {
                let (Some((challenge, _)), Some(own)) = (counted(&packet.data), &known.own) else { return };
                if challenge.is_empty() || is_ours(challenge) {
                    return;
                }
                let response = chap_response(packet.id, &own.secret, challenge);
                let data = [&[response.len() as u8], &response[..], &own.name].concat();
                self.id = packet.id;
                self.response = Some(ControlPacket { code: chap::RESPONSE, id: packet.id, data: data.into() });
                self.show(known, out);
                return;
            }
            (CHAP, Proof::ChapMd5, chap::SUCCESS) if self.response.is_some() && packet.id == self.id => {
                Standing::Proven(None)
            }
            (CHAP, Proof::ChapMd5, chap::FAILURE) if self.response.is_some() && packet.id == self.id => {
                Standing::Failed
            }
            _ => return,
        };
        if self.progress.standing == Standing::Open || judgement == Standing::Failed {
            self.progress.standing = judgement;
        }
    }
}

/// A field with its length in the first byte, and the rest.
fn counted(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = data.split_first()?;
    rest.split_at_checked(usize::from(length))
}

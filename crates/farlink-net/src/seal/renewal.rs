//! New keys for a session that there is: Noise_IKpsk1 again, in two messages of the session. `[Y18]`

use farlink_core::wire::aerotp::sealed::{Algorithm, KeyPhase};
use snow::{Builder, HandshakeState};

use super::hello::{SessionKeys, builder, split};
use super::identity::{PresharedKey, PublicKey, StaticKey};

/// Not that of a hello: neither is ever taken for the other.
const PROLOGUE: &[u8] = b"farlink AeroTP over UDP, version 1, new keys";

/// The payload of both messages: the key phase of the sender's new key.
const PAYLOAD_BYTES: usize = 1;
/// Bytes that Noise adds: ephemeral key, sealed static key with its tag, tag of the payload; in the answer the first and the last.
const QUESTION_BYTES: usize = 32 + 48 + PAYLOAD_BYTES + 16;
const ANSWER_BYTES: usize = 32 + PAYLOAD_BYTES + 16;

/// The side that asks for new keys, until the answer has come.
pub(crate) struct Renewal {
    state: HandshakeState,
    /// The phase of the key that it will send with.
    pub(crate) phase: KeyPhase,
}

impl std::fmt::Debug for Renewal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Renewal")
    }
}

/// An answer to a question for new keys, with the keys that follow.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) message: Vec<u8>,
    /// The phase of the key that the asking side will send with.
    pub(crate) phase: KeyPhase,
    pub(crate) keys: SessionKeys,
}

impl Renewal {
    /// Begins; also returns the message that asks. `phase` is that of the new key of this side.
    pub(crate) fn begin(own: &StaticKey, peer: &PublicKey, shared: &PresharedKey, phase: KeyPhase) -> (Self, Vec<u8>) {
        let builder = builder(PROLOGUE, own, shared).and_then(|builder| builder.remote_public_key(peer.as_bytes()));
        let mut state =
            builder.and_then(Builder::build_initiator).expect("all keys have the lengths that Noise asks for");
        let message = write(&mut state, phase, QUESTION_BYTES);
        (Renewal { state, phase }, message)
    }

    /// Reads the answer: the phase of the peer's new key, and the keys. `None` if it is not that to this question, which then still
    /// waits for the right one.
    pub(crate) fn finish(&mut self, answer: &[u8], algorithm: Algorithm) -> Option<(KeyPhase, SessionKeys)> {
        let phase = read(&mut self.state, answer)?;
        let (sending, receiving) = split(&mut self.state, algorithm);
        Some((phase, SessionKeys { sending, receiving }))
    }
}

impl Answer {
    /// Answers a question of the peer; `None` if it is none, or of somebody else. `phase` is that of the new key of this side.
    pub(crate) fn to(
        question: &[u8],
        own: &StaticKey,
        peer: &PublicKey,
        shared: &PresharedKey,
        (algorithm, phase): (Algorithm, KeyPhase),
    ) -> Option<Self> {
        let mut state = builder(PROLOGUE, own, shared).and_then(Builder::build_responder).ok()?;
        let peer_phase = read(&mut state, question)?;
        if state.get_remote_static() != Some(&peer.as_bytes()[..]) {
            return None;
        }
        let message = write(&mut state, phase, ANSWER_BYTES);
        let (receiving, sending) = split(&mut state, algorithm);
        Some(Answer { message, phase: peer_phase, keys: SessionKeys { sending, receiving } })
    }
}

fn write(state: &mut HandshakeState, phase: KeyPhase, bytes: usize) -> Vec<u8> {
    let mut message = vec![0; bytes];
    let written = state.write_message(&[phase.number()], &mut message).expect("the buffer has the message's length");
    debug_assert_eq!(written, bytes);
    message
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Option<KeyPhase> {
    let mut payload = [0; PAYLOAD_BYTES];
    let bytes = state.read_message(message, &mut payload).ok()?;
    (bytes == PAYLOAD_BYTES).then(|| KeyPhase::new(payload[0]))
}

#[cfg(test)]
mod tests {
    use farlink_core::wire::aerotp::sealed::PacketKey as _;

    use super::*;

    #[test]
    fn both_sides_have_the_same_new_keys() {
        let (a, b, c) = (StaticKey::generate(), StaticKey::generate(), StaticKey::generate());
        let (shared, algorithm) = (PresharedKey::default(), Algorithm::Aes256Gcm);
        let (one, two) = (KeyPhase::new(1), KeyPhase::new(2));
        let (mut renewal, question) = Renewal::begin(&a, &b.public(), &shared, one);
        assert!(Answer::to(&question, &b, &c.public(), &shared, (algorithm, two)).is_none(), "another peer");
        let answer = Answer::to(&question, &b, &a.public(), &shared, (algorithm, two)).unwrap();
        assert_eq!(answer.phase, one);

        for place in 0..answer.message.len() {
            let mut forged = answer.message.clone();
            forged[place] ^= 1;
            assert!(renewal.finish(&forged, algorithm).is_none());
        }
        let (phase, keys) = renewal.finish(&answer.message, algorithm).unwrap();
        assert_eq!(phase, two);
        let tag = |key: &super::super::SealingKey| key.seal(&[0; 12], b"", &mut [1]);
        assert_eq!(tag(&keys.sending), tag(&answer.keys.receiving));
        assert_eq!(tag(&keys.receiving), tag(&answer.keys.sending));
        assert_ne!(tag(&keys.sending), tag(&keys.receiving));
    }

    #[test]
    fn anything_else_is_no_question() {
        let (a, b) = (StaticKey::generate(), StaticKey::generate());
        let (shared, phases) = (PresharedKey::default(), (Algorithm::Aes256Gcm, KeyPhase::new(1)));
        let (_, question) = Renewal::begin(&a, &b.public(), &shared, KeyPhase::new(1));
        for bytes in 0..question.len() {
            assert!(Answer::to(&question[..bytes], &b, &a.public(), &shared, phases).is_none());
        }
        assert!(Answer::to(&question, &a, &b.public(), &shared, phases).is_none(), "to another host");
    }
}

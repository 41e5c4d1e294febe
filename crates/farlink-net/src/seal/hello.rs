//! The handshake, Noise_IKpsk1 (X25519, ChaCha20-Poly1305, BLAKE2s) in two messages, and the codes around it.
//!
//! Content of a packet of kind hello, behind the outer header (`docs/sessions.md`, `[Y1]`):
//!
//! | bytes | field |
//! |---|---|
//! | 0 | 1 initiation, 2 response, 3 cookie |
//! | then | the message of Noise |
//! | then | code over all before it, by the receiver's public key (16 bytes) |
//! | then | code over all before it, by a cookie, or 0 (16 bytes) |

use farlink_core::wire::aerotp::sealed::{Algorithm, Cover};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::identity::{PresharedKey, PublicKey, StaticKey};
use super::mac::{HelloMac, MAC_BYTES, Mac, are_equal, mac};
use super::packet_key::{SECRET_BYTES, SealingKey, Secret};

const PATTERN: &str = "Noise_IKpsk1_25519_ChaChaPoly_BLAKE2s";

/// Purpose of the keys. Both sides mix it into the handshake: another version or protocol gives other keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Sessions of AeroTP.
    Session,
    /// Bundles of IP paths.
    Bundle,
}

impl Protocol {
    const fn prologue(self) -> &'static [u8] {
        match self {
            Protocol::Session => b"farlink AeroTP over UDP, version 1",
            Protocol::Bundle => b"farlink bundle of IP paths, version 1",
        }
    }
}

const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;

const INITIATION_BYTES: usize = 8 + SECRET_BYTES + 4 + MAC_BYTES + 1;
const RESPONSE_BYTES: usize = 4 + MAC_BYTES + 1;
/// Bytes that Noise adds: ephemeral key, sealed static key with its tag, tag of the payload; in the response the first and the last.
const NOISE_INITIATION_BYTES: usize = 32 + 48 + INITIATION_BYTES + 16;
const NOISE_RESPONSE_BYTES: usize = 32 + RESPONSE_BYTES + 16;
const CODES_BYTES: usize = 2 * MAC_BYTES;

/// Bytes of the content of an initiation and of a response.
pub(crate) const INITIATION_CONTENT_BYTES: usize = 1 + NOISE_INITIATION_BYTES + CODES_BYTES;
pub(crate) const RESPONSE_CONTENT_BYTES: usize = 1 + NOISE_RESPONSE_BYTES + CODES_BYTES;

const AES_BIT: u8 = 1;
/// In an initiation: packets in the clear are permitted. In a response: they are agreed. `[Y24]`
const CLEAR_BIT: u8 = 4;
const EARLY_BIT: u8 = 2;

/// Sealed content of an initiation. `[Y7]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Initiation {
    /// It grows with each initiation of a host, so that a recorded one is known.
    pub(crate) counter: u64,
    /// From it comes the key of early packets.
    pub(crate) early: Secret,
    /// The id of packets to the initiator.
    pub(crate) connection_id: u32,
    /// Proof of a reset by the initiator.
    pub(crate) reset_token: Mac,
    /// Of early packets; after that the one that both prefer, or else ChaCha20-Poly1305.
    pub(crate) algorithm: Algorithm,
    /// Whether packets in the clear are permitted.
    pub(crate) permits_clear: bool,
}

impl Initiation {
    fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(INITIATION_BYTES));
        bytes.extend(self.counter.to_be_bytes());
        bytes.extend(&*self.early);
        bytes.extend(self.connection_id.to_be_bytes());
        bytes.extend(self.reset_token);
        bytes.push(to_bit(self.algorithm) | if self.permits_clear { CLEAR_BIT } else { 0 });
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (counter, rest) = bytes.split_first_chunk()?;
        let (early, rest) = rest.split_first_chunk()?;
        let (connection_id, rest) = rest.split_first_chunk()?;
        let (reset_token, rest) = rest.split_first_chunk()?;
        let &[flags] = rest else { return None };
        Some(Initiation {
            counter: u64::from_be_bytes(*counter),
            early: Zeroizing::new(*early),
            connection_id: u32::from_be_bytes(*connection_id),
            reset_token: *reset_token,
            algorithm: from_bit(flags),
            permits_clear: flags & CLEAR_BIT != 0,
        })
    }
}

/// Sealed content of a response. `[Y7]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    /// The id of packets to the responder.
    pub(crate) connection_id: u32,
    /// Proof of a reset by the responder.
    pub(crate) reset_token: Mac,
    /// That of both directions from now on.
    pub(crate) algorithm: Algorithm,
    /// Whether early packets are opened. They are not if the counter shows that the initiation may be a recorded one.
    pub(crate) takes_early: bool,
    /// The protection of packets from now on, but not of early ones.
    pub(crate) cover: Cover,
}

impl Response {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(RESPONSE_BYTES);
        bytes.extend(self.connection_id.to_be_bytes());
        bytes.extend(self.reset_token);
        let early = if self.takes_early { EARLY_BIT } else { 0 };
        let clear = if self.cover == Cover::Clear { CLEAR_BIT } else { 0 };
        bytes.push(to_bit(self.algorithm) | early | clear);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (connection_id, rest) = bytes.split_first_chunk()?;
        let (reset_token, rest) = rest.split_first_chunk()?;
        let &[flags] = rest else { return None };
        Some(Response {
            connection_id: u32::from_be_bytes(*connection_id),
            reset_token: *reset_token,
            algorithm: from_bit(flags),
            takes_early: flags & EARLY_BIT != 0,
            cover: if flags & CLEAR_BIT != 0 { Cover::Clear } else { Cover::Seal },
        })
    }
}

fn to_bit(algorithm: Algorithm) -> u8 {
    if algorithm == Algorithm::Aes256Gcm { AES_BIT } else { 0 }
}

fn from_bit(flags: u8) -> Algorithm {
    if flags & AES_BIT != 0 { Algorithm::Aes256Gcm } else { Algorithm::ChaCha20Poly1305 }
}

/// The keys of both directions behind a handshake.
#[derive(Debug)]
pub(crate) struct SessionKeys {
    pub(crate) sending: SealingKey,
    pub(crate) receiving: SealingKey,
}

/// The side that begins, until the response has come.
pub(crate) struct Initiator {
    state: HandshakeState,
    permits_clear: bool,
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Initiator")
    }
}

impl Initiator {
    /// Begins a handshake of a session; also returns the content of the hello.
    pub(crate) fn new(
        own: &StaticKey,
        peer: &PublicKey,
        shared: &PresharedKey,
        initiation: &Initiation,
    ) -> (Self, Vec<u8>) {
        Self::of(Protocol::Session, own, peer, shared, initiation)
    }

    /// As [`new`](Self::new), of any protocol.
    pub(crate) fn of(
        protocol: Protocol,
        own: &StaticKey,
        peer: &PublicKey,
        shared: &PresharedKey,
        initiation: &Initiation,
    ) -> (Self, Vec<u8>) {
        let builder =
            builder(protocol.prologue(), own, shared).and_then(|builder| builder.remote_public_key(peer.as_bytes()));
        let mut state =
            builder.and_then(Builder::build_initiator).expect("all keys have the lengths that Noise asks for");
        let message = write(&mut state, INITIATION, &initiation.encode(), NOISE_INITIATION_BYTES, &HelloMac::to(peer));
        (Initiator { state, permits_clear: initiation.permits_clear }, message)
    }

    /// Reads the response; `None` if it is not that to this initiation, which then still waits for the right one.
    pub(crate) fn finish(&mut self, response: &Checked<'_>) -> Option<(Response, SessionKeys)> {
        let response = response.response()?;
        let mut payload = [0; RESPONSE_BYTES];
        let bytes = self.state.read_message(response, &mut payload).ok()?;
        let response = Response::decode(payload.get(..bytes)?)?;
        if response.cover == Cover::Clear && !self.permits_clear {
            return None;
        }
        let (sending, receiving) = split(&mut self.state, response.algorithm);
        Some((response, SessionKeys { sending, receiving }))
    }
}

/// The side that answers.
pub(crate) struct Responder {
    state: HandshakeState,
    /// Key of the initiator.
    pub(crate) peer: PublicKey,
    pub(crate) initiation: Initiation,
}

impl Responder {
    /// Reads an initiation; `None` if it is none, or is for another key. This costs two key agreements.
    pub(crate) fn read(own: &StaticKey, shared: &PresharedKey, initiation: &Checked<'_>) -> Option<Self> {
        Self::of(Protocol::Session, own, shared, initiation)
    }

    /// As [`read`](Self::read), of any protocol.
    pub(crate) fn of(
        protocol: Protocol,
        own: &StaticKey,
        shared: &PresharedKey,
        initiation: &Checked<'_>,
    ) -> Option<Self> {
        let message = initiation.initiation()?;
        let mut state = builder(protocol.prologue(), own, shared).and_then(Builder::build_responder).ok()?;
        let mut payload = Zeroizing::new([0; INITIATION_BYTES]);
        let bytes = state.read_message(message, &mut *payload).ok()?;
        let initiation = Initiation::decode(payload.get(..bytes)?)?;
        let peer = PublicKey::new(state.get_remote_static()?.try_into().ok()?);
        Some(Responder { state, peer, initiation })
    }

    /// The content of the hello that answers, and the keys.
    pub(crate) fn answer(mut self, response: &Response) -> (Vec<u8>, SessionKeys) {
        let code = HelloMac::to(&self.peer);
        let message = write(&mut self.state, RESPONSE, &response.encode(), NOISE_RESPONSE_BYTES, &code);
        let (receiving, sending) = split(&mut self.state, response.algorithm);
        (message, SessionKeys { sending, receiving })
    }
}

/// The content of a hello whose first code is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a> {
    kind: u8,
    message: &'a [u8],
    /// The first code, by which a repeated hello is recognised.
    pub(crate) code: Mac,
    /// All before the second code, and that.
    before_second: &'a [u8],
    second: Mac,
}

impl<'a> Checked<'a> {
    /// Checks length and code of a hello to the owner of `own`: one keyed hash, no key agreement. `[Y2]`
    pub(crate) fn read(own: &HelloMac, content: &'a [u8]) -> Option<Self> {
        let (&kind, _) = content.split_first()?;
        let right_bytes = match kind {
            INITIATION => INITIATION_CONTENT_BYTES,
            RESPONSE => RESPONSE_CONTENT_BYTES,
            _ => return None,
        };
        if content.len() != right_bytes {
            return None;
        }
        let (before, codes) = content.split_at(right_bytes - CODES_BYTES);
        let code = *codes.first_chunk()?;
        let (before_second, second) = content.split_last_chunk()?;
        let checked = Checked { kind, message: &before[1..], code, before_second, second: *second };
        own.is_right(before, &code).then_some(checked)
    }

    pub(crate) fn is_initiation(&self) -> bool {
        self.kind == INITIATION
    }

    /// Whether the second code was made with one of these cookies. `[Y15]`
    pub(crate) fn has_cookie(&self, cookies: &[Mac]) -> bool {
        cookies.iter().any(|cookie| are_equal(&with_cookie(cookie, self.before_second), &self.second))
    }

    fn initiation(&self) -> Option<&'a [u8]> {
        (self.kind == INITIATION).then_some(self.message)
    }

    fn response(&self) -> Option<&'a [u8]> {
        (self.kind == RESPONSE).then_some(self.message)
    }
}

/// Puts the second code into the content of a hello.
pub(crate) fn set_cookie(content: &mut [u8], cookie: &Mac) {
    if let Some((before, second)) = content.split_last_chunk_mut::<MAC_BYTES>() {
        *second = with_cookie(cookie, before);
    }
}

/// The second code.
fn with_cookie(cookie: &Mac, before: &[u8]) -> Mac {
    let mut key = [0; 32];
    key[..MAC_BYTES].copy_from_slice(cookie);
    mac(&key, before)
}

/// A handshake of this side; both have to name the same prologue.
pub(super) fn builder<'a>(
    prologue: &'a [u8],
    own: &'a StaticKey,
    shared: &'a PresharedKey,
) -> Result<Builder<'a>, snow::Error> {
    #[cfg(not(fuzzing))]
    let builder = Builder::new(PATTERN.parse()?);
    #[cfg(fuzzing)]
    let builder = Builder::with_resolver(PATTERN.parse()?, super::repeatable::resolver());
    builder.prologue(prologue)?.local_private_key(own.private_bytes())?.psk(1, shared.as_bytes())
}

fn write(state: &mut HandshakeState, kind: u8, payload: &[u8], noise_bytes: usize, code: &HelloMac) -> Vec<u8> {
    let mut content = vec![0; 1 + noise_bytes];
    content[0] = kind;
    let written = state.write_message(payload, &mut content[1..]).expect("the buffer has the message's length");
    debug_assert_eq!(written, noise_bytes);
    content.extend(code.of(&content));
    content.extend([0; MAC_BYTES]);
    content
}

/// The keys of the initiator's direction and of the responder's.
pub(super) fn split(state: &mut HandshakeState, algorithm: Algorithm) -> (SealingKey, SealingKey) {
    let (first, second) = state.dangerously_get_raw_split();
    let key = |secret| SealingKey::new(algorithm, Zeroizing::new(secret));
    (key(first), key(second))
}

#[cfg(test)]
mod tests {
    use farlink_core::wire::aerotp::sealed::PacketKey;

    use super::*;

    fn initiation() -> Initiation {
        Initiation {
            counter: 77,
            early: Zeroizing::new([5; SECRET_BYTES]),
            connection_id: 0x0102_0304,
            reset_token: [9; MAC_BYTES],
            algorithm: Algorithm::Aes256Gcm,
            permits_clear: true,
        }
    }

    fn response() -> Response {
        let algorithm = Algorithm::ChaCha20Poly1305;
        Response { connection_id: 7, reset_token: [8; MAC_BYTES], algorithm, takes_early: true, cover: Cover::Seal }
    }

    #[test]
    fn both_sides_have_the_same_keys_and_know_each_other() {
        let (a, b) = (StaticKey::generate(), StaticKey::generate());
        let shared = PresharedKey::default();
        let (mut initiator, hello) = Initiator::new(&a, &b.public(), &shared, &initiation());
        let hello = Checked::read(&HelloMac::to(&b.public()), &hello).unwrap();
        let responder = Responder::read(&b, &shared, &hello).unwrap();
        assert_eq!((responder.peer, &responder.initiation), (a.public(), &initiation()));

        let (answer, keys) = responder.answer(&response());
        assert!(answer.len() < INITIATION_CONTENT_BYTES, "an answer is no longer than what it answers");
        let answer = Checked::read(&HelloMac::to(&a.public()), &answer).unwrap();
        let (read, other_keys) = initiator.finish(&answer).unwrap();
        assert_eq!(read, response());
        for (one, other) in [(&keys.sending, &other_keys.receiving), (&keys.receiving, &other_keys.sending)] {
            assert_eq!(one.seal(&[0; 12], b"", &mut [1]), other.seal(&[0; 12], b"", &mut [1]));
        }
        assert_ne!(keys.sending.seal(&[0; 12], b"", &mut [1]), keys.receiving.seal(&[0; 12], b"", &mut [1]));
    }

    #[test]
    fn another_key_or_shared_key_opens_nothing() {
        let (a, b, c) = (StaticKey::generate(), StaticKey::generate(), StaticKey::generate());
        let shared = PresharedKey::default();
        let (_, hello) = Initiator::new(&a, &b.public(), &shared, &initiation());
        assert!(Checked::read(&HelloMac::to(&c.public()), &hello).is_none(), "the code tells without a key agreement");
        let hello = Checked::read(&HelloMac::to(&b.public()), &hello).unwrap();
        assert!(Responder::read(&c, &shared, &hello).is_none());
        assert!(Responder::read(&b, &PresharedKey::new(Zeroizing::new([1; 32])), &hello).is_none());
        assert!(Responder::read(&b, &shared, &hello).is_some());
    }

    /// The responder does not decide alone that packets go in the clear. `[Y24]`
    #[test]
    fn an_answer_in_the_clear_needs_the_permission() {
        let (a, b, shared) = (StaticKey::generate(), StaticKey::generate(), PresharedKey::default());
        for permits_clear in [false, true] {
            let initiation = Initiation { permits_clear, ..initiation() };
            let (mut initiator, hello) = Initiator::new(&a, &b.public(), &shared, &initiation);
            let hello = Checked::read(&HelloMac::to(&b.public()), &hello).unwrap();
            let response = Response { cover: Cover::Clear, ..response() };
            let (answer, _) = Responder::read(&b, &shared, &hello).unwrap().answer(&response);
            let answer = Checked::read(&HelloMac::to(&a.public()), &answer).unwrap();
            let read = initiator.finish(&answer).map(|(response, _)| response);
            assert_eq!(read, permits_clear.then_some(response));
        }
    }

    /// A stranger's answer must not end the wait for the right one.
    #[test]
    fn a_forged_answer_changes_nothing() {
        let (a, b) = (StaticKey::generate(), StaticKey::generate());
        let shared = PresharedKey::default();
        let (mut initiator, hello) = Initiator::new(&a, &b.public(), &shared, &initiation());
        let hello = Checked::read(&HelloMac::to(&b.public()), &hello).unwrap();
        let (answer, _) = Responder::read(&b, &shared, &hello).unwrap().answer(&response());

        let code = HelloMac::to(&a.public());
        for place in (1..answer.len() - CODES_BYTES).step_by(7) {
            let mut forged = answer.clone();
            forged[place] ^= 1;
            assert!(Checked::read(&code, &forged).is_none());
            let before = forged.len() - CODES_BYTES;
            let right = code.of(&forged[..before]);
            forged[before..before + MAC_BYTES].copy_from_slice(&right);
            assert!(initiator.finish(&Checked::read(&code, &forged).unwrap()).is_none());
        }
        assert!(initiator.finish(&Checked::read(&code, &answer).unwrap()).is_some());
    }

    #[test]
    fn hellos_of_other_lengths_are_none() {
        let (a, b) = (StaticKey::generate(), StaticKey::generate());
        let (_, hello) = Initiator::new(&a, &b.public(), &PresharedKey::default(), &initiation());
        let code = HelloMac::to(&b.public());
        assert!(Checked::read(&code, &hello).is_some());
        for bytes in 0..hello.len() {
            assert!(Checked::read(&code, &hello[..bytes]).is_none());
        }
        assert!(Checked::read(&code, &[&hello[..], &[0]].concat()).is_none());
    }
}

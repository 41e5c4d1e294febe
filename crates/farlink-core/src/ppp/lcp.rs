//! The options of a line (RFC 1661, section 6; RFC 1662, section 7; RFC 1990, section 5).

use super::control::Choice;
use super::hdlc::Accm;
use super::negotiator::{Options, Verdict};
use crate::rng::RandomSource;

/// The protocol number of LCP.
pub const PROTOCOL: u16 = 0xc021;

/// Types of options.
pub mod kind {
    /// Maximum-Receive-Unit (RFC 1661, section 6.1).
    pub const MRU: u8 = 1;
    /// Async-Control-Character-Map (RFC 1662, section 7.1).
    pub const ACCM: u8 = 2;
    /// Authentication-Protocol (RFC 1661, section 6.2).
    pub const AUTHENTICATION: u8 = 3;
    /// Magic-Number (RFC 1661, section 6.4).
    pub const MAGIC: u8 = 5;
    /// Protocol-Field-Compression (RFC 1661, section 6.5).
    pub const PFC: u8 = 7;
    /// Address-and-Control-Field-Compression (RFC 1661, section 6.6).
    pub const ACFC: u8 = 8;
    /// Multilink Maximum Received Reconstructed Unit (RFC 1990, section 5.1.1).
    pub const MRRU: u8 = 17;
    /// Short Sequence Number Header Format (RFC 1990, section 5.1.2).
    pub const SHORT_NUMBERS: u8 = 18;
    /// Endpoint Discriminator (RFC 1990, section 5.1.3).
    pub const DISCRIMINATOR: u8 = 19;
}

/// MRU before any negotiation (RFC 1661, section 6.1), bytes.
pub const DEFAULT_MRU: u16 = 1500;

/// Nothing shorter is agreed: a line that carries less is of no use.
const LEAST_MRU: u16 = 128;

/// This many requests with our own magic number, one after the other, and the line is looped back (RFC 1661, section 6.4, leaves the
/// number open; two ends draw the same number of 32 bits once by chance, not three times).
const LOOPS: u8 = 3;

/// How an end proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proof {
    /// CHAP with MD5 (RFC 1994).
    ChapMd5,
    /// PAP (RFC 1334): the password crosses the line in the clear.
    Pap,
}

impl Proof {
    fn data(self) -> Vec<u8> {
        match self {
            Proof::ChapMd5 => vec![0xc2, 0x23, 5],
            Proof::Pap => vec![0xc0, 0x23],
        }
    }

    fn of(data: &[u8]) -> Option<Self> {
        [Proof::ChapMd5, Proof::Pap].into_iter().find(|proof| proof.data() == data)
    }
}

/// Which system an end belongs to (RFC 1990, section 5.1.3): class and address, up to 21 bytes. Empty for the class 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Discriminator(Vec<u8>);

impl Discriminator {
    /// Longest address of any class (RFC 1990, section 5.1.3), bytes.
    pub const LONGEST: usize = 20;

    /// A discriminator; `None` if the address is longer than any class allows.
    pub fn new(class: u8, address: &[u8]) -> Option<Self> {
        (address.len() <= Self::LONGEST).then(|| Discriminator([&[class], address].concat()))
    }
}

/// Options that an end wants for a line. `Default` is a plain line without proof and without multilink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LcpConfig {
    /// Longest information field that this end takes, bytes.
    pub mru: u16,
    /// Control characters that the peer has to escape.
    pub receive_map: Accm,
    /// Whether addresses and protocol numbers may be shortened, both ways.
    pub compresses: bool,
    /// Protocols by which the peer has to prove itself, the best first; empty: it need not.
    pub demands: Vec<Proof>,
    /// Protocols by which this end can prove itself.
    pub offers: Vec<Proof>,
    /// Multilink; `None`: this line is alone.
    pub multilink: Option<Multilink>,
}

/// Options that an end wants for a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Multilink {
    /// Longest packet that this end puts together, bytes.
    pub mrru: u16,
    /// Whether the peer should send numbers of 12 bits.
    pub short_numbers: bool,
    /// Which system this is.
    pub discriminator: Discriminator,
}

impl Default for LcpConfig {
    fn default() -> Self {
        LcpConfig {
            mru: DEFAULT_MRU,
            receive_map: Accm::NONE,
            compresses: true,
            demands: Vec::new(),
            offers: Vec::new(),
            multilink: None,
        }
    }
}

/// The options of one direction, as the receiver of that direction asked for them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agreed {
    /// Longest information field, bytes.
    pub mru: u16,
    /// Control characters to be escaped.
    pub map: Accm,
    /// How the *sender* of that direction proves itself to the receiver.
    pub proof: Option<Proof>,
    /// Magic number of the receiver; 0: none.
    pub magic: u32,
    /// Whether protocol numbers may take one byte.
    pub pfc: bool,
    /// Whether the address and control fields may be left out.
    pub acfc: bool,
    /// Longest packet in fragments, bytes; `None`: no fragments.
    pub mrru: Option<u16>,
    /// Whether fragments have numbers of 12 bits.
    pub short_numbers: bool,
    /// Which system the receiver belongs to.
    pub discriminator: Discriminator,
}

impl Default for Agreed {
    /// Before any negotiation.
    fn default() -> Self {
        Agreed {
            mru: DEFAULT_MRU,
            map: Accm::ALL,
            proof: None,
            magic: 0,
            pfc: false,
            acfc: false,
            mrru: None,
            short_numbers: false,
            discriminator: Discriminator::default(),
        }
    }
}

/// Why a negotiation cannot succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hopeless {
    /// Our own requests come back.
    LoopedBack,
    /// The peer does not prove itself in any way that is asked for.
    NoProof,
}

/// The options of LCP at one end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LcpOptions {
    config: LcpConfig,
    /// Options that this end asks for: how the peer sends.
    ours: Agreed,
    /// Options that the peer asked for last, if they were acceptable: how this end sends.
    peers: Agreed,
    /// Types that the peer has rejected.
    rejected: Vec<u8>,
    loops: u8,
    hopeless: Option<Hopeless>,
}

impl LcpOptions {
    /// The options before a negotiation.
    pub fn new(config: LcpConfig) -> Self {
        let (ours, peers) = (Agreed::default(), Agreed::default());
        LcpOptions { config, ours, peers, rejected: Vec::new(), loops: 0, hopeless: None }
    }

    /// How the peer sends, once it has acknowledged that.
    pub fn receives(&self) -> &Agreed {
        &self.ours
    }

    /// How we send, once we have acknowledged that.
    pub fn sends(&self) -> &Agreed {
        &self.peers
    }

    /// Why the negotiation should end, if it should.
    pub fn hopeless(&self) -> Option<Hopeless> {
        self.hopeless
    }

    /// Whether packets may be cut both ways, so that the line can join a bundle.
    pub fn is_multilink(&self) -> bool {
        self.ours.mrru.is_some() && self.peers.mrru.is_some()
    }

    fn asks(&self, kind: u8) -> bool {
        !self.rejected.contains(&kind)
    }
}

fn magic_number(random: &mut dyn RandomSource) -> u32 {
    loop {
        let magic = random.next_u64() as u32;
        if magic != 0 {
            return magic;
        }
    }
}

impl Options for LcpOptions {
    fn begin(&mut self, random: &mut dyn RandomSource) {
        let multilink = self.config.multilink.as_ref();
        self.ours = Agreed {
            mru: self.config.mru,
            map: self.config.receive_map,
            proof: self.config.demands.first().copied(),
            magic: magic_number(random),
            pfc: self.config.compresses,
            acfc: self.config.compresses,
            mrru: multilink.map(|one| one.mrru),
            short_numbers: multilink.is_some_and(|one| one.short_numbers),
            discriminator: multilink.map(|one| one.discriminator.clone()).unwrap_or_default(),
        };
        self.peers = Agreed::default();
        self.rejected.clear();
        self.hopeless = None;
    }

    fn wanted(&self) -> Vec<Choice> {
        let Agreed { mru, map, proof, magic, pfc, acfc, mrru, short_numbers, discriminator } = &self.ours;
        let choices = [
            (*mru != DEFAULT_MRU).then(|| Choice::new(kind::MRU, mru.to_be_bytes())),
            (*map != Accm::ALL).then(|| Choice::new(kind::ACCM, map.0.to_be_bytes())),
            proof.map(|proof| Choice::new(kind::AUTHENTICATION, proof.data())),
            (*magic != 0).then(|| Choice::new(kind::MAGIC, magic.to_be_bytes())),
            pfc.then(|| Choice::new(kind::PFC, [])),
            acfc.then(|| Choice::new(kind::ACFC, [])),
            mrru.map(|mrru| Choice::new(kind::MRRU, mrru.to_be_bytes())),
            (*short_numbers && mrru.is_some()).then(|| Choice::new(kind::SHORT_NUMBERS, [])),
            (!discriminator.0.is_empty()).then(|| Choice::new(kind::DISCRIMINATOR, discriminator.0.clone())),
        ];
        choices.into_iter().flatten().filter(|choice| self.asks(choice.kind)).collect()
    }

    fn judge(&mut self, choices: &[Choice], random: &mut dyn RandomSource) -> Verdict {
        let (mut naks, mut rejects) = (Vec::new(), Vec::new());
        let mut asked = Agreed::default();
        let mut is_our_magic = false;
        for choice in choices {
            match self.judge_one(choice, &mut asked) {
                Each::Good => {}
                Each::OurMagic => {
                    is_our_magic = true;
                    naks.push(Choice::new(kind::MAGIC, magic_number(random).to_be_bytes()));
                }
                Each::Nak(data) => naks.push(Choice::new(choice.kind, data)),
                Each::Reject => rejects.push(choice.clone()),
            }
        }
        self.loops = if is_our_magic { self.loops + 1 } else { 0 };
        if self.loops >= LOOPS {
            self.loops = 0;
            self.hopeless = Some(Hopeless::LoopedBack);
        }
        if !rejects.is_empty() {
            Verdict::Reject(rejects)
        } else if !naks.is_empty() {
            Verdict::Nak(naks)
        } else {
            self.peers = asked;
            Verdict::Ack
        }
    }

    fn naked(&mut self, choices: &[Choice], random: &mut dyn RandomSource) {
        for choice in choices {
            let two = choice.exactly::<2>().map(u16::from_be_bytes);
            match choice.kind {
                kind::MRU => {
                    self.ours.mru =
                        two.map_or(self.ours.mru, |mru| mru.clamp(LEAST_MRU, self.config.mru.max(LEAST_MRU)))
                }
                kind::ACCM => {
                    let more = choice.exactly::<4>().map_or(0, u32::from_be_bytes);
                    self.ours.map = Accm(self.ours.map.0 | more);
                }
                kind::AUTHENTICATION if self.ours.proof.is_some() => {
                    let other = Proof::of(&choice.data).filter(|proof| self.config.demands.contains(proof));
                    match other.or_else(|| self.next_proof()) {
                        Some(proof) => self.ours.proof = Some(proof),
                        None => self.hopeless = Some(Hopeless::NoProof),
                    }
                }
                kind::MAGIC => self.ours.magic = magic_number(random),
                kind::MRRU if self.ours.mrru.is_some() => {
                    let most = self.config.multilink.as_ref().map_or(DEFAULT_MRU, |one| one.mrru).max(LEAST_MRU);
                    self.ours.mrru = two.map(|mrru| mrru.clamp(LEAST_MRU, most)).or(self.ours.mrru);
                }
                _ => {}
            }
        }
    }

    fn rejected(&mut self, choices: &[Choice]) {
        for choice in choices {
            match choice.kind {
                kind::MRU => self.ours.mru = DEFAULT_MRU,
                kind::ACCM => self.ours.map = Accm::ALL,
                kind::AUTHENTICATION if self.ours.proof.is_some() => self.hopeless = Some(Hopeless::NoProof),
                kind::MAGIC => self.ours.magic = 0,
                kind::PFC => self.ours.pfc = false,
                kind::ACFC => self.ours.acfc = false,
                kind::MRRU => self.ours.mrru = None,
                kind::SHORT_NUMBERS => self.ours.short_numbers = false,
                _ => {}
            }
            // Every negotiation asks for the proof that is demanded.
            if choice.kind != kind::AUTHENTICATION && self.asks(choice.kind) {
                self.rejected.push(choice.kind);
            }
        }
    }
}

/// The answer to one option of the peer.
enum Each {
    Good,
    OurMagic,
    Nak(Vec<u8>),
    Reject,
}

impl LcpOptions {
    fn judge_one(&self, choice: &Choice, asked: &mut Agreed) -> Each {
        let (two, four) =
            (choice.exactly::<2>().map(u16::from_be_bytes), choice.exactly::<4>().map(u32::from_be_bytes));
        let multilink = self.config.multilink.is_some();
        match (choice.kind, two, four) {
            (kind::MRU, Some(mru), _) if mru < LEAST_MRU => return Each::Nak(LEAST_MRU.to_be_bytes().into()),
            (kind::MRU, Some(mru), _) => asked.mru = mru,
            (kind::ACCM, _, Some(map)) => asked.map = Accm(map),
            (kind::AUTHENTICATION, ..) => match (Proof::of(&choice.data), self.config.offers.first()) {
                (Some(proof), _) if self.config.offers.contains(&proof) => asked.proof = Some(proof),
                (_, Some(best)) => return Each::Nak(best.data()),
                (_, None) => return Each::Reject,
            },
            // Zero is no magic number (RFC 1661, section 6.4).
            (kind::MAGIC, _, Some(magic)) if magic == 0 || magic == self.ours.magic => return Each::OurMagic,
            (kind::MAGIC, _, Some(magic)) => asked.magic = magic,
            (kind::PFC, ..) if choice.data.is_empty() && self.config.compresses => asked.pfc = true,
            (kind::ACFC, ..) if choice.data.is_empty() && self.config.compresses => asked.acfc = true,
            (kind::MRRU, Some(mrru), _) if multilink && mrru < LEAST_MRU => {
                return Each::Nak(DEFAULT_MRU.to_be_bytes().into());
            }
            (kind::MRRU, Some(mrru), _) if multilink => asked.mrru = Some(mrru),
            (kind::SHORT_NUMBERS, ..) if multilink && choice.data.is_empty() => asked.short_numbers = true,
            (kind::DISCRIMINATOR, ..) if multilink && (1..=Discriminator::LONGEST + 1).contains(&choice.data.len()) => {
                asked.discriminator = Discriminator(choice.data.clone());
            }
            _ => return Each::Reject,
        }
        Each::Good
    }

    /// The proof that is asked for after the present one was refused.
    fn next_proof(&self) -> Option<Proof> {
        let at = self.config.demands.iter().position(|proof| Some(*proof) == self.ours.proof)?;
        self.config.demands.get(at + 1).copied()
    }
}

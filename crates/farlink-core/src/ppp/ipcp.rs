//! The options of IP: addresses of version 4 (RFC 1332) and interface identifiers of version 6 (RFC 5072).

use std::net::Ipv4Addr;

use super::control::Choice;
use super::negotiator::{Options, Verdict};
use crate::rng::RandomSource;

/// The protocol number of IPCP.
pub const IPCP: u16 = 0x8021;
/// The protocol number of IPV6CP.
pub const IPV6CP: u16 = 0x8057;
/// The protocol number of IPv4.
pub const IPV4: u16 = 0x0021;
/// The protocol number of IPv6.
pub const IPV6: u16 = 0x0057;

/// IP-Address (RFC 1332, section 3.3).
const ADDRESS: u8 = 3;
/// Interface-Identifier (RFC 5072, section 4.1).
const IDENTIFIER: u8 = 1;

/// The addresses of both ends. What is unspecified, the other end gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Addresses {
    /// Of this end; 0.0.0.0: the peer gives one.
    pub own: Ipv4Addr,
    /// Of the peer; 0.0.0.0: it has one of its own.
    pub peer: Ipv4Addr,
}

/// The options of IPCP at one end. Compression of headers and addresses of name servers are rejected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IpcpOptions {
    config: Addresses,
    agreed: Addresses,
    is_rejected: bool,
    /// The address that the peer wants this end to have.
    wanted: Option<Ipv4Addr>,
}

impl IpcpOptions {
    /// The options before a negotiation.
    pub fn new(config: Addresses) -> Self {
        IpcpOptions { config, agreed: config, is_rejected: false, wanted: None }
    }

    /// The addresses, once both ends agree; `None` if an end has none.
    pub fn agreed(&self) -> Option<Addresses> {
        let Addresses { own, peer } = self.agreed;
        let is_agreed = self.wanted.is_none() && !own.is_unspecified() && !peer.is_unspecified();
        is_agreed.then_some(self.agreed)
    }

    /// The address of this end and the one that the peer wants it to have, if they differ.
    pub fn disagreement(&self) -> Option<(Ipv4Addr, Ipv4Addr)> {
        Some((self.config.own, self.wanted?))
    }
}

impl Options for IpcpOptions {
    fn begin(&mut self, _random: &mut dyn RandomSource) {
        *self = Self::new(self.config);
    }

    fn wanted(&self) -> Vec<Choice> {
        if self.is_rejected { Vec::new() } else { vec![Choice::new(ADDRESS, self.agreed.own.octets())] }
    }

    fn judge(&mut self, choices: &[Choice], _random: &mut dyn RandomSource) -> Verdict {
        let mut rejects = Vec::new();
        let mut asked = None;
        for choice in choices {
            match choice.exactly::<4>() {
                Some(octets) if choice.kind == ADDRESS => asked = Some(Ipv4Addr::from(octets)),
                _ => rejects.push(choice.clone()),
            }
        }
        if !rejects.is_empty() {
            return Verdict::Reject(rejects);
        }
        let wanted = self.config.peer;
        match asked {
            // An address that this end cannot give either.
            Some(own) if own.is_unspecified() && wanted.is_unspecified() => Verdict::Reject(choices.to_vec()),
            Some(own) if own.is_unspecified() || !(wanted.is_unspecified() || own == wanted) => {
                Verdict::Nak(vec![Choice::new(ADDRESS, wanted.octets())])
            }
            Some(own) => {
                self.agreed.peer = own;
                Verdict::Ack
            }
            // A peer that does not say its address has the one that is configured here, if any.
            None => Verdict::Ack,
        }
    }

    fn naked(&mut self, choices: &[Choice], _random: &mut dyn RandomSource) {
        let given = choices.iter().filter(|choice| choice.kind == ADDRESS).find_map(Choice::exactly::<4>);
        let Some(given) = given.map(Ipv4Addr::from) else { return };
        if self.config.own.is_unspecified() {
            self.agreed.own = given;
        } else if given != self.config.own {
            self.wanted = Some(given);
        }
    }

    fn rejected(&mut self, choices: &[Choice]) {
        self.is_rejected |= choices.iter().any(|choice| choice.kind == ADDRESS);
    }
}

/// The options of IPV6CP at one end: an identifier of 64 bits for each end, drawn at random.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ipv6cpOptions {
    own: u64,
    peer: u64,
    is_rejected: bool,
}

impl Ipv6cpOptions {
    /// The identifiers of this end and of the peer, once both ends agree; `None` if they are not different numbers.
    pub fn agreed(&self) -> Option<(u64, u64)> {
        (self.own != 0 && self.peer != 0 && self.own != self.peer).then_some((self.own, self.peer))
    }
}

fn identifier(random: &mut dyn RandomSource) -> u64 {
    // Not derived from a unique address: bit 6 of the first byte is 0 (RFC 5072, section 4.1).
    (random.next_u64() & !(1 << 57)).max(1)
}

impl Options for Ipv6cpOptions {
    fn begin(&mut self, random: &mut dyn RandomSource) {
        *self = Ipv6cpOptions { own: identifier(random), peer: 0, is_rejected: false };
    }

    fn wanted(&self) -> Vec<Choice> {
        if self.is_rejected { Vec::new() } else { vec![Choice::new(IDENTIFIER, self.own.to_be_bytes())] }
    }

    fn judge(&mut self, choices: &[Choice], random: &mut dyn RandomSource) -> Verdict {
        let is_known = |choice: &Choice| choice.kind == IDENTIFIER && choice.data.len() == 8;
        let rejects: Vec<Choice> = choices.iter().filter(|choice| !is_known(choice)).cloned().collect();
        if !rejects.is_empty() {
            return Verdict::Reject(rejects);
        }
        let asked = choices.iter().find_map(Choice::exactly::<8>).map(u64::from_be_bytes);
        match asked {
            // Zero asks for an identifier, and two ends need different ones.
            Some(id) if id == 0 || id == self.own => {
                let given = std::iter::repeat_with(|| identifier(random)).find(|&given| given != self.own);
                Verdict::Nak(vec![Choice::new(IDENTIFIER, given.unwrap_or_default().to_be_bytes())])
            }
            asked => {
                self.peer = asked.unwrap_or_default();
                Verdict::Ack
            }
        }
    }

    fn naked(&mut self, choices: &[Choice], random: &mut dyn RandomSource) {
        let given = choices.iter().filter(|choice| choice.kind == IDENTIFIER).find_map(Choice::exactly::<8>);
        self.own = given.map(u64::from_be_bytes).filter(|&id| id != 0).unwrap_or_else(|| identifier(random));
    }

    fn rejected(&mut self, choices: &[Choice]) {
        self.is_rejected |= choices.iter().any(|choice| choice.kind == IDENTIFIER);
    }
}

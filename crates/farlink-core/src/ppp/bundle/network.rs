//! IP over the bundle: IPCP and IPV6CP.

use std::net::Ipv4Addr;

use bytes::Bytes;

use super::super::automaton::State;
use super::super::control::ControlPacket;
use super::super::ipcp::{Addresses, IPCP, IPV4, IPV6, IPV6CP, IpcpOptions, Ipv6cpOptions};
use super::super::negotiator::{Layer, Limits, Negotiator};
use crate::rng::RandomSource;
use crate::time::Time;

/// The network protocols of a bundle.
#[derive(Clone, Debug)]
pub(super) struct Network {
    ipv4: Option<Negotiator<IpcpOptions>>,
    ipv6: Option<Negotiator<Ipv6cpOptions>>,
    is_up: bool,
    /// When a negotiation that found no end is tried again, and how long that takes.
    retry_at: Option<Time>,
    retry: Time,
    /// Whether the peer does not have IPCP and IPV6CP.
    rejected: [bool; 2],
}

/// Calls a method of both negotiations.
macro_rules! each {
    ($self:ident, $one:ident => $call:expr) => {{
        if let Some($one) = &mut $self.ipv4 {
            $call;
        }
        if let Some($one) = &mut $self.ipv6 {
            $call;
        }
    }};
}

impl Network {
    pub(super) fn new(ipv4: Option<Addresses>, ipv6: bool, limits: Limits) -> Self {
        let ipv4 = ipv4.map(|addresses| Negotiator::new(IpcpOptions::new(addresses), limits));
        let ipv6 = ipv6.then(|| Negotiator::new(Ipv6cpOptions::default(), limits));
        Network { ipv4, ipv6, is_up: false, retry_at: None, retry: limits.restart.times(4), rejected: [false; 2] }
    }

    /// A line joined the bundle. A request that is equal to the last one may now be that of a peer that has begun anew.
    pub(super) fn joined(&mut self, now: Time, random: &mut dyn RandomSource) {
        each!(self, one => one.forget_acknowledged());
        if !std::mem::replace(&mut self.is_up, true) {
            each!(self, one => { one.open(now, random); one.up(now, random) });
        }
    }

    /// The bundle has no line.
    pub(super) fn ended(&mut self, now: Time, random: &mut dyn RandomSource) {
        (self.is_up, self.retry_at) = (false, None);
        self.rejected = [false; 2];
        each!(self, one => one.down(now, random));
    }

    /// The address of this end and the one that the peer wants it to have, if they prevent a network.
    pub(super) fn disagreement(&self) -> Option<(Ipv4Addr, Ipv4Addr)> {
        self.ipv4.as_ref()?.options.disagreement()
    }

    /// The addresses of version 4 that both ends agree on.
    pub(super) fn ipv4(&self) -> Option<Addresses> {
        self.ipv4.as_ref().filter(|one| one.is_open())?.options.agreed()
    }

    /// The identifiers of version 6 that both ends agree on.
    pub(super) fn ipv6(&self) -> Option<(u64, u64)> {
        self.ipv6.as_ref().filter(|one| one.is_open())?.options.agreed()
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let due = [
            self.retry_at,
            self.ipv4.as_ref().and_then(Negotiator::poll_timeout),
            self.ipv6.as_ref().and_then(Negotiator::poll_timeout),
        ];
        due.into_iter().flatten().min()
    }

    pub(super) fn on_timeout(&mut self, now: Time, random: &mut dyn RandomSource) {
        each!(self, one => one.on_timeout(now, random));
        if self.retry_at.take_if(|due| *due <= now).is_some() {
            if let Some(one) = self.ipv4.as_mut().filter(|one| one.state() == State::Stopped && !self.rejected[0]) {
                one.down(now, random);
                one.up(now, random);
            }
            if let Some(one) = self.ipv6.as_mut().filter(|one| one.state() == State::Stopped && !self.rejected[1]) {
                one.down(now, random);
                one.up(now, random);
            }
        }
    }

    /// The next packet to be sent, with its protocol.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<(u16, Bytes)> {
        // Other layers find the rest in `ipv4` and `ipv6`.
        let mut is_finished = false;
        each!(self, one => while let Some(layer) = one.poll_layer() { is_finished |= layer == Layer::Finished; });
        if is_finished && self.is_up {
            self.retry_at = self.retry_at.or(Some(now + self.retry));
        }
        let ipv4 = self.ipv4.as_mut().and_then(Negotiator::poll_transmit).map(|packet| (IPCP, packet));
        let next = ipv4.or_else(|| Some((IPV6CP, self.ipv6.as_mut()?.poll_transmit()?)));
        next.map(|(protocol, packet)| (protocol, packet.encode().into()))
    }

    /// Takes a control packet; `false` if its protocol is not known here.
    pub(super) fn handle(
        &mut self,
        now: Time,
        protocol: u16,
        information: &Bytes,
        random: &mut dyn RandomSource,
    ) -> bool {
        let packet = ControlPacket::decode(information);
        match (protocol, &mut self.ipv4, &mut self.ipv6) {
            (IPCP, Some(one), _) => packet.map(|packet| one.handle(now, &packet, random)),
            (IPV6CP, _, Some(one)) => packet.map(|packet| one.handle(now, &packet, random)),
            _ => return false,
        };
        true
    }

    /// The peer does not have a protocol.
    pub(super) fn rejected(&mut self, now: Time, protocol: u16, random: &mut dyn RandomSource) {
        match (protocol, &mut self.ipv4, &mut self.ipv6) {
            (IPCP | IPV4, Some(one), _) => {
                self.rejected[0] = true;
                one.protocol_rejected(now, random);
            }
            (IPV6CP | IPV6, _, Some(one)) => {
                self.rejected[1] = true;
                one.protocol_rejected(now, random);
            }
            _ => {}
        }
    }

    /// Whether packets of a protocol are carried now.
    pub(super) fn carries(&self, protocol: u16) -> bool {
        match protocol {
            IPV4 => self.ipv4().is_some(),
            IPV6 => self.ipv6().is_some(),
            _ => false,
        }
    }
}

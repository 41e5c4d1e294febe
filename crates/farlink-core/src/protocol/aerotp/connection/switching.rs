//! Settings that may be changed during a connection.

use crate::ConfigError;
use crate::payload::Payload;
use crate::time::Time;
use crate::turns::CLASSES;
use crate::units::{Count, Whole};

use super::Connection;
use crate::protocol::ProtocolConfig;
use crate::protocol::aerotp::config::AerotpConfig;
use crate::protocol::aerotp::mode::Mode;
use crate::protocol::aerotp::open_loop::{Outbox, Service};
use crate::protocol::aerotp::parity::Parity;
use crate::protocol::aerotp::sending::Sending;

/// Changes that are refused during a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// Modes with acknowledgements keep sent data, and datagrams have no stream; neither can change to another mode.
    #[error("{from:?} cannot become {to:?}; only quasi-reliable and unreliable may be exchanged")]
    Mode {
        /// The mode of the connection.
        from: Mode,
        /// The requested mode.
        to: Mode,
    },
    /// Only the reliable modes and the quasi-reliable one have parity.
    #[error("{0:?} has no parity; only the reliable modes and quasi-reliable have")]
    NoParity(Mode),
    /// The symbols of coded blocks have one length, and no parity of their own.
    #[error("coded blocks have no parity in their packets")]
    CodedBlocks,
    /// Only messages have classes.
    #[error("{0:?} has no classes; only datagrams have")]
    NoClasses(Mode),
    /// There is no such class.
    #[error("class {0}; allowed: 0 to 7")]
    NoSuchClass(u8),
    /// The packet has no room for that much parity.
    #[error("{words} words of parity; allowed: 0 to {most}")]
    TooMuchParity {
        /// The requested words.
        words: u16,
        /// The largest number of words that leaves room for data.
        most: u16,
    },
}

impl<D: Payload> Connection<D> {
    /// Sends in another mode from the next segment on: quasi-reliable, with the parity of the configuration, instead of
    /// unreliable, or the other way round. The peer need not be told, because each segment carries its mode. `[U7]`
    ///
    /// # Errors
    /// If either is another mode; nothing changes then.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), SwitchError> {
        if mode == self.mode {
            return Ok(());
        }
        if !self.mode.may_change() || !mode.may_change() {
            return Err(SwitchError::Mode { from: self.mode, to: mode });
        }
        self.mode = mode;
        let parity = if mode == Mode::QuasiReliable { self.config.parity() } else { Parity::NONE };
        self.size = self.size.with_parity(parity);
        self.rate.set_packet_size(self.size);
        self.sending.set_coded(mode == Mode::QuasiReliable);
        Ok(())
    }

    /// Makes the configured changes of the mode that are due. `[U9]`
    pub(super) fn follow_mode_changes(&mut self, now: Time) {
        while let Some(change) = self.config.mode_changes.get(self.mode_changes_made)
            && change.is_due(now, self.moved)
        {
            let mode = change.mode;
            self.mode_changes_made += 1;
            self.set_mode(mode).expect("the configuration has no other changes");
        }
    }

    /// Sets the number of 32-bit words of parity in each segment, from the next one on. `[U7]`
    ///
    /// # Errors
    /// If the mode has no parity, or that much parity leaves no room for data; nothing changes then.
    pub fn set_fec_words(&mut self, words: u16) -> Result<(), SwitchError> {
        let most = self.size.most_fec_words();
        if !self.mode.has_parity() {
            Err(SwitchError::NoParity(self.mode))
        } else if self.config.coded.is_some() {
            Err(SwitchError::CodedBlocks)
        } else if words > most {
            Err(SwitchError::TooMuchParity { words, most })
        } else {
            self.size.parity = Parity::Words(words);
            self.rate.set_packet_size(self.size);
            Ok(())
        }
    }

    /// Sets the largest packet on the wire, headers included, from the next segment on, after a change of the path MTU.
    /// Sent data keeps its positions; retransmissions are cut to the new size. The parity keeps as many words as fit.
    /// `[S1]`
    ///
    /// # Errors
    /// If a configuration with this `packet_bytes` would be refused, or packets with `erasure` would become longer than
    /// configured; the connection is then unchanged.
    pub fn set_packet_bytes(&mut self, now: Time, packet_bytes: Count) -> Result<(), ConfigError> {
        let mut config = AerotpConfig { packet_bytes, ..self.config.clone() };
        let size = config.packet_size().with_parity(self.size.parity);
        if let Parity::Words(words) = size.parity {
            (config.fec_words, config.fec_share) = (Whole::new(f64::from(words)).ok(), None);
        }
        config.check()?;
        if self.config.erasure.is_some() && packet_bytes > self.config.packet_bytes {
            let what = format!("{} bytes are more than the peer keeps for blocks of packets", packet_bytes.get());
            let most = self.config.packet_bytes.get();
            return Err(ConfigError::new("packet_bytes", what, format!("give at most {most}, as configured")));
        }
        let is_longer = size.packet_bytes > self.size.packet_bytes;
        self.size = size;
        self.adapt();
        self.rate.set_packet_size(self.size);
        if is_longer {
            self.rate.forget_least_round_trip(now);
        }
        self.sending.set_packet_size(now, self.size);
        Ok(())
    }

    /// The largest packet on the wire.
    pub fn packet_bytes(&self) -> u64 {
        self.size.packet_bytes
    }

    /// Sets how messages of a class are served from now on. By default classes have strict priority by number and the deadline of
    /// the configuration. `[V4]`
    ///
    /// # Errors
    /// If there are no classes, or not this one; nothing changes then.
    pub fn set_service(&mut self, class: u8, service: Service) -> Result<(), SwitchError> {
        self.outbox(class)?.set_service(usize::from(class), service);
        Ok(())
    }

    /// As [`write`](crate::endpoint::Stream::write), for messages of a class.
    ///
    /// # Errors
    /// If there are no classes, or not this one; nothing is taken then.
    pub fn write_class(&mut self, now: Time, class: u8, data: &mut D) -> Result<usize, SwitchError> {
        Ok(self.outbox(class)?.write_class(now, usize::from(class), data))
    }

    fn outbox(&mut self, class: u8) -> Result<&mut Outbox<D>, SwitchError> {
        match &mut self.sending {
            Sending::Datagrams(_) if usize::from(class) >= CLASSES => Err(SwitchError::NoSuchClass(class)),
            Sending::Datagrams(outbox) => Ok(outbox),
            _ => Err(SwitchError::NoClasses(self.mode)),
        }
    }
}

//! Refuses keys of a bundle that contradict each other.

use super::super::arq::LinkArq;
use super::super::line_config::LineConfig;
use super::super::schedule::Scheduler;
use super::{BundleConfig, Confirmation, Cut, Header, OnDrop, Peer, ReceiverRule};
use crate::ConfigError;
use crate::units::{Count, OrNever};

impl BundleConfig {
    /// Checks the rules between keys that the types of single keys cannot express, for the lines of this bundle.
    ///
    /// # Errors
    /// If keys contradict each other.
    pub fn check(&self, lines: &[LineConfig]) -> Result<(), ConfigError> {
        if self.header == Header::None && self.packets == Cut::Fragmented {
            return Err(ConfigError::new(
                "header",
                "fragments without sequence numbers cannot be put together",
                "use header = \"long\" or \"short\", or packets = \"whole\"",
            ));
        }
        let has_timer = matches!(self.reorder_timeout_s, Some(OrNever::Value(_)));
        if self.header == Header::None && has_timer {
            return Err(ConfigError::new(
                "reorder_timeout_s",
                "without sequence numbers the receiver waits for no fragment",
                "remove reorder_timeout_s, or use header = \"long\"",
            ));
        }
        if self.scheduler == Scheduler::Redundant && self.packets == Cut::Fragmented {
            return Err(ConfigError::new(
                "scheduler",
                "a packet that is copied to all lines is not cut into fragments",
                "use packets = \"whole\", or another scheduler",
            ));
        }
        if self.scheduler == Scheduler::Redundant && self.header == Header::None {
            return Err(ConfigError::new(
                "scheduler",
                "copies without sequence numbers would all be delivered",
                "use header = \"long\" or \"short\"",
            ));
        }
        for (key, mrru) in [("mrru_bytes", Some(self.mrru_bytes)), ("return.mrru_bytes", self.back.mrru_bytes)] {
            let Some(mrru) = mrru.filter(|&mrru| self.min_fragment_bytes > mrru) else { continue };
            let (mrru, least) = (mrru.get(), self.min_fragment_bytes.get());
            let what = format!("no packet of up to {key} = {mrru} has a fragment of {least}");
            return Err(ConfigError::new("min_fragment_bytes", what, format!("give at most {key}")));
        }
        let own = self.back.header.filter(|&header| (header == Header::None) != (self.header == Header::None));
        if let Some(header) = own {
            let [of_return, of_bundle] = [header, self.header].map(Header::name);
            return Err(ConfigError::new(
                "return.header",
                format!(
                    "{of_return:?} differs from header = {of_bundle:?}, and lines are a bundle in both directions or in none"
                ),
                "give \"long\" or \"short\" in both directions, or \"none\" as header and no return.header",
            ));
        }
        self.check_linux(lines)?;
        check_equipment(self.serial_bytes, self.modem_bytes, self.arq.as_ref())?;
        for (at, member) in self.members.iter().enumerate() {
            check_equipment(member.serial_bytes, member.modem_bytes.or(self.modem_bytes), member.arq.as_ref())
                .map_err(|unfit| unfit.within(&format!("members[{at}]")))?;
        }
        let own_calls = self.members.iter().enumerate().find_map(|(at, member)| {
            let key = member.up.map(|_| "up").or(member.redial.map(|_| "redial"))?;
            Some(format!("members[{at}].{key}"))
        });
        let is_recorded = self.calls.as_ref().is_some_and(|calls| calls.schedule.is_some());
        if let Some(key) = own_calls.filter(|_| self.calls.is_none() || is_recorded) {
            let (what, remedy) = match is_recorded {
                true => ("a recording says when lines are down", "remove it, or calls.schedule"),
                false => ("no call ever drops", "remove it, or give calls"),
            };
            return Err(ConfigError::new(&key, what, remedy));
        }
        if self.peer != Peer::Farlink && (self.what_on_drop() != OnDrop::Requeue || self.header == Header::None) {
            let (what, remedy) = match self.what_on_drop() {
                OnDrop::Requeue => {
                    ("without sequence numbers no receiver waits for any", "remove peer, or use header = \"long\"")
                }
                _ => ("nothing is sent again", "remove peer, or give on_drop = \"requeue\""),
            };
            return Err(ConfigError::new("peer", what, remedy));
        }
        match &self.calls {
            Some(calls) => calls.check(lines).map_err(|unfit| unfit.within("calls")),
            None if self.what_on_drop() != OnDrop::Lose => {
                Err(ConfigError::new("on_drop", "no call ever drops", "remove on_drop, or give calls"))
            }
            None if self.scheduler == Scheduler::DropAware => {
                Err(ConfigError::new("scheduler", "no call ever drops", "use \"earliest-delivery\", or give calls"))
            }
            None => Ok(()),
        }
    }

    /// Refuses keys that have no meaning with the scheduler or receiver of Linux, and keys that have one only with them.
    fn check_linux(&self, lines: &[LineConfig]) -> Result<(), ConfigError> {
        let is_linux = self.scheduler == Scheduler::Linux;
        let needs_numbers = if is_linux { Some("scheduler") } else { self.receiver.map(|_| "receiver") };
        if let Some(key) = needs_numbers.filter(|_| self.header == Header::None) {
            let what = "without sequence numbers there is nothing to put together";
            return Err(ConfigError::new(key, what, format!("remove {key}, or use header = \"long\" or \"short\"")));
        }
        let has_timer = matches!(self.reorder_timeout_s, Some(OrNever::Value(_)));
        if self.receiver_rule() == ReceiverRule::Linux && has_timer {
            return Err(ConfigError::new(
                "reorder_timeout_s",
                "the receiver of Linux has no timer",
                "remove reorder_timeout_s, or use receiver = \"rfc1990\"",
            ));
        }
        if is_linux && self.what_on_drop() == OnDrop::Requeue {
            let remedy = "use on_drop = \"lose\" or \"duplicate-acks\", or another scheduler";
            return Err(ConfigError::new("on_drop", "Linux sends nothing again", remedy));
        }
        let is_resent = self.confirmation() == Some(Confirmation::Acknowledged);
        if is_resent && self.receiver_rule() == ReceiverRule::Linux {
            return Err(ConfigError::new(
                "on_drop",
                "the receiver of Linux does not wait for fragments that are sent again under their old numbers",
                "give peer = \"linux\", or use on_drop = \"lose\" or \"duplicate-acks\"",
            ));
        }
        if !is_linux {
            let remedy = "remove tty_bytes, or use scheduler = \"linux\"";
            let what = "only scheduler = \"linux\" has lines of so many bytes";
            return self.tty_bytes.map_or(Ok(()), |_| Err(ConfigError::new("tty_bytes", what, remedy)));
        }
        let like = BundleConfig::default();
        let of_others = [
            ("packets", self.packets != like.packets),
            ("line_packets", self.line_packets != like.line_packets),
            ("min_fragment_bytes", self.min_fragment_bytes != like.min_fragment_bytes),
            ("modem_bytes", lines.iter().any(|line| line.modem_bytes.is_some())),
            ("serial_bytes", lines.iter().any(|line| line.serial_bytes.is_some())),
        ];
        let meaningless = of_others.into_iter().find(|(_, is_given)| *is_given);
        meaningless.map_or(Ok(()), |(key, _)| {
            let remedy = format!("remove {key}, or use another scheduler");
            Err(ConfigError::new(key, "Linux cuts for all free lines, and their room is tty_bytes", remedy))
        })
    }
}

/// Checks the serial port, modem and ARQ of a line.
fn check_equipment(serial: Option<Count>, modem: Option<Count>, arq: Option<&LinkArq>) -> Result<(), ConfigError> {
    if serial.is_some() && modem.is_none() {
        return Err(ConfigError::new(
            "serial_bytes",
            "the buffer of the serial port never fills while the modem takes everything",
            "give modem_bytes too",
        ));
    }
    arq.map_or(Ok(()), LinkArq::check).map_err(|error| error.within("arq"))
}

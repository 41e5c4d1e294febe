//! One end of a flow goes down, and its application begins anew.
//!
//! The other end learns of it by packets alone. If its connection is reset, its application begins anew, too: it opens a new
//! one, or waits for one.

use farlink_core::Time;

use super::chain::Port;
use super::timers::{Alarm, CHAINS, Kind};
use super::{Engine, Tracer};

impl<T: Tracer> Engine<'_, T> {
    /// Sets the alarms of what goes down.
    pub(super) fn plan_restarts(&mut self, flows: &[(Port, usize)]) {
        let timers = &mut self.world.timers;
        if let Some(crash) = self.setup.gateway.as_ref().and_then(|gateway| gateway.crash) {
            for (event, at) in [(Kind::Down, crash.down), (Kind::Up, crash.up)] {
                timers.push(at, Alarm { event, kind: CHAINS, side: crash.side as u8, flow: 0 });
            }
        }
        for &(Port { kind, flow }, spec) in flows {
            let Some(restart) = self.setup.flows[spec].restart else { continue };
            for (event, at) in [(Kind::Down, restart.down), (Kind::Up, restart.up)] {
                timers.push(at, Alarm { event, kind, side: restart.side as u8, flow });
            }
        }
    }

    /// An endpoint or a gateway goes down, or is there again.
    #[cold]
    pub(super) fn on_restart(&mut self, alarm: Alarm, now: Time) {
        let side = usize::from(alarm.side);
        let port = Port { kind: alarm.kind, flow: alarm.flow };
        match (alarm.event, alarm.kind) {
            (Kind::Down, CHAINS) => self.on_gateway_down(side, now),
            (_, CHAINS) => self.on_gateway_up(side, now),
            (Kind::Down, _) if !self.joint(port).has_ended() => self.joint(port).take_down(side),
            (Kind::Up, _) if !self.joint(port).is_up(side) => self.begin_anew(port, side, now),
            _ => {}
        }
    }

    /// A flow's connection may have been reset by a peer that had gone down.
    #[cold]
    pub(super) fn look_at_reset(&mut self, port: Port, now: Time) {
        while let Some(side) = self.joint(port).take_reset() {
            self.begin_anew(port, side, now);
        }
    }

    /// Another endpoint stands at one side, and its application begins anew.
    fn begin_anew(&mut self, port: Port, side: usize, now: Time) {
        let setup = self.setup;
        let spec = &setup.flows[self.joint(port).spec()];
        let Some(source) = spec.source() else { return };
        let seed = self.restart_seeds.below(u64::MAX);
        self.replace(port, side, &spec.transport, seed, now);
        self.joint(port).begin_anew(side, source.asked_bytes(), now);
        if side == 0 {
            self.begin_source(port, source, now);
        }
    }
}

//! Restarts: one end of a flow goes down, and its application starts the transfer again.
//!
//! The other end notices only by the packets that it receives. If its connection is reset, its application starts again
//! as well: it opens a new connection, or waits for one.

use farlink_core::Time;

use super::chain::FlowKey;
use super::timers::{Alarm, CHAINS, Kind};
use super::{Engine, Tracer};

impl<T: Tracer> Engine<'_, T> {
    /// Sets the alarms of all planned restarts.
    pub(super) fn plan_restarts(&mut self, flows: &[(FlowKey, usize)]) {
        let timers = &mut self.world.timers;
        if let Some(crash) = self.setup.gateway.as_ref().and_then(|gateway| gateway.crash) {
            for (event, at) in [(Kind::Down, crash.down), (Kind::Up, crash.up)] {
                timers.push(at, Alarm { event, kind: CHAINS, side: crash.side as u8, flow: 0 });
            }
        }
        for &(FlowKey { kind, flow }, spec) in flows {
            let Some(restart) = self.setup.flows[spec].restart else { continue };
            for (event, at) in [(Kind::Down, restart.down), (Kind::Up, restart.up)] {
                timers.push(at, Alarm { event, kind, side: restart.side as u8, flow });
            }
        }
    }

    /// An endpoint or a gateway goes down or comes back up.
    #[cold]
    pub(super) fn on_restart(&mut self, alarm: Alarm, now: Time) {
        let side = usize::from(alarm.side);
        let key = FlowKey { kind: alarm.kind, flow: alarm.flow };
        match (alarm.event, alarm.kind) {
            (Kind::Down, CHAINS) => self.on_gateway_down(side, now),
            (_, CHAINS) => self.on_gateway_up(side, now),
            (Kind::Down, _) if !self.relayed_flow(key).has_ended() => self.relayed_flow(key).take_down(side),
            (Kind::Up, _) if !self.relayed_flow(key).is_up(side) => self.restart_transfer(key, side, now),
            _ => {}
        }
    }

    /// Restarts the sides of a flow whose connection was reset by a restarted peer.
    #[cold]
    pub(super) fn handle_resets(&mut self, key: FlowKey, now: Time) {
        while let Some(side) = self.relayed_flow(key).take_reset() {
            self.restart_transfer(key, side, now);
        }
    }

    /// Replaces the endpoint at one side and starts its transfer again.
    fn restart_transfer(&mut self, key: FlowKey, side: usize, now: Time) {
        let setup = self.setup;
        let spec = &setup.flows[self.relayed_flow(key).spec()];
        let Some(source) = spec.source() else { return };
        let seed = self.restart_seeds.below(u64::MAX);
        self.replace(key, side, &spec.transport, seed, now);
        self.relayed_flow(key).restart_transfer(side, source.asked_bytes(), now);
        if side == 0 {
            self.begin_source(key, source, now);
        }
    }
}

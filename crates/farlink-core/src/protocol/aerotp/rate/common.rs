//! One rate for all connections between two hosts. `[P21]`

use crate::origin::{MoveOrigin, OriginShift, instants};
use crate::payload::Payload;
use crate::time::Time;
use crate::units::{BitRate, PositiveSeconds};

use super::super::clock::Clock;
use super::super::config::AerotpConfig;
use super::super::connection::Connection;
use super::super::rate_control::RateControl;
use super::{Control, Rate};

/// One rate at which several connections to the same peer send, so that the path is shared with others as if there were one
/// connection. `[P21]`
///
/// Its owner makes connections that [share their rate](Connection::share_rate), and [lends](Self::lend) it to one of them at a time:
/// to each that gets a packet, and, once the rate [is open](Self::is_open), in turn to those that [want it](Connection::wants_rate),
/// for a single [`poll_transmit`](crate::Endpoint::poll_transmit). Acknowledgements need no rate.
///
/// ```
/// use farlink_core::protocol::aerotp::{AerotpConfig, CommonRate, Connection};
/// use farlink_core::rng::SplitMix64;
/// use farlink_core::units::BitRate;
/// use farlink_core::{Endpoint, Stream, Time};
///
/// let config = AerotpConfig { rate_bps: Some(BitRate::new(12e6)?), ..AerotpConfig::default() };
/// let mut random = SplitMix64::new(1);
/// let mut rate = CommonRate::new(&config).expect("this mode is acknowledged");
/// let mut connections = [(); 2].map(|()| Connection::<Vec<u8>>::connect(&config, &mut random));
/// for connection in &mut connections {
///     connection.share_rate();
///     connection.write(Time::ZERO, &mut vec![0; 10_000]);
/// }
/// // At 12 Mb/s a packet takes a millisecond, whichever connection sends it.
/// let mut now = Time::ZERO;
/// for turn in 0..10 {
///     let it = &mut connections[turn % 2];
///     assert!(it.wants_rate(now) && rate.is_open(now));
///     assert!(rate.lend(it, |it| it.poll_transmit(now)).is_some());
///     assert!(!rate.is_open(now) && rate.next() == now + Time::from_millis(1));
///     now = rate.next();
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CommonRate {
    rate: Rate,
    clock: Clock,
    settings: Settings,
}

instants! { CommonRate: rate; fixed: clock, settings }

/// State that connections share which send at the same rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Settings {
    control: Option<RateControl>,
    rate_bps: Option<BitRate>,
    is_alone: bool,
    initial_rto_s: PositiveSeconds,
    mack_timeout_s: PositiveSeconds,
    give_up_after_s: PositiveSeconds,
}

impl Settings {
    /// `None` in modes without acknowledgements, whose rates follow the reports of each connection.
    fn of(config: &AerotpConfig) -> Option<Self> {
        config.mode.is_acknowledged().then(|| Settings {
            control: config.rate_control(),
            rate_bps: config.rate_bps,
            is_alone: config.is_alone(),
            initial_rto_s: config.initial_rto_s,
            mack_timeout_s: config.mack_timeout_s,
            give_up_after_s: config.give_up_after_s,
        })
    }
}

impl CommonRate {
    /// A rate for connections with this configuration, as a single one of them would have it; `None` in modes without
    /// acknowledgements.
    pub fn new(config: &AerotpConfig) -> Option<Self> {
        Settings::of(config).map(|settings| CommonRate { rate: Rate::new(config), clock: config.clock(), settings })
    }

    /// Whether connections with this configuration may send at this rate.
    pub fn serves(&self, config: &AerotpConfig) -> bool {
        Settings::of(config) == Some(self.settings)
    }

    /// Whether one of those that want it may send now.
    pub fn is_open(&self, now: Time) -> bool {
        let is_asking = matches!(&self.rate.control, Control::Learnt(learnt) if learnt.is_asking());
        is_asking || !self.rate.pacer.is_holding(now)
    }

    /// When the next packet may be sent.
    pub fn next(&self) -> Time {
        self.rate.pacer.next()
    }

    /// The present rate, in bit/s; `None` without a limit.
    pub fn bits_per_s(&self) -> Option<f64> {
        self.rate.pacer.bytes_per_s().map(|rate| rate * 8.0)
    }

    /// The connection has the rate for what `act` does.
    pub fn lend<D: Payload, R>(
        &mut self,
        connection: &mut Connection<D>,
        act: impl FnOnce(&mut Connection<D>) -> R,
    ) -> R {
        connection.exchange_rate(&mut self.rate);
        let result = act(connection);
        connection.exchange_rate(&mut self.rate);
        result
    }

    /// A packet of `bytes` bytes was sent at this rate that no connection answers.
    pub fn on_datagram(&mut self, now: Time, bytes: u32) {
        self.rate.on_sent(now, self.clock, bytes, false);
    }

    /// Whether some connection has waited for the rate, when it was not open and when none wanted it. Only what was waited for is
    /// caught up with. `[P20]`
    pub fn set_waited_for(&mut self, is_waited_for: bool) {
        self.rate.pacer.set_waited_for(is_waited_for);
    }

    /// As [`Connection::set_timer_lateness`].
    pub fn set_timer_lateness(&mut self, late: Time) {
        self.rate.pacer.set_catch_up(late);
    }

    /// The rate in place of a set one that the path does not carry, in bit/s; told once. `[P17]`
    pub fn take_lowered(&mut self) -> Option<u64> {
        self.rate.take_lowered()
    }

    /// As [`Connection::move_origin`].
    pub fn move_origin(&mut self, by: OriginShift) {
        MoveOrigin::move_origin(self, by);
    }
}

impl<D: Payload> Connection<D> {
    /// Gives up the own rate, which is of no use once a [`CommonRate`] is lent to it.
    pub fn share_rate(&mut self) {
        self.exchange_rate(&mut Rate::lent());
    }
}

//! Remarks on AeroTP over paths with a long round trip, and refusals of settings that cannot work there.

use farlink_core::ConfigError;
use farlink_core::channel::ChannelKind;
use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::aerotp::{AerotpConfig, Mode};
use farlink_core::scenario::Scenario;

use super::legs::slowest_bps;
use super::round_trips::least_round_trip;
use super::{Point, Remark};
use crate::engine::Setup;

/// The AeroTP transports in use, with their names and the shortest round trip of each.
fn in_use<'a>(
    scenario: &'a Scenario,
    setup: &'a Setup,
) -> impl Iterator<Item = (&'a String, &'a AerotpConfig, farlink_core::Time)> {
    let aerotp = scenario.transport.iter().filter_map(|(name, transport)| match transport {
        TransportConfig::Aerotp(config) => Some((name, config)),
        _ => None,
    });
    let with_path = aerotp.map(|(name, config)| (name, config, least_round_trip(scenario, setup, name)));
    with_path.filter(|(_, _, round_trip)| *round_trip != farlink_core::Time::NEVER)
}

/// Windows that are too small to fill the path.
pub(super) fn short_windows(Point { scenario, setup }: Point<'_>) -> Vec<Remark> {
    let mut notes = Vec::new();
    for (name, config, round_trip) in
        in_use(scenario, setup).filter(|(_, config, _)| config.modes().any(Mode::is_acknowledged))
    {
        let rate_bps = config.rate_bps.map_or(f64::INFINITY, |rate| rate.get()).min(slowest_bps(&setup.forward));
        if !rate_bps.is_finite() {
            continue;
        }
        let most_bytes = config.most_buffer_bytes() as f64;
        let product_bytes = rate_bps / 8.0 * round_trip.as_secs_f64();
        let packets = (product_bytes / config.packet_bytes.get()).max(1.0);
        let needed_bytes = product_bytes * transmissions(loss_of(scenario), packets);
        // Half of the window is enough for most segments.
        if most_bytes >= product_bytes && most_bytes >= needed_bytes / 2.0 {
            continue;
        }
        let seconds = round_trip.as_secs_f64();
        notes.push(match config.receive_buffer_bytes {
            Some(bytes) => {
                let rest = format!(
                    "= {} holds up the path, which needs about {needed_bytes:.2e}: its rate times its round trip of {seconds} s, as \
                     often as the unluckiest packet is sent; leave it out",
                    bytes.get(),
                );
                Remark::new(format!("transport.{name}.receive_buffer_bytes"), rest)
            }
            None => {
                let rest = format!(
                    "has at most {most_bytes:.2e} bytes under way, as sequence numbers tell no more apart, and the path needs about \
                     {needed_bytes:.2e} for its round trip of {seconds} s: it cannot be full",
                );
                Remark::new(format!("transport.{name}"), rest)
            }
        });
    }
    notes
}

/// How many times the most unlucky of `packets` packets is sent.
fn transmissions(loss: f64, packets: f64) -> f64 {
    if loss > 0.0 { 1.0 + packets.ln() / (1.0 / loss).ln() } else { 1.0 }
}

/// The loss rate of the forward direction, as far as it is a key of its channels.
fn loss_of(scenario: &Scenario) -> f64 {
    let intact = scenario.hops().into_iter().map(|(_, hop)| match &hop.channel {
        ChannelKind::Loss(channel) => 1.0 - channel.loss.get().min(0.99),
        _ => 1.0,
    });
    1.0 - intact.product::<f64>()
}

/// Refuses paths over which no answer can arrive in time.
///
/// # Errors
/// If a transport would give up before its first answer can arrive, or its timestamps cannot measure such a round trip; the error
/// names the first one.
pub(super) fn check_round_trips(scenario: &Scenario, setup: &Setup) -> Result<(), ConfigError> {
    for (name, config, round_trip) in
        in_use(scenario, setup).filter(|(_, config, _)| config.modes().any(|mode| mode != Mode::Datagram))
    {
        let longest = AerotpConfig::LONGEST_ROUND_TRIP;
        let seconds = round_trip.as_secs_f64();
        if round_trip >= longest {
            let what = format!("a round trip of {seconds} s is longer than timestamps of AeroTP can tell");
            let remedy =
                format!("choose a path of less than {} s there and back, or kind = \"udp\"", longest.as_secs_f64());
            return Err(ConfigError::new(format!("transport.{name}"), what, remedy));
        }
        if round_trip >= config.give_up_after_s.time() {
            let given = config.give_up_after_s.get();
            let what =
                format!("{given} s are over before anything can be answered: the path's round trip is {seconds} s");
            let remedy = format!("give {:.0}, or more if outages are longer", 3.0 * seconds);
            return Err(ConfigError::new(format!("transport.{name}.give_up_after_s"), what, remedy));
        }
    }
    Ok(())
}

//! Strategies for the settings of TCP and SCPS-TP.

use farlink_core::protocol::ProtocolConfig;
use farlink_core::protocol::parts::rto::RtoConfig;
use farlink_core::protocol::scps::ScpsConfig;
use farlink_core::protocol::tcp::variant::Variant;
use farlink_core::protocol::tcp::{AckTimeout, CongestionControl, LossMeans, TcpConfig, TimestampEcho, UniformSeconds};
use farlink_core::units::{BitRate, Count, PositiveSeconds, Seconds};
use proptest::prelude::*;

pub(crate) fn count(n: u64) -> Count {
    Count::new(n as f64).unwrap()
}

/// A connection of small segments, so that a few kilobytes make many, and of large windows.
pub(crate) fn small(variant: Variant) -> TcpConfig {
    TcpConfig { variant, segment_bytes: count(100), max_window_segments: Some(count(30)), ..TcpConfig::default() }
}

/// All options, and windows down to one segment.
pub(crate) fn configs() -> impl Strategy<Value = TcpConfig> {
    let flags = (any::<[bool; 8]>(), any::<[Option<bool>; 4]>());
    let windows = (1_u64..12, proptest::option::of(1_u64..12), 1_u64..25, proptest::option::of(1_u64..10));
    let drawn = |least_s, most_s| AckTimeout::Uniform(UniformSeconds::new(least_s, most_s).unwrap());
    let ack_timeout = prop_oneof![
        2 => Just(AckTimeout::Fixed(PositiveSeconds::new(0.1).unwrap())),
        1 => Just(drawn(0.0, 0.2)),
        1 => (0.0..0.4_f64, 0.001..0.1_f64).prop_map(move |(least_s, more_s)| drawn(least_s, least_s + more_s)),
    ];
    let minimum_s = prop_oneof![Just(0.0), Just(0.2), Just(1.0)];
    let echo = proptest::sample::select(&[TimestampEcho::Oldest, TimestampEcho::Latest][..]);
    let timers = (minimum_s, prop_oneof![Just(0.0), Just(0.001), Just(0.1)], ack_timeout, echo);
    let variant = (proptest::sample::select(Variant::ALL), proptest::sample::select(CongestionControl::ALL))
        .prop_filter("rates need selective acknowledgements", |(variant, control)| {
            variant.uses_sack() || !control.measures_rates()
        });
    (variant, flags, windows, timers, 1_u64..150, 1_u64..6).prop_map(
        |((variant, congestion_control), flags, windows, timers, segment_bytes, threshold)| {
            let (minimum_s, granularity_s, delayed_ack_timeout_s, timestamp_echo) = timers;
            let (flags, [prr, dsack, f_rto, tail_loss_probe]) = flags;
            let [delayed_ack, limited_transmit, handshake, fin, timestamps, recover_guard, restart_after_idle, ecn] =
                flags;
            let (initial_window, ssthresh, max_window, receive_window) = windows;
            TcpConfig {
                variant,
                congestion_control,
                segment_bytes: count(segment_bytes),
                initial_window_segments: count(initial_window),
                initial_ssthresh_segments: ssthresh.map(count),
                max_window_segments: Some(count(max_window)),
                receive_window_segments: receive_window.map(count),
                duplicate_ack_threshold: count(threshold),
                limited_transmit,
                delayed_ack,
                delayed_ack_timeout_s,
                handshake,
                fin,
                timestamps,
                timestamp_echo,
                recover_guard,
                restart_after_idle,
                prr: prr.filter(|_| variant.uses_sack()),
                dsack: dsack.filter(|_| variant.uses_sack()),
                tail_loss_probe: tail_loss_probe.filter(|_| variant == Variant::Rack),
                f_rto,
                ecn,
                // Without window scaling, the windows differ only by rounding.
                window_scaling: !ecn,
                rto: RtoConfig {
                    minimum_s: Some(Seconds::new(minimum_s).unwrap()),
                    granularity_s: Seconds::new(granularity_s).unwrap(),
                    ..RtoConfig::default()
                },
                ..TcpConfig::default()
            }
        },
    )
}

/// SCPS-TP with all extensions or none; best-effort transport only on request.
pub(crate) fn scps_configs(is_best_effort: bool) -> impl Strategy<Value = ScpsConfig> {
    let variant = prop_oneof![3 => Just(Variant::Snack), 1 => proptest::sample::select(Variant::ALL)];
    let windows = (proptest::option::of(1_u64..12), 1_u64..25, proptest::option::of(1_u64..10));
    let control =
        proptest::sample::select(&[CongestionControl::Reno, CongestionControl::Vegas, CongestionControl::None][..]);
    let rate = proptest::option::of(2e4..1e6_f64);
    let means = proptest::sample::select(&[LossMeans::Congestion, LossMeans::Corruption, LossMeans::Signalled][..]);
    let acks = (proptest::option::of(1_u64..20), proptest::option::of(0.01..0.5_f64));
    let copies = (prop_oneof![2 => Just(1_u64), 1 => 2_u64..4], 0.0..0.1_f64);
    let best_effort = (proptest::option::of(1_u64..5), 0.01..3.0_f64);
    let rest = (any::<[bool; 4]>(), 1_u64..150, 1_u64..=22, best_effort);
    (variant, windows, control, rate, means, acks, copies, rest).prop_map(
        move |(variant, windows, congestion_control, rate, loss_means, acks, (copies, spacing), rest)| {
            let ([handshake, timestamps, header_compression, ecn], segment_bytes, vector, (most, hold)) = rest;
            let seconds = |s| PositiveSeconds::new(s).unwrap();
            let config = ScpsConfig {
                variant,
                snack_vector_bytes: variant.uses_snack().then(|| count(vector)),
                congestion_control,
                rate_bps: rate.map(|rate| BitRate::new(rate).unwrap()),
                loss_means,
                max_transmissions: most.filter(|_| is_best_effort).map(count),
                hold_time_s: is_best_effort.then(|| seconds(hold)),
                header_compression,
                ecn: ecn && congestion_control != CongestionControl::None,
                copies: count(copies),
                copy_spacing_s: Seconds::new(if copies > 1 { spacing } else { 0.0 }).unwrap(),
                ack_every_segments: acks.0.map(count),
                ack_interval_s: acks.1.map(seconds),
                segment_bytes: count(segment_bytes),
                initial_window_segments: windows.0.map(count),
                max_window_segments: Some(count(windows.1)),
                receive_window_segments: windows.2.map(count),
                handshake,
                timestamps,
                ..ScpsConfig::default()
            };
            config.check().expect("no contradiction");
            config
        },
    )
}

//! AeroTP's learnt rates on a bottleneck of which they know nothing, alone and beside TCP. `docs/validation/aerotp-neighbours.md` has
//! more of such cells.

use std::borrow::Cow;

use crate::common::{bottleneck, expanded, go_on, real, run, setup, text};
use farlink_core::protocol::TransportConfig;
use serde_json::{Value, json};

fn aerotp(control: &str) -> Value {
    json!({ "kind": "aerotp", "rate_control": control })
}

fn tcp(control: &str) -> Value {
    json!({ "kind": "tcp", "variant": "sack", "congestion_control": control, "timestamps": true })
}

/// Goodput over the rate of the bottleneck, and share of packets lost, of each flow in turn.
fn measured(scenario: &Value) -> Vec<(f64, f64)> {
    let rows = run(scenario, 1).rows;
    let (goodput, loss) = (real(&rows, "goodput_bps"), real(&rows, "loss_fraction"));
    let flows = text(&rows, "flow");
    let of_flows = flows.iter().enumerate().filter(|(_, flow)| *flow != "all");
    of_flows.map(|(row, _)| (goodput[row] / 1e7, loss[row])).collect()
}

#[test]
fn the_only_flow_of_a_scenario_has_a_path_of_its_own() {
    let alone = |transports: &[Value]| match &setup(&bottleneck(transports, 0.25, 4, 0.0)).flows[0].transport {
        TransportConfig::Aerotp(aerotp) => aerotp.alone,
        other => panic!("{other:?}"),
    };
    let usual = json!({ "kind": "aerotp" });
    assert_eq!(alone(std::slice::from_ref(&usual)), Some(true));
    assert_eq!(alone(&[usual.clone(), usual]), None);
    assert_eq!(alone(&[json!({ "kind": "aerotp", "alone": false })]), Some(false));
    assert_eq!(alone(&[aerotp("friendly")]), None, "it leaves room for others");
    assert_eq!(alone(&[json!({ "kind": "aerotp", "rate_bps": 1e6 })]), None, "a set rate is watched");
}

/// Before there was `[P14]`, 88 % were lost in the queue here, and the delay grew to 21 s.
#[test]
fn a_short_queue_behind_the_first_hop_is_seen() {
    for loss in [0.0, 0.1] {
        let (goodput, lost) = measured(&bottleneck(&[json!({ "kind": "aerotp" })], 0.25, 4, loss))[0];
        let dropped = (lost - loss) / (1.0 - loss);
        assert!(goodput > 0.9 * (1.0 - loss) && dropped < 0.05, "{goodput}, {dropped}: loss {loss}");
    }
}

/// Before there was `[P16]`, CUBIC had nothing here.
#[test]
fn two_of_aerotp_leave_cubic_its_share_of_a_short_queue() {
    for control in ["friendly", "learnt"] {
        let flows = measured(&bottleneck(&[aerotp(control), aerotp(control), tcp("cubic")], 0.025, 5, 0.0));
        let least = if control == "friendly" { 0.1 } else { 0.05 };
        assert!(flows[2].0 > least, "{flows:?} with {control}");
        assert!(flows[0].0 > 0.15 && flows[1].0 > 0.15, "{flows:?} with {control}");
    }
}

/// Before there was `[P15]`, AeroTP had 1.6 % of the link here, and `friendly` 55 % when it was alone.
#[test]
fn beside_reno_in_a_deep_queue_aerotp_has_its_share() {
    for control in ["friendly", "learnt"] {
        let flows = measured(&bottleneck(&[aerotp(control), tcp("reno")], 0.025, 42, 0.0));
        assert!(flows[0].0 > 0.3 && flows[1].0 > 0.1, "{flows:?} with {control}");
    }
    let alone = measured(&bottleneck(&[aerotp("friendly")], 0.025, 42, 0.0))[0];
    assert!(alone.0 > 0.85 && alone.1 < 0.03, "{alone:?}");
}

/// `[P16]`: bursts of four packets, between which 400 packets often arrive without loss, which was taken for a queue that is full at times: 0.54 to 0.59 of
/// what the path carries.
#[test]
fn losses_in_bursts_are_the_channels() {
    let mut scenario = bottleneck(&[aerotp("friendly")], 0.025, 10, 0.0);
    scenario["hop"]["wan"]["channel"] = json!({
        "kind": "gilbert-elliott", "p_good_to_bad": 0.02 / 0.98 / 4.0, "p_bad_to_good": 0.25, "loss_bad": 1.0,
    });
    let (goodput, _) = measured(&scenario)[0];
    assert!(goodput > 0.75, "{goodput}");
}

/// `[P17]`: ten times the rate of the bottleneck, at which 90 % were lost for ever; and channels that lose as much at any rate.
#[test]
fn a_set_rate_falls_to_what_a_bottleneck_carries_and_stays_where_a_channel_loses() {
    let set = |rate_bps: f64, loss: f64, is_alone: bool, seed: u64| {
        let transport = json!({ "kind": "aerotp", "rate_bps": rate_bps, "alone": is_alone });
        let mut scenario = bottleneck(&[transport], 0.025, 20, loss);
        scenario["seed"] = json!(seed);
        measured(&scenario)[0]
    };
    let (goodput, lost) = set(1e8, 0.0, false, 1);
    assert!(goodput > 0.9 && lost < 0.12, "{goodput}, {lost}");
    assert!(set(1e8, 0.0, true, 1).1 > 0.85, "on a path of one's own the rate is what was asked for");
    // One run scatters by 2 %.
    let mean = |loss: f64, is_alone: bool| (1..=8).map(|seed| set(9e6, loss, is_alone, seed).0).sum::<f64>() / 8.0;
    for loss in [0.3, 0.5, 0.7] {
        let (watched, unwatched) = (mean(loss, false), mean(loss, true));
        assert!((watched / unwatched - 1.0).abs() < 0.02, "{watched} instead of {unwatched} at {loss}");
    }
}

/// `[P17]`: the user learns that a set rate was lowered, of which flow, and what to do; and nothing where the loss is the channel's.
#[test]
fn a_set_rate_that_was_lowered_is_remarked_on() {
    let notes = |transport: Value, loss: f64| {
        let mut scenario = bottleneck(&[tcp("reno"), transport], 0.025, 20, loss);
        scenario["runs"] = json!(2);
        let output = run(&scenario, 2);
        let expanded = expanded(&scenario);
        let study =
            farlink_sim::Study::new(Cow::Borrowed(&expanded), &farlink_sim::Options::default(), &go_on).unwrap();
        let piece = study.run(0, 0..1, &go_on).unwrap();
        let is_of_rate = |note: &String| note.starts_with("transport.t1.rate_bps");
        assert_eq!(piece.notes, output.notes.iter().filter(|note| is_of_rate(note)).cloned().collect::<Vec<_>>());
        piece.notes
    };
    let too_fast = notes(json!({ "kind": "aerotp", "rate_bps": 1e8 }), 0.0);
    let [note] = &too_fast[..] else { panic!("{too_fast:?}") };
    for part in ["more than the path carries", "flow \"f1\"", "run 0 lowered it to", "Mbit/s", "alone = true"] {
        assert!(note.contains(part), "{note}");
    }
    assert_eq!(notes(json!({ "kind": "aerotp", "rate_bps": 1e8, "alone": true }), 0.0), [""; 0]);
    assert_eq!(notes(json!({ "kind": "aerotp", "rate_bps": 5e6 }), 0.4), [""; 0], "the channel loses them");
}

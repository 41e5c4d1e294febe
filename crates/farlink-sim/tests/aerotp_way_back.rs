//! AeroTP over a way back that is a thousand times slower than the way forward, or slower still. `[M1]`, `[M2]`, `[P18]`

use farlink_core::trace::MemoryTraces;
use farlink_sim::engine::{FlowResult, NoTrace, simulate};
use farlink_sim::resolve;
use serde_json::{Value, json};

use crate::common::{bottleneck, expanded, real, run};

const FORWARD_BPS: f64 = 1e7;
const WARM_UP_S: f64 = 60.0;
const DURATION_S: f64 = 120.0;

/// A bulk flow after the warm-up: what it delivered, over the goodput of full packets that the channel leaves; and the share of the
/// way back that its acknowledgements took.
fn shares(transport: &Value, lost: [f64; 2], queue_back: u32) -> (f64, f64) {
    let channel = |loss: f64| json!({ "kind": "loss", "loss": loss });
    let mut aero = json!({ "kind": "aerotp", "packet_bytes": 1500 });
    aero.as_object_mut().unwrap().extend(transport.as_object().unwrap().clone());
    let scenario = json!({
        "duration_s": DURATION_S,
        "measure": { "warmup_s": WARM_UP_S },
        "link": {
            "rate_bps": FORWARD_BPS, "delay_s": 0.25, "channel": channel(lost[0]),
            "return": { "rate_bps": FORWARD_BPS / 1e3, "queue_packets": queue_back, "channel": channel(lost[1]) },
        },
        "transport": { "aero": aero },
        "flow": { "bulk": { "transport": "aero", "traffic": { "kind": "bulk" } } },
    });
    let setup = resolve(&expanded(&scenario).points[0].scenario, &MemoryTraces::default()).unwrap();
    let run = simulate(&setup, 1, 0, &mut NoTrace, &|| false).expect("the run is not stopped");
    let FlowResult { delivered_bytes, carried_back_bytes, .. } = &run.flows[0];
    let seconds = DURATION_S - WARM_UP_S;
    let bound = FORWARD_BPS / 8.0 * seconds * (1.0 - lost[0]) * (1500.0 - 44.0) / 1500.0;
    (*delivered_bytes as f64 / bound, *carried_back_bytes as f64 / (FORWARD_BPS / 8e3 * seconds))
}

/// Reliable and coded data has nine tenths of what the channel leaves, also where the queue of acknowledgements is short, and where as many of
/// them are lost.
#[test]
fn acknowledgements_share_a_way_back_of_a_thousandth() {
    for (transport, losses) in [
        (json!({ "rate_bps": FORWARD_BPS }), &[0.0, 0.01, 0.1][..]),
        (json!({ "rate_bps": FORWARD_BPS, "coded": {} }), &[0.1]),
    ] {
        for &loss in losses {
            for (lost_back, queue_back) in [(0.0, 1_000_000), (0.0, 20), (loss, 1_000_000)] {
                let (goodput, back) = shares(&transport, [loss, lost_back], queue_back);
                println!("{transport} {loss} {lost_back} {queue_back}: {goodput:.3}, {back:.3} of the way back");
                assert!(goodput >= 0.9, "{transport} {loss} {lost_back} {queue_back}: {goodput}");
            }
        }
    }
}

/// A queue of acknowledgements is none of data: a learnt rate, which had 0.02 of the capacity here, does not fall for it. On a path of its
/// own it has 0.69 by then, and 0.84 two minutes later.
#[test]
fn a_learnt_rate_does_not_take_acknowledgements_for_data_that_wait() {
    for (keys, least) in [(json!({}), 0.6), (json!({ "alone": false }), 0.9)] {
        let (goodput, _) = shares(&keys, [0.0, 0.0], 1_000_000);
        println!("{keys}: {goodput:.3}");
        assert!(goodput >= least, "{keys}: {goodput}");
    }
}

/// Acknowledgements that are half a minute late: the rate grew to 17 times the link meanwhile, and 0.91 of all packets were lost in the second
/// minute.
#[test]
fn a_learnt_rate_does_not_outrun_its_acknowledgements() {
    let mut scenario = bottleneck(&[json!({ "kind": "aerotp", "alone": false, "coded": {} })], 0.025, 41, 0.0);
    scenario["hop"]["wan"]["return"] = json!({ "rate_bps": 1e3 });
    let rows = run(&scenario, 1).rows;
    let (sent, lost) = (real(&rows, "sent_bytes")[0] * 8.0 / FORWARD_BPS / 60.0, real(&rows, "loss_fraction")[0]);
    assert!(sent < 1.5 && lost < 0.3, "{sent} of the link, {lost} lost");
}

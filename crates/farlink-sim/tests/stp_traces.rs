//! Reactions of STP to given losses, packet by packet, at the sender's interface.
//!
//! One data packet takes 10 ms on the link, a POLL 0.38 ms, and the one-way delay is 50 ms. Numbers are those of
//! packets, counted from 0. Each trace was checked by hand against the rules of SSCOP (ITU-T Q.2110); the comment of
//! each test says what it shows.

use std::any::Any;
use std::fmt::Write;

use crate::common::{losses, scenario, setup};
use farlink_core::endpoint::Probe;
use farlink_core::protocol::stp::{Kind, Pdu};
use farlink_core::wire::Codec;
use farlink_core::{Time, Virtual};
use farlink_sim::engine::{Tracer, simulate};
use serde_json::{Value, json};

const SEGMENT: u32 = 1000;

/// Writes a line per packet.
#[derive(Default)]
struct Log {
    text: String,
    highest: u32,
}

impl Tracer for Log {
    fn packet<P: Codec + 'static>(
        &mut self,
        now: Time,
        _direction: usize,
        _flow: u32,
        packet: &P,
        _ecn: farlink_core::Ecn,
    ) {
        let packet: &dyn Any = packet;
        let pdu = packet.downcast_ref::<Pdu<Virtual>>().expect("there is only STP");
        let number = |position: u32| f64::from(position) / f64::from(SEGMENT);
        let position = number(pdu.position);
        write!(self.text, "{:9.6}  ", now.as_secs_f64()).unwrap();
        match pdu.kind {
            Kind::Data => {
                let again = if pdu.position < self.highest { " again" } else { "" };
                self.highest = self.highest.max(pdu.position + pdu.payload.0);
                write!(self.text, "send {position}{again}").unwrap();
            }
            Kind::Poll => write!(self.text, "        POLL {} after {position}", pdu.poll).unwrap(),
            Kind::Stat => write!(self.text, "                          STAT {} next {position}", pdu.poll).unwrap(),
            Kind::Ustat => write!(self.text, "                          USTAT next {position}").unwrap(),
            kind => write!(self.text, "{kind:?}").unwrap(),
        }
        for (n, gap) in pdu.report.missing.iter().enumerate() {
            let word = if n == 0 { " missing" } else { "" };
            write!(self.text, "{word} {}-{}", number(gap.from), number(gap.to)).unwrap();
        }
        self.text.push('\n');
    }

    fn probe(&mut self, _now: Time, _flow: u32, _probe: impl FnOnce() -> Probe) {}
}

/// A file of this many packets. The given frames are lost on the forward path, counted from 0 in the order of
/// transmission.
fn trace(packets: u32, lost: &[usize], keys: &Value) -> String {
    let frames: Vec<bool> = (0..1000).map(|frame| lost.contains(&frame)).collect();
    let name = lost.iter().map(ToString::to_string).collect::<Vec<_>>().join("-");
    let file = losses(&format!("stp-frames-{name}"), &frames);
    let mut transport = json!({
        "kind": "stp", "segment_bytes": SEGMENT, "header_bytes": 40, "handshake": false, "poll_interval_s": 0.06,
    });
    for (key, value) in keys.as_object().expect("a table") {
        transport[key] = value.clone();
    }
    let scenario = scenario(&[
        ("link", json!({ "rate_bps": 832e3, "delay_s": 0.05 })),
        ("link.channel", json!({ "kind": "packet-trace", "file": file, "offset": 0 })),
        ("transport.stp", transport),
        ("flow", json!({ "file": { "transport": "stp", "traffic": { "kind": "file", "bytes": SEGMENT * packets } } })),
    ]);
    let mut log = Log::default();
    let run = simulate(&setup(&scenario), 1, 0, &mut log, &|| false).unwrap();
    assert_eq!(run.flows[0].delivered_bytes, u64::from(SEGMENT * packets));
    log.text
}

/// Rate control at 3/4 of the link's rate. Packet 2 is lost; 3 reveals the gap to the receiver, whose USTAT causes a
/// retransmission of 2 between new data. STAT 2, of a POLL that was sent before the retransmission, still misses 2 and
/// causes nothing.
#[test]
fn a_gap_is_reported_by_a_ustat() {
    insta::assert_snapshot!("stp_ustat", trace(20, &[2], &json!({ "congestion": "rate", "rate_bps": 624e3 })));
}

/// The same, but the retransmission is lost as well. It was sent after POLL 2: STAT 1 and 2, which miss packet 2, cause
/// nothing, STAT 3 does.
#[test]
fn a_lost_retransmission_waits_for_a_poll_that_passed_it() {
    let keys = json!({ "congestion": "rate", "rate_bps": 624e3 });
    insta::assert_snapshot!("stp_lost_retransmission", trace(20, &[2, 14], &keys));
}

/// Slow start from two packets, a STAT at a time. Packet 5 and the POLL after it are lost: nothing reveals this until
/// the interval of 0.5 s is over. Four were in flight, so two may be: 5 again and 6, which is lost as well. 6 was sent
/// after POLL 3, the latest when the window was halved, so its loss belongs to the same window; then the window grows
/// by a packet per round.
#[test]
fn losses_under_tcp_like_control() {
    let keys = json!({ "initial_window_segments": 2, "poll_interval_s": 0.5 });
    insta::assert_snapshot!("stp_tcp_losses", trace(24, &[6, 7, 10], &keys));
}

//! Real packets through the sender of a bundle: every fragment is encoded, carried by a line of this test, decoded and
//! reassembled.

use std::collections::VecDeque;

use bytes::Bytes;
use farlink_core::bundle::{
    BundleConfig, Confirmation, Fragment, LineConfig, Lines, Numbering, Piece, Reassembler, Sender,
};
use farlink_core::link::QueueLimit;
use farlink_core::wire::mp;
use farlink_core::{Rng, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Bytes per second of each line.
const RATE: f64 = 1000.0;
const DELAY: Time = Time::from_millis(300);

/// A frame of bytes on a line.
struct Frame {
    bytes: Bytes,
    number: u32,
    /// Whether the driver has reported it as sent.
    is_reported: bool,
    /// When its last bit has left the line, and when it arrives.
    end: Time,
    arrival: Time,
}

#[derive(Default)]
struct Line {
    is_up: bool,
    free_at: Time,
    frames: VecDeque<Frame>,
    /// Acknowledgements on their way back, and those that are awaited, with the times at which they come or are overdue.
    acks: VecDeque<(Time, u32)>,
    awaited: VecDeque<(Time, u32)>,
}

impl Line {
    fn at(now: Time) -> Self {
        Line { is_up: true, free_at: now, ..Line::default() }
    }
}

/// Lines that hold one frame in addition to the one being sent.
struct Wires {
    numbering: Numbering,
    lines: Vec<Line>,
}

impl Wires {
    fn waiting(&self, line: usize, now: Time) -> impl Iterator<Item = &Frame> {
        self.lines[line].frames.iter().filter(move |frame| frame.end > now)
    }
}

impl Lines<Bytes> for Wires {
    fn count(&self) -> usize {
        self.lines.len()
    }

    fn is_up(&self, line: usize) -> bool {
        self.lines[line].is_up
    }

    fn is_idle(&self, line: usize, now: Time) -> bool {
        self.is_up(line) && self.waiting(line, now).next().is_none()
    }

    fn has_room(&self, line: usize, now: Time, _bytes: u32) -> bool {
        self.is_up(line) && self.waiting(line, now).count() < 2
    }

    fn room_at(&self, line: usize, now: Time, bytes: u32) -> Time {
        let ends = std::iter::once(now).chain(self.waiting(line, now).map(|frame| frame.end));
        ends.into_iter().find(|&at| self.has_room(line, at, bytes)).unwrap_or(Time::NEVER)
    }

    fn is_free(&self, line: usize) -> bool {
        self.is_up(line) && self.lines[line].frames.is_empty()
    }

    fn waiting_bytes(&self, line: usize, now: Time) -> u64 {
        self.waiting(line, now).map(|frame| frame.bytes.len() as u64).sum()
    }

    fn ready(&self, line: usize, now: Time) -> Time {
        now.max(self.lines[line].free_at) + DELAY
    }

    fn arrival(&self, line: usize, now: Time, bytes: u32) -> Time {
        self.ready(line, now) + Time::from_secs_f64(f64::from(bytes) / RATE)
    }

    fn bytes_per_s(&self, _line: usize) -> f64 {
        RATE
    }

    fn drop_rate(&self, _line: usize, _now: Time) -> f64 {
        1e-3
    }

    fn take(&mut self, line: usize, now: Time, fragment: Fragment<Piece<Bytes>>, on_line: u32) {
        let Fragment { number, is_beginning, is_end, ref payload } = fragment;
        let bare = Fragment { number, is_beginning, is_end, payload: payload.payload.clone() };
        let mut bytes = Vec::new();
        mp::encode(&bare, self.numbering, &mut bytes);
        let line = &mut self.lines[line];
        line.free_at = now.max(line.free_at) + Time::from_secs_f64(f64::from(on_line) / RATE);
        let (end, arrival) = (line.free_at, line.free_at + DELAY);
        line.awaited.push_back((end + Time::from_secs_f64(4.0 * DELAY.as_secs_f64() + 0.2), number));
        line.frames.push_back(Frame { bytes: bytes.into(), number, is_reported: false, end, arrival });
    }
}

/// Result of a run.
#[derive(Debug, Default)]
struct Run {
    delivered: Vec<Bytes>,
    /// Frames in flight, and frames that the driver held, when a line went down.
    in_flight: usize,
    held: usize,
    losses: usize,
    still_waiting: bool,
}

/// What the sender learns of a line by `now`: acknowledgements if it keeps numbers, else what the driver has sent.
fn report(sender: &mut Sender<Bytes>, wires: &mut Wires, line: usize, now: Time, acknowledges: bool) {
    let Line { frames, acks, awaited, .. } = &mut wires.lines[line];
    if !acknowledges {
        for frame in frames.iter_mut().filter(|frame| frame.end <= now && !frame.is_reported) {
            frame.is_reported = true;
            sender.on_sent(line);
        }
        return;
    }
    while let Some(&(_, number)) = acks.front().filter(|(at, _)| *at <= now) {
        acks.pop_front();
        while awaited.pop_front().is_some_and(|(_, other)| other != number) {}
        sender.on_ack(line, number);
    }
    while awaited.front().is_some_and(|(at, _)| *at <= now) {
        awaited.pop_front();
        sender.on_overdue_ack(line);
    }
}

/// Sends packets, 50 ms apart. Each frame is lost with probability `loss`, unknown to the sender. Each line drops at random and is
/// up again 5 s later; both ends know it at once.
fn run(config: &Value, packets: &[Bytes], lines: usize, (loss, drop_after_s): (f64, f64), seed: u64) -> Run {
    let config: BundleConfig = serde_json::from_value(config.clone()).unwrap();
    let rate = serde_json::from_value(json!(RATE * 8.0)).unwrap();
    let delay = serde_json::from_value(json!(DELAY.as_secs_f64())).unwrap();
    let of_lines: Vec<LineConfig> = config.resolve([&rate; 2], &delay).unwrap();
    let numbering = config.framing().numbering;
    let mut sender = Sender::new(&config, &of_lines, QueueLimit::Unlimited);
    let mut wires = Wires { numbering, lines: (0..lines).map(|_| Line::at(Time::ZERO)).collect() };
    let mut receiver = Reassembler::<Bytes>::new(numbering, lines, 1500, 4096).with_patience(Time::from_secs(60));
    let acknowledges = config.confirmation() == Some(Confirmation::Acknowledged);
    if acknowledges {
        receiver = receiver.with_resending();
    }
    let mut rng = Rng::for_component(seed, 0, "wires");
    let (mut given, mut result) = (0, Run::default());
    let mut up_again = vec![Time::NEVER; lines];
    let step = Time::from_millis(50);
    let until = Time::from_secs(400);
    let mut now = Time::ZERO;
    while now < until {
        if let Some(packet) = packets.get(given) {
            sender.send(now, packet.clone(), &mut wires).expect("the queue has no limit");
            given += 1;
        }
        for (line, up_again) in up_again.iter_mut().enumerate() {
            report(&mut sender, &mut wires, line, now, acknowledges);
            while wires.lines[line].frames.front().is_some_and(|frame| frame.arrival <= now) {
                let Some(frame) = wires.lines[line].frames.pop_front() else { break };
                if rng.chance(loss) {
                    result.losses += 1;
                } else {
                    wires.lines[line].acks.push_back((frame.arrival + DELAY, frame.number));
                    let fragment = mp::decode(&frame.bytes, numbering).expect("it was encoded so");
                    receiver.on_fragment(now, line, fragment);
                }
            }
            if wires.is_up(line) && given < packets.len() && rng.chance(0.05 / drop_after_s) {
                result.in_flight += wires.lines[line].frames.iter().filter(|frame| frame.end <= now).count();
                result.held += wires.lines[line].frames.iter().filter(|frame| frame.end > now).count();
                wires.lines[line] = Line::default();
                sender.line_down(now, line, &mut wires);
                receiver.set_up(now, line, false);
                *up_again = now + Time::from_secs(5);
            } else if *up_again <= now {
                *up_again = Time::NEVER;
                wires.lines[line] = Line::at(now);
                receiver.set_up(now, line, true);
                sender.line_up(now, line, &mut wires);
            }
        }
        sender.dispatch(now, &mut wires);
        receiver.on_timeout(now);
        let mut pieces = Vec::new();
        while receiver.next_packet(now, &mut pieces) {
            let packet: Vec<u8> = pieces.drain(..).flat_map(|piece: Bytes| piece.to_vec()).collect();
            if !packet.is_empty() {
                result.delivered.push(packet.into());
            }
        }
        now += step;
    }
    result.still_waiting = sender.is_waiting();
    result
}

/// Packets that carry their own numbers.
fn packets(sizes: &[usize]) -> Vec<Bytes> {
    let content =
        |(n, &size): (usize, &usize)| (0..size.max(2)).map(|at| (n >> (8 * (at % 2))) as u8 ^ at as u8).collect();
    sizes.iter().enumerate().map(content).collect()
}

fn config(scheduler: &str, is_cut: bool, is_short: bool, lines: usize, on_drop: &str, peer: &str) -> Value {
    let mut config = json!({
        "lines": lines, "scheduler": scheduler, "header": if is_short { "short" } else { "long" }, "on_drop": on_drop,
        "calls": { "up": { "distribution": "exponential", "mean_s": 1000 }, "redial": { "distribution": "exponential", "mean_s": 5 } },
    });
    if scheduler != "linux" {
        config["packets"] = if is_cut && scheduler != "redundant" { "fragmented" } else { "whole" }.into();
    }
    if on_drop == "requeue" {
        config["peer"] = peer.into();
    }
    config
}

const SCHEDULERS: [&str; 6] =
    ["round-robin", "shortest-queue", "earliest-delivery", "drop-aware", "redundant", "linux"];

proptest! {
    /// Every delivered packet was sent: nothing is mixed up, changed or delivered twice, whatever is lost.
    #[test]
    fn no_packet_is_delivered_changed_or_twice(
        sizes in prop::collection::vec(2_usize..1400, 1..60),
        (scheduler, is_cut, is_short, lines) in (prop::sample::select(&SCHEDULERS[..]), any::<bool>(), any::<bool>(), 1_usize..6),
        on_drop in prop::sample::select(&["lose", "requeue"][..]),
        peer in prop::sample::select(&["farlink", "rfc1990"][..]),
        (loss, drop_after_s) in (0.0..0.3_f64, 2.0..100.0_f64),
        seed in any::<u64>(),
    ) {
        let on_drop = if scheduler == "linux" { "lose" } else { on_drop };
        let sent = packets(&sizes);
        let config = config(scheduler, is_cut, is_short, lines, on_drop, peer);
        let result = run(&config, &sent, lines, (loss, drop_after_s), seed);
        let mut last = None;
        for packet in &result.delivered {
            let at = sent.iter().position(|other| other == packet);
            prop_assert!(at.is_some(), "{} bytes came out that nobody sent: {}", packet.len(), config);
            // A packet with a new number may follow later ones; one with its old number may not.
            prop_assert!(at > last || on_drop == "requeue" && peer == "rfc1990", "out of order: {}", config);
            last = at.max(last);
        }
        let mut unique = result.delivered.clone();
        unique.sort();
        unique.dedup();
        prop_assert_eq!(unique.len(), result.delivered.len(), "twice: {}", config);
    }

    /// Lines without losses deliver everything, and so do lines that drop if what is not acknowledged is sent again. With a peer that
    /// acknowledges nothing, only packets of which a piece was in flight are lost.
    #[test]
    fn without_loss_everything_is_delivered(
        sizes in prop::collection::vec(2_usize..1400, 1..60),
        (scheduler, is_cut, is_short, lines) in (prop::sample::select(&SCHEDULERS[..]), any::<bool>(), any::<bool>(), 1_usize..6),
        peer in prop::sample::select(&["farlink", "rfc1990"][..]),
        drops in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let drops = drops && scheduler != "linux";
        let on_drop = if drops { "requeue" } else { "lose" };
        let sent = packets(&sizes);
        let config = config(scheduler, is_cut, is_short, lines, on_drop, peer);
        let result = run(&config, &sent, lines, (0.0, if drops { 10.0 } else { 1e12 }), seed);
        prop_assert!(!result.still_waiting);
        let lost = sent.len() - result.delivered.len();
        if drops && peer == "rfc1990" {
            prop_assert!(lost <= result.in_flight, "{lost} lost, {} in flight: {config}", result.in_flight);
        } else {
            prop_assert_eq!(result.delivered, sent, "{}", config);
        }
    }

    /// Frames that get lost are sent again to a peer that acknowledges, until all have arrived.
    #[test]
    fn losses_are_made_good_by_acknowledgements(
        sizes in prop::collection::vec(2_usize..1400, 1..60),
        (scheduler, is_cut, is_short, lines) in (prop::sample::select(&SCHEDULERS[..5]), any::<bool>(), any::<bool>(), 1_usize..6),
        (loss, drop_after_s) in (0.0..0.3_f64, 5.0..100.0_f64),
        seed in any::<u64>(),
    ) {
        let sent = packets(&sizes);
        let config = config(scheduler, is_cut, is_short, lines, "requeue", "farlink");
        let result = run(&config, &sent, lines, (loss, drop_after_s), seed);
        prop_assert!(!result.still_waiting);
        prop_assert_eq!(result.delivered, sent, "{}", config);
    }
}

/// Checks that the runs above lose frames and drop lines.
#[test]
fn the_lines_of_these_tests_lose_and_drop() {
    let sent = packets(&[700; 60]);
    let result = run(&config("round-robin", true, false, 4, "lose", "farlink"), &sent, 4, (0.1, 10.0), 1);
    assert!(result.losses > 5 && result.held > 0 && result.in_flight > 0, "{result:?}");
    assert!(result.delivered.len() < 55 && result.delivered.len() > 10, "{}", result.delivered.len());
}

//! Properties of every kind of channel, tested on one table of examples.

use farlink_fec::events::ErrorEvents;
use proptest::prelude::*;

use super::{Channel, ChannelKind, Fate, Frame, Quiet, SettingId, Site};
use crate::rng::Rng;
use crate::time::Time;
use crate::trace::{MemoryTraces, Trace};

/// At least one example per kind, with edge cases. Rare errors test the jumps from one error to the next, frequent ones the ends
/// of frames.
const EXAMPLES: &[&str] = &[
    r#"{"kind": "none"}"#,
    r#"{"kind": "loss", "loss": 0}"#,
    r#"{"kind": "loss", "loss": 0.1}"#,
    r#"{"kind": "loss", "loss": 1}"#,
    r#"{"kind": "ber", "ber": 0}"#,
    r#"{"kind": "ber", "ber": 1e-4}"#,
    r#"{"kind": "ber", "ber": 0.2}"#,
    r#"{"kind": "ber", "ber": 1}"#,
    r#"{"kind": "gilbert-elliott", "p_good_to_bad": 0.05, "p_bad_to_good": 0.3, "loss_good": 0.01, "loss_bad": 0.5}"#,
    r#"{"kind": "gilbert-elliott", "p_good_to_bad": 0, "p_bad_to_good": 0, "loss_bad": 1}"#,
    r#"{"kind": "gilbert-elliott", "p_good_to_bad": 1, "p_bad_to_good": 1, "loss_bad": 1}"#,
    r#"{"kind": "gilbert-elliott", "per": "bit", "p_good_to_bad": 1e-4, "p_bad_to_good": 1e-2, "ber_bad": 0.3}"#,
    r#"{"kind": "gilbert-elliott", "per": "bit", "p_good_to_bad": 1, "p_bad_to_good": 0.5, "ber_good": 1, "ber_bad": 1}"#,
    r#"{"kind": "round-loss", "loss": 0.05, "round_s": 0.02}"#,
    r#"{"kind": "round-loss", "loss": 1, "round_s": 1e-13}"#,
    r#"{"kind": "outage", "schedule": [[0, 0.01], [0.02, 0.021], [0.021, 0.05]]}"#,
    r#"{"kind": "outage", "period_s": 0.02, "down_s": 0.004, "offset_s": 0.003}"#,
    r#"{"kind": "outage", "rate_per_s": 100, "down_s": 0.005}"#,
    r#"{"kind": "call-drops", "up": {"distribution": "exponential", "mean_s": 0.01},
        "redial": {"distribution": "weibull", "shape": 2, "scale_s": 0.005}}"#,
    r#"{"kind": "packet-trace", "file": "losses"}"#,
    r#"{"kind": "packet-trace", "file": "losses", "offset": 3}"#,
    r#"{"kind": "packet-trace", "file": "no losses", "offset": 3}"#,
    r#"{"kind": "bit-trace", "file": "errors"}"#,
    r#"{"kind": "bit-trace", "file": "errors", "offset": 699}"#,
    r#"{"kind": "bit-trace", "file": "no errors"}"#,
    r#"{"kind": "coded", "ebn0_db": 2, "code": {"kind": "uncoded"}}"#,
    r#"{"kind": "coded", "ebn0_db": 2, "code": {"kind": "convolutional", "generators": "171,133"}, "errors": "independent"}"#,
    r#"{"kind": "fading", "file": "fades"}"#,
    r#"{"kind": "fading", "file": "fades", "ber": 1e-4, "offset_s": 0.0003}"#,
    r#"{"kind": "fading", "file": "fades", "ber": 0.2, "lost_above_ber": 0.4, "offset_s": "random"}"#,
    r#"{"kind": "ber-trace", "file": "rain"}"#,
    r#"{"kind": "ber-trace", "file": "rain", "lost_above_ber": 0.4, "offset_s": "random"}"#,
    r#"{"kind": "chain", "stages": []}"#,
    r#"{"kind": "chain", "stages": [{"kind": "ber", "ber": 1e-4}, {"kind": "ber", "ber": 1e-3},
        {"kind": "outage", "rate_per_s": 10, "down_s": 0.005}, {"kind": "round-loss", "loss": 0.01, "round_s": 0.02}]}"#,
];

fn traces() -> MemoryTraces {
    let lost = (0..100).map(|i| i % 7 == 3 || (20..25).contains(&i)).collect();
    MemoryTraces::default()
        .with("losses", Trace::PacketLoss { lost })
        .with("no losses", Trace::PacketLoss { lost: vec![false; 10] })
        .with("errors", Trace::BitErrors { position: vec![0, 1, 2, 300, 698, 700], bits: 70_000 })
        .with("fades", fades())
        .with("rain", Trace::BitErrorRate { ber: vec![0.0, 1e-5, 1e-2, 0.3, 1e-4, 1e-3, 0.0], duration_s: 0.0097 })
        .with("no errors", Trace::BitErrors { position: vec![], bits: 10 })
        .with_events(events())
}

/// Received power with deep fades and one blockage.
fn fades() -> Trace {
    let power_w = (0..97).map(|at| 40e-9 / (1.0 + f64::from(at % 11).powi(2) / 30.0)).collect();
    Trace::Power { power_w, blocked: (0..97).map(|at| at == 50).collect(), is_relative: false, duration_s: 0.0097 }
}

/// Residual errors of a decoder: short bursts and one that is longer than many frames.
fn events() -> ErrorEvents {
    let long: Vec<u32> = (0..400).map(|i| i * 3 + i % 2).collect();
    let events: [&[u32]; 4] = [&[0], &[0, 1, 4], &[0, 2, 3, 5, 11], &long];
    ErrorEvents::new(events, 6.0, 700.25)
}

fn parse(json: &str) -> ChannelKind {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// One direction of one run.
struct Run {
    channel: Box<dyn Channel>,
    rng: Rng,
}

impl Run {
    fn start(json: &str, seed: u64) -> Self {
        let mut rng = Rng::for_component(seed, 0, "channel");
        Run { channel: parse(json).prepare(&Site::anywhere(&traces())).unwrap().start(&mut rng), rng }
    }

    fn carry(&mut self, frame: &Frame) -> (Fate, Vec<u32>) {
        let mut errors = Vec::new();
        let fate = self.channel.carry(frame, &mut self.rng, &mut errors);
        (fate, errors)
    }
}

/// Carries frames as a link does: it counts frames that the channel's promise covers, and reports them before the next call.
struct Skipping {
    run: Run,
    quiet: Quiet,
    frames: u64,
    bits: u64,
}

impl Skipping {
    fn start(json: &str, seed: u64) -> Self {
        let run = Run::start(json, seed);
        Skipping { quiet: run.channel.quiet(), run, frames: 0, bits: 0 }
    }

    fn carry(&mut self, frame: &Frame) -> (Fate, Vec<u32>) {
        let bits = u64::from(frame.bits);
        if self.frames < self.quiet.frames && bits <= self.quiet.bits - self.bits && frame.end <= self.quiet.until {
            self.frames += 1;
            self.bits += bits;
            return (Fate::Delivered, Vec::new());
        }
        self.settle();
        let outcome = self.run.carry(frame);
        self.quiet = self.run.channel.quiet();
        outcome
    }

    fn settle(&mut self) {
        self.run.channel.skip(self.frames, self.bits);
        (self.frames, self.bits) = (0, 0);
        self.quiet = self.run.channel.quiet();
    }
}

/// Frames back to back or with gaps (in microseconds), some of no length in time.
fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let gap = prop_oneof![4 => Just(0u64), 3 => 0..3_000u64, 1 => 0..60_000u64];
    let bits = prop_oneof![1 => 1..64u32, 3 => 64..3_000u32];
    let step = (gap, bits, prop_oneof![1 => Just(0u64), 9 => Just(100_000u64)]);
    proptest::collection::vec(step, 1..150).prop_map(|steps| {
        let mut now = Time::ZERO;
        let lay = |(gap, bits, ps_per_bit)| {
            let start = now + Time::from_ps(gap * 1_000_000);
            now = start + Time::from_ps(u64::from(bits) * ps_per_bit);
            Frame { start, end: now, bits, setting: SettingId::default() }
        };
        steps.into_iter().map(lay).collect()
    })
}

/// Frames of `bits` bits, one each millisecond, that last 0.9 ms.
fn steady(bits: u32) -> impl Iterator<Item = Frame> {
    (0..).map(move |i| {
        let start = Time::from_millis(i);
        Frame { start, end: start + Time::from_ps(900_000_000), bits, setting: SettingId::default() }
    })
}

#[test]
fn every_kind_has_an_example_and_round_trips() {
    let kinds: Vec<_> = EXAMPLES.iter().map(|json| parse(json).kind()).collect();
    for kind in ChannelKind::KINDS {
        assert!(kinds.contains(kind), "no example of {kind}");
    }
    for json in EXAMPLES {
        let once = serde_json::to_value(parse(json)).unwrap();
        let again: ChannelKind = serde_json::from_value(once.clone()).unwrap();
        assert_eq!(serde_json::to_value(again).unwrap(), once);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn skipping_quiet_frames_gives_the_same_errors(frames in frames(), seed: u64) {
        for json in EXAMPLES {
            let (mut every, mut skipping) = (Run::start(json, seed), Skipping::start(json, seed));
            for (i, frame) in frames.iter().enumerate() {
                prop_assert_eq!(every.carry(frame), skipping.carry(frame), "{} frame {}", json, i);
                if (seed >> (i % 64)) & 1 == 1 {
                    skipping.settle(); // a link may report at any time, for example when statistics are read during a run
                }
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_errors_in_ascending_order(frames in frames(), seed: u64) {
        for json in EXAMPLES {
            let (mut one, mut other) = (Run::start(json, seed), Run::start(json, seed));
            for frame in &frames {
                let (fate, errors) = one.carry(frame);
                prop_assert!(errors.windows(2).all(|pair| pair[0] < pair[1]), "{}: {:?}", json, errors);
                prop_assert!(errors.last().is_none_or(|&last| last < frame.bits), "{}: {:?}", json, errors);
                prop_assert_eq!(errors.is_empty(), fate != Fate::Damaged);
                prop_assert_eq!((fate, errors), other.carry(frame));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Frames are lost exactly while the reported state is down, although frames and queries have different times.
    #[test]
    fn frames_are_lost_while_the_state_is_down(seed: u64, gaps in proptest::collection::vec(0..30_000u64, 1..200)) {
        for json in EXAMPLES {
            let (mut run, mut asked) = (Run::start(json, seed), Run::start(json, seed));
            let only_outages = [r#"{"kind": "outage""#, r#"{"kind": "call-drops""#].iter().any(|kind| json.starts_with(kind));
            let mut now = Time::ZERO;
            for gap in &gaps {
                now += Time::from_ps(gap * 1_000_000);
                let frame = Frame { start: now, end: now, bits: 1, setting: SettingId::default() };
                let is_lost = run.carry(&frame).0 == Fate::Lost;
                let up = asked.channel.state(now).up;
                prop_assert!(up || is_lost, "{} at {}", json, now);
                prop_assert!(!only_outages || up != is_lost, "{} at {}", json, now);
                run.channel.state(now + Time::from_millis(20)); // asking must not change anything
            }
        }
    }
}

#[test]
fn a_chain_is_up_while_all_its_stages_are() {
    let json = r#"{"kind": "chain", "stages": [{"kind": "outage", "schedule": [[1, 3]]}, {"kind": "ber", "ber": 0.1},
        {"kind": "outage", "schedule": [[2, 4], [5, 6]]}]}"#;
    let mut channel = Run::start(json, 1).channel;
    let mut at = |seconds| {
        let now = Time::from_secs(seconds);
        (channel.state(now).up, channel.next_change(now))
    };
    let expected = [(true, 1), (false, 2), (false, 3), (false, 4), (true, 5), (false, 6)];
    for (seconds, (up, next)) in (0..).zip(expected) {
        assert_eq!(at(seconds), (up, Time::from_secs(next)), "at {seconds} s");
    }
    assert_eq!(at(6), (true, Time::NEVER));
}

#[test]
fn probabilities_of_zero_and_one_are_exact() {
    let count = |json, fate| {
        let mut run = Run::start(json, 7);
        steady(1000).take(100).filter(|frame| run.carry(frame).0 == fate).count()
    };
    assert_eq!(count(r#"{"kind": "loss", "loss": 0}"#, Fate::Delivered), 100);
    assert_eq!(count(r#"{"kind": "loss", "loss": 1}"#, Fate::Lost), 100);
    assert_eq!(count(r#"{"kind": "ber", "ber": 0}"#, Fate::Delivered), 100);
    let mut run = Run::start(r#"{"kind": "ber", "ber": 1}"#, 7);
    let all: Vec<u32> = (0..1000).collect();
    assert!(steady(1000).take(100).all(|frame| run.carry(&frame) == (Fate::Damaged, all.clone())));
    // The states alternate, and all frames are lost in the bad one.
    let by_turns = r#"{"kind": "gilbert-elliott", "p_good_to_bad": 1, "p_bad_to_good": 1, "loss_bad": 1}"#;
    assert_eq!(count(by_turns, Fate::Lost), 50);
    let never = r#"{"kind": "gilbert-elliott", "p_good_to_bad": 0, "p_bad_to_good": 1, "loss_bad": 1}"#;
    assert_eq!(count(never, Fate::Delivered), 100);
}

#[test]
fn a_rare_event_is_skipped_in_one_step() {
    for json in [r#"{"kind": "ber", "ber": 1e-12}"#, r#"{"kind": "loss", "loss": 1e-12}"#] {
        let quiet = Run::start(json, 1).channel.quiet();
        assert!(quiet.bits.min(quiet.frames) > 1_000_000_000, "{json}: {quiet:?}");
    }
}

/// Lost frames and wrong bits of many steady frames, as shares.
fn shares(json: &str, bits: u32, frames: usize) -> (f64, f64, f64) {
    let mut run = Run::start(json, 11);
    let (mut lost, mut damaged, mut wrong) = (0, 0, 0);
    for frame in steady(bits).take(frames) {
        let (fate, errors) = run.carry(&frame);
        lost += usize::from(fate == Fate::Lost);
        damaged += usize::from(fate == Fate::Damaged);
        wrong += errors.len();
    }
    let n = frames as f64;
    (lost as f64 / n, damaged as f64 / n, wrong as f64 / n / f64::from(bits))
}

/// Asserts that a share of independent trials lies within five standard errors.
#[track_caller]
fn assert_share(share: f64, p: f64, trials: f64) {
    let error = (p * (1.0 - p) / trials).sqrt();
    assert!((share - p).abs() < 5.0 * error, "{share} is {} standard errors from {p}", (share - p) / error);
}

#[test]
fn independent_errors_have_the_configured_rate() {
    assert_share(shares(r#"{"kind": "loss", "loss": 0.03}"#, 100, 100_000).0, 0.03, 1e5);
    let (_, damaged, wrong) = shares(r#"{"kind": "ber", "ber": 1e-4}"#, 8000, 20_000);
    assert_share(wrong, 1e-4, 8000.0 * 20_000.0);
    assert_share(damaged, 1.0 - (1.0f64 - 1e-4).powi(8000), 20_000.0);
}

#[test]
fn bursts_have_the_configured_share_and_length() {
    // Simple Gilbert: lost in the bad state only, so that runs of losses are the stays. Bad share 0.02 / 0.27.
    let json = r#"{"kind": "gilbert-elliott", "p_good_to_bad": 0.02, "p_bad_to_good": 0.25, "loss_bad": 1}"#;
    let mut run = Run::start(json, 3);
    let lost: Vec<bool> = steady(100).take(400_000).map(|frame| run.carry(&frame).0 == Fate::Lost).collect();
    let share = lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64;
    // Autocorrelation 1 - 0.27 per step multiplies the variance by (1 + 0.73) / (1 - 0.73) = 6.4.
    assert_share(share, 0.02 / 0.27, 400_000.0 / 6.4);
    let stays: Vec<f64> = lost.chunk_by(|a, b| a == b).filter(|stay| stay[0]).map(|stay| stay.len() as f64).collect();
    let mean = stays.iter().sum::<f64>() / stays.len() as f64;
    // Mean 4, standard deviation sqrt(0.75) / 0.25 = 3.46.
    let error = 3.46 / (stays.len() as f64).sqrt();
    assert!((mean - 4.0).abs() < 5.0 * error, "mean stay {mean}, standard error {error}");
}

#[test]
fn bit_bursts_have_the_configured_share_and_length_across_frames() {
    // ber_bad = 1: runs of wrong bits are the stays in the bad state, across frames.
    let json =
        r#"{"kind": "gilbert-elliott", "per": "bit", "p_good_to_bad": 1e-3, "p_bad_to_good": 0.1, "ber_bad": 1}"#;
    let mut run = Run::start(json, 5);
    let (frames, bits) = (20_000u64, 100u32);
    let mut wrong = Vec::new();
    for (i, frame) in (0..).zip(steady(bits).take(frames as usize)) {
        wrong.extend(run.carry(&frame).1.iter().map(|&at| i * u64::from(bits) + u64::from(at)));
    }
    let total = (frames * u64::from(bits)) as f64;
    // Autocorrelation 1 - 0.101 per bit multiplies the variance by 18.8.
    assert_share(wrong.len() as f64 / total, 1e-3 / 0.101, total / 18.8);
    let stays: Vec<f64> = wrong.chunk_by(|a, b| a + 1 == *b).map(|stay| stay.len() as f64).collect();
    let mean = stays.iter().sum::<f64>() / stays.len() as f64;
    let error = 9.49 / (stays.len() as f64).sqrt();
    assert!((mean - 10.0).abs() < 5.0 * error, "mean stay {mean}, standard error {error}");
}

#[test]
fn a_run_starts_in_the_stationary_state() {
    // The first frame of many runs: bad with its long-run share of 0.2.
    let json = r#"{"kind": "gilbert-elliott", "p_good_to_bad": 0.01, "p_bad_to_good": 0.04, "loss_bad": 1}"#;
    let frame = steady(100).next().unwrap();
    let lost = (0..10_000).filter(|&seed| Run::start(json, seed).carry(&frame).0 == Fate::Lost).count();
    assert_share(lost as f64 / 1e4, 0.2, 1e4);
}

#[test]
fn recordings_are_replayed_exactly_and_repeat() {
    let mut run = Run::start(r#"{"kind": "packet-trace", "file": "losses", "offset": 98}"#, 1);
    let lost: Vec<u64> =
        (98..).zip(steady(8).take(300)).filter(|(_, frame)| run.carry(frame).0 == Fate::Lost).map(|(i, _)| i).collect();
    let expected: Vec<u64> = (98..398).filter(|i| (i % 100) % 7 == 3 || (20..25).contains(&(i % 100))).collect();
    assert_eq!(lost, expected);

    let mut run = Run::start(r#"{"kind": "bit-trace", "file": "errors", "offset": 69990}"#, 1);
    let mut wrong = Vec::new();
    for (i, frame) in (0..).zip(steady(1000).take(142)) {
        wrong.extend(run.carry(&frame).1.iter().map(|&at| 69_990 + i * 1000 + u64::from(at)));
    }
    let round = [0, 1, 2, 300, 698, 700];
    let expected: Vec<u64> = (1..=3).flat_map(|n| round.map(|at| n * 70_000 + at)).filter(|&at| at < 211_990).collect();
    assert_eq!(wrong, expected);
}

#[test]
fn a_random_offset_differs_from_run_to_run() {
    let first = |seed| Run::start(r#"{"kind": "packet-trace", "file": "losses"}"#, seed).channel.quiet().frames;
    assert!((0..20).any(|seed| first(seed) != first(0)));
}

#[test]
fn contradictory_keys_and_wrong_traces_are_refused() {
    let refusal = |json: &str| parse(json).prepare(&Site::anywhere(&traces())).unwrap_err().to_string();
    let chain = |keys| format!(r#"{{"kind": "gilbert-elliott", "p_good_to_bad": 0.1, "p_bad_to_good": 0.1, {keys}}}"#);
    assert_eq!(
        refusal(&chain(r#""loss_bad": 1, "ber_bad": 1"#)),
        "ber_good and ber_bad do not belong to per = \"frame\""
    );
    assert_eq!(refusal(&chain(r#""loss_good": 1"#)), "loss_bad is missing: per = \"frame\" needs it");
    assert_eq!(refusal(&chain(r#""per": "bit", "ber_good": 1"#)), "ber_bad is missing: per = \"bit\" needs it");
    assert_eq!(
        refusal(&chain(r#""per": "bit", "ber_bad": 1, "loss_good": 1"#)),
        "loss_good and loss_bad do not belong to per = \"bit\""
    );
    assert_eq!(
        refusal(r#"{"kind": "packet-trace", "file": "errors"}"#),
        "the trace errors holds bit-errors but packet-loss is wanted here"
    );
    assert_eq!(
        refusal(r#"{"kind": "chain", "stages": [{"kind": "bit-trace", "file": "nowhere"}]}"#),
        "cannot read the trace nowhere: there is no such trace"
    );
    for json in [
        r#"{"kind": "ber", "ber": 1.5}"#,
        r#"{"kind": "ber", "ber": 1e-6, "per": "bit"}"#,
        r#"{"kind": "round-loss", "loss": 0.1, "round_s": 0}"#,
        r#"{"kind": "bit-trace", "file": "errors", "offset": -1}"#,
    ] {
        assert!(serde_json::from_str::<ChannelKind>(json).is_err(), "{json}");
    }
}

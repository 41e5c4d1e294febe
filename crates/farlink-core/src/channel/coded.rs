//! The output of a decoder: bursts of wrong bits with random gaps between them.

use std::sync::Arc;

use farlink_fec::events::ErrorEvents;

use super::ber::Ber;
use super::failed_blocks::{Blocks, FailedBlocks};
use super::{Channel, ChannelConfig, ChannelError, ChannelState, Fate, Frame, Prepared, Quiet, Site, jump};
use crate::ConfigError;
use crate::coding::measured::Measured;
use crate::coding::{CodeKind, Coding, Errors};
use crate::rng::Rng;
use crate::time::Time;
use crate::trace::TraceSource;
use crate::units::EnergyToNoise;

impl ChannelConfig for Coding {
    fn prepare(&self, site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        let rate_db = site.rate.map(|rate| 10.0 * libm::log10(rate.get()));
        let (ebn0, cn0_dbhz) = match (self.ebn0_db, self.cn0_dbhz, rate_db) {
            (Some(_), Some(_), _) => {
                let message = "ebn0_db and cn0_dbhz are both given";
                return Err(ConfigError::new("", message, "keep one of them; Eb/N0 = C/N0 - 10 log10(rate_bps)").into());
            }
            (None, None, _) => {
                let message = "neither ebn0_db nor cn0_dbhz is given";
                return Err(
                    ConfigError::new("", message, "add ebn0_db = ..., the Eb/N0 in dB, or cn0_dbhz = ...").into()
                );
            }
            (Some(ebn0), None, rate_db) => (ebn0, rate_db.map(|rate_db| ebn0.get() + rate_db)),
            (None, Some(cn0), None) => {
                let message = format!("{} dBHz has no single Eb/N0, because rate_bps varies", cn0.get());
                return Err(ConfigError::new("cn0_dbhz", message, "give ebn0_db, or a constant rate_bps").into());
            }
            (None, Some(cn0), Some(rate_db)) => {
                let ebn0 = EnergyToNoise::new(cn0.get() - rate_db).map_err(|error| {
                    let message = format!("{} dBHz at this rate_bps is an Eb/N0 of {:.2} dB", cn0.get(), error.value);
                    ConfigError::new("cn0_dbhz", message, format!("change one of them: Eb/N0 is {}", error.allowed))
                })?;
                (ebn0, Some(cn0.get()))
            }
        };
        let state = ChannelState { cn0_dbhz: cn0_dbhz.map(|cn0| cn0 as f32), ..ChannelState::UP };
        self.prepare_at(ebn0, state, site.traces)
    }
}

impl Coding {
    fn prepare_at(
        &self,
        ebn0: EnergyToNoise,
        state: ChannelState,
        traces: &dyn TraceSource,
    ) -> Result<Arc<dyn Prepared>, ChannelError> {
        let (ber, bursts) = match &self.code {
            CodeKind::Measured(code) => {
                let blocks = code.at(ebn0).map_err(|error| error.within("code"))?;
                (blocks.bit_error_rate(), Stream::Blocks(blocks))
            }
            _ => {
                let events = traces.error_events(&self.at(ebn0)?)?;
                (events.bit_error_rate(), Stream::Bursts(Arc::new(Bursts::new(events))))
            }
        };
        let state = ChannelState { ber: Some(ber), ..state };
        let stream = match self.errors {
            Errors::Bursts => bursts,
            Errors::Independent => {
                Stream::Independent(Ber { ber: crate::Probability::new(ber).expect("a share of bits") })
            }
        };
        Ok(Arc::new(Ready { stream, state }))
    }
}

impl Measured {
    /// The stream of blocks at an Eb/N0.
    fn at(&self, ebn0: EnergyToNoise) -> Result<FailedBlocks, ConfigError> {
        let fails = self.block_error_rate(ebn0)?.get();
        let block_bits = u32::try_from(self.block_bits.whole()).unwrap_or(u32::MAX);
        Ok(FailedBlocks { block_bits, fails, wrong: self.wrong_share.get() })
    }
}

#[derive(Debug)]
struct Ready {
    stream: Stream,
    state: ChannelState,
}

#[derive(Debug)]
enum Stream {
    Bursts(Arc<Bursts>),
    Blocks(FailedBlocks),
    Independent(Ber),
}

impl Prepared for Ready {
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel> {
        let mut stream = match &self.stream {
            Stream::Bursts(bursts) => Playing::Bursts(bursts.start(rng)),
            Stream::Blocks(blocks) => Playing::Blocks(blocks.start(rng)),
            Stream::Independent(ber) => Playing::Independent(*ber),
        };
        let gap = match &mut stream {
            Playing::Bursts(play) => play.first,
            Playing::Blocks(blocks) => blocks.next_wrong(rng),
            Playing::Independent(ber) => rng.failures_before_success(ber.ber.get()),
        };
        Box::new(State { stream, gap, state: self.state })
    }
}

/// Error events, with the sums that are needed to start at a random bit of their stream.
#[derive(Debug)]
struct Bursts {
    events: Arc<ErrorEvents>,
    /// Cumulative sum of the events' spans.
    ends: Vec<u64>,
    /// Number of correct bits between two events: at least this many,
    gap_min: u64,
    /// plus a geometric number; this is the probability that the next bit begins an event.
    begins: f64,
}

impl Bursts {
    fn new(events: Arc<ErrorEvents>) -> Self {
        let mut end = 0;
        let ends = (0..events.len()).map(|at| {
            end += u64::from(span(events.event(at)));
            end
        });
        let ends = ends.collect();
        let gap_min = events.gap_min_bits() as u64;
        let begins = 1.0 / (1.0 + events.gap_mean_bits() - gap_min as f64);
        Bursts { events, ends, gap_min, begins }
    }

    /// Starts at a random bit of the stationary stream; each bit is equally likely.
    fn start(self: &Arc<Self>, rng: &mut Rng) -> Play {
        let mut play = Play { bursts: Arc::clone(self), event: 0, next: 0, first: u64::MAX };
        let Some(&in_events) = self.ends.last() else { return play };
        let in_gaps = self.events.gap_mean_bits() * self.events.len() as f64;
        if rng.chance(in_events as f64 / (in_events as f64 + in_gaps)) {
            let at = rng.below(in_events);
            play.event = self.ends.partition_point(|&end| end <= at);
            let event = self.events.event(play.event);
            let offset = span(event) - (self.ends[play.event] - at) as u32;
            play.next = event.partition_point(|&wrong| wrong < offset);
            play.first = u64::from(event[play.next] - offset);
        } else {
            play.choose(rng);
            // The rest of the gap in which a random bit lies, including that bit: either uniform up to the minimum length, or
            // longer by the geometric part of a whole gap.
            let gap_min = self.gap_min as f64;
            play.first = if rng.chance(gap_min / self.events.gap_mean_bits()) {
                1 + rng.below(self.gap_min)
            } else {
                self.gap(rng).saturating_add(1)
            };
        }
        play
    }

    fn gap(&self, rng: &mut Rng) -> u64 {
        self.gap_min.saturating_add(rng.failures_before_success(self.begins))
    }
}

/// Number of bits from the first wrong bit of an event to the last.
fn span(event: &[u32]) -> u32 {
    event[event.len() - 1] + 1
}

/// The running state of a stream of error events.
struct Play {
    bursts: Arc<Bursts>,
    event: usize,
    /// Index of the next wrong bit in the event.
    next: usize,
    /// Correct bits before the first wrong one of the run.
    first: u64,
}

impl Play {
    fn choose(&mut self, rng: &mut Rng) {
        self.event = rng.below(self.bursts.events.len() as u64) as usize;
        self.next = 0;
    }

    /// Steps over a wrong bit and returns the number of correct bits after it.
    fn pass(&mut self, rng: &mut Rng) -> u64 {
        let event = self.bursts.events.event(self.event);
        let at = event[self.next];
        self.next += 1;
        if let Some(wrong) = event.get(self.next) {
            return u64::from(wrong - at - 1);
        }
        self.choose(rng);
        self.bursts.gap(rng)
    }
}

enum Playing {
    Bursts(Play),
    Blocks(Blocks),
    Independent(Ber),
}

struct State {
    stream: Playing,
    /// Correct bits before the next wrong one.
    gap: u64,
    state: ChannelState,
}

impl Channel for State {
    fn quiet(&self) -> Quiet {
        Quiet { frames: u64::MAX, bits: self.gap, until: Time::NEVER }
    }

    fn skip(&mut self, _frames: u64, bits: u64) {
        self.gap -= bits;
    }

    fn carry(&mut self, frame: &Frame, rng: &mut Rng, errors: &mut Vec<u32>) -> Fate {
        let next = || match &mut self.stream {
            Playing::Bursts(play) => play.pass(rng),
            Playing::Blocks(blocks) => blocks.next_wrong(rng),
            Playing::Independent(ber) => rng.failures_before_success(ber.ber.get()),
        };
        jump::damage(&mut self.gap, frame.bits, errors, next)
    }

    fn state(&mut self, _now: Time) -> ChannelState {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{ChannelKind, SettingId};
    use crate::trace::{MemoryTraces, Trace};
    use crate::units::BitRate;

    /// Bursts of 1 to 12 bits, as a decoder with K = 7 produces them, in one recording with random gaps.
    fn events() -> ErrorEvents {
        let mut rng = Rng::for_component(4, 0, "events");
        let event = |rng: &mut Rng| {
            let span = 1 + rng.below(12) as u32;
            let inside = |at: &u32| *at == 0 || *at + 1 == span || rng.chance(0.5);
            (0..span).filter(inside).collect::<Vec<_>>()
        };
        let events: Vec<_> = (0..500).map(|_| event(&mut rng)).collect();
        ErrorEvents::new(events.iter().map(Vec::as_slice), 6.0, 4000.5)
    }

    fn prepared(errors: &str, events: ErrorEvents) -> Arc<dyn Prepared> {
        let json = format!(r#"{{"kind": "coded", "ebn0_db": 2, "code": {{"kind": "uncoded"}}, "errors": "{errors}"}}"#);
        let channel: ChannelKind = serde_json::from_str(&json).unwrap();
        channel.prepare(&Site::anywhere(&MemoryTraces::default().with_events(events))).unwrap()
    }

    /// Positions of the wrong bits in a run of `bits` bits, in frames of 10,000.
    fn play(errors: &str, events: ErrorEvents, bits: u64) -> Vec<u64> {
        let mut rng = Rng::for_component(1, 0, "channel");
        let mut channel = prepared(errors, events).start(&mut rng);
        let mut positions = Vec::new();
        let mut errors = Vec::new();
        for start in (0..bits).step_by(10_000) {
            errors.clear();
            channel.carry(&frame(10_000), &mut rng, &mut errors);
            positions.extend(errors.iter().map(|&at| start + u64::from(at)));
        }
        positions
    }

    fn frame(bits: u32) -> Frame {
        Frame { start: Time::ZERO, end: Time::ZERO, bits, setting: SettingId::default() }
    }

    /// Wrong bits come in bursts, so the standard error of their number is estimated from the spread between sections of the run.
    #[track_caller]
    fn assert_share(positions: &[u64], bits: u64, expected: f64) {
        const STRETCHES: u64 = 200;
        let stretch = bits / STRETCHES;
        let mut counts = [0.0; STRETCHES as usize];
        positions.iter().for_each(|at| counts[(at / stretch) as usize] += 1.0);
        let mean = counts.iter().sum::<f64>() / STRETCHES as f64;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (STRETCHES - 1) as f64;
        let error = (variance / STRETCHES as f64).sqrt() / stretch as f64;
        let share = mean / stretch as f64;
        assert!((share - expected).abs() < 4.0 * error, "{share} is not {expected} within 4 times {error}");
    }

    #[test]
    fn the_bit_error_rate_is_that_of_the_decoder() {
        let bits = 40_000_000;
        for errors in ["bursts", "independent"] {
            let positions = play(errors, events(), bits);
            assert_share(&positions, bits, events().bit_error_rate());
        }
    }

    #[test]
    fn no_events_are_no_errors() {
        let none = || ErrorEvents::new([], 6.0, f64::INFINITY);
        for errors in ["bursts", "independent"] {
            assert!(play(errors, none(), 1_000_000).is_empty());
            assert_eq!(prepared(errors, none()).start(&mut Rng::for_component(1, 0, "x")).quiet().bits, u64::MAX);
        }
    }

    /// Compares the channel with the recorded stream of bits that it models, both from the same events.
    #[test]
    fn the_packet_loss_rate_is_that_of_the_recorded_bits() {
        let events = events();
        let mut rng = Rng::for_component(2, 0, "recording");
        let mut position = Vec::new();
        let mut bits = 0u64;
        for _ in 0..40_000 {
            bits += 6 + rng.exponential(3995.0) as u64; // the mean of whole numbers is half a bit less
            let event = events.event(rng.below(events.len() as u64) as usize);
            position.extend(event.iter().map(|&at| bits + u64::from(at)));
            bits += u64::from(span(event));
        }
        let recording = MemoryTraces::default().with("recording", Trace::BitErrors { position, bits });
        let replay: ChannelKind = serde_json::from_str(r#"{"kind": "bit-trace", "file": "recording"}"#).unwrap();
        let replay = replay.prepare(&Site::anywhere(&recording)).unwrap();
        let played = prepared("bursts", events);
        for bytes in [100, 1000] {
            // Each frame has a run of its own, so that frames are independent. This also tests that a run starts in the
            // stationary state.
            let frames = 200_000;
            let damaged = |prepared: &Arc<dyn Prepared>| {
                let mut rng = Rng::for_component(3, 0, "frames");
                let frame = frame(bytes * 8);
                let is_damaged =
                    |_: &u32| prepared.start(&mut rng).carry(&frame, &mut rng, &mut Vec::new()) == Fate::Damaged;
                f64::from((0..frames).filter(is_damaged).count() as u32) / f64::from(frames)
            };
            let (one, other) = (damaged(&played), damaged(&replay));
            // Each share has its own standard error, and the recording's 40,000 events scatter like a Poisson process.
            let error = (2.0 * one * (1.0 - one) / f64::from(frames) + one.powi(2) / 40_000.0).sqrt();
            assert!((one - other).abs() < 4.0 * error, "{bytes} bytes: {one} played, {other} replayed, {error}");
        }
    }

    #[test]
    fn a_burst_continues_in_the_next_frame() {
        let every_third: Vec<u32> = (0..1000).map(|i| i * 3).collect();
        let events = ErrorEvents::new([every_third.as_slice()], 1e9, 1e9);
        let whole = play("bursts", events.clone(), 10_000_000);
        let prepared = prepared("bursts", events);
        for seed in 0..200 {
            let mut rng = Rng::for_component(seed, 0, "channel");
            let mut channel = prepared.start(&mut rng);
            let mut errors = Vec::new();
            for bits in [1, 7, 100, 64, 2000] {
                let before = errors.len();
                channel.carry(&frame(bits), &mut rng, &mut errors);
                assert!(errors[before..].windows(2).all(|pair| pair[1] == pair[0] + 3));
            }
        }
        assert!(whole.windows(2).all(|pair| pair[1] == pair[0] + 3));
    }

    #[test]
    fn the_state_reports_cn0_and_error_rate() {
        let events = MemoryTraces::default().with_events(events());
        let state = |json: &str| {
            let coding: Coding = serde_json::from_str(json).unwrap();
            let prepared =
                coding.prepare(&Site { rate: Some(BitRate::new(1e6).unwrap()), ..Site::anywhere(&events) }).unwrap();
            let state = prepared.start(&mut Rng::for_component(1, 0, "x")).state(Time::ZERO);
            assert_eq!(state.ber, Some(self::events().bit_error_rate()));
            state.cn0_dbhz
        };
        assert_eq!(state(r#"{"ebn0_db": 4, "code": {"kind": "uncoded"}}"#), Some(64.0));
        assert_eq!(state(r#"{"cn0_dbhz": 66, "code": {"kind": "uncoded"}}"#), Some(66.0));
    }
}

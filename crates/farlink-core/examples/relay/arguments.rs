//! The command line.

use std::sync::Arc;
use std::time::Duration;

use farlink_core::Time;
use farlink_core::channel::gilbert_elliott::{GilbertElliott, Per};
use farlink_core::channel::loss::Loss;
use farlink_core::channel::{ChannelKind, Prepared, Site};
use farlink_core::hop::{HopSetup, PolicerConfig, QueueLimit};
use farlink_core::rng::Rng;
use farlink_core::trace::MemoryTraces;
use farlink_core::units::{BitRate, Count, Probability};

use crate::command_line::{self, Failure};
use crate::way::Way;

pub(crate) const HELP: &str = "\
Carries IP packets between two TUN devices as a long, lossy link would.

Usage:
  relay NEAR FAR [options]      NEAR and FAR: devices made with `ip tuntap add dev NAME mode tun`

The way from NEAR to FAR; the same options with --back- before their names are for the way from FAR to NEAR:
  --rate BPS        rate of the link, bits per second of IP packets; without it packets take no time
  --queue N         packets that wait for the link (no limit); one too many is dropped
  --mark N          mark ECN-capable packets that find N packets waiting
  --police N        instead of a queue: a bucket that holds N packets of 1500 bytes and fills with --rate; what finds
                    too little in it is dropped
  --loss P          share of the packets behind the queue that are lost (0)
  --burst N         losses come in bursts of N packets on average
  --channel JSON    any channel of a scenario instead, as '{\"kind\": \"ber\", \"ber\": 1e-6}'
  --delay S         seconds on the way (0)
  --jitter S        up to so many seconds more for each packet, at random (0)
  --overtake        packets may overtake each other; else one is held back until those before it have arrived

Options:
  --seed N          of all that is random (1)
  --every S         print counts of each flow and how late packets were, so often in seconds (1)
  -h, --help        this text

It prints one line of JSON when both devices are attached, then one with all counts so far every so often, and a last one on Ctrl-C.
The devices may be moved to other network namespaces then. Where other programs want the processor too, start it with `chrt -f 50`.
";

/// What the command line says about one way.
#[derive(Clone, Debug, Default)]
struct Options {
    rate_bps: Option<f64>,
    queue: Option<u64>,
    mark: Option<u64>,
    police: Option<u64>,
    loss: Option<f64>,
    burst: Option<f64>,
    channel: Option<ChannelKind>,
    delay_s: f64,
    jitter_s: f64,
    overtakes: bool,
}

#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) devices: [String; 2],
    /// Time between two lines of counts.
    pub(crate) every: Duration,
    seed: u64,
    ways: [Options; 2],
}

/// A link without a rate: packets take less than a picosecond a bit.
const NO_RATE_BPS: f64 = 1e13;
/// Bytes of a packet in the bucket of a policer.
const PACKET_BYTES: u64 = 1500;

impl Arguments {
    /// Both ways, from the first device and back.
    pub(crate) fn ways(&self) -> Result<[Way; 2], Failure> {
        let shared = Rng::for_component(self.seed, 0, "relay");
        let [there, back] = &self.ways;
        Ok([there.way(self.seed, "there", &shared)?, back.way(self.seed, "back", &shared)?])
    }
}

impl Options {
    fn way(&self, seed: u64, name: &str, shared: &Rng) -> Result<Way, Failure> {
        let policer = self.police.map(|packets| {
            let rate =
                self.rate_bps.ok_or_else(|| Failure::new("--police needs a rate", "add --rate, as in --rate 1e7"))?;
            if self.queue.is_some() || self.mark.is_some() {
                return Err(Failure::new("--police has no queue", "leave --queue and --mark out, or --police"));
            }
            let burst_bytes = Count::new((packets * PACKET_BYTES) as f64).expect("checked");
            Ok(PolicerConfig { rate_bps: BitRate::new(rate).expect("checked"), burst_bytes })
        });
        let policer = policer.transpose()?;
        let rate = if policer.is_some() { NO_RATE_BPS } else { self.rate_bps.unwrap_or(NO_RATE_BPS) };
        let packets = |n: Option<u64>| n.map_or(QueueLimit::Unlimited, QueueLimit::Packets);
        let setup = HopSetup {
            name: name.to_owned(),
            rate: BitRate::new(rate).expect("checked").into(),
            delay: Time::from_secs_f64(self.delay_s).into(),
            policer,
            limit: packets(self.queue),
            mark_from: packets(self.mark),
            weights: None,
            overtakes: self.overtakes,
            channel: self.channel()?,
            bundle: None,
            paths: None,
        };
        let random = |part: &str| Rng::for_component(seed, 0, &format!("relay.{name}.{part}"));
        Ok(Way::new(&setup, Time::from_secs_f64(self.jitter_s), random("hop"), random("jitter"), shared))
    }

    fn channel(&self) -> Result<Arc<dyn Prepared>, Failure> {
        let p = |p: f64| Probability::new(p).expect("checked");
        let kind = match (&self.channel, self.loss, self.burst) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                return Err(Failure::new("--channel and --loss are two channels", "give one of them"));
            }
            (Some(kind), None, None) => kind.clone(),
            (None, None, Some(_)) => return Err(Failure::new("--burst needs a loss", "add --loss, as in --loss 0.02")),
            (None, None, None) => ChannelKind::default(),
            (None, Some(loss), None) => ChannelKind::Loss(Loss { loss: p(loss) }),
            // All is lost in the bad state, which lasts `burst` packets on average.
            (None, Some(loss), Some(burst)) => ChannelKind::GilbertElliott(GilbertElliott {
                p_good_to_bad: p((loss / (burst * (1.0 - loss))).min(1.0)),
                p_bad_to_good: p(1.0 / burst),
                per: Per::Frame,
                loss_good: None,
                loss_bad: Some(p(1.0)),
                ber_good: None,
                ber_bad: None,
            }),
        };
        let traces = MemoryTraces::default();
        kind.prepare(&Site::anywhere(&traces))
            .map_err(|error| Failure::new(format!("--channel: {error}"), "compare it with docs/reference/scenario.md"))
    }
}

/// Parses the arguments; `None` if they ask for help.
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Option<Arguments>, Failure> {
    let mut devices = Vec::new();
    let mut ways = [Options::default(), Options::default()];
    let (mut seed, mut every_s) = (1, 1.0);
    let mut words = words.peekable();
    if words.peek().is_none() {
        return Ok(None);
    }
    while let Some(word) = words.next() {
        if word == "-h" || word == "--help" {
            return Ok(None);
        }
        let Some(name) = word.strip_prefix("--") else {
            devices.push(word);
            continue;
        };
        let (way, name) = match name.strip_prefix("back-") {
            Some(name) => (&mut ways[1], name),
            None => (&mut ways[0], name),
        };
        if name == "overtake" {
            way.overtakes = true;
            continue;
        }
        let mut number = |least: f64, most: f64| {
            command_line::number(&word, &words.next().unwrap_or_default(), [least, most], example(name))
        };
        match name {
            "rate" => way.rate_bps = Some(number(1e3, 1e12)?),
            "queue" => way.queue = Some(whole(&word, number(1.0, 1e6)?)?),
            "mark" => way.mark = Some(whole(&word, number(1.0, 1e6)?)?),
            "police" => way.police = Some(whole(&word, number(1.0, 1e6)?)?),
            "loss" => way.loss = Some(number(0.0, 0.99)?),
            "burst" => way.burst = Some(number(1.0, 1e6)?),
            "delay" => way.delay_s = number(0.0, 1e4)?,
            "jitter" => way.jitter_s = number(0.0, 1e4)?,
            "seed" if word == "--seed" => seed = whole(&word, number(0.0, 1e15)?)?,
            "every" if word == "--every" => every_s = number(0.01, 1e6)?,
            "channel" => {
                let text = words.next().unwrap_or_default();
                let kind = serde_json::from_str(&text).map_err(|error| {
                    Failure::new(
                        format!("{word} {text}: {error}"),
                        "as in --channel '{\"kind\": \"ber\", \"ber\": 1e-6}'",
                    )
                })?;
                way.channel = Some(kind);
            }
            _ => return Err(Failure::new(format!("there is no option {word}"), "relay --help lists them")),
        }
    }
    let devices: [String; 2] = devices.try_into().map_err(|devices: Vec<String>| {
        let what = format!("a relay is between two devices, not {}", devices.len());
        Failure::new(what, "as in `relay near far --rate 1e7 --queue 10`")
    })?;
    Ok(Some(Arguments { devices, every: Duration::from_secs_f64(every_s), seed, ways }))
}

/// A value that makes sense.
fn example(name: &str) -> &'static str {
    match name {
        "rate" => "1e7",
        "loss" => "0.02",
        "delay" => "0.25",
        "jitter" => "0.01",
        _ => "10",
    }
}

fn whole(word: &str, value: f64) -> Result<u64, Failure> {
    if value.fract() != 0.0 {
        return Err(Failure::new(format!("{word} {value} is no whole number"), format!("as in {word} 10")));
    }
    Ok(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Arguments>, Failure> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn each_way_has_its_own_options() {
        let arguments = parsed("a b --rate 1e7 --queue 4 --back-loss 0.1 --back-burst 3 --overtake").unwrap().unwrap();
        let there = Options { rate_bps: Some(1e7), queue: Some(4), overtakes: true, ..Options::default() };
        let back = Options { loss: Some(0.1), burst: Some(3.0), ..Options::default() };
        assert_eq!(format!("{:?}", arguments.ways), format!("{:?}", [there, back]));
        assert_eq!(arguments.devices, ["a", "b"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (line, wrong) in [
            ("a", "a relay is between two devices, not 1"),
            ("a b c", "a relay is between two devices, not 3"),
            ("a b --speed 1", "there is no option --speed"),
            ("a b --back-seed 1", "there is no option --back-seed"),
            ("a b --loss 1", "--loss 1 is no number from 0e0 to 9.9e-1"),
            ("a b --loss", "--loss  is no number"),
            ("a b --queue 2.5", "--queue 2.5 is no whole number"),
            ("a b --delay nan", "--delay nan is no number"),
            ("a b --channel {\"kind\":\"nothing\"}", "--channel {\"kind\":\"nothing\"}: "),
        ] {
            let failure = parsed(line).unwrap_err();
            assert!(failure.what.starts_with(wrong), "{line}: {failure:?}");
        }
        for (line, wrong) in [
            ("a b --police 5", "--police needs a rate"),
            ("a b --police 5 --rate 1e7 --queue 5", "--police has no queue"),
            ("a b --back-burst 2", "--burst needs a loss"),
            ("a b --loss 0.1 --channel {\"kind\":\"none\"}", "--channel and --loss are two channels"),
        ] {
            let failure = parsed(line).unwrap().unwrap().ways().err().unwrap();
            assert!(failure.what.starts_with(wrong), "{line}: {failure:?}");
        }
    }
}

//! The command line.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use farlink_core::protocol::aerotp::{AerotpConfig, RateControl};
use farlink_core::units::{BitRate, Count, PositiveSeconds};

use crate::command_line::{self, Failure};

pub(crate) const HELP: &str = "\
Moves a file between two processes with AeroTP over UDP, on this machine or between network namespaces.

Usage:
  aerotp_udp receive ADDRESS FILE [options]   wait at ADDRESS and write FILE
  aerotp_udp send FILE ADDRESS [options]      send FILE to who waits at ADDRESS

Options:
  --drop P      lose this share of the datagrams that go out, on purpose (0 to 0.9)
  --rate BPS    send no faster than this, bits per second (1e9)
  --control C   fixed: send at that rate; learnt or friendly: find the rate of the path; alone: on a path of its own (fixed)
  --buffer B    bytes that the receiver keeps, and that may be under way (1.2e5)
  --files N     receive from so many senders, at once or not, into FILE.1, FILE.2, ... (1)
  --wait S      give up when the peer is silent for so long (10)
  --ecn         send ECN-capable packets and follow the marks of routers
  --report S    print a line of JSON with what was moved and sent, so often in seconds
  -h, --help    this text

Example, in two windows:
  aerotp_udp receive 127.0.0.1:4000 copy.bin
  aerotp_udp send file.bin 127.0.0.1:4000 --drop 0.05

There is no security yet. Addresses are therefore those of this machine (127.0.0.0/8), or those that are set aside for measurements and
not routed in the internet (198.18.0.0/15, RFC 2544), as between network namespaces.
";

/// How the rate is found.
#[derive(Clone, Copy, Debug)]
struct Control {
    rate: RateControl,
    is_alone: bool,
}

impl Control {
    fn of(name: &str) -> Option<Self> {
        let (rate, is_alone) = match name {
            "fixed" => (RateControl::Fixed, false),
            "learnt" => (RateControl::Learnt, false),
            "friendly" => (RateControl::Friendly, false),
            "alone" => (RateControl::Learnt, true),
            _ => return None,
        };
        Some(Control { rate, is_alone })
    }
}

/// The requested action.
#[derive(Debug)]
pub(crate) enum Command {
    Send { file: PathBuf, to: SocketAddr },
    Receive { at: SocketAddr, file: PathBuf },
}

#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) command: Command,
    /// Share of outgoing datagrams that are dropped on purpose.
    pub(crate) drop: f64,
    rate: f64,
    control: Control,
    buffer: f64,
    wait: f64,
    files: f64,
    ecn: bool,
    /// Time between two lines of counts.
    pub(crate) report: Option<Duration>,
}

impl Arguments {
    /// Number of files to receive.
    pub(crate) fn files(&self) -> u64 {
        self.files as u64
    }

    pub(crate) fn config(&self) -> AerotpConfig {
        let count = |n| Count::new(n).expect("checked");
        let seconds = |s| PositiveSeconds::new(s).expect("checked");
        AerotpConfig {
            packet_bytes: count(1500.0),
            // Headers of IPv4, UDP and AeroTP.
            header_bytes: count(20.0 + 8.0 + 20.0),
            rate_bps: Some(BitRate::new(self.rate).expect("checked")),
            rate_control: Some(self.control.rate),
            alone: Some(self.control.is_alone),
            ecn: self.ecn,
            mack_timeout_s: seconds(0.002),
            receive_buffer_bytes: Some(count(self.buffer)),
            initial_rto_s: seconds(0.2),
            give_up_after_s: seconds(self.wait),
            // A receiver, which has nothing to send, detects a vanished sender in this way.
            keep_alive_s: Some(seconds(self.wait / 4.0)),
            ..AerotpConfig::default()
        }
    }
}

/// The value of `--report` where it is not given.
const NO_REPORT: f64 = 0.0;

/// Parses the arguments; `None` if they ask for help.
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Option<Arguments>, Failure> {
    let mut places = Vec::new();
    let mut control = Control { rate: RateControl::Fixed, is_alone: false };
    let mut ecn = false;
    let mut values = [
        ("--drop", 0.0, 0.0, 0.9),
        ("--rate", 1e9, 1e4, 1e11),
        ("--buffer", 1.2e5, 1e4, 1e9),
        ("--wait", 10.0, 0.1, 1e5),
        ("--files", 1.0, 1.0, 100.0),
        ("--report", NO_REPORT, 0.01, 1e6),
    ];
    let mut words = words.peekable();
    if words.peek().is_none() {
        return Ok(None);
    }
    while let Some(word) = words.next() {
        if word == "-h" || word == "--help" {
            return Ok(None);
        }
        if !word.starts_with("--") {
            places.push(word);
            continue;
        }
        if word == "--ecn" {
            ecn = true;
            continue;
        }
        if word == "--control" {
            let name = words.next().unwrap_or_default();
            control = Control::of(&name).ok_or_else(|| {
                let what = format!("--control {name} is none of fixed, learnt, friendly and alone");
                Failure::new(what, "as in --control learnt")
            })?;
            continue;
        }
        let Some((name, value, least, most)) = values.iter_mut().find(|(name, ..)| *name == word) else {
            return Err(Failure::new(format!("there is no option {word}"), "aerotp_udp --help lists them"));
        };
        let example = if *value == NO_REPORT { 1.0 } else { *value };
        *value = command_line::number(name, &words.next().unwrap_or_default(), [*least, *most], example)?;
    }
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    let command = match places[..] {
        ["send", file, to] => Command::Send { file: file.into(), to: address(to)? },
        ["receive", at, file] => Command::Receive { at: address(at)?, file: file.into() },
        _ => {
            let what = "what to do is not clear".to_owned();
            return Err(Failure::new(what, "give `send FILE ADDRESS` or `receive ADDRESS FILE`"));
        }
    };
    let [drop, rate, buffer, wait, files, report] = values.map(|(_, value, ..)| value);
    let report = (report != NO_REPORT).then(|| Duration::from_secs_f64(report));
    Ok(Some(Arguments { command, drop, rate, control, buffer, wait, files, ecn, report }))
}

fn address(text: &str) -> Result<SocketAddr, Failure> {
    let remedy = "give one of this machine, as 127.0.0.1:4000";
    let address: SocketAddr =
        text.parse().map_err(|_| Failure::new(format!("{text} is no address with a port"), remedy))?;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_loopback() || is_for_measurements(ip) => Ok(address),
        _ => {
            let what = format!("{address} is not on this machine's 127.0.0.0/8, and there is no security yet");
            Err(Failure::new(what, remedy))
        }
    }
}

/// Whether an address is one of 198.18.0.0/15, which is not routed in the internet.
fn is_for_measurements(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    first == 198 && second & 0xfe == 18
}

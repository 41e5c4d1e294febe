//! Carries IP packets between two TUN devices as a long, lossy link would, with the hops and channels of the simulator.
//!
//! ```text
//! ip tuntap add dev near mode tun
//! ip tuntap add dev far mode tun
//! chrt -f 50 relay near far --rate 1e7 --queue 10 --delay 0.025 --loss 0.02
//! ```
//!
//! What decides about packets ([`way`]) has neither clock nor device. The driver reads, waits and writes.

#![expect(clippy::disallowed_methods, reason = "who drives devices has a clock")]

mod arguments;
mod counts;
mod driver;
mod packet;
mod tun;
mod way;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arguments::Arguments;
use driver::Driver;
use tun::Tun;

/// The fault, and the remedy.
#[derive(Debug)]
struct Failure {
    what: String,
    remedy: String,
}

impl Failure {
    fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Failure { what: what.into(), remedy: remedy.into() }
    }
}

fn main() -> ExitCode {
    let outcome = arguments::parse(std::env::args().skip(1)).and_then(|arguments| match arguments {
        Some(arguments) => run(&arguments),
        None => {
            print!("{}", arguments::HELP);
            Ok(())
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { what, remedy }) => {
            eprintln!("error: {what}");
            eprintln!("hint: {remedy}");
            ExitCode::from(2)
        }
    }
}

/// Relays until Ctrl-C.
fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted))
            .map_err(|error| Failure::new(format!("cannot watch for Ctrl-C: {error}"), "run it on Linux"))?;
    }
    let ways = arguments.ways()?;
    let [near, far] = &arguments.devices;
    Driver::new([Tun::attach(near)?, Tun::attach(far)?], ways, arguments.every).run(&is_interrupted)
}

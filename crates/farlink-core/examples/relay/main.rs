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
#[path = "../common/command_line.rs"]
mod command_line;
mod counts;
mod driver;
mod packet;
mod tun;
mod way;

use std::process::ExitCode;

use arguments::Arguments;
use command_line::Failure;
use driver::Driver;
use tun::Tun;

fn main() -> ExitCode {
    command_line::run(arguments::parse(std::env::args().skip(1)), arguments::HELP, run)
}

/// Relays until Ctrl-C.
fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let is_interrupted = command_line::interrupts()?;
    let ways = arguments.ways()?;
    let [near, far] = &arguments.devices;
    Driver::new([Tun::attach(near)?, Tun::attach(far)?], ways, arguments.every).run(&is_interrupted)?;
    Ok(ExitCode::SUCCESS)
}

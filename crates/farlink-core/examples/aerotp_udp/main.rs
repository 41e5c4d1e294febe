//! Moves files between processes with AeroTP over UDP, with the very state machine that the simulator runs. A receiver is a host
//! that serves several senders at once.
//!
//! ```text
//! aerotp_udp receive 127.0.0.1:4000 copy.bin
//! aerotp_udp send file.bin 127.0.0.1:4000 --drop 0.05
//!
//! aerotp_udp receive 127.0.0.1:4000 copy --files 3
//! ```
//!
//! There is no security yet, so it talks to this machine only, and between network namespaces.

#![expect(clippy::disallowed_methods, reason = "who drives sockets has a clock")]

mod arguments;
#[path = "../common/command_line.rs"]
mod command_line;
mod driver;
mod file;
mod random;
mod receiving;
mod sending;

use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use bytes::Bytes;
use farlink_core::Stream;
use farlink_core::endpoint::Probe;
use farlink_core::protocol::aerotp::Connection;

use arguments::{Arguments, Command};
use command_line::Failure;
use driver::{Driver, Ended, Party};
use file::{Incoming, Outgoing};
use random::SystemRandom;
use receiving::Receiving;
use sending::Sending;

fn main() -> ExitCode {
    command_line::run(arguments::parse(std::env::args().skip(1)), arguments::HELP, |arguments| {
        run(arguments).map(|ended| match ended {
            Ended::Done => ExitCode::SUCCESS,
            Ended::Interrupted => {
                eprintln!("interrupted");
                ExitCode::from(130)
            }
        })
    })
}

fn run(arguments: &Arguments) -> Result<Ended, Failure> {
    let is_interrupted = command_line::interrupts()?;
    let config = arguments.config();
    let random = SystemRandom::open()?;
    match &arguments.command {
        Command::Send { file, to } => {
            let file = Outgoing::open(file)?;
            let own = if to.ip().is_loopback() { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
            let socket = bind(SocketAddr::from((own, 0)))?;
            socket.connect(to).map_err(|error| unusable(*to, &error))?;
            let party = Sending::new(&config, random, *to, file);
            transfer(arguments, socket, party, &is_interrupted).map(|(ended, _)| ended)
        }
        Command::Receive { at, file } => {
            let names = places(file, arguments.files());
            let files = names.iter().map(|name| Incoming::create(name)).collect::<Result<_, _>>()?;
            let party = Receiving::new(&config, random, files)?;
            let (ended, party) = transfer(arguments, bind(*at)?, party, &is_interrupted)?;
            if matches!(ended, Ended::Done) {
                party.keep()?;
            }
            Ok(ended)
        }
    }
}

/// Paths of `count` received files: several have a number after their name, in the order in which they begin.
fn places(file: &Path, count: u64) -> Vec<PathBuf> {
    if count == 1 {
        return vec![file.to_owned()];
    }
    let numbered = |n| {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{n}"));
        file.with_file_name(name)
    };
    (1..=count).map(numbered).collect()
}

fn bind(address: SocketAddr) -> Result<UdpSocket, Failure> {
    UdpSocket::bind(address).map_err(|error| unusable(address, &error))
}

fn unusable(address: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot use {address}: {error}"), "choose another port, as in 127.0.0.1:4000")
}

fn transfer<P: Party>(
    arguments: &Arguments,
    socket: UdpSocket,
    party: P,
    is_interrupted: &AtomicBool,
) -> Result<(Ended, P), Failure> {
    let started = Instant::now();
    let mut driver = Driver::new(socket, party, arguments.drop, arguments.report)?;
    let is_terminal = std::io::stderr().is_terminal();
    let ended = driver.run(is_interrupted, |bytes, of| {
        if is_terminal {
            let share = of.map_or(String::new(), |of| format!(" of {:.1}", of as f64 / 1e6));
            eprint!("\r{:.1}{share} MB in {:.1} s ", bytes as f64 / 1e6, started.elapsed().as_secs_f64());
        }
    })?;
    if is_terminal {
        eprintln!();
    }
    if matches!(ended, Ended::Done) {
        let (bytes, seconds) = (driver.party.moved_bytes(), driver.busy_s());
        println!("{bytes} bytes in {seconds:.2} s, {:.0} Mb/s", bytes as f64 * 8.0 / 1e6 / seconds.max(1e-9));
        println!("{}", driver.account);
    }
    Ok((ended, driver.party))
}

/// The name of a file for messages.
fn name(path: &Path) -> String {
    path.display().to_string()
}

/// Progress of the file at the receiver.
fn acknowledged(end: &Connection<Bytes>) -> u64 {
    let Probe { acknowledged_bytes, .. } = farlink_core::Endpoint::probe(end);
    acknowledged_bytes.unwrap_or(0)
}

/// Writes all of `data`, which fits.
fn write(end: &mut Connection<Bytes>, now: farlink_core::Time, mut data: Bytes) {
    while !data.is_empty() && end.write(now, &mut data) > 0 {}
}

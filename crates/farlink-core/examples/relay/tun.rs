//! A TUN device: packets of the kernel as reads and writes.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};

use crate::command_line::Failure;

/// Longest name of a device, with its final zero.
const NAME_BYTES: usize = 16;

/// What `linux/if.h` calls `struct ifreq`, as far as TUNSETIFF uses it.
#[repr(C)]
struct Request {
    name: [u8; NAME_BYTES],
    flags: i16,
    rest: [u8; 22],
}

// From linux/if_tun.h. The packets have no header of the device.
const TUN: i16 = 0x0001;
const NO_HEADER: i16 = 0x1000;
/// Its argument has the size of an `int` in the number of the call, though a whole `struct ifreq` is read.
const SET_DEVICE: rustix::ioctl::Opcode = opcode::write::<i32>(b'T', 202);

pub(crate) struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// Attaches to a device that exists, in the network namespace of this process.
    pub(crate) fn attach(name: &str) -> Result<Self, Failure> {
        let remedy = format!("make it with `ip tuntap add dev {name} mode tun`, and be root");
        let cannot =
            |error: &dyn std::fmt::Display| Failure::new(format!("cannot attach to {name}: {error}"), &*remedy);
        if name.is_empty() || name.len() >= NAME_BYTES {
            return Err(cannot(&format!("a name has 1 to {} bytes", NAME_BYTES - 1)));
        }
        // The call would make a device that does not exist, with an owner that does not know of it.
        let devices = std::fs::read_to_string("/proc/self/net/dev").map_err(|error| cannot(&error))?;
        if !devices.lines().any(|line| line.trim_start().split(':').next() == Some(name)) {
            return Err(cannot(&"there is no such device here"));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
        let file = options.open("/dev/net/tun").map_err(|error| cannot(&error))?;
        let mut request = Request { name: [0; NAME_BYTES], flags: TUN | NO_HEADER, rest: [0; 22] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, which has 40 bytes on 64-bit Linux like `Request`, and keeps no pointer
        // to it.
        unsafe { ioctl(&file, Setter::<SET_DEVICE, Request>::new(request)) }.map_err(|error| match error {
            Errno::INVAL => cannot(&"it is no TUN device"),
            Errno::BUSY => cannot(&"another program is attached to it"),
            _ => cannot(&error),
        })?;
        Ok(Tun { file, name: name.to_owned() })
    }

    /// The next packet that the kernel sends into the device; `None` if there is none now.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Failure> {
        match self.file.read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
                // The device is down, as after a move to another namespace.
                _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(None),
                _ => Err(Failure::new(
                    format!("cannot read from {}: {error}", self.name),
                    "look whether it is still there",
                )),
            },
        }
    }

    /// Gives the kernel a packet; returns whether it took it.
    pub(crate) fn write(&mut self, packet: &[u8]) -> bool {
        self.file.write(packet).is_ok()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_long_as_the_kernel_takes_it_for() {
        assert_eq!(size_of::<Request>(), 40);
        assert_eq!(SET_DEVICE, 0x4004_54ca, "TUNSETIFF");
    }

    #[test]
    fn a_device_that_is_not_there_is_not_made() {
        let failure = Tun::attach("farlink-nowhere").err().unwrap();
        assert_eq!(failure.what, "cannot attach to farlink-nowhere: there is no such device here");
        assert!(Tun::attach("lo").is_err(), "no TUN device");
        assert!(Tun::attach("a-name-that-is-too-long").is_err());
    }
}

//! A line between two TUN devices.

use std::io;
use std::time::Duration;

use farlink_core::emulator::End;
use farlink_core::emulator::ip::{IpPacket, dscp};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::waiting::{is_passing, wait_for};
use super::{EmulateError, Line};

/// The class of service of each DSCP.
#[derive(Clone, Debug)]
pub struct Classes([u8; 64]);

impl Classes {
    /// Class selector n is class n, up to the last class of the path; class 0 is that of packets without a DSCP.
    pub fn by_number(classes: usize) -> Self {
        let last = classes.clamp(1, 8) - 1;
        let mut map = [0; 64];
        map.iter_mut().enumerate().for_each(|(dscp, class)| *class = (dscp >> 3).min(last) as u8);
        Classes(map)
    }

    /// Gives a DSCP, below 64, another class.
    pub fn set(&mut self, dscp: u8, class: u8) {
        self.0[usize::from(dscp & 63)] = class;
    }

    fn of(&self, packet: &[u8]) -> u8 {
        self.0[usize::from(dscp(packet) & 63)]
    }
}

/// Longer than any packet of a TUN device.
const LONGEST_PACKET: usize = 65_536;

/// Two TUN devices, whose packets have no header of the device.
pub struct Tunnel {
    devices: [SyncDevice; 2],
    is_ready: [bool; 2],
    classes: Classes,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel").field("classes", &self.classes).finish_non_exhaustive()
    }
}

impl Tunnel {
    /// Between a near device and a far one: those of these names, or new ones, which vanish with the tunnel. They may be moved to other
    /// network namespaces.
    ///
    /// # Errors
    /// If the system refuses them.
    pub fn open(names: Option<[&str; 2]>, classes: Classes) -> Result<Self, EmulateError> {
        let [near, far] = names.map_or([None; 2], |names| names.map(Some));
        let devices = [open(near)?, open(far)?];
        Ok(Tunnel { devices, is_ready: [true; 2], classes, buffer: vec![0; LONGEST_PACKET] })
    }

    /// The names that the devices had at first.
    ///
    /// # Errors
    /// If they are gone.
    pub fn names(&self) -> io::Result<[String; 2]> {
        let [near, far] = &self.devices;
        Ok([near.name()?, far.name()?])
    }
}

fn open(name: Option<&str>) -> Result<SyncDevice, EmulateError> {
    let opened = || {
        let mut builder = DeviceBuilder::new();
        if let Some(name) = name {
            builder = builder.name(name);
        }
        let device = builder.inherit_enable_state().build_sync()?;
        device.set_nonblocking(true)?;
        Ok(device)
    };
    opened().map_err(|error| EmulateError::Open { name: name.unwrap_or("a new TUN device").to_owned(), error })
}

impl Line for Tunnel {
    type Packet = IpPacket;

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        let [near, far] = &self.devices;
        let mut asked = [PollFd::new(near, PollFlags::IN), PollFd::new(far, PollFlags::IN)];
        wait_for(&mut asked, at_most)?;
        self.is_ready = asked.map(|one| !one.revents().is_empty());
        Ok(())
    }

    fn receive(&mut self, at: End) -> Result<Option<IpPacket>, EmulateError> {
        if !self.is_ready[at as usize] {
            return Ok(None);
        }
        match self.devices[at as usize].recv(&mut self.buffer) {
            Ok(0) => Ok(None),
            Ok(bytes) => {
                let bytes = self.buffer[..bytes].to_vec();
                Ok(Some(IpPacket { class: self.classes.of(&bytes), bytes }))
            }
            // A device that is down gives EIO.
            Err(error) if is_passing(&error) || error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                self.is_ready[at as usize] = false;
                Ok(None)
            }
            Err(error) => Err(EmulateError::Device { end: ["near", "far"][at as usize], error }),
        }
    }

    fn send(&mut self, at: End, packet: IpPacket) -> bool {
        self.devices[at as usize].send(&packet.bytes).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_selectors_are_classes() {
        let mut classes = Classes::by_number(8);
        let packet = |dscp: u8| [0x45, dscp << 2];
        assert_eq!([0, 8, 46, 48, 56].map(|dscp| classes.of(&packet(dscp))), [0, 1, 5, 6, 7]);
        classes.set(46, 0);
        assert_eq!(classes.of(&packet(46)), 0);
        let classes = Classes::by_number(3);
        assert_eq!([0, 8, 46].map(|dscp| classes.of(&packet(dscp))), [0, 1, 2]);
    }
}

//! The TUN device of a bundle.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;

/// Longest packet of a bundle: MRRU has 16 bits.
const LONGEST_PACKET: usize = 65_535;

/// A TUN device that the helper has made. It vanishes with the bundle, and with it its addresses and routes.
#[derive(Debug)]
pub(super) struct Tun {
    device: OwnedFd,
    /// The same device, read like a pipe: tokio's other form for descriptors needs unsafe code.
    reader: pipe::Receiver,
    buffer: Vec<u8>,
}

impl Tun {
    /// Reads and writes this device, within a runtime of `tokio`.
    pub(super) fn new(device: OwnedFd) -> io::Result<Self> {
        let reader = pipe::Receiver::from_owned_fd_unchecked(device.try_clone()?)?;
        Ok(Tun { device, reader, buffer: vec![0; LONGEST_PACKET] })
    }

    /// The next packet that the host sends; it may be cancelled.
    ///
    /// # Errors
    /// If the device is gone, or somebody takes it down.
    pub(super) async fn receive(&mut self) -> io::Result<Vec<u8>> {
        loop {
            self.reader.readable().await?;
            match self.reader.try_read(&mut self.buffer) {
                Ok(count) => return Ok(self.buffer[..count].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives a packet to the host; `false` if it takes none.
    pub(super) fn send(&self, packet: &[u8]) -> bool {
        rustix::io::write(&self.device, packet).is_ok()
    }
}

//! The TUN device of a bundle.

use std::io;
use std::os::fd::AsFd;

use tokio::net::unix::pipe;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::TtyError;

/// Longest packet of a bundle: MRRU has 16 bits.
const LONGEST_PACKET: usize = 65_535;
/// What a device that is down says.
const DOWN: Option<i32> = Some(5);

/// A TUN device. It vanishes with the bundle, and with it its addresses and routes.
pub struct Tun {
    device: SyncDevice,
    /// The same device, read like a pipe: tokio's other form for descriptors needs unsafe code.
    reader: pipe::Receiver,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Tun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tun").finish_non_exhaustive()
    }
}

impl Tun {
    /// Opens a device of this name. Its address, its MTU and whether it is up are left to others.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn open(name: &str) -> Result<Self, TtyError> {
        let opened = || {
            let device = DeviceBuilder::new().name(name).inherit_enable_state().build_sync()?;
            device.set_nonblocking(true)?;
            let reader = pipe::Receiver::from_owned_fd_unchecked(device.as_fd().try_clone_to_owned()?)?;
            Ok(Tun { device, reader, buffer: vec![0; LONGEST_PACKET] })
        };
        opened().map_err(|error| TtyError::Tun { name: name.to_owned(), error })
    }

    /// The next packet that the host sends; it may be cancelled.
    ///
    /// # Errors
    /// If the device is gone.
    pub async fn receive(&mut self) -> io::Result<Vec<u8>> {
        loop {
            self.reader.readable().await?;
            match self.reader.try_read(&mut self.buffer) {
                Ok(count) => return Ok(self.buffer[..count].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.raw_os_error() == DOWN => {
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives a packet to the host; `false` if it takes none.
    pub fn send(&self, packet: &[u8]) -> bool {
        self.device.send(packet).is_ok()
    }
}

//! Reading the stream of an incoming connection into a gateway.

use super::{Gateway, Span, Store};
use crate::endpoint::Stream;
use crate::event::Event;
use crate::payload::Payload;

/// Reads an incoming connection of a gateway and counts positions from where the connection begins.
///
/// When the previous node opens a new connection, the driver reads the data left in the old one ([`Reader::drain`]) and
/// creates a new reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    position: u64,
    /// The end of the stream has arrived; data before it may still wait to be read.
    is_finished: bool,
}

impl Reader {
    /// The reader of a connection whose first byte has this position, which the previous node sends
    /// ([`Gateway::on_opened`]).
    pub fn new(position: u64) -> Self {
        Reader { position, is_finished: false }
    }

    /// Position of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads while the gateway has room. Returns whether there was data. `[N3]`
    ///
    /// # Errors
    /// If the store fails.
    pub fn read<S: Store>(
        &mut self,
        connection: &mut impl Stream<S::Data>,
        gateway: &mut Gateway<S>,
    ) -> Result<bool, S::Error> {
        let mut has_read = false;
        while gateway.room() > 0 {
            if !self.read_once(connection, gateway)? {
                break;
            }
            has_read = true;
        }
        Ok(has_read)
    }

    /// Reads all available data, even without room, because the connection has acknowledged it on behalf of the
    /// gateway. `[N2]`
    ///
    /// # Errors
    /// If the store fails.
    pub fn drain<S: Store>(
        &mut self,
        connection: &mut impl Stream<S::Data>,
        gateway: &mut Gateway<S>,
    ) -> Result<(), S::Error> {
        while self.read_once(connection, gateway)? {}
        Ok(())
    }

    fn read_once<S: Store>(
        &mut self,
        connection: &mut impl Stream<S::Data>,
        gateway: &mut Gateway<S>,
    ) -> Result<bool, S::Error> {
        let Some(data) = connection.read() else {
            if self.is_finished && !gateway.has_end() {
                gateway.on_end()?;
            }
            return Ok(false);
        };
        let begin = self.position;
        self.position = self.position.saturating_add(data.len() as u64);
        gateway.receive(begin, data)?;
        Ok(true)
    }

    /// Handles an event of the connection: it is established, has skipped bytes, or has finished. The driver reads
    /// afterwards.
    pub fn on_event<S: Store>(&mut self, event: Event, gateway: &mut Gateway<S>) {
        match event {
            Event::Connected => gateway.on_incoming(self.position),
            Event::Skipped(bytes) => {
                let from = self.position;
                self.position = self.position.saturating_add(bytes);
                gateway.skip(Span { from, to: self.position });
            }
            Event::Finished => self.is_finished = true,
            _ => {}
        }
    }
}

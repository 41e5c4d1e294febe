//! The largest data in flight of a transport and its acknowledgements, from which remarks on a scenario are computed.

/// The largest window of a transport, and the packets in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flight {
    /// The key that bounds the window, relative to the transport's table.
    pub key: &'static str,
    /// Largest number of packets that are sent and not acknowledged.
    pub window_packets: u64,
    /// Data of a full packet, bytes.
    pub payload_bytes: u64,
    /// Size of a full packet on the wire, bytes.
    pub packet_bytes: u64,
    /// The acknowledgements of a stream of full packets, if they follow it one by one.
    pub acknowledgements: Option<Acknowledgements>,
}

/// A stream of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acknowledgements {
    /// Number of full packets per acknowledgement.
    pub every_packets: f64,
    /// Size of an acknowledgement of data that arrived in order, bytes.
    pub bytes: u64,
}

impl Flight {
    /// The largest window, bytes on the wire.
    pub fn window_bytes(&self) -> f64 {
        self.window_packets as f64 * self.packet_bytes as f64
    }
}

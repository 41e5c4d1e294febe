//! Paths over serial lines: sealed datagrams in frames of HDLC (RFC 1662), without headers of IP and UDP and without PPP's negotiations:
//! the session proves who is there, and the bundle's probes tell whether the line carries.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use bytes::BytesMut;
use farlink_core::ppp::Accm;
use farlink_core::ppp::hdlc::{Decoder, encode};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::path_config::PathConfig;
use super::session::{MOST_PATHS, Place};
use crate::tty::{Place as Port, Said, run_port};

/// Longest frame that is put together.
const LONGEST_FRAME: usize = 2048;
/// Frames that wait for a line, in seconds of its rate: the scheduler sends no more than the line carries, so that few wait.
const MOST_WAIT_S: f64 = 10.0;
/// Most reports of ports that the driver has not taken: a port that has more waits.
const MOST_SAID: usize = 64;
/// Numbers of lines, in place of those of sockets.
const FIRST: usize = 1 << 16;
/// Lines have no addresses.
const NOWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

/// Reports of ports, path by path.
pub(super) type Heard = Receiver<(usize, Said)>;

/// The lines among the paths.
#[derive(Debug)]
pub(super) struct Lines {
    all: Vec<Option<Line>>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Line {
    out: Sender<Vec<u8>>,
    portion: usize,
    most: usize,
    decoder: Decoder,
    /// Bytes of frames that have not been given to the port.
    waiting: VecDeque<u8>,
    has_carrier: bool,
    is_busy: bool,
}

/// The place of the peer on the line of a path.
pub(super) fn place(path: usize) -> Place {
    Place { socket: FIRST + path, remote: NOWHERE, local: None }
}

impl Lines {
    /// Opens ports, within a runtime of `tokio`.
    pub(super) fn start(paths: &[PathConfig]) -> (Self, Heard) {
        let (tell, heard) = channel(MOST_SAID);
        let mut tasks = JoinSet::new();
        let mut start = |config: &PathConfig| {
            let path = usize::from(config.number);
            let port = Port::of(config.line.as_ref()?);
            let (out, taken) = channel(1);
            let (portion, bytes_per_s) = (port.portion(), port.bytes_per_s());
            tasks.spawn(run_port(path, port, taken, tell.clone()));
            Some(Line {
                out,
                portion,
                most: (bytes_per_s * MOST_WAIT_S) as usize + LONGEST_FRAME,
                decoder: Decoder::new(LONGEST_FRAME),
                waiting: VecDeque::new(),
                has_carrier: false,
                is_busy: false,
            })
        };
        let mut all: Vec<Option<Line>> = (0..MOST_PATHS).map(|_| None).collect();
        for config in paths {
            all[usize::from(config.number)] = start(config);
        }
        (Lines { all, _tasks: tasks }, heard)
    }

    /// A port has carrier, or no longer.
    pub(super) fn on_carrier(&mut self, path: usize, is_up: bool) {
        if let Some(Some(line)) = self.all.get_mut(path) {
            (line.has_carrier, line.is_busy) = (is_up, false);
            line.waiting.clear();
            line.decoder = Decoder::new(LONGEST_FRAME);
        }
    }

    /// Bytes have left a port.
    pub(super) fn on_sent(&mut self, path: usize) {
        if let Some(Some(line)) = self.all.get_mut(path) {
            line.is_busy = false;
            line.write();
        }
    }

    /// The next datagram in bytes that came.
    pub(super) fn next(&mut self, path: usize, bytes: &mut &[u8]) -> Option<BytesMut> {
        let line = self.all.get_mut(path)?.as_mut()?;
        line.decoder.next(bytes).map(|frame| BytesMut::from(&frame[..]))
    }

    /// Sends a datagram to the peer at a place; `None` if that is no line, `Some(false)` if the line takes none.
    pub(super) fn send(&mut self, to: Place, datagram: &[u8]) -> Option<bool> {
        let path = to.socket.checked_sub(FIRST)?;
        let Some(Some(line)) = self.all.get_mut(path) else { return Some(false) };
        if !line.has_carrier || line.waiting.len() + datagram.len() > line.most {
            return Some(false);
        }
        let mut frame = Vec::with_capacity(datagram.len() + 16);
        encode(datagram, Accm::NONE, &mut frame);
        line.waiting.extend(frame);
        line.write();
        Some(true)
    }
}

impl Line {
    /// Gives the port its next bytes, if it is free.
    fn write(&mut self) {
        if self.has_carrier
            && !self.is_busy
            && !self.waiting.is_empty()
            && let Ok(place) = self.out.try_reserve()
        {
            let count = self.portion.min(self.waiting.len());
            place.send(self.waiting.drain(..count).collect());
            self.is_busy = true;
        }
    }
}

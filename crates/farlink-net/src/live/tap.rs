//! Counts the packets of each flow where they enter the path and where they leave it.

use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farlink_core::Time;
use farlink_core::emulator::End;
use farlink_core::emulator::ip::IpPacket;
use farlink_core::link::LinkState;
use tokio::sync::watch;

use super::ends::Stopwatch;
use super::plan::Plan;
use crate::emulate::{EmulateError, Line};

/// Hints of the hosts at both ends about the links into which they send; none before the run.
pub(super) type OwnLinks = [watch::Sender<Option<LinkState>>; 2];

const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV4_BYTES: usize = 20;

/// Counters, shared between the emulator and the ends of flows.
#[derive(Debug)]
pub(super) struct Counted {
    flows: Vec<FlowTap>,
    by_port: HashMap<u16, usize>,
    /// Packets on the way forward, when they came in, and of which flow.
    under_way: HashMap<u64, (Time, usize)>,
    warmup: Time,
    end: Time,
}

/// Counts of one flow since the end of the warm-up.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowTap {
    pub(super) sent_bytes: u64,
    pub(super) sent_packets: u64,
    pub(super) left_packets: u64,
    pub(super) marked_packets: u64,
    pub(super) retransmitted_bytes: u64,
    pub(super) delay_sum_s: f64,
    /// When the newest packet that has left had come in. What came in later may still be under way.
    newest_left: Time,
    /// Packets of which it is not known whether they are lost.
    pub(super) undecided_packets: u64,
    /// Place in the sequence space of TCP: of the SYN, and how many bytes of the stream were sent.
    initial: Option<u32>,
    sent_stream: u64,
    /// Ends of data in the stream, and when they were first sent.
    first_sent: VecDeque<(u64, Time)>,
}

impl Counted {
    pub(super) fn new(plan: &Plan) -> Self {
        let time = |span: Duration| Time::from_secs_f64(span.as_secs_f64());
        Counted {
            flows: vec![FlowTap::default(); plan.flows.len()],
            by_port: plan.flows.iter().enumerate().map(|(at, flow)| (flow.port, at)).collect(),
            under_way: HashMap::new(),
            warmup: time(plan.warmup),
            end: time(plan.duration),
        }
    }

    pub(super) fn flows(&self) -> &[FlowTap] {
        &self.flows
    }

    fn entered(&mut self, now: Time, packet: &[u8]) {
        let Some(headers) = Headers::of(packet) else { return };
        let Some(&at) = self.by_port.get(&headers.destination) else { return };
        let flow = &mut self.flows[at];
        let counts = now >= self.warmup && now < self.end;
        if let Some(tcp) = headers.tcp {
            let repeated = flow.follow(now, &tcp);
            flow.retransmitted_bytes += if counts { repeated } else { 0 };
        }
        if counts {
            flow.sent_bytes += packet.len() as u64;
            flow.sent_packets += 1;
            self.under_way.insert(telling(packet), (now, at));
        }
    }

    fn left(&mut self, now: Time, packet: &[u8]) {
        let Some((came, at)) = self.under_way.remove(&telling(packet)) else { return };
        let flow = &mut self.flows[at];
        flow.left_packets += 1;
        flow.newest_left = flow.newest_left.max(came);
        flow.delay_sum_s += now.since(came).as_secs_f64();
        flow.marked_packets += u64::from(packet[1] & 3 == 3);
    }

    /// The run is over, with packets under way or not: those that came in behind the newest that has left may be.
    pub(super) fn end(&mut self, is_empty: bool) {
        if is_empty {
            return;
        }
        for &(came, at) in self.under_way.values() {
            let flow = &mut self.flows[at];
            flow.undecided_packets += u64::from(came > flow.newest_left);
        }
    }

    /// The application has so many bytes of the stream: when each part of them was first sent.
    pub(super) fn delivered(&mut self, flow: usize, stream_bytes: u64) -> Vec<Time> {
        let flow = &mut self.flows[flow];
        let count = flow.first_sent.iter().take_while(|(end, _)| *end <= stream_bytes).count();
        flow.first_sent.drain(..count).map(|(_, first)| first).collect()
    }
}

impl FlowTap {
    /// Follows a TCP segment of the sender; returns how many of its bytes were sent before.
    fn follow(&mut self, now: Time, tcp: &TcpHeader) -> u64 {
        if tcp.is_syn {
            self.initial = Some(tcp.sequence);
        }
        let (Some(initial), true) = (self.initial, tcp.payload_bytes > 0) else { return 0 };
        // Where the segment begins, next to what was sent last: sequence numbers wrap.
        let first = initial.wrapping_add(1);
        let expected = first.wrapping_add(self.sent_stream as u32);
        let ahead = tcp.sequence.wrapping_sub(expected) as i32;
        let begin = self.sent_stream.saturating_add_signed(ahead.into());
        let end = begin + tcp.payload_bytes;
        let new = end.saturating_sub(self.sent_stream.max(begin));
        if end > self.sent_stream {
            self.sent_stream = end;
            self.first_sent.push_back((end, now));
        }
        tcp.payload_bytes - new
    }
}

/// What tells a packet from all others. What routers change on the way is not in it; with wrong bits it is another one, which the
/// receiver drops by its checksum.
fn telling(packet: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    packet.get(4..8).hash(&mut hasher);
    packet.get(IPV4_BYTES..).hash(&mut hasher);
    hasher.finish()
}

struct Headers {
    destination: u16,
    tcp: Option<TcpHeader>,
}

struct TcpHeader {
    sequence: u32,
    is_syn: bool,
    payload_bytes: u64,
}

impl Headers {
    /// For IPv4 without options, as sockets here send it; `None` for everything else.
    fn of(packet: &[u8]) -> Option<Self> {
        if packet.first() != Some(&0x45) {
            return None;
        }
        let behind = packet.get(IPV4_BYTES..)?;
        let destination = u16::from_be_bytes([*behind.get(2)?, *behind.get(3)?]);
        let tcp = match packet[9] {
            UDP => None,
            TCP => {
                let header_bytes = usize::from(*behind.get(12)? >> 4) * 4;
                Some(TcpHeader {
                    sequence: u32::from_be_bytes(*behind.get(4..)?.first_chunk()?),
                    is_syn: behind.get(13)? & 2 != 0,
                    payload_bytes: behind.len().checked_sub(header_bytes)? as u64,
                })
            }
            _ => return None,
        };
        Some(Headers { destination, tcp })
    }
}

/// A line whose packets are counted, and whose ends are told the states of their links.
#[derive(Debug)]
pub struct Tap<L> {
    line: L,
    links: OwnLinks,
    counted: Arc<Mutex<Counted>>,
    watch: Stopwatch,
}

impl<L> Tap<L> {
    pub(super) fn new(line: L, links: OwnLinks, counted: Arc<Mutex<Counted>>, watch: Stopwatch) -> Self {
        Tap { line, links, counted, watch }
    }

    fn counted(&self) -> std::sync::MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L: Line<Packet = IpPacket>> Line for Tap<L> {
    type Packet = IpPacket;

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.line.wait(at_most)
    }

    fn receive(&mut self, at: End) -> Result<Option<IpPacket>, EmulateError> {
        let packet = self.line.receive(at)?;
        if let (Some(packet), End::Near) = (&packet, at) {
            self.counted().entered(self.watch.now(), &packet.bytes);
        }
        Ok(packet)
    }

    fn send(&mut self, at: End, packet: IpPacket) -> bool {
        if at == End::Far {
            self.counted().left(self.watch.now(), &packet.bytes);
        }
        self.line.send(at, packet)
    }

    fn wants_own_link(&self) -> bool {
        true
    }

    fn set_own_link(&mut self, at: End, state: LinkState) {
        self.links[at as usize].send_replace(Some(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: u16 = 5001;

    fn tcp_packet(sequence: u32, is_syn: bool, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 1, 2, 0x40, 0, 64, TCP, 0, 0, 198, 18, 0, 2, 198, 18, 1, 2];
        packet.extend([0xc0, 0]);
        packet.extend(PORT.to_be_bytes());
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 0, 0x50, if is_syn { 2 } else { 16 }, 0, 0, 0, 0, 0, 0]);
        packet.extend(payload);
        packet
    }

    fn counted() -> Counted {
        Counted {
            flows: vec![FlowTap::default()],
            by_port: [(PORT, 0)].into(),
            under_way: HashMap::new(),
            warmup: Time::ZERO,
            end: Time::from_secs(100),
        }
    }

    /// Also where the sequence numbers wrap.
    #[test]
    fn data_that_are_sent_again_are_counted() {
        for initial in [7, u32::MAX - 1500] {
            let mut counted = counted();
            let first = initial.wrapping_add(1);
            let at = Time::from_secs;
            counted.entered(at(0), &tcp_packet(initial, true, &[]));
            counted.entered(at(1), &tcp_packet(first, false, &[1; 1000]));
            counted.entered(at(2), &tcp_packet(first.wrapping_add(1000), false, &[2; 1000]));
            counted.entered(at(3), &tcp_packet(first, false, &[1; 1000]));
            counted.entered(at(4), &tcp_packet(first.wrapping_add(1500), false, &[3; 1000]));
            assert_eq!(counted.flows[0].retransmitted_bytes, 1500);
            assert_eq!(counted.flows[0].sent_bytes, 5 * 40 + 4000);
            assert_eq!(counted.delivered(0, 1999), [at(1)]);
            assert_eq!(counted.delivered(0, 2500), [at(2), at(4)]);
        }
    }

    #[test]
    fn packets_are_known_again_where_they_leave() {
        let mut counted = counted();
        let (one, other) = (tcp_packet(1, false, b"one"), tcp_packet(4, false, b"other"));
        counted.entered(Time::from_secs(1), &one);
        counted.entered(Time::from_secs(1), &other);
        let mut marked = one;
        marked[1] |= 3;
        counted.left(Time::from_secs(3), &marked);
        counted.left(Time::from_secs(3), &marked);
        let mut damaged = other;
        *damaged.last_mut().unwrap() ^= 1;
        counted.left(Time::from_secs(3), &damaged);
        let flow = &counted.flows[0];
        assert_eq!((flow.sent_packets, flow.left_packets, flow.marked_packets, flow.delay_sum_s), (2, 1, 1, 2.0));
    }

    /// A packet that another one has overtaken is lost; the last ones may be under way.
    #[test]
    fn what_may_be_under_way_is_not_lost() {
        let mut counted = counted();
        let packets = [b"1", b"2", b"3", b"4"].map(|payload| tcp_packet(payload[0].into(), false, payload));
        for (second, packet) in (1..).zip(&packets) {
            counted.entered(Time::from_secs(second), packet);
        }
        counted.left(Time::from_secs(9), &packets[1]);
        counted.end(false);
        assert_eq!((counted.flows[0].left_packets, counted.flows[0].undecided_packets), (1, 2));
        counted.flows[0].undecided_packets = 0;
        counted.end(true);
        assert_eq!(counted.flows[0].undecided_packets, 0);
    }

    #[test]
    fn other_packets_are_none() {
        for packet in [&[][..], &[0x60; 60], &[0x45; 3], &[0x45; 21], &[0x45; 25]] {
            assert!(Headers::of(packet).is_none_or(|headers| headers.tcp.is_none()), "{packet:?}");
            counted().entered(Time::ZERO, packet);
        }
    }
}

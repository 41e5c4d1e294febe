//! AeroTP against an attacker that knows tags, numbers and times; shared by a property test and a fuzz target.

use farlink_core::protocol::aerotp::{AerotpConfig, Edges, Flags, Mack, Mode, Repair, Segment, Service, Side};
use farlink_core::protocol::{Pairs, TransportConfig};
use farlink_core::units::{BitRate, Count};
use farlink_core::wire::aerotp::{Outside, decode_segment, encode_segment};
use farlink_core::{Endpoint, Integrity, LinkHint, Rx, Stream, Time};

use super::examples::Example;

type Bytes = Vec<u8>;

/// Result of a program for two connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Forged segments that arrived, and those that neither side dropped.
    pub(crate) forged: u64,
    pub(crate) accepted: u64,
}

/// Runs a program of bytes on two AeroTP connections, in the mode that the first byte chooses: write, close, read,
/// send, deliver, lose, wait, give hints, change settings; and deliver forged segments, which resemble the peer's with
/// some fields changed, and which are also encoded and decoded.
///
/// # Panics
/// If a side panics, a timer does not stop, or the codec does not round-trip a segment.
pub(crate) fn against_a_forger(examples: &[Example], bytes: &[u8]) -> Tally {
    let modes: Vec<&AerotpConfig> = examples
        .iter()
        .filter_map(|example| match &example.transport {
            TransportConfig::Aerotp(config) => Some(config),
            _ => None,
        })
        .collect();
    let mut program = Program(bytes);
    let config = modes[usize::from(program.byte()) % modes.len()];
    let seed = u64::from(program.byte()).wrapping_mul(0x0101_0101_ff01_0101);
    let (active, passive) = Pairs::<Bytes>::pair(config, seed);
    let mut world = World {
        ends: [active, passive],
        now: Time::from_secs(5_000),
        under_way: Vec::new(),
        latest: [Segment::default(), Segment::default()],
        tally: Tally::default(),
    };
    // The connection is opened first, because few programs would do it.
    for _ in 0..program.byte() & 3 {
        for side in [0, 1] {
            world.ends[side].write(world.now, &mut vec![6; 300]);
            world.send(side);
            for (to, segment) in std::mem::take(&mut world.under_way) {
                world.deliver(to, &segment, Integrity::Intact);
            }
            world.wait(Time::from_millis(50), 1 - side);
        }
    }
    while !program.0.is_empty() {
        world.step(&mut program);
    }
    world.tally
}

/// Reads a program of bytes from the front; zeros after its end.
struct Program<'a>(&'a [u8]);

impl Program<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn word(&mut self) -> u32 {
        u32::from(self.short()) << 16 | u32::from(self.short())
    }

    /// A number near another one, or rarely any number.
    fn near(&mut self, number: u32) -> u32 {
        match self.byte() {
            255 => self.word(),
            byte @ 192..=254 => number.wrapping_add(u32::from(byte - 192) * 97),
            byte @ 128..=191 => number.wrapping_add(u32::from(byte)).wrapping_sub(160),
            _ => number,
        }
    }
}

struct World {
    ends: [Side<Bytes>; 2],
    now: Time,
    under_way: Vec<(usize, Segment<Bytes>)>,
    /// The latest segment of each side.
    latest: [Segment<Bytes>; 2],
    tally: Tally,
}

impl World {
    fn step(&mut self, program: &mut Program<'_>) {
        let operation = program.byte();
        let side = usize::from(operation & 1);
        let argument = usize::from(operation >> 5);
        match (operation >> 1) & 15 {
            0 => {
                self.ends[side].write(self.now, &mut vec![7; argument * 61]);
            }
            1 if argument == 7 => self.ends[side].close(self.now),
            1 => self.change(side, program),
            2..=4 => self.send(side),
            5 => while self.ends[side].read().is_some() {},
            6 => self.wait(Time::from_ps(1_000_000 << (argument * 4)), side),
            7 => {
                let due = self.ends[side].poll_timeout().unwrap_or(self.now);
                self.wait(due.since(self.now), side);
            }
            8 => self.hint(side, program),
            9 | 10 if !self.under_way.is_empty() => {
                let at = argument % self.under_way.len();
                let (to, segment) = if operation & 2 == 0 {
                    self.under_way.remove(at)
                } else {
                    self.under_way[at].clone() // and it comes again
                };
                self.deliver(to, &segment, Integrity::Intact);
            }
            11 if !self.under_way.is_empty() => {
                let (to, segment) = self.under_way.remove(argument % self.under_way.len());
                let integrity = [Integrity::Mended { bits: 3 }, Integrity::PayloadDamaged].get(argument % 3).copied();
                if let Some(integrity) = integrity {
                    self.deliver(to, &segment, integrity);
                }
            }
            _ => self.forge(side, 1 + argument % 4, program),
        }
    }

    /// Sends all segments and takes all events.
    fn send(&mut self, side: usize) {
        while self.under_way.len() < 64
            && let Some(sent) = self.ends[side].poll_transmit(self.now)
        {
            self.latest[side] = sent.packet.clone();
            self.under_way.push((1 - side, sent.packet));
        }
        while self.ends[side].poll_event().is_some() {}
    }

    /// Time passes, and every timer that is due fires once; none is due again before a segment is sent.
    fn wait(&mut self, span: Time, side: usize) {
        self.now += span;
        self.ends[side].handle_timeout(self.now);
        self.under_way.truncate(32);
        self.send(side);
        let is_due = |world: &World| world.ends[side].poll_timeout().is_some_and(|due| due <= world.now);
        let mut rounds = 0;
        while is_due(self) && self.under_way.len() < 64 {
            self.ends[side].handle_timeout(self.now);
            self.send(side);
            rounds += 1;
            assert!(rounds < 1000, "a timer does not stop: {:?}", self.ends[side].poll_timeout());
        }
    }

    fn hint(&mut self, side: usize, program: &mut Program<'_>) {
        let value = program.byte();
        let hint = match value & 3 {
            0 => LinkHint::Up,
            1 => LinkHint::Down,
            2 => LinkHint::Ber(0.5_f64.powi(i32::from(value >> 2))),
            _ => match BitRate::new(f64::from(1_u32 << (value >> 3))) {
                Ok(rate) => LinkHint::Rate(rate),
                Err(_) => return,
            },
        };
        self.ends[side].handle_link(self.now, hint);
    }

    /// Changes that are refused have no effect.
    fn change(&mut self, side: usize, program: &mut Program<'_>) {
        let value = program.byte();
        let end = self.ends[side].connection_mut();
        if value >= 192 {
            let bytes = Count::new(60.0 + 40.0 * f64::from(value - 192)).expect("a whole number above 0");
            let _ = end.set_packet_bytes(self.now, bytes);
            return;
        }
        let _ = match value & 3 {
            0 => end.set_mode(Mode::ALL[usize::from(value >> 2) % Mode::ALL.len()]),
            1 => end.set_fec_words(u16::from(value >> 2) * 5),
            2 => end.set_service(value >> 4, Service { weight: (value & 8 == 0).then_some(3), deadline: None }),
            _ => end.write_class(self.now, value >> 4, &mut vec![8; usize::from(value)]).map(|_| ()),
        };
    }

    fn deliver(&mut self, to: usize, segment: &Segment<Bytes>, integrity: Integrity) {
        self.ends[to].handle_packet(self.now, segment, Rx { integrity, ..Rx::default() });
        while self.ends[to].poll_event().is_some() {}
    }

    /// A copy of a side's segment, with some fields changed, arrives at the other side.
    fn forge(&mut self, side: usize, changes: usize, program: &mut Program<'_>) {
        let mut segment = self.latest[side].clone();
        for _ in 0..changes {
            self.alter(&mut segment, side, program);
        }
        if segment.flags.has(Flags::MACK) && segment.mack.is_some() {
            segment.payload = Vec::new();
        }
        there_and_back(&segment);
        let to = 1 - side;
        let dropped = |world: &World| {
            let dropped = world.ends[to].dropped();
            dropped.damaged + dropped.stray + dropped.forged + dropped.outside + dropped.malformed
        };
        let before = dropped(self);
        self.deliver(to, &segment, Integrity::Intact);
        self.tally.forged += 1;
        self.tally.accepted += u64::from(dropped(self) == before);
    }

    fn alter(&self, segment: &mut Segment<Bytes>, side: usize, program: &mut Program<'_>) {
        let now = (self.now.as_ps() / 1_000_000) as u32;
        let known = &self.latest[1 - side];
        match program.byte() % 16 {
            0 => segment.sequence = program.near(segment.sequence),
            1 => segment.sequence = program.near(known.sequence),
            2 => segment.timestamp = program.near(now),
            3 => segment.flags = Flags(program.byte()),
            4 => segment.flags = Flags(segment.flags.0 ^ (1 << (program.byte() & 7))),
            5 => segment.tag = program.near(segment.tag.into()) as u16,
            6 => segment.payload = vec![9; usize::from(program.byte())],
            7 => segment.opening = program.near(segment.opening),
            8 => segment.mode = Mode::ALL[usize::from(program.byte()) % Mode::ALL.len()],
            9 => (segment.class, segment.fec_words) = (program.byte() & 7, u16::from(program.byte())),
            10..=12 => {
                segment.sequence = program.near(known.sequence);
                segment.mack = Some(Box::new(forged_mack(segment.sequence, known.timestamp, program)));
                segment.flags = Flags(segment.flags.0 & !(Flags::AFIN.0 | Flags::REPAIR.0)).with(Flags::MACK);
                segment.repair = None;
            }
            13 | 14 => {
                let repair = forged_repair(segment.sequence, program);
                segment.repair = Some(repair);
                segment.payload = vec![5; usize::from(repair.symbol_bytes) % 2000];
                segment.mack = None;
                segment.flags = Flags(segment.flags.0 & !Flags::MACK.0).with(Flags::REPAIR);
            }
            _ => {
                (segment.mack, segment.repair) = (None, None);
                segment.flags = Flags(segment.flags.0 & !(Flags::MACK.0 | Flags::REPAIR.0));
            }
        }
    }
}

fn forged_mack(ack: u32, echo: u32, program: &mut Program<'_>) -> Mack {
    let kind = program.byte();
    let mut mack = Mack {
        echo: program.near(echo),
        held: if kind & 1 == 0 { 0 } else { program.word() >> (kind >> 3) },
        window: if kind & 2 == 0 { 1 << (kind >> 3) } else { program.word() },
        marked: program.short(),
        damaged: u16::from(kind),
        edges: Edges::default(),
        is_from_start: kind & 4 != 0,
        is_to_end: kind & 8 != 0,
        counts_symbols: kind & 16 != 0,
        has_distances: kind & 32 != 0,
    };
    let mut edge = ack;
    for _ in 0..program.byte() % 34 {
        let (start, end) = (program.near(edge), program.near(edge));
        mack.edges.push(start, end);
        edge = end;
    }
    mack
}

/// Often a consistent one.
fn forged_repair(start: u32, program: &mut Program<'_>) -> Repair {
    let kind = program.byte();
    let symbol_bytes = if kind & 1 == 0 { u16::from(program.byte()) } else { program.short() };
    let symbols = if kind & 2 == 0 { u16::from(program.byte()) } else { program.short() };
    let most = u32::from(symbols).saturating_mul(symbol_bytes.into());
    let bytes = if kind & 4 == 0 { most.saturating_sub(u32::from(program.byte()) % 8) } else { program.word() };
    let index = match kind & 24 {
        0 => program.word(),
        8 => u32::from(program.byte()) % u32::from(symbols).max(1),
        _ => u32::from(symbols) + u32::from(program.byte()),
    };
    Repair { start: if kind & 32 == 0 { start } else { program.near(start) }, bytes, symbol_bytes, symbols, index }
}

/// The codec reads what it wrote, except for fields that nothing on the wire expresses.
fn there_and_back(segment: &Segment<Bytes>) {
    let mut bytes = Vec::new();
    if encode_segment(segment, &Outside::default(), &mut bytes).is_err() {
        return; // too long for IPv4
    }
    let Ok(arrived) = decode_segment::<Bytes>(&bytes.into()) else {
        assert!(segment.fec_words > 256 || segment.class > 7, "an encoded segment is refused: {segment:?}");
        return;
    };
    let Segment { tag, mode, class, sequence, timestamp, repair, fec_words, .. } = arrived.segment;
    assert_eq!((tag, mode, class), (segment.tag, segment.mode, segment.class));
    assert_eq!((sequence, timestamp, repair), (segment.sequence, segment.timestamp, segment.repair));
    assert_eq!((fec_words, arrived.integrity), (segment.fec_words, Integrity::Intact));
    let mack = segment.mack.as_deref().map(|mack| Mack { held: mack.held.min((1 << 28) - 1), ..*mack });
    assert_eq!(arrived.segment.mack.as_deref(), mack.as_ref());
    if mack.is_none() {
        assert_eq!(arrived.segment.payload, segment.payload);
    }
}

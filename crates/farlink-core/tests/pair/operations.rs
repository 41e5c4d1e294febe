//! Runs programs of bytes on two endpoints; shared by property tests and fuzz targets.

use farlink_core::endpoint::Stream;
use farlink_core::protocol::Pairs;
use farlink_core::protocol::tcp::variant::Variant;
use farlink_core::protocol::tcp::{CongestionControl, TcpConfig};
use farlink_core::units::Count;
use farlink_core::{Damage, Event, Packet, PacketCode, Rx, Time};

use super::examples::{Example, Guarantee, with_config};

/// Two TCP connections with options that the first bytes choose.
///
/// # Panics
/// As [`run`].
pub(crate) fn operations(bytes: &[u8]) {
    let [options, window, seed, program @ ..] = bytes else { return };
    let count = |n: u8| Count::new(f64::from(n)).expect("a whole number above 0");
    let variant = Variant::ALL[usize::from(seed ^ options) % Variant::ALL.len()];
    let control = CongestionControl::ALL[usize::from(seed ^ window) % CongestionControl::ALL.len()];
    let fits = variant.uses_sack() || !control.measures_rates();
    let config = TcpConfig {
        variant,
        congestion_control: if fits { control } else { CongestionControl::Reno },
        handshake: options & 4 != 0,
        fin: options & 8 != 0,
        timestamps: options & 16 != 0,
        delayed_ack: options & 32 != 0,
        limited_transmit: options & 64 != 0,
        recover_guard: options & 128 != 0,
        segment_bytes: count(7),
        max_window_segments: Some(count(1 + window % 16)),
        receive_window_segments: Some(count(1 + window / 16)),
        ..TcpConfig::default()
    };
    let seed = u64::from(*seed).wrapping_mul(0x0101_0101_ff01_0101);
    run(Pairs::<Vec<u8>>::pair(&config, seed), Guarantee::All, PacketCode::None, program);
}

/// Two endpoints of the protocol and mode that the first byte chooses.
///
/// # Panics
/// As [`run`].
pub(crate) fn any_protocol(examples: &[Example], bytes: &[u8]) {
    let [which, seed, program @ ..] = bytes else { return };
    let Example { transport, guarantee, .. } = &examples[usize::from(*which) % examples.len()];
    let code = transport.as_dyn().correction().map(|correction| correction.code()).unwrap_or_default();
    let seed = u64::from(*seed).wrapping_mul(0x0101_0101_ff01_0101);
    with_config!(transport, |config| run(Pairs::<Vec<u8>>::pair(config, seed), *guarantee, code, program));
}

/// Reads operations until the bytes are used up: write, close, read, send, deliver (any packet in flight, once or more,
/// damaged or not), lose, wait, expire. The bytes read must be those written.
///
/// # Panics
/// If an endpoint panics or its reader gets bytes that were not written.
fn run<E: Stream<Vec<u8>>>((active, passive): (E, E), guarantee: Guarantee, code: PacketCode, program: &[u8]) {
    let mut ends = [active, passive];
    let mut now = Time::ZERO;
    let mut under_way: Vec<(usize, E::Packet)> = Vec::new();
    let (mut written, mut read) = ([0_usize; 2], [0_usize; 2]);
    for operation in program {
        let side = usize::from(operation & 1);
        let argument = usize::from(operation >> 4);
        match (operation >> 1) & 7 {
            0 => {
                let mut data: Vec<u8> = (written[side]..written[side] + argument * 5).map(|at| at as u8).collect();
                written[side] += ends[side].write(now, &mut data);
            }
            1 if argument == 15 => ends[side].close(now),
            1 | 2 => {
                while under_way.len() < 64
                    && let Some(transmit) = ends[side].poll_transmit(now)
                {
                    under_way.push((1 - side, transmit.packet));
                }
                while let Some(event) = ends[side].poll_event() {
                    if let Event::Skipped(bytes) = event {
                        assert!(guarantee == Guarantee::InOrder, "side {side} gave up data that it guarantees");
                        read[side] += bytes as usize;
                    }
                }
            }
            3 => {
                while let Some(data) = ends[side].read() {
                    if guarantee != Guarantee::Datagrams {
                        let expected = (read[side]..read[side] + data.len()).map(|at| at as u8);
                        assert!(expected.eq(data.iter().copied()), "side {side} read bytes that were not written");
                        read[side] += data.len();
                    }
                }
                assert!(read[side] <= written[1 - side]);
            }
            4 | 5 if !under_way.is_empty() => {
                let at = argument % under_way.len();
                let (to, packet) = under_way[at].clone();
                if operation & 2 == 0 {
                    under_way.remove(at); // otherwise it comes again
                }
                ends[to].handle_packet(now, &packet, Rx::default());
            }
            6 if !under_way.is_empty() => {
                let (to, packet) = under_way.remove(argument % under_way.len());
                // The packet is lost, unless it survives a wrong bit.
                let bit = (argument as u32 * 97 + u32::from(*operation)) % (packet.wire_bytes() * 8).max(1);
                if argument >= 8
                    && let Some(integrity) = packet.inspect(&Damage { bits: &[bit], code })
                {
                    ends[to].handle_packet(now, &packet, Rx { integrity, ..Rx::default() });
                }
            }
            7 => {
                now += Time::from_millis(1 << argument);
                ends[side].handle_timeout(now);
            }
            _ => {}
        }
    }
}

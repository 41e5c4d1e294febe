//! Two connections do what a string of bytes says: shared by a property test and a fuzz target.

use farlink_core::endpoint::{Endpoint, Stream};
use farlink_core::protocol::tcp::variant::Variant;
use farlink_core::protocol::tcp::{CongestionControl, Connection, Segment, TcpConfig};
use farlink_core::units::Count;
use farlink_core::{PathId, Rx, Time};

/// Reads operations until the bytes are used up: write, close, read, send, deliver (any segment under way, once or more),
/// lose, wait, expire. What is read is always what was written.
///
/// # Panics
/// If a connection panics or gives its reader something else than was written.
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
    let (active, passive) = Connection::<Vec<u8>>::pair(&config, u64::from(*seed).wrapping_mul(0x0101_0101_ff01_0101));
    let mut ends = [active, passive];
    let mut now = Time::ZERO;
    let mut under_way: Vec<(usize, Segment<Vec<u8>>)> = Vec::new();
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
                    && let Some(transmit) = ends[side].poll_transmit(now, PathId::ONLY)
                {
                    under_way.push((1 - side, transmit.packet));
                }
                while ends[side].poll_event().is_some() {}
            }
            3 => {
                while let Some(data) = ends[side].read() {
                    let expected = (read[side]..read[side] + data.len()).map(|at| at as u8);
                    assert!(expected.eq(data.iter().copied()), "side {side} read what was not written");
                    read[side] += data.len();
                }
                assert!(read[side] <= written[1 - side]);
            }
            4 | 5 if !under_way.is_empty() => {
                let at = argument % under_way.len();
                let (to, segment) = under_way[at].clone();
                if operation & 2 == 0 {
                    under_way.remove(at); // otherwise it comes again
                }
                ends[to].handle_packet(now, &segment, Rx::default());
            }
            6 if !under_way.is_empty() => drop(under_way.remove(argument % under_way.len())),
            7 => {
                now += Time::from_millis(1 << argument);
                ends[side].handle_timeout(now);
            }
            _ => {}
        }
    }
}

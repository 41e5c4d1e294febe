//! A bundle whose peer sends arbitrary packets: it does not panic, and its memory is bounded.

use bytes::Bytes;
use farlink_core::Time;
use farlink_core::paths::{ClassRules, PathBundle, PathBundleConfig, PathId, PathRules, Policy};
use farlink_core::wire::paths::{decode, encode_into};

/// Bytes that the end may hold for what arrived.
const REORDER_BYTES: usize = 500_000;

/// Does what the bytes say: time passes, the user sends, or a packet arrives, whose header leads into the bundle more often than chance
/// would.
pub(crate) fn forged_packets(mut bytes: &[u8]) {
    let mut config =
        PathBundleConfig { reorder_bytes: REORDER_BYTES, queue_bytes: 50_000, ..PathBundleConfig::default() };
    config.classes[0] = ClassRules { policy: Policy::Redundant, is_ordered: false };
    config.classes[2] = ClassRules { policy: Policy::Cheapest, is_ordered: true };
    let mut now = Time::ZERO;
    let mut end: PathBundle<Bytes> = PathBundle::new(config, now, 1);
    for path in 0..3 {
        end.add_path(now, PathRules { mtu: 300 + 500 * path, is_standby: path == 2, ..PathRules::default() });
    }
    let mut take = |count: usize| {
        let (first, rest) = bytes.split_at_checked(count)?;
        bytes = rest;
        Some(first)
    };
    while let Some(&[act, length]) = take(2) {
        match act % 8 {
            0 => now += Time::from_ps(u64::from(length).pow(2) * 4_000_000_000),
            1 => {
                end.send(now, Bytes::from(vec![act; usize::from(length) * 8]), act >> 5, u64::from(length));
            }
            2 => end.set_carrier(now, PathId(length % 3), length >= 128),
            3 => end.handle_timeout(now),
            _ => {
                let Some(content) = take(usize::from(length)) else { return };
                let mut packet = content.to_vec();
                if let Some(header) = packet.get_mut(..5)
                    && act % 8 > 4
                {
                    // A header of one of two incarnations, for any listener.
                    header.copy_from_slice(&[act >> 6, 0, 1 + u8::from(act & 0x20 != 0), 0, 0]);
                }
                if let Some(packet) = decode(packet.into()) {
                    let mut again = Vec::new();
                    encode_into(&packet, &mut again);
                    assert_eq!(decode(again.into()).as_ref(), Some(&packet));
                    end.handle_packet(now, PathId(packet.path), &packet);
                }
            }
        }
        let mut sent = 0;
        while end.poll_transmit(now).is_some() {
            sent += 1;
            assert!(sent < 10_000, "it sends without end");
        }
        if act & 0x10 != 0 {
            while end.receive().is_some() {}
        }
        while end.poll_event().is_some() {}
        assert!(end.totals().reorder_bytes as usize <= 2 * REORDER_BYTES, "{:?}", end.totals());
        if end.poll_timeout().is_some_and(|at| at <= now) {
            end.handle_timeout(now);
        }
    }
}

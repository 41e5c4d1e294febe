//! The maximum segment size that hosts behind a tunnel tell each other, lowered to what fits through it.
//!
//! A router that cannot tell a host that its packets are too long (its messages are often filtered) would lose them; a connection whose
//! SYNs say less never sends them (RFC 6691, section 2: MSS and MTU; RFC 4459, section 3.4, on tunnels).

use bytes::{Bytes, BytesMut};

/// Next headers of IPv6 that may stand before TCP and say their length in units of 8 bytes beyond the first 8 (RFC 8200, section 4).
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const TCP: u8 = 6;
/// TCP's flag (RFC 9293, section 3.1).
const SYN: u8 = 0x02;
/// Kinds of TCP's options (RFC 9293, section 3.1): end, no operation, maximum segment size.
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
/// TCP's header without options.
const TCP_BYTES: usize = 20;
/// No host is told less: Linux sends no shorter segments (its setting `tcp_min_snd_mss`).
const LEAST: u16 = 48;

/// Lowers the maximum segment size of a packet that opens a TCP connection to what a packet of `longest` bytes carries without options,
/// and mends its checksum. Any other packet stays as it is.
pub(crate) fn clamp(packet: &mut [u8], longest: u16) {
    let Some((at, headers)) = tcp_at(packet) else { return };
    let most = longest.saturating_sub(headers).max(LEAST);
    let end = (at + usize::from(packet[at + 12] >> 4) * 4).min(packet.len());
    let mut option = at + TCP_BYTES;
    while option < end && packet[option] != END {
        if packet[option] == NOP {
            option += 1;
            continue;
        }
        let Some(&length) = packet[..end].get(option + 1) else { return };
        let value = option + 2;
        if packet[option] == MSS && length == 4 && value + 2 <= end {
            let old = u16::from_be_bytes([packet[value], packet[value + 1]]);
            if old > most {
                packet[value..value + 2].copy_from_slice(&most.to_be_bytes());
                let is_odd = (value - at) % 2 == 1;
                mend(&mut packet[at + 16..at + 18], old, most, is_odd);
            }
            return;
        }
        if length < 2 {
            return;
        }
        option += usize::from(length);
    }
}

/// A packet, or a copy of it that [`clamp`] has changed.
pub(crate) fn clamped(packet: Bytes, longest: u16) -> Bytes {
    if tcp_at(&packet).is_none() {
        return packet;
    }
    let mut copy = BytesMut::from(&packet[..]);
    clamp(&mut copy, longest);
    copy.freeze()
}

/// Where the TCP header of a SYN begins, and the bytes of IP's fixed header and TCP's.
fn tcp_at(packet: &[u8]) -> Option<(usize, u16)> {
    let (at, headers) = match packet.first()? >> 4 {
        4 if packet.len() >= 20 && packet[9] == TCP => {
            let is_first = packet[6] & 0x1f == 0 && packet[7] == 0;
            let header_bytes = usize::from(packet[0] & 0xf) * 4;
            (header_bytes >= 20 && is_first).then_some((header_bytes, 40))?
        }
        6 if packet.len() >= 40 => {
            let (mut next, mut at) = (packet[6], 40);
            while EXTENSIONS.contains(&next) {
                let (&following, &length) = (packet.get(at)?, packet.get(at + 1)?);
                (next, at) = (following, at + 8 + usize::from(length) * 8);
            }
            (next == TCP).then_some((at, 60))?
        }
        _ => return None,
    };
    let header = packet.get(at..at + TCP_BYTES)?;
    (header[13] & SYN != 0).then_some((at, headers))
}

/// The checksum after a word has changed (RFC 1624, equation 3); a word at an odd place counts with its bytes swapped.
fn mend(checksum: &mut [u8], old: u16, new: u16, is_odd: bool) {
    let word = |word: u16| if is_odd { word.swap_bytes() } else { word };
    let sum = !u16::from_be_bytes([checksum[0], checksum[1]]);
    let mut total = u32::from(sum) + u32::from(!word(old)) + u32::from(word(new));
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    checksum.copy_from_slice(&(!(total as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The sum of TCP's pseudo-header and segment (RFC 9293, section 3.1): 0xffff if the checksum is right.
    fn sum(packet: &[u8], at: usize) -> u16 {
        let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
        let segment = &packet[at..];
        let words = |bytes: &[u8]| {
            bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum::<u32>()
        };
        let mut total = words(addresses) + u32::from(TCP) + segment.len() as u32 + words(segment);
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    /// A SYN with these options, and where its TCP header is.
    fn syn(version: u8, flags: u8, options: &[u8], payload: &[u8]) -> (Vec<u8>, usize) {
        let mut header = match version {
            4 => vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
            _ => {
                let mut header = vec![0x60, 0, 0, 0, 0, 0, 0, 64];
                header.extend((0..32).map(|at| at * 7));
                // A destination options header.
                header.extend([TCP, 0, 1, 4, 0, 0, 0, 0]);
                header[6] = 60;
                header
            }
        };
        let at = header.len();
        header.extend([
            1,
            2,
            3,
            4,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            0,
            (((20 + options.len()) / 4) << 4) as u8,
            flags,
            1,
            0,
            0,
            0,
            0,
            0,
        ]);
        header.extend(options);
        header.extend(payload);
        let right = !sum(&header, at);
        header[at + 16..at + 18].copy_from_slice(&right.to_be_bytes());
        (header, at)
    }

    #[test]
    fn the_segment_size_follows_the_device_and_the_checksum_stays_right() {
        // At an even and at an odd place (behind one NOP).
        for (options, place) in [(vec![2, 4, 5, 180, 1, 3, 3, 7], 2), (vec![1, 2, 4, 5, 180, 1, 1, 0], 3)] {
            for (version, headers) in [(4, 40), (6, 60)] {
                for longest in [1400_u16, 1280, 700] {
                    let (mut packet, at) = syn(version, SYN | 0x10, &options, b"odd");
                    assert_eq!(sum(&packet, at), 0xffff);
                    let copy = clamped(packet.clone().into(), longest);
                    clamp(&mut packet, longest);
                    assert_eq!(copy, packet);
                    let found = &packet[at + 20 + place..][..2];
                    assert_eq!(u16::from_be_bytes([found[0], found[1]]), longest - headers);
                    assert_eq!(sum(&packet, at), 0xffff, "{version} {options:?} {longest}");
                }
            }
        }
    }

    #[test]
    fn what_is_small_enough_or_no_syn_stays_as_it_is() {
        let small = syn(4, SYN, &[2, 4, 2, 24], b"").0;
        let data = syn(4, 0x10, &[2, 4, 5, 180], b"data").0;
        let without = syn(6, SYN, &[], b"").0;
        let cut_short = syn(4, SYN, &[1, 1, 1, 2], b"").0;
        let mut fragment = syn(4, SYN, &[2, 4, 5, 180], b"").0;
        fragment[7] = 9;
        for packet in [small, data, without, cut_short, fragment] {
            assert_eq!(clamped(packet.clone().into(), 600), packet);
        }
        let (mut packet, at) = syn(4, SYN, &[2, 4, 5, 180], b"");
        clamp(&mut packet, 60);
        assert_eq!(packet[at + 22..at + 24], LEAST.to_be_bytes());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
            first in prop_oneof![Just(0x45_u8), Just(0x4f), Just(0x60), any::<u8>()],
            longest: u16,
        ) {
            if let Some(byte) = bytes.first_mut() { *byte = first; }
            if let Some(byte) = bytes.get_mut(9) { *byte = TCP; }
            let before = bytes.len();
            clamp(&mut bytes, longest);
            prop_assert_eq!(bytes.len(), before);
        }
    }
}

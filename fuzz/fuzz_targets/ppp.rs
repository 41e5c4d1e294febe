//! A bundle of PPP lines whose peer sends anything: bytes, and frames with good checks, of known protocols, in any order with time, drops
//! and packets.
#![no_main]

mod memory;

use bytes::Bytes;
use farlink_core::ppp::hdlc::encode;
use farlink_core::ppp::lcp::Multilink;
use farlink_core::ppp::{
    Accm, Addresses, Bundle, BundleConfig, Credentials, Discriminator, Identities, LcpConfig, LinkConfig, Proof, Secret,
};
use farlink_core::rng::SplitMix64;
use farlink_core::{BitRate, Time};

const LINES: usize = 2;
const PROTOCOLS: [[u8; 2]; 8] =
    [[0xc0, 0x21], [0xc0, 0x23], [0xc2, 0x23], [0x80, 0x21], [0x80, 0x57], [0x00, 0x3d], [0x00, 0x21], [0x40, 0x01]];

fn config(choices: u8) -> BundleConfig {
    let multilink = Multilink { mrru: 1500, short_numbers: choices & 1 > 0, discriminator: Discriminator::default() };
    let lcp = LcpConfig { multilink: (choices & 2 == 0).then_some(multilink), ..LcpConfig::default() };
    let one = |name: &[u8]| Credentials { name: name.to_vec(), secret: Secret::new(*b"x") };
    let demands = [vec![], vec![Proof::Pap], vec![Proof::ChapMd5], vec![Proof::ChapMd5, Proof::Pap]];
    let demands = demands[usize::from(choices >> 2 & 3)].clone();
    BundleConfig {
        link: LinkConfig { lcp, ..LinkConfig::default() },
        rates: vec![BitRate::new(9600.0).expect("a rate"); LINES],
        identities: Identities { own: Some(one(b"a")), peers: vec![one(b"b")], demands, shows_password: true },
        ipv4: Some(Addresses { own: [10, 0, 0, 1].into(), peer: [0, 0, 0, 0].into() }),
        ipv6: true,
        linger: Time::from_secs(u64::from(choices >> 4)),
        ..BundleConfig::default()
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| memory::bounded(LINES, 0, || run(input)));

fn run(input: &[u8]) {
    let Some((&choices, mut input)) = input.split_first() else { return };
    let mut bundle = Bundle::new(config(choices), SplitMix64::new(1));
    // What this end sends may come back, with changes: so that requests get the answers that fit.
    let mut sent: Vec<Vec<u8>> = Vec::new();
    let mut now = Time::ZERO;
    (0..LINES).for_each(|line| bundle.on_carrier(now, line, true));
    while let [what, length, rest @ ..] = input {
        let (content, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        input = rest;
        let line = usize::from(what >> 7);
        match what & 0x0f {
            0 => bundle.receive(now, line, content),
            1..=8 => {
                let protocol = PROTOCOLS[usize::from(what & 0x0f) - 1];
                let mut content = content.to_vec();
                if let [_, _, high, low, ..] = &mut content[..] {
                    // Mostly a length that fits.
                    if what & 0x40 == 0 && protocol[1] & 1 > 0 && protocol != [0x00, 0x3d] {
                        (*high, *low) = (0, *length);
                    }
                }
                let mut bytes = Vec::new();
                encode(&[&[0xff, 0x03], &protocol[..], &content].concat(), Accm::ALL, &mut bytes);
                bundle.receive(now, line, &bytes);
            }
            9 => {
                // An acknowledgement of what was sent last.
                if let Some(mut last) = sent.last().cloned() {
                    let code = content.first().copied().unwrap_or(2);
                    if let Some(at) = last.get_mut(4) {
                        *at = code;
                    }
                    let mut bytes = Vec::new();
                    encode(&last, Accm::ALL, &mut bytes);
                    bundle.receive(now, line, &bytes);
                }
            }
            10 => now += Time::from_millis(u64::from(*length) * 100),
            11 => bundle.on_carrier(now, line, *length & 1 > 0),
            12 => {
                let mut packet = vec![0x45; content.len().max(20)];
                packet[1..=content.len().min(19)].copy_from_slice(&content[..content.len().min(19)]);
                bundle.send(now, Bytes::from(packet), u64::from(*length) / 16);
            }
            13 => bundle.close(now),
            _ => {
                let mut bytes = Vec::new();
                bundle.poll_bytes(line, usize::from(*length) * 8, &mut bytes);
                bundle.sent(now, line, bytes.len());
                let mut decoder = farlink_core::ppp::hdlc::Decoder::new(2000);
                let mut left = &bytes[..];
                while let Some(frame) = decoder.next(&mut left) {
                    sent.push(frame.to_vec());
                }
                sent.drain(..sent.len().saturating_sub(4));
            }
        }
        let mut steps = 0;
        while bundle.poll_timeout().is_some_and(|due| due <= now) {
            bundle.handle_timeout(now);
            steps += 1;
            assert!(steps < 1000, "timers stand still");
        }
        while bundle.poll_event().is_some() {}
        while bundle.poll_packet().is_some() {}
        assert!(bundle.waiting_bytes() <= 64 * 1024 + 3000);
    }
}

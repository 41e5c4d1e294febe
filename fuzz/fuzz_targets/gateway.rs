//! Bytes of other gateways (frames, messages), of clients (SOCKS5) and of users (configurations): read, or refused.
//!
//! What begins by chance is rare: openings, greetings and keys of a configuration are put before some of the bytes.
#![no_main]

use farlink_net::fuzzing::{gateway_config, gateway_frames, gateway_messages, gateway_socks};

/// A private key that nobody has; configurations need one.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    match first % 7 {
        0 => gateway_frames(rest),
        1 => {
            let open = [&[7, 1, 0, rest.len().min(255) as u8][..], rest].concat();
            gateway_frames(&open);
        }
        2 => gateway_socks(rest),
        3 => gateway_socks(&[&[5, 1, 0, 5, 1, 0][..], rest].concat()),
        4 => gateway_messages(rest),
        kind => {
            let Ok(text) = std::str::from_utf8(rest) else { return };
            let begin = format!(
                "keys = \"keys\"\nlisten = \"127.0.0.1:1\"\n[peer.p]\nkey = \"{KEY}\"\naddress = \"127.0.0.1:1\"\n"
            );
            match kind {
                5 => gateway_config(&format!("{begin}{text}")),
                _ => {
                    let quoted = format!("{text:?}");
                    gateway_config(&format!("{begin}allow = [{quoted}]\n"));
                    gateway_config(&format!("{begin}[[rule]]\ndestination = {quoted}\n"));
                    gateway_config(&format!("{begin}[[forward]]\nlisten = \"127.0.0.1:1\"\ndestination = {quoted}\n"));
                }
            }
        }
    }
});

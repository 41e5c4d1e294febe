//! For the fuzzer: what reads bytes of other gateways, clients and users. Not compiled otherwise.

use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::framing::in_pieces;

use super::config::Config;
use super::destination::{Destination, Host};
use super::frame::Frames;
use super::messages::{self, Messages};
use super::rules::Protocol;
use super::socks;

/// Reads frames, in pieces of the length that the first byte says.
pub fn gateway_frames(bytes: &[u8]) {
    let mut frames = Frames::default();
    in_pieces(bytes, |piece| {
        frames.push(piece);
        loop {
            match frames.take() {
                Ok(Some(frame)) => {
                    let mut again = Frames::default();
                    again.push(&frame.to_bytes());
                    assert_eq!(again.take(), Ok(Some(frame)));
                    assert!(again.is_at_boundary());
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        }
    });
}

/// Reads messages: each that is there is whole, and comes back. So do the bytes as one.
pub fn gateway_messages(bytes: &[u8]) {
    let Some((&piece, rest)) = bytes.split_first() else { return };
    assert_eq!(Messages::default().push(&messages::encode(rest)), [rest]);
    let mut messages = Messages::default();
    for piece in rest.chunks(usize::from(piece).max(1)) {
        for message in messages.push(piece) {
            assert_eq!(Messages::default().push(&messages::encode(&message)), [message]);
        }
    }
}

/// Reads what a client of SOCKS5 sends, which is all there.
pub fn gateway_socks(bytes: &[u8]) {
    let reading = socks::read(None, tokio::io::join(bytes, Vec::new()));
    let Poll::Ready(read) = pin!(reading).poll(&mut Context::from_waker(Waker::noop())) else {
        unreachable!("nothing is waited for")
    };
    if let Ok((_, destination)) = read {
        assert_ne!(destination.port, 0);
        assert_eq!(destination.to_string().parse(), Ok(destination));
    }
}

/// Reads a configuration, and asks it how connections are treated.
pub fn gateway_config(text: &str) {
    let Ok(config) = Config::parse(Path::new("/nonexistent/gateway.toml"), text) else { return };
    let _ = config.lines();
    for host in ["a.example.org", "localhost", "10.0.0.1", "8.8.8.8", "::1", "::ffff:127.0.0.1"] {
        let host = Host::parse(host).expect("these are hosts");
        let destination = Destination { host: host.clone(), port: 80 };
        let _ = [Protocol::Tcp, Protocol::Udp].map(|it| config.treatment(it, &destination));
        for peer in config.peers.values() {
            if let Host::Address(address) = host
                && peer.allow.allowing(&destination, address).is_some()
            {
                assert!(peer.allow.may_allow(&destination));
            }
        }
    }
}

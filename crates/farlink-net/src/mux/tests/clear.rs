//! Packets in the clear, where both hosts permit them. `[Y24]`

use farlink_core::protocol::aerotp::Mode;

use super::*;

/// Two hosts that permit packets in the clear, or not.
fn permitting(insecure: [bool; 2], loss: f64, seed: u64) -> Net {
    let keys = [StaticKey::generate(), StaticKey::generate()];
    let mut net = Net::new(loss, seed);
    net.hosts = [0, 1].map(|own| {
        let config = MuxConfig { insecure: insecure[own], ..MuxConfig::new(keys[own].clone()) };
        mux_of(config, &keys[1 - own], MemoryCounters::default())
    });
    net.hosts[1].listen_datagrams(7);
    net
}

fn is_visible(net: &Net, text: &[u8]) -> bool {
    net.recorded.iter().any(|(_, datagram)| datagram.windows(text.len()).any(|part| part == text))
}

/// Data before the end of the handshake are sealed in any case.
#[test]
fn data_are_in_the_clear_only_if_both_hosts_permit_it() {
    for insecure in [[true, true], [true, false], [false, true], [false, false]] {
        let mut net = permitting(insecure, 0.0, 1);
        let id = net.connect();
        net.write(id, b"before the handshake has ended");
        net.run_for(1);
        assert!(!is_visible(&net, b"before the handshake"), "{insecure:?}");
        net.write(id, b"after the handshake has ended");
        net.run_for(1);
        assert_eq!(net.read, b"before the handshake has endedafter the handshake has ended");
        assert_eq!(is_visible(&net, b"after the handshake"), insecure == [true, true], "{insecure:?}");
    }
}

/// The key of the peer counts all the same.
#[test]
fn a_stranger_opens_nothing() {
    let mut net = permitting([true, true], 0.0, 1);
    let stranger = StaticKey::generate();
    let config_of_stranger = MuxConfig { insecure: true, ..MuxConfig::new(stranger.clone()) };
    let known = StaticKey::generate();
    net.hosts[0] = mux_of(config_of_stranger, &known, MemoryCounters::default());
    let id = net.connect();
    net.write(id, b"data");
    net.run_for(5);
    assert!(net.read.is_empty() && net.hosts[1].counts().untrusted > 0);
}

/// Reliable connections deliver what was written, whatever the path damages, with parity and without.
#[test]
fn reliable_connections_deliver_nothing_damaged() {
    for (seed, loss, damage, fec_words) in [(1, 0.0, 0.3, None), (2, 0.1, 0.3, None), (3, 0.1, 0.5, Some(16.0))] {
        let mut net = permitting([true, true], loss, seed);
        net.damage = damage;
        let fec_words = fec_words.map(|words| farlink_core::units::Whole::new(words).unwrap());
        let id = net.connect_with(&AerotpConfig { fec_words, ..config() });
        let data = content(300_000);
        net.write(id, &data);
        net.hosts[0].close(net.now, id);
        net.run_for(60);
        assert!(net.read == data, "{loss} {damage}: {} bytes", net.read.len());
        let sent_again = net.sent_bytes[0] as f64 / data.len() as f64;
        assert!(fec_words.is_none() || sent_again < 1.6, "parity corrects the damage: {sent_again}");
    }
}

/// Unreliable connections that ask for it deliver damaged payload: all bytes that arrive, one of a damaged packet wrong. Sealed they do
/// not, whatever they ask for.
#[test]
fn damaged_payload_is_delivered_only_in_the_clear() {
    let unreliable = AerotpConfig { mode: Mode::Unreliable, deliver_damaged: true, rate_control: None, ..config() };
    for insecure in [[true, true], [false, false]] {
        let mut net = permitting(insecure, 0.0, 1);
        net.hosts[1].listen(PORT, &unreliable, AcceptorLimits::default()).unwrap();
        let id = net.connect_with(&unreliable);
        let zeros = [0; 1000];
        net.write(id, &zeros);
        net.run_for(2);
        net.read.clear();
        net.damage = 0.5;
        for _ in 0..1000 {
            net.write(id, &zeros);
            net.run_until(net.now + Time::from_millis(20));
        }
        net.run_for(1);
        let (arrived, wrong) = (net.read.len() as f64 / 1e6, net.read.iter().filter(|&&byte| byte != 0).count());
        if insecure[0] {
            assert!((0.93..=1.0).contains(&arrived), "only damaged headers are lost: {arrived}");
            assert!((400..560).contains(&wrong), "{wrong}");
        } else {
            assert!((0.4..0.6).contains(&arrived) && wrong == 0, "{arrived}, {wrong}");
        }
    }
}

#[test]
fn a_damaged_datagram_says_that_it_is() {
    for insecure in [[true, true], [true, false]] {
        let mut net = permitting(insecure, 0.0, 1);
        let (mut whole, mut damaged) = (0, 0);
        for n in 0..1000 {
            net.damage = if n < 10 { 0.0 } else { 0.5 };
            let (peer, route) = (net.hosts[1].public_key(), Route::to(net.addresses[1]));
            let data = (7, Bytes::from_static(&[0; 500]));
            net.hosts[0].send_datagram(net.now, &peer, route, &config(), data).unwrap();
            net.run_until(net.now + Time::from_millis(20));
            while let Some(datagram) = net.hosts[1].poll_datagram() {
                let wrong = datagram.data.iter().filter(|&&byte| byte != 0).count();
                assert_eq!(datagram.data.len(), 500);
                assert!(wrong <= usize::from(datagram.is_damaged));
                *(if datagram.is_damaged { &mut damaged } else { &mut whole }) += 1;
            }
        }
        let right = if insecure[1] { 450..540 } else { 0..1 };
        assert!((450..550).contains(&whole) && right.contains(&damaged), "{insecure:?}: {whole}, {damaged}");
    }
}

/// There are no keys to renew, and the session lives on.
#[test]
fn nothing_is_renewed_in_the_clear() {
    let mut net = permitting([true, true], 0.1, 1);
    let id = net.connect();
    for _ in 0..60 {
        net.write(id, &content(1000));
        net.run_for(10);
    }
    assert_eq!(net.read.len(), 60_000);
}

/// What a session in the clear takes from a stranger, a sealed one does not.
#[test]
fn a_sealed_session_takes_no_packet_in_the_clear() {
    let mut clear = permitting([true, true], 0.0, 1);
    let id = clear.connect();
    clear.write(id, b"one");
    clear.run_for(1);
    clear.recorded.clear();
    clear.write(id, b"a forged message");
    clear.run_for(1);
    let (_, forged) = clear.recorded.iter().find(|(to, _)| *to == 1).unwrap().clone();

    let mut sealed = permitting([true, false], 0.0, 2);
    let id = sealed.connect();
    sealed.write(id, b"one");
    sealed.run_for(1);
    let session = *sealed.hosts[1].sessions.keys().next().unwrap();
    let mut header = OuterHeader::decode(&forged).unwrap();
    (header.connection_id, header.number) = (session, header.number + 100);
    let packet = [&header.encode()[..], &forged[OUTER_BYTES..]].concat();
    let before = sealed.hosts[1].counts().unopened;
    sealed.deliver_in(Time::from_millis(1), 1, address(0), packet);
    sealed.run_for(1);
    assert_eq!((sealed.read.as_slice(), sealed.hosts[1].counts().unopened), (&b"one"[..], before + 1));
}

//! New keys for sessions that last. `[Y18]`, `[Y19]`

use crate::seal::nonces;

use super::*;

/// A network whose hosts renew keys so often.
fn net(loss: f64, seed: u64, key_life: Time) -> Net {
    let mut net = Net::new(loss, seed);
    net.hosts.iter_mut().for_each(|host| host.config.key_life = key_life);
    net
}

/// The key phases of the sealed packets to a host, in the order in which they were sent, without repetitions.
fn phases(net: &Net, to: usize) -> Vec<u8> {
    let sealed = net.recorded.iter().filter(|it| it.0 == to && it.1[0] >> 4 == 0b0110);
    let mut phases: Vec<_> = sealed.map(|(_, datagram)| datagram[0] >> 1 & 7).collect();
    phases.dedup();
    phases
}

#[test]
fn the_kind_of_sealed_packets_is_the_one_that_is_looked_for() {
    let mut net = net(0.0, 1, Time::from_secs(1000));
    let id = net.connect();
    net.write(id, &content(100_000));
    net.run_for(5);
    assert_eq!((phases(&net, 0), phases(&net, 1)), (vec![0], vec![0]));
}

/// Both directions have new keys every five seconds, and nothing waits for them.
#[test]
fn keys_are_renewed_while_data_flow() {
    for (seed, loss) in [(1, 0.0), (2, 0.1), (3, 0.5)] {
        let mut net = net(loss, seed, Time::from_secs(5));
        let id = net.connect();
        let data = content(20_000_000);
        net.write(id, &data);
        net.run_for(12);
        let within = net.read.len();
        net.run_for(if loss > 0.3 { 120 } else { 20 });
        assert!(net.read == data, "loss {loss}: {} of {}", net.read.len(), data.len());
        let expected: Vec<u8> = (0..if loss > 0.3 { 3 } else { 2 }).collect();
        for to in [0, 1] {
            let phases = phases(&net, to);
            assert!(phases.starts_with(&expected), "loss {loss}, to {to}: {phases:?}");
        }
        if loss == 0.0 {
            // 10 Mb/s for 12 s are 15 MB, less headers and the first packets, which are short.
            assert!(within > 14_000_000, "{within}");
        }
    }
}

/// A session that nothing uses keeps its keys, and sends nothing on account of them.
#[test]
fn idle_sessions_ask_for_no_keys() {
    let mut net = net(0.0, 1, Time::from_secs(5));
    let id = net.connect();
    net.write(id, b"once");
    net.run_for(30); // at first each side shows where it is `[Y20]`
    let sent = net.sent;
    net.run_for(100);
    assert_eq!(net.sent, sent);
    assert_eq!((phases(&net, 0), phases(&net, 1)), (vec![0], vec![0]));
}

/// A round trip of a minute: eight of them pass before keys are renewed.
#[test]
fn keys_live_for_eight_round_trips() {
    let mut net = net(0.0, 1, Time::from_secs(120));
    net.delay = Time::from_secs(30);
    let slow = AerotpConfig {
        rate_bps: Some(BitRate::new(1e5).unwrap()),
        initial_rto_s: PositiveSeconds::new(90.0).unwrap(),
        give_up_after_s: PositiveSeconds::new(3600.0).unwrap(),
        ..config()
    };
    net.hosts[1].listen(PORT, &slow, AcceptorLimits::default()).unwrap();
    let id = net.connect_with(&slow);
    let data = content(10_000_000);
    net.write(id, &data);
    net.run_for(60 + 470);
    assert_eq!(phases(&net, 1), [0]);
    net.run_for(120);
    assert_eq!(phases(&net, 1), [0, 1]);
    net.run_for(800);
    assert!(net.read == data, "{} of {}", net.read.len(), data.len());
}

/// An outage of ten minutes begins at any moment of a renewal.
#[test]
fn an_outage_in_a_renewal_loses_no_session() {
    for begin_ms in (4_900..5_400).step_by(25) {
        let mut net = net(0.0, begin_ms, Time::from_secs(5));
        let long = AerotpConfig { give_up_after_s: PositiveSeconds::new(3600.0).unwrap(), ..config() };
        net.hosts[1].listen(PORT, &long, AcceptorLimits::default()).unwrap();
        let id = net.connect_with(&long);
        net.write(id, &content(3_000_000));
        net.run_until(net.now + Time::from_millis(begin_ms));
        net.write(id, &content(3_000_000));
        net.loss = 1.0;
        net.is_recording = false;
        net.run_for(600);
        net.loss = 0.0;
        net.is_recording = true;
        net.run_for(60);
        assert_eq!(net.read.len(), 6_000_000, "from {begin_ms} ms on");
        assert_eq!(net.hosts.each_ref().map(Mux::sessions), [1, 1]);
    }
}

/// What a renewal said is heard again, from the same session: nothing changes.
#[test]
fn questions_and_answers_come_late_and_twice() {
    for seed in 0..5 {
        let mut net = net(0.2, seed, Time::from_secs(2));
        let id = net.connect();
        net.write(id, &content(8_000_000));
        for _ in 0..100 {
            net.run_until(net.now + Time::from_millis(100));
            let recorded = std::mem::take(&mut net.recorded);
            for (to, datagram) in recorded {
                let delay = Time::from_millis(net.random.next_u64() % 3000);
                net.deliver_in(delay, to, net.addresses[1 - to], datagram);
            }
        }
        net.run_for(10);
        assert_eq!(net.read.len(), 8_000_000, "seed {seed}");
    }
}

/// No key seals two packets with one nonce: over losses, renewals, moves, and restarts of either host.
fn no_nonce_is_used_twice(packets: u64) {
    let mut net = net(0.1, 1, Time::from_secs(2));
    net.is_recording = false;
    nonces::watch();
    let (mut sent, mut restarts, mut id) = (0, 0, None);
    while sent + net.sent.iter().sum::<u64>() < packets {
        let open = id.unwrap_or_else(|| net.connect());
        id = Some(open);
        let mut data = Bytes::from(content(1_500_000));
        net.hosts[0].write(net.now, open, &mut data);
        net.run_for(1);
        net.read.clear();
        net.events.clear();
        match net.random.next_u64() % 20 {
            0 => {
                let place = net.random.next_u64() as usize % 2;
                let keys = [0, 1].map(|host| net.hosts[host].config.key.clone());
                let mut store = MemoryCounters::default();
                let peer = keys[1 - place].public();
                store.keep_own(net.hosts[place].store.own()).unwrap();
                store.keep_peer(&peer, net.hosts[place].store.peer(&peer)).unwrap();
                net.hosts[place] = mux(&keys[place], &keys[1 - place], store);
                net.hosts[place].config.key_life = Time::from_secs(2);
                (id, restarts) = (None, restarts + 1);
            }
            1 => net.addresses[0] = address(2 + net.random.next_u64() as usize % 50),
            _ => {}
        }
        sent += net.sent.iter().sum::<u64>();
        net.sent = [0; 2];
    }
    assert!(restarts > 0);
    assert!(nonces::keys() as u64 > 3 * restarts, "{} keys, {restarts} restarts", nonces::keys());
}

#[test]
fn no_nonce_is_used_twice_in_a_hundred_thousand_packets() {
    no_nonce_is_used_twice(100_000);
}

#[test]
#[ignore = "ten million packets: make soak"]
fn no_nonce_is_used_twice_in_ten_million_packets() {
    no_nonce_is_used_twice(10_000_000);
}

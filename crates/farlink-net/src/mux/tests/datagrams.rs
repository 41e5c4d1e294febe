//! Datagrams of applications. `[Y22]`

use super::*;

use crate::mux::datagram_queue::{ENTRY_BYTES, MOST_WAITING_BYTES};

impl Net {
    fn send_datagram(&mut self, data: &[u8]) -> Result<(), DatagramError> {
        self.send_datagram_with(&config(), data)
    }

    fn send_datagram_with(&mut self, config: &AerotpConfig, data: &[u8]) -> Result<(), DatagramError> {
        let (peer, route) = (self.hosts[1].public_key(), Route::to(self.addresses[1]));
        self.hosts[0].send_datagram(self.now, &peer, route, config, (7, Bytes::copy_from_slice(data)))
    }

    fn datagrams(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.hosts[1].poll_datagram()).map(|it| it.data.to_vec()).collect()
    }
}

fn listening(loss: f64, seed: u64) -> Net {
    let mut net = Net::new(loss, seed);
    net.hosts[1].listen_datagrams(7);
    net
}

#[test]
fn the_first_datagram_needs_no_round_trip() {
    let mut net = listening(0.0, 1);
    net.send_datagram(b"position").unwrap();
    net.run_until(net.now + DELAY + Time::from_millis(1));
    let arrived = net.hosts[1].poll_datagram().unwrap();
    assert_eq!((&arrived.data[..], arrived.port, arrived.peer), (&b"position"[..], 7, net.hosts[0].public_key()));
    assert_eq!(arrived.route.remote, address(0));
    net.send_datagram(b"").unwrap();
    net.run_for(1);
    assert_eq!(net.datagrams(), [b""], "an empty one is one");
    assert!(!net.hosts[0].has_unsent_datagrams());
}

/// Each arrives once or not at all, whole, whatever is lost, and is never repeated.
#[test]
fn datagrams_arrive_once_or_never() {
    for (seed, loss) in [(1, 0.0), (2, 0.1), (3, 0.5)] {
        let mut net = listening(loss, seed);
        let (mut longest, mut arrived) = (0, Vec::new());
        for n in 0..2000_u32 {
            let most = net.hosts[0].longest_datagram(&net.hosts[1].public_key(), &Route::to(address(1)));
            let data = [&n.to_be_bytes()[..], &content(net.random.next_u64() as usize % (most - 3))].concat();
            longest = longest.max(data.len());
            net.send_datagram(&data).unwrap();
            net.run_until(net.now + Time::from_millis(2));
            arrived.extend(net.datagrams());
        }
        net.run_for(2);
        arrived.extend(net.datagrams());
        let number = |data: &Vec<u8>| u32::from_be_bytes(*data.first_chunk().unwrap());
        assert!(arrived.windows(2).all(|two| number(&two[0]) < number(&two[1])), "in order, none twice");
        assert!(arrived.iter().all(|data| data[4..] == content(data.len() - 4)));
        let share = arrived.len() as f64 / 2000.0;
        assert!((share - (1.0 - loss)).abs() < 0.05, "loss {loss}: {share}");
        assert!(longest > 1350 || loss > 0.3, "the search found 1500 bytes: {longest}");
    }
}

#[test]
fn what_no_packet_can_hold_is_refused() {
    let mut net = listening(0.0, 1);
    let too_long = |net: &mut Net| match net.send_datagram(&[0; 2000]) {
        Err(DatagramError::TooLong { bytes: 2000, most }) => most,
        other => panic!("{other:?}"),
    };
    let first = too_long(&mut net);
    assert!(first < 1000, "the hello stands before it: {first}");
    net.send_datagram(&vec![1; first]).unwrap();
    net.run_for(1);
    let later = too_long(&mut net);
    assert!(later > 1100, "{later}");
    net.send_datagram(&vec![1; later]).unwrap();
    net.run_for(1);
    assert_eq!(net.datagrams().iter().map(Vec::len).collect::<Vec<_>>(), [first, later]);
}

/// They are sent at the rate of the connections, and take turns with them.
#[test]
fn datagrams_share_the_rate_of_connections() {
    let mut net = listening(0.0, 1);
    let id = net.connect();
    net.write(id, &content(4_000_000));
    let began = net.sent_bytes[0];
    for _ in 0..100 {
        for _ in 0..20 {
            net.send_datagram(&[5; 900]).unwrap();
        }
        net.run_until(net.now + Time::from_millis(20));
    }
    let megabits_per_s = (net.sent_bytes[0] - began) as f64 * 8.0 / 2.0 / 1e6;
    assert!((8.5..10.2).contains(&megabits_per_s), "{megabits_per_s}");
    let datagrams = net.datagrams().len();
    assert!((700..1400).contains(&datagrams) && net.read.len() > 500_000, "{datagrams}, {}", net.read.len());
}

/// Without connections a learnt rate stays at its beginning, 16 packets at once and then as many in `initial_rto_s`. Of what waits
/// too long, the oldest gives way.
#[test]
fn what_exceeds_the_rate_waits_and_then_gives_way() {
    let mut net = listening(0.0, 1);
    let friendly = AerotpConfig { rate_bps: None, rate_control: Some(RateControl::Friendly), ..config() };
    for n in 0..2000_u32 {
        net.send_datagram_with(&friendly, &[&n.to_be_bytes()[..], &[0; 896]].concat()).unwrap();
    }
    net.run_for(3);
    let dropped = net.hosts[0].counts().dropped_datagrams;
    assert_eq!(dropped, 2000 - MOST_WAITING_BYTES as u64 / (900 + ENTRY_BYTES as u64));
    let arrived = net.datagrams();
    assert_eq!(u64::from(u32::from_be_bytes(*arrived[0].first_chunk().unwrap())), dropped, "the oldest that is left");
    assert!((100..400).contains(&arrived.len()), "{} in 3 s", arrived.len());
    assert!(net.hosts[0].has_unsent_datagrams());
}

/// A host that nobody reads from keeps 1 MiB at most, and nothing for ports that nobody listens to.
#[test]
fn unread_datagrams_are_bounded() {
    let mut net = listening(0.0, 1);
    for _ in 0..2000 {
        net.send_datagram(&[0; 900]).unwrap();
        net.run_until(net.now + Time::from_millis(2));
    }
    net.run_for(1);
    assert_eq!(net.datagrams().len() as u64, MOST_WAITING_BYTES as u64 / (900 + ENTRY_BYTES as u64));
    assert_eq!(net.hosts[1].counts().dropped_datagrams, 2000 - MOST_WAITING_BYTES as u64 / (900 + ENTRY_BYTES as u64));
    let mut deaf = Net::new(0.0, 1);
    deaf.send_datagram(b"nobody listens").unwrap();
    deaf.run_for(1);
    assert!(!deaf.hosts[1].has_datagram());
    assert_eq!(deaf.hosts[1].counts().unusable, 1);
}

/// Empty datagrams take room as well.
#[test]
fn empty_datagrams_are_bounded() {
    let mut net = listening(0.0, 1);
    let fast = AerotpConfig { rate_bps: Some(BitRate::new(1e9).unwrap()), ..config() };
    for _ in 0..20 {
        for _ in 0..1000 {
            net.send_datagram_with(&fast, b"").unwrap();
        }
        net.run_until(net.now + Time::from_millis(200));
    }
    assert_eq!(net.datagrams().len(), MOST_WAITING_BYTES / ENTRY_BYTES);
    let slow = AerotpConfig { rate_bps: Some(BitRate::new(1e3).unwrap()), ..config() };
    let mut net = listening(0.0, 1);
    for _ in 0..20_000 {
        net.send_datagram_with(&slow, b"").unwrap();
    }
    net.run_until(net.now + Time::from_millis(1));
    let kept = MOST_WAITING_BYTES / ENTRY_BYTES;
    assert!(net.hosts[0].counts().dropped_datagrams >= 20_000 - kept as u64 - 1);
}

/// What is refused begins no session, which nobody would forget.
#[test]
fn a_refused_datagram_begins_no_session() {
    let mut net = listening(0.0, 1);
    assert!(net.send_datagram(&[0; 5000]).is_err());
    assert_eq!(net.hosts[0].sessions(), 0);
}

/// Datagrams are not answered, so silence does not end a session that sends them; it is forgotten later.
#[test]
fn a_session_with_datagrams_to_send_stays() {
    let mut net = listening(0.0, 1);
    let slow = AerotpConfig { rate_bps: Some(BitRate::new(1e4).unwrap()), ..config() };
    for _ in 0..500 {
        net.send_datagram_with(&slow, &[3; 900]).unwrap();
    }
    net.run_for(300);
    assert!(net.hosts[0].has_unsent_datagrams());
    net.run_for(200);
    assert!(!net.hosts[0].has_unsent_datagrams());
    assert_eq!((net.datagrams().len(), net.hosts[0].counts().dropped_datagrams), (500, 0));
    let hellos = net.recorded.iter().filter(|(to, datagram)| *to == 1 && datagram[0] >> 4 & 3 == 0).count();
    assert!(hellos < 10, "{hellos}: one handshake");
    net.run_for(300);
    assert_eq!(net.hosts[0].sessions(), 0);
}

/// Recorded datagrams are delivered to nobody a second time, and after a restart not at all. What was lost may still arrive once.
#[test]
fn recorded_datagrams_deliver_nothing() {
    for seed in 0..20 {
        let mut net = listening(0.2, seed);
        for n in 0..50 {
            net.send_datagram(&[n]).unwrap();
            net.run_until(net.now + Time::from_millis(20));
        }
        net.run_for(1);
        let mut arrived = net.datagrams();
        assert!(arrived.len() > 25);
        let recorded = std::mem::take(&mut net.recorded);
        let store = net.kept_counters();
        for is_restarted in [false, true] {
            if is_restarted {
                let keys = [net.hosts[0].config.key.clone(), net.hosts[1].config.key.clone()];
                net.hosts[1] = mux(&keys[1], &keys[0], store.clone());
                net.hosts[1].listen_datagrams(7);
            }
            let before = arrived.len();
            for (to, datagram) in &recorded {
                let delay = Time::from_millis(net.random.next_u64() % 5000);
                net.deliver_in(delay, *to, address(1 - *to), datagram.clone());
            }
            net.run_for(10);
            arrived.extend(net.datagrams());
            let different: BTreeSet<_> = arrived.iter().collect();
            assert_eq!(different.len(), arrived.len(), "seed {seed}, restarted: {is_restarted}");
            if is_restarted {
                assert_eq!(arrived.len(), before, "seed {seed}");
            }
        }
    }
}

/// Answers go where the session leads, and begin none: who says that a peer is elsewhere does not send them there.
#[test]
fn answers_begin_no_session() {
    let mut net = listening(0.0, 1);
    net.hosts[0].listen_datagrams(7);
    let asker = net.hosts[0].public_key();
    let answer = |net: &mut Net, data: &'static [u8]| {
        net.hosts[1].answer_datagram(&asker, &config(), (6, 7, Bytes::from_static(data)))
    };
    assert!(!answer(&mut net, b"nobody has asked"));
    assert_eq!(net.hosts[1].sessions(), 0);
    net.send_datagram(b"from here").unwrap();
    net.run_for(1);
    net.addresses[0] = address(7);
    net.send_datagram(b"and from there").unwrap();
    net.run_for(1);
    assert!(answer(&mut net, b"answer"));
    assert!(!answer(&mut net, &[0; 5000]), "no packet can hold it");
    net.run_for(1);
    assert_eq!(net.hosts[0].poll_datagram().unwrap().data, &b"answer"[..]);
    assert_eq!(net.hosts[1].sessions(), 1);
}

/// The lowest waiting class goes first, datagrams and connections alike, and the last class gives way. `[Y25]`
#[test]
fn datagrams_have_classes() {
    let mut net = listening(0.0, 1);
    let (peer, route) = (net.hosts[1].public_key(), Route::to(address(1)));
    let slow = AerotpConfig { rate_bps: Some(BitRate::new(1e5).unwrap()), ..config() };
    let send = |net: &mut Net, class: u8, count: usize| {
        for _ in 0..count {
            let data = Bytes::from(vec![class; 800]);
            net.hosts[0].send_datagram_in_class(net.now, &peer, route, &slow, (class, 7, data)).unwrap();
        }
    };
    [(7, 30), (6, 30), (0, 30), (3, 30)].into_iter().for_each(|(class, count)| send(&mut net, class, count));
    net.run_for(30);
    let classes: Vec<u8> = net.datagrams().iter().map(|data| data[0]).collect();
    assert_eq!(classes.len(), 120);
    assert!(classes.is_sorted(), "{classes:?}");

    send(&mut net, 7, 1000);
    send(&mut net, 1, 600);
    assert_eq!(net.hosts[0].counts().dropped_datagrams, 1600 - MOST_WAITING_BYTES as u64 / (800 + ENTRY_BYTES as u64));
    net.run_for(60);
    assert_eq!(net.datagrams().iter().filter(|data| data[0] == 1).count(), 600);
}

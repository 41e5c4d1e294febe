//! Hosts whose addresses change. `[Y9]`

use super::*;

/// The initiator's address changes in the middle; what its peer sends to the new one is limited until it has proven it.
#[test]
fn a_peer_that_moves_is_followed() {
    let mut net = Net::new(0.05, 1);
    let id = net.connect();
    net.write(id, &content(300_000));
    net.hosts[0].close(net.now, id);
    for n in 2..7 {
        net.run_until(net.now + Time::from_millis(70));
        net.addresses[0] = address(n);
    }
    net.run_for(30);
    assert!(net.read == content(300_000), "{}", net.read.len());
}

/// Either side's address changes in the middle of a transfer, which shows only in what it sends. Two round trips later data arrives again,
/// and after five what was sent to the old address has been sent again.
#[test]
fn data_go_on_within_two_round_trips_after_a_move() {
    for moves in [0, 1] {
        let mut net = Net::new(0.0, 1);
        let id = net.connect();
        net.write(id, &content(4_000_000));
        net.run_for(1);
        net.addresses[moves] = address(7);
        // What is on the way to the old address still arrives here.
        net.run_until(net.now + DELAY);
        let (arrived, read) = (net.arrived[1], net.read.len());
        net.run_until(net.now + DELAY.times(3) + Time::from_millis(5));
        assert!(net.arrived[1] > arrived, "{moves}");
        net.run_until(net.now + DELAY.times(6));
        assert!(net.read.len() > read, "{moves}");
        net.run_for(60);
        assert_eq!(net.read.len(), 4_000_000, "{moves}");
    }
}

/// The address of a cable that was pulled may still be there. Who began the session sends from another one then, also when nobody uses the
/// session; who did not answers from where the peer sends to.
#[test]
fn an_own_address_that_leads_nowhere_is_given_up() {
    let from = |net: &Net| net.hosts.each_ref().map(|host| host.sessions.values().next().unwrap().route.local);
    for is_used in [true, false] {
        let mut net = Net::new(0.0, 1);
        net.own = [1, 2].map(|n| Some(IpAddr::from([192, 0, 2, n])));
        let (peer, to) = (net.hosts[1].public_key(), Route::to(address(1)));
        let use_session = |net: &mut Net| {
            if is_used {
                let id = net.connect();
                net.write(id, &content(1000));
            }
            for _ in 0..3 {
                net.hosts[0].keep_session(net.now, &peer, to).unwrap();
                net.run_for(1);
            }
        };
        use_session(&mut net);
        assert_eq!(from(&net), net.own, "{is_used}");
        net.loss = 1.0;
        use_session(&mut net);
        assert_eq!(from(&net), [None, net.own[1]], "{is_used}");

        (net.loss, net.own[0]) = (0.0, Some(IpAddr::from([192, 0, 2, 9])));
        net.addresses[0] = address(7);
        net.hosts[0].keep_session(net.now, &peer, to).unwrap();
        net.run_for(20);
        net.hosts[0].keep_session(net.now, &peer, to).unwrap();
        net.run_for(1);
        assert_eq!(from(&net), net.own, "{is_used}");
        assert_eq!(net.hosts.each_ref().map(Mux::sessions), [1, 1]);
    }
}

/// A host is told where its peers are proven to be, so that it may give them sockets of their own.
#[test]
fn proven_routes_are_told() {
    let mut net = Net::new(0.0, 1);
    let told = |net: &mut Net, host: usize| {
        std::iter::from_fn(|| net.hosts[host].poll_path())
            .map(|(_, route)| route.map(|it| it.remote))
            .collect::<Vec<_>>()
    };
    let id = net.connect();
    net.write(id, &content(10_000));
    net.run_until(net.now + DELAY + Time::from_millis(20));
    assert_eq!(told(&mut net, 1), [], "a hello proves nothing: it may be a recorded one");
    net.run_for(2);
    assert_eq!((told(&mut net, 0), told(&mut net, 1)), (vec![Some(address(1))], vec![Some(address(0))]));

    net.addresses[0] = address(7);
    net.write(id, &content(10_000));
    net.run_for(2);
    assert_eq!((told(&mut net, 0), told(&mut net, 1)), (vec![], vec![None, Some(address(7))]));
    net.hosts[0].close(net.now, id);
    net.run_for(400);
    assert_eq!((told(&mut net, 0), told(&mut net, 1)), (vec![None], vec![None]));
}

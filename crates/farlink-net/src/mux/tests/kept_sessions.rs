//! Sessions that are there before a connection needs them. `[Y27]`

use super::*;

/// A session may be there before a connection needs it, and stays as long as it is asked for: the first short question has its long answer
/// after a round trip. `[Y27]`
#[test]
fn a_session_that_is_kept_is_ready() {
    for (seed, loss) in [(1, 0.0), (2, 0.3)] {
        let mut net = Net::new(loss, seed);
        let peer = net.hosts[1].public_key();
        let keep = |net: &mut Net| net.hosts[0].keep_session(net.now, &peer, Route::to(address(1))).unwrap();
        assert!(!keep(&mut net), "nobody has answered");
        net.run_for(1);
        while !keep(&mut net) {
            assert!(net.now < Time::from_secs(30));
            net.run_for(1);
        }
        net.run_for(1);
        let (sent, first) = (net.sent, net.hosts.each_ref().map(|host| *host.sessions.keys().next().unwrap()));
        while net.now < Time::from_secs(900) {
            let wait = if keep(&mut net) { 40 } else { 1 };
            net.run_for(wait);
        }
        net.run_for(1);
        assert_eq!(net.hosts.each_ref().map(|host| *host.sessions.keys().next().unwrap()), first, "the same session");
        let most = if loss == 0.0 { 24 } else { 80 };
        assert!((0..2).all(|host| net.sent[host] - sent[host] <= most), "{:?} {sent:?}", net.sent);

        net.loss = 0.0;
        let id = a_long_answer_comes_at_once(&mut net);
        net.hosts[0].close(net.now, id);
        net.run_for(400);
        assert_eq!(net.hosts.each_ref().map(Mux::sessions), [0, 0], "nobody asks any more");
    }
}

/// A peer that has restarted is known by its reset when a session is asked for, and has a new one.
#[test]
fn a_session_that_is_kept_notices_a_restart() {
    let mut net = Net::new(0.0, 1);
    let peer = net.hosts[1].public_key();
    let keep = |net: &mut Net| net.hosts[0].keep_session(net.now, &peer, Route::to(address(1))).unwrap();
    keep(&mut net);
    net.run_for(1);
    let keys = [net.hosts[0].config.key.clone(), net.hosts[1].config.key.clone()];
    let store = net.kept_counters();
    net.hosts[1] = mux(&keys[1], &keys[0], store);
    assert!(keep(&mut net), "it cannot know");
    net.run_for(1);
    assert!(!keep(&mut net));
    net.run_for(1);
    assert!(keep(&mut net));
}

//! AeroTP when one side restarts and the other still has the earlier connection.

use crate::aerotp::{established, last_of, net, packets, restarted, wait, write};
use crate::pair::ONE_WAY;
use farlink_core::event::Abort;
use farlink_core::protocol::aerotp::{Flags, Segment, State};
use farlink_core::{Endpoint, Event, Payload, Rx, Stream};
use farlink_fec::awgn::split_mix64;
use serde_json::json;

/// `[C13]`, `[C14]`: a restarted listener does not know the connection and answers with a reset.
#[test]
fn a_restarted_listener_resets() {
    let mut net = established(json!({}));
    net.ends[1] = restarted(json!({}), 99).into_iter().nth(1).unwrap();
    write(&mut net, 0, 100);
    wait(&mut net, 1.0);
    assert_eq!(net.events[0].last(), Some(&Event::Aborted(Abort::Reset)));
    assert_eq!(net.ends[1].state(), State::Listen);
}

/// `[C12]`: the listener restarted, and a delayed opening has opened it again: it acknowledges data that its
/// predecessor delivered. Otherwise the opener would wait for answers with the old tag until it gives up.
#[test]
fn an_opener_learns_from_an_acknowledgement_that_its_listener_restarted() {
    let mut net = established(json!({}));
    wait(&mut net, 1.0); // longer than timestamps lag behind `[G2]`
    let old = packets(&net, 0)[0].clone();
    net.ends[1] = restarted(json!({}), 99).into_iter().nth(1).unwrap();
    net.is_cut[1] = true;
    net.ends[1].handle_packet(net.now, &old, Rx::default());
    wait(&mut net, 1.0);
    let answer = last_of(&net, 1, |segment| segment.mack.is_some() && segment.flags.has(Flags::ASYN));
    let forged = Segment { sequence: answer.sequence.wrapping_add(100_000), ..answer.clone() };
    net.ends[0].handle_packet(net.now, &forged, Rx::default());
    assert_eq!(net.ends[0].state(), State::Established, "it acknowledges data that was never sent");
    net.ends[0].handle_packet(net.now, &answer, Rx::default());
    net.pump(0);
    assert_eq!(net.events[0].last(), Some(&Event::Aborted(Abort::PeerRestarted)));
}

/// `[C12]`: the opener restarted; the listener reports the end of the first connection and serves the second.
#[test]
fn a_restarted_opener_is_served() {
    let mut net = established(json!({}));
    let old = packets(&net, 0)[0].clone();
    net.ends[0] = restarted(json!({}), 99).into_iter().next().unwrap();
    (net.received, net.events) = ([0; 2], [vec![], vec![]]);
    net.write_all(0, 500, 500);
    wait(&mut net, 1.0);
    assert_eq!(net.events[1][..2], [Event::Aborted(Abort::PeerRestarted), Event::Connected]);
    // Segments of the first opener arrive late and are recognised as outdated. `[C11]`
    assert!(old.flags.has(Flags::ASYN));
    let dropped = net.ends[1].dropped().stray;
    net.ends[1].handle_packet(net.now, &old, Rx::default());
    net.pump(1);
    assert_eq!(net.ends[1].dropped().stray, dropped + 1);
    net.write_all(1, 0, 1);
    wait(&mut net, 1.0);
    assert_eq!(net.received, [0, 500]);
    assert!(net.events.iter().all(|events| events.last() == Some(&Event::Closed)), "{:?}", net.events);
}

/// `[C22]`: the peer has restarted twice, and an opening of its first incarnation arrives late. The RESET of the third one shows that the
/// second one is gone, but not that the first one is back: its data would be read twice.
#[test]
fn an_opening_of_an_earlier_incarnation_opens_nothing() {
    let mut net = established(json!({}));
    let old = packets(&net, 0)[0].clone();
    assert!(old.flags.has(Flags::ASYN));
    net.ends[0] = restarted(json!({}), 99).into_iter().next().unwrap();
    write(&mut net, 0, 100);
    wait(&mut net, 1.0);
    net.received = [0; 2];
    net.ends[1].handle_packet(net.now, &old, Rx::default());
    net.pump(1);
    let question = packets(&net, 1).pop().unwrap();
    assert!(question.mack.is_none() && question.payload.is_empty(), "{question:?}");
    net.ends[0] = restarted(json!({}), 199).into_iter().next().unwrap();
    write(&mut net, 0, 500);
    wait(&mut net, 5.0);
    assert_eq!(net.received, [0, 500]);
    assert!(net.events[1].contains(&Event::Aborted(Abort::Reset)), "{:?}", net.events[1]);
}

/// `[L10]`: a peer cannot compute the tag of a listener's next connection from the segments of the last one. Otherwise
/// it could forge resets and data of a connection that it does not see.
#[test]
fn the_next_tag_cannot_be_predicted_from_the_wire() {
    for seed in 1..20 {
        let mut net = established(json!({}));
        net.ends[0] = restarted(json!({}), 99 + seed).into_iter().next().unwrap();
        let seen = last_of(&net, 1, |segment| segment.flags.has(Flags::ASYN));
        net.write_all(0, 500, 500);
        wait(&mut net, 1.0);
        let next = last_of(&net, 1, |segment| segment.flags.has(Flags::ASYN));
        assert_ne!(next.tag, seen.tag, "it serves the second one");
        assert_ne!(next.tag, split_mix64(u64::from(seen.tag) << 32 | u64::from(seen.opening)) as u16);
    }
}

/// `[C6]`: segments that the listener sent to the first opener do not open the second.
#[test]
fn answers_to_an_earlier_opener_are_ignored() {
    let mut net = net(json!({}));
    write(&mut net, 0, 1000);
    net.run_until(ONE_WAY);
    write(&mut net, 1, 100);
    let answers: Vec<_> = packets(&net, 1);
    assert!(answers.len() >= 2 && answers.iter().all(|answer| answer.flags.has(Flags::ASYN)));
    net.ends[0] = restarted(json!({}), 99).into_iter().next().unwrap();
    write(&mut net, 0, 100);
    for answer in answers {
        net.ends[0].handle_packet(net.now, &answer, Rx::default());
    }
    assert_eq!((net.ends[0].state(), net.ends[0].read()), (State::AsynSent, None));
}

/// `[C13]`: a side that gave up informs a peer that still sends.
#[test]
fn a_side_that_gave_up_answers_with_resets() {
    let mut net = established(json!({ "give_up_after_s": 10 }));
    net.is_cut = [true; 2];
    write(&mut net, 0, 100);
    wait(&mut net, 20.0);
    assert_eq!(net.ends[0].state(), State::Closed);
    net.is_cut = [false; 2];
    write(&mut net, 1, 100);
    wait(&mut net, 1.0);
    assert_eq!(net.events[1].last(), Some(&Event::Aborted(Abort::Reset)));
}

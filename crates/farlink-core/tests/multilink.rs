//! PPP Multilink over members that lose fragments and deliver the others in order.

use farlink_core::bundle::{Fragment, Numbering, Reassembler, ReceiverCounts, Splitter};
use farlink_core::{Payload, Time};
use proptest::prelude::*;

const MRRU: usize = 1500;
const HELD: usize = 128;

fn piece(number: u32, is_beginning: bool, is_end: bool, content: &[u8]) -> Fragment<Vec<u8>> {
    Fragment { number, is_beginning, is_end, payload: content.to_vec() }
}

/// Passes on fragments as `(member, fragment)` and returns the delivered packets.
fn deliver(receiver: &mut Reassembler<Vec<u8>>, arrivals: &[(usize, Fragment<Vec<u8>>)]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for (member, fragment) in arrivals {
        receiver.on_fragment(Time::ZERO, *member, fragment.clone());
        take(receiver, Time::ZERO, &mut packets);
    }
    packets
}

fn take(receiver: &mut Reassembler<Vec<u8>>, now: Time, packets: &mut Vec<Vec<u8>>) {
    let mut pieces = Vec::new();
    while receiver.next_packet(now, &mut pieces) {
        packets.push(std::mem::take(&mut pieces).concat());
    }
}

#[test]
fn packets_are_delivered_in_order_when_complete() {
    let mut receiver = Reassembler::new(Numbering::Long, 2, MRRU, HELD);
    let packets = deliver(
        &mut receiver,
        &[(1, piece(1, false, true, b"b")), (1, piece(2, true, true, b"cd")), (0, piece(0, true, false, b"a"))],
    );
    assert_eq!(packets, [b"ab", b"cd"]);
    assert_eq!(
        receiver.counts(),
        ReceiverCounts { packets: 2, out_of_order: 1, most_held: 3, ..ReceiverCounts::default() }
    );
}

#[test]
fn a_missing_fragment_is_lost_once_every_member_has_passed_it() {
    let mut receiver = Reassembler::new(Numbering::Long, 2, MRRU, HELD);
    // Number 1, the end of a packet, is lost on member 1; member 0 alone cannot show that.
    let first = [(0, piece(0, true, false, b"a")), (0, piece(2, true, true, b"b")), (0, piece(4, true, true, b"d"))];
    assert_eq!(deliver(&mut receiver, &first), Vec::<Vec<u8>>::new());
    assert_eq!(deliver(&mut receiver, &[(1, piece(3, true, true, b"c"))]), [b"b", b"c", b"d"]);
    let counts = receiver.counts();
    assert_eq!((counts.missing, counts.useless, counts.given_up), (1, 1, 0));
}

#[test]
fn a_member_that_left_delays_nothing() {
    let mut receiver = Reassembler::new(Numbering::Long, 2, MRRU, HELD);
    assert!(deliver(&mut receiver, &[(0, piece(1, true, true, b"b"))]).is_empty());
    receiver.set_up(Time::ZERO, 1, false);
    let mut packets = Vec::new();
    take(&mut receiver, Time::ZERO, &mut packets);
    assert_eq!(packets, [b"b"]);
    // The member is back: until it delivers a fragment, anything may be in flight on it.
    receiver.set_up(Time::ZERO, 1, true);
    assert!(deliver(&mut receiver, &[(0, piece(3, true, true, b"d"))]).is_empty());
    assert_eq!(deliver(&mut receiver, &[(1, piece(4, true, true, b"e"))]), [b"d", b"e"]);
}

/// Linux: each call is a new channel, whose `lastseq` is -1 until its first fragment (`ppp_register_net_channel`).
#[test]
fn a_member_that_came_back_has_delivered_nothing_yet() {
    let mut receiver = Reassembler::new(Numbering::Long, 2, MRRU, HELD);
    assert!(deliver(&mut receiver, &[(1, piece(9, true, true, b"j"))]).is_empty());
    receiver.set_up(Time::ZERO, 1, false);
    receiver.set_up(Time::ZERO, 1, true);
    // Number 9 came over the previous call and says nothing about fragments in flight over this one.
    assert!(deliver(&mut receiver, &[(0, piece(5, true, true, b"f"))]).is_empty());
    assert_eq!(receiver.counts().missing, 0);
    assert_eq!(deliver(&mut receiver, &[(1, piece(11, true, true, b"l"))]), [b"f"]);
    assert_eq!(deliver(&mut receiver, &[(0, piece(12, true, true, b"m"))]), [b"j", b"l", b"m"]);
}

#[test]
fn every_fragment_below_the_highest_is_out_of_order() {
    let mut receiver = Reassembler::new(Numbering::Long, 3, MRRU, HELD);
    // Number 2 arrives after 1, and both arrive after 3.
    let numbers = [(0, 0), (0, 3), (1, 1), (2, 2), (0, 4)];
    let packets = deliver(&mut receiver, &numbers.map(|(member, number)| (member, piece(number, true, true, b"x"))));
    assert_eq!((packets.len(), receiver.counts().out_of_order), (5, 2));
}

/// A member that reorders its own fragments does not lower the number that all members have passed.
#[test]
fn a_member_that_reorders_has_passed_its_highest_number() {
    let mut receiver = Reassembler::new(Numbering::Long, 2, MRRU, HELD);
    let early = [(0, piece(6, true, true, b"g")), (0, piece(2, true, true, b"c"))];
    assert!(deliver(&mut receiver, &early).is_empty());
    assert_eq!(deliver(&mut receiver, &[(1, piece(5, true, true, b"f"))]), [b"c", b"f", b"g"]);
}

#[test]
fn the_number_of_waiting_fragments_is_limited() {
    let mut receiver = Reassembler::new(Numbering::Long, 2, MRRU, 4);
    let mut packets = Vec::new();
    for number in 1..100 {
        packets.extend(deliver(&mut receiver, &[(0, piece(number, true, true, b"x"))]));
    }
    assert_eq!((packets.len(), receiver.counts().given_up), (99, 1));
    assert!(receiver.counts().most_held <= 5);

    // A packet without an end, of empty fragments.
    let mut receiver = Reassembler::new(Numbering::Long, 1, MRRU, 4);
    for number in 0..100 {
        assert!(deliver(&mut receiver, &[(0, piece(number, number == 0, false, b""))]).is_empty());
    }
    assert!(receiver.counts().most_held <= 5);
    assert_eq!(deliver(&mut receiver, &[(0, piece(100, true, true, b"x"))]), [b"x"]);
}

#[test]
fn the_timer_gives_up_a_missing_fragment_only_when_it_expires() {
    let mut receiver = Reassembler::new(Numbering::Long, 2, MRRU, HELD).with_patience(Time::from_secs(3));
    let mut packets = Vec::new();
    assert_eq!(receiver.deadline(), None);
    receiver.on_fragment(Time::from_secs(10), 0, piece(1, true, true, b"b"));
    take(&mut receiver, Time::from_secs(10), &mut packets);
    assert_eq!(receiver.deadline(), Some(Time::from_secs(13)));
    receiver.on_timeout(Time::from_millis(12_999));
    take(&mut receiver, Time::from_millis(12_999), &mut packets);
    assert!(packets.is_empty());
    receiver.on_timeout(Time::from_secs(13));
    take(&mut receiver, Time::from_secs(13), &mut packets);
    assert_eq!((packets, receiver.deadline()), (vec![b"b".to_vec()], None));
    // The fragment that was given up arrives late.
    receiver.on_fragment(Time::from_secs(14), 1, piece(0, true, true, b"a"));
    assert_eq!(receiver.counts().late, 1);
}

#[test]
fn a_packet_above_the_mrru_is_dropped_and_the_next_one_delivered() {
    let mut receiver = Reassembler::new(Numbering::Long, 1, 10, HELD);
    let arrivals = [
        (0, piece(0, true, false, &[0; 6])),
        (0, piece(1, false, false, &[0; 6])),
        (0, piece(2, false, true, &[0; 6])),
        (0, piece(3, true, true, b"next")),
    ];
    assert_eq!(deliver(&mut receiver, &arrivals), [b"next"]);
    assert_eq!(receiver.counts().too_long, 1);
}

#[test]
fn a_first_fragment_ends_an_incomplete_packet() {
    let mut receiver = Reassembler::new(Numbering::Long, 1, MRRU, HELD);
    let arrivals = [(0, piece(0, true, false, b"a")), (0, piece(1, true, true, b"b"))];
    assert_eq!(deliver(&mut receiver, &arrivals), [b"b"]);
}

/// A packet without content only carries a number.
#[test]
fn empty_packets_are_not_delivered() {
    let mut receiver = Reassembler::new(Numbering::Long, 2, MRRU, HELD);
    // Number 1 is lost; the empty fragments of both members show that.
    let arrivals = [(0, piece(0, true, true, b"a")), (0, piece(2, true, true, b"")), (1, piece(3, true, true, b""))];
    assert_eq!(deliver(&mut receiver, &arrivals), [b"a"]);
    assert_eq!((receiver.settled(), receiver.held(), receiver.counts().missing), (4, 0, 1));
    let pieces = [(0, piece(4, true, false, b"")), (1, piece(5, false, true, b"b"))];
    assert_eq!(deliver(&mut receiver, &pieces), [b"b"]);
    assert_eq!(receiver.counts().packets, 2);
}

/// What the receiver held of the old bundle is lost, and the new one's first packet has the number 0.
#[test]
fn a_bundle_that_begins_anew_drops_what_was_held() {
    let mut receiver = Reassembler::new(Numbering::Short, 2, MRRU, HELD).with_patience(Time::from_secs(1));
    let of_old = [(0, piece(0, true, true, b"a")), (0, piece(3, true, true, b"d")), (0, piece(5, true, true, b"f"))];
    assert_eq!(deliver(&mut receiver, &of_old), [b"a"]);
    receiver.restart();
    let counts = receiver.counts();
    assert_eq!((counts.useless, counts.missing, receiver.held(), receiver.deadline()), (2, 3, 0, None));
    let of_new = [(1, piece(1, true, true, b"B")), (0, piece(0, true, true, b"A"))];
    assert_eq!(deliver(&mut receiver, &of_new), [b"A", b"B"]);
}

#[derive(Clone, Debug)]
struct Trial {
    numbering: Numbering,
    members: usize,
    /// Length of each packet, and its number of fragments.
    packets: Vec<(usize, usize)>,
    /// For each fragment its member, whether it is lost, and which member delivers next.
    fates: Vec<(usize, bool)>,
    turns: Vec<usize>,
    first: u64,
}

fn trial(loses: bool) -> impl Strategy<Value = Trial> {
    let fate = (0..8_usize, prop::bool::weighted(if loses { 0.1 } else { 1e-12 }));
    (
        prop::bool::ANY,
        1..6_usize,
        prop::collection::vec((2..1400_usize, 1..6_usize), 1..60),
        prop::collection::vec(fate, 400),
        prop::collection::vec(0..8_usize, 2000),
        prop_oneof![Just(0), 4000..4200_u64],
    )
        .prop_map(move |(is_short, members, packets, fates, turns, first)| Trial {
            numbering: if is_short { Numbering::Short } else { Numbering::Long },
            members,
            packets,
            fates: fates.into_iter().map(|(member, is_lost)| (member, is_lost && loses)).collect(),
            turns,
            first,
        })
}

/// Sends all packets over members that interleave arbitrarily; returns the sent and the delivered packets and the
/// number of lost fragments.
fn play(trial: &Trial, receiver: &mut Reassembler<Vec<u8>>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>, u64) {
    play_beside(trial, receiver, |_, _| {})
}

/// The same; before each turn, something else happens at the receiver.
fn play_beside(
    trial: &Trial,
    receiver: &mut Reassembler<Vec<u8>>,
    mut beside: impl FnMut(&mut Reassembler<Vec<u8>>, usize),
) -> (Vec<Vec<u8>>, Vec<Vec<u8>>, u64) {
    let mut splitter = Splitter::new(trial.numbering);
    // Numbers wrap in the middle.
    let mut early = Vec::new();
    for _ in 0..trial.first {
        receiver.on_fragment(Time::ZERO, 0, splitter.cut(&mut vec![0], 1, true));
        (1..trial.members).for_each(|member| receiver.set_up(Time::ZERO, member, false));
        take(receiver, Time::ZERO, &mut early);
    }
    (0..trial.members).for_each(|member| receiver.set_up(Time::ZERO, member, true));
    let mut lines = vec![std::collections::VecDeque::new(); trial.members];
    let (mut sent, mut lost) = (Vec::new(), 0);
    let mut fates = trial.fates.iter().cycle();
    for (at, &(length, pieces)) in trial.packets.iter().enumerate() {
        let packet: Vec<u8> = (0..length).map(|byte| (at * 31 + byte) as u8).collect();
        let mut left = packet.clone();
        sent.push(packet);
        let each = length.div_ceil(pieces);
        let mut is_beginning = true;
        while is_beginning || !left.is_empty() {
            let fragment = splitter.cut(&mut left, each, is_beginning);
            is_beginning = false;
            let &(member, is_lost) = fates.next().expect("it goes round");
            if is_lost {
                lost += 1;
            } else {
                lines[member % trial.members].push_back(fragment);
            }
        }
    }
    // At the end each member delivers a fragment after all others.
    for (member, line) in lines.iter_mut().enumerate() {
        line.push_back(splitter.cut(&mut vec![member as u8; 1], 1, true));
    }
    let mut packets = Vec::new();
    let mut turns = trial.turns.iter().cycle();
    let mut idle = 0;
    while lines.iter().any(|line| !line.is_empty()) {
        let mut member = turns.next().expect("it goes round") % trial.members;
        beside(receiver, idle);
        idle += 1;
        if idle > 10_000 {
            member = lines.iter().position(|line| !line.is_empty()).expect("there is one");
        }
        if let Some(fragment) = lines[member].pop_front() {
            receiver.on_fragment(Time::ZERO, member, fragment);
            take(receiver, Time::ZERO, &mut packets);
        }
    }
    packets.retain(|packet| packet.len() > 1); // those of one byte are not of the trial
    (sent, packets, lost)
}

fn is_subsequence(part: &[Vec<u8>], whole: &[Vec<u8>]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|packet| whole.any(|sent| sent == packet))
}

proptest! {
    #[test]
    fn without_loss_every_packet_is_delivered_in_order(trial in trial(false)) {
        let mut receiver = Reassembler::new(trial.numbering, trial.members, MRRU, 1000);
        let (sent, packets, _) = play(&trial, &mut receiver);
        prop_assert_eq!(packets, sent);
        let counts = receiver.counts();
        prop_assert_eq!((counts.useless, counts.late, counts.given_up, counts.too_long), (0, 0, 0, 0));
        prop_assert_eq!(counts.missing, 0);
    }

    #[test]
    fn with_loss_all_complete_packets_are_delivered_in_order(trial in trial(true)) {
        let mut receiver = Reassembler::new(trial.numbering, trial.members, MRRU, 1000);
        let (sent, packets, lost) = play(&trial, &mut receiver);
        prop_assert!(is_subsequence(&packets, &sent));
        // A lost fragment loses only its own packet.
        prop_assert!(packets.len() as u64 + lost >= sent.len() as u64);
        let counts = receiver.counts();
        prop_assert_eq!((counts.late, counts.given_up), (0, 0));
        prop_assert!(counts.missing <= lost);
    }

    #[test]
    fn any_fragments_use_bounded_memory(
        arrivals in prop::collection::vec((0..9_usize, any::<u32>(), any::<bool>(), any::<bool>(), 0..300_usize), 1..600),
        changes in prop::collection::vec((0..9_usize, any::<bool>()), 1..20),
    ) {
        let mut receiver = Reassembler::new(Numbering::Short, 4, MRRU, 16).with_patience(Time::from_secs(1));
        let mut pieces = Vec::new();
        for (at, (member, number, is_beginning, is_end, bytes)) in arrivals.into_iter().enumerate() {
            let now = Time::from_millis(at as u64 * 100);
            receiver.on_timeout(now);
            receiver.on_fragment(now, member, Fragment { number, is_beginning, is_end, payload: vec![0; bytes] });
            let (changed, is_up) = changes[at % changes.len()];
            receiver.set_up(now, changed % 4, is_up);
            while receiver.next_packet(now, &mut pieces) {
                prop_assert!(pieces.drain(..).map(|piece: Vec<u8>| piece.len()).sum::<usize>() <= MRRU);
            }
        }
        prop_assert!(receiver.counts().most_held <= 17);
    }
}

#[test]
fn payloads_without_content_are_reassembled() {
    let mut splitter = Splitter::new(Numbering::Long);
    let mut receiver = Reassembler::new(Numbering::Long, 1, MRRU, HELD);
    let mut packet = farlink_core::Virtual(1000);
    let mut pieces = Vec::new();
    let first = splitter.cut(&mut packet, 400, true);
    let last = splitter.cut(&mut packet, 600, false);
    receiver.on_fragment(Time::ZERO, 0, first);
    receiver.on_fragment(Time::ZERO, 0, last);
    assert!(receiver.next_packet(Time::ZERO, &mut pieces));
    assert_eq!(pieces.iter().map(Payload::len).sum::<usize>(), 1000);
}

proptest! {
    /// Packets without a multilink header are delivered as they come, and change nothing for those with one.
    #[test]
    fn packets_outside_are_delivered_at_once(trial in trial(true), outside in prop::collection::vec((0..400_usize, 1..200_usize), 0..40)) {
        let mut alone = Reassembler::new(trial.numbering, trial.members, MRRU, HELD);
        let (_, expected, _) = play(&trial, &mut alone);
        let mut receiver = Reassembler::new(trial.numbering, trial.members, MRRU, HELD);
        let mut came = 0;
        let (_, delivered, _) = play_beside(&trial, &mut receiver, |receiver, step| {
            for &(_, bytes) in outside.iter().filter(|&&(at, _)| at == step) {
                receiver.on_packet(vec![0xee; bytes]);
                let mut pieces = Vec::new();
                assert!(receiver.next_packet(Time::ZERO, &mut pieces) && pieces == [vec![0xee; bytes]]);
                came += 1;
            }
        });
        prop_assert_eq!(delivered, expected);
        let (counts, before) = (receiver.counts(), alone.counts());
        prop_assert_eq!((counts.outside, counts.packets), (came, before.packets + came));
        prop_assert_eq!((counts.missing, counts.useless, counts.late), (before.missing, before.useless, before.late));
    }
}

use super::*;
use crate::payload::Virtual;

const WAITS: Waits = Waits { answer: Time::from_millis(40), spacing: Time::from_millis(2) };

/// `pieces` pieces, sent a millisecond apart from 0 on, with a measured loss of `lost` out of a hundred.
fn sent(pieces: u64, lost: u64) -> (Flight<Virtual>, SpareCopies) {
    let mut flight = Flight::default();
    for n in 0..pieces {
        flight.push(100 * n, Virtual(100), n + 1 == pieces, 1000 * n);
    }
    let mut spare_copies = SpareCopies::new();
    spare_copies.measure(100 - lost, lost);
    spare_copies.open(&flight);
    (flight, spare_copies)
}

/// The piece that is repeated at a time in milliseconds, if any.
fn repeat(flight: &mut Flight<Virtual>, spare_copies: &mut SpareCopies, ms: u64) -> Option<u64> {
    let now = Time::from_millis(ms);
    spare_copies.look(now, flight, WAITS);
    let start = spare_copies.chosen()?;
    flight.copy(start, ticks(now)).expect("it awaits its answer");
    spare_copies.on_sent(now, start);
    spare_copies.look(now, flight, WAITS);
    Some(start)
}

/// `[R11]`, `[R12]`
#[test]
fn the_last_piece_is_copied_first_after_a_pause() {
    let (mut flight, mut spare_copies) = sent(10, 30);
    let repeated: Vec<_> = (10..14).map(|ms| repeat(&mut flight, &mut spare_copies, ms)).collect();
    assert_eq!(repeated, [Some(800), Some(900), Some(700), Some(600)]);
}

/// `[R11]`
#[test]
fn with_high_loss_second_copies_precede_copies_of_pieces_about_to_be_acknowledged() {
    let second = |lost| {
        let (mut flight, mut spare_copies) = sent(10, lost);
        flight.acknowledge(100, 900); // the first and the last one are left
        assert_eq!(repeat(&mut flight, &mut spare_copies, 35), Some(900));
        repeat(&mut flight, &mut spare_copies, 37)
    };
    assert_eq!([second(80), second(5)], [Some(900), Some(0)]);
}

/// `[R12]`
#[test]
fn a_piece_about_to_be_acknowledged_is_not_copied() {
    let (mut flight, mut spare_copies) = sent(10, 30);
    spare_copies.look(Time::from_millis(46), &flight, WAITS);
    assert_eq!(spare_copies.chosen(), Some(900));
    assert_eq!(repeat(&mut flight, &mut spare_copies, 48), None);
}

/// `[R12]`
#[test]
fn copying_stops_at_the_limit_until_a_copy_is_lost() {
    let (mut flight, mut spare_copies) = sent(2, 30);
    let repeated: Vec<_> = (4..20).filter_map(|ms| repeat(&mut flight, &mut spare_copies, ms)).collect();
    assert_eq!(repeated, [100, 0, 100, 0], "0.28^3 of each is not known to arrive");
    spare_copies.on_answer(ticks(Time::from_millis(1)), &mut flight);
    assert_eq!(repeat(&mut flight, &mut spare_copies, 20), Some(0), "its first transmission is lost");
    assert_eq!(repeat(&mut flight, &mut spare_copies, 22), None);
    flight.acknowledge_up_to(201);
    spare_copies.look(Time::from_millis(23), &flight, WAITS);
    assert_eq!((spare_copies.chosen(), spare_copies.at()), (None, Time::NEVER), "all of it has arrived");
}

/// `[R12]`
#[test]
fn at_most_sixteen_copies_are_in_flight() {
    let (mut flight, mut spare_copies) = sent(1, 99);
    let repeated = (3..39).filter_map(|ms| repeat(&mut flight, &mut spare_copies, ms)).count();
    assert_eq!(repeated as u64, MOST_COPIES - 1);
}

/// `[R12]`
#[test]
fn without_loss_nothing_is_copied() {
    let (mut flight, mut spare_copies) = sent(10, 0);
    assert_eq!((10..40).find_map(|ms| repeat(&mut flight, &mut spare_copies, ms)), None);
}

//! Effects of each option, observed in the frames that are sent.

use farlink_core::event::Abort;
use farlink_core::protocol::arq::{Acknowledgement, ArqConfig, Flags, Incremental, Mode, TimerSide};
use farlink_core::protocol::parts::rto::{RtoAlgorithm, RtoConfig};
use farlink_core::units::{BitRate, PositiveSeconds, Seconds};
use farlink_core::{Endpoint, Event, Packet, Rx, Stream, Time, Virtual};

use super::network::{LONG, Network, assert_done, stations, transfer};
use super::whole;
use crate::pair::{Fault, ONE_WAY, count};

/// Ten bytes a frame, ten frames a window, a fixed timeout of 100 ms.
fn config(mode: Mode) -> ArqConfig {
    ArqConfig {
        mode,
        segment_bytes: count(10),
        window_frames: (mode != Mode::StopAndWait).then(|| count(10)),
        rto: RtoConfig {
            algorithm: RtoAlgorithm::Fixed,
            initial_s: PositiveSeconds::new(0.1).unwrap(),
            ..RtoConfig::default()
        },
        ..ArqConfig::default()
    }
}

/// Five frames in one direction, and the end of the stream.
fn five(config: &ArqConfig, faults: &[Fault]) -> Network<Vec<u8>> {
    let mut network = stations(config, faults);
    network.write_all(0, 50, 50);
    network.run_until(LONG);
    assert_eq!((network.received[1], network.skipped[1]), (50, 0));
    network
}

const FINE: Fault = Fault::Delay(20);

/// Sequence numbers of the data frames, in the order in which they were sent.
fn data_numbers(network: &Network<Vec<u8>>) -> Vec<u32> {
    network.sent(0, Flags::DATA).iter().filter(|sent| !sent.2.flags.has(Flags::FIN)).map(|sent| sent.2.number).collect()
}

#[test]
fn stop_and_wait_has_one_frame_in_flight() {
    let network = five(&config(Mode::StopAndWait), &[]);
    let times: Vec<Time> = network.sent(0, Flags::DATA).iter().map(|sent| sent.0).collect();
    let expected: Vec<Time> = (0..6).map(|n| (ONE_WAY + ONE_WAY).times(n)).collect();
    assert_eq!(times, expected, "five frames and the end, a round trip apart");
}

#[test]
fn go_back_n_retransmits_everything_after_a_loss() {
    let network = five(&config(Mode::GoBackN), &[FINE, Fault::Lose]);
    assert_eq!(data_numbers(&network), [0, 1, 2, 3, 4, 1, 2, 3, 4]);
    assert_eq!(network.sent(0, Flags::DATA)[6].0, Time::from_millis(100), "when the timer of frame 1 expires");
    assert_eq!(network.ends[0].counters().timeouts, 1);
    assert_eq!(network.ends[1].counters().peak_reorder_bytes, 0, "its receiver keeps nothing");
}

#[test]
fn selective_repeat_retransmits_only_lost_frames() {
    for ack in [Acknowledgement::Cumulative, Acknowledgement::PerPacket] {
        let network =
            five(&ArqConfig { ack, ..config(Mode::SelectiveRepeat) }, &[FINE, Fault::Lose, FINE, Fault::Lose]);
        assert_eq!(data_numbers(&network), [0, 1, 2, 3, 4, 1, 3], "{ack:?}");
        assert_eq!(network.ends[1].counters().peak_reorder_bytes, 20);
    }
}

/// Epple, section 3.3.3: "the loss of an ACK is interpreted as a loss of the corresponding packet".
#[test]
fn a_lost_acknowledgement_of_one_frame_causes_its_retransmission() {
    let lost = [&vec![FINE; 6][..], &[Fault::Lose]].concat(); // six frames, then the acknowledgement of the first
    for (ack, repeated) in [(Acknowledgement::PerPacket, 6), (Acknowledgement::Cumulative, 5)] {
        let network = five(&ArqConfig { ack, ..config(Mode::SelectiveRepeat) }, &lost);
        assert_eq!(data_numbers(&network).len(), repeated, "{ack:?}");
    }
    let network = five(&ArqConfig { ack: Acknowledgement::PerPacket, ..config(Mode::GoBackN) }, &lost);
    assert_eq!(data_numbers(&network), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
}

#[test]
fn a_negative_acknowledgement_avoids_the_timeout() {
    let nak = |mode| ArqConfig { nak: true, ..config(mode) };
    for (mode, numbers) in [(Mode::SelectiveRepeat, &[1][..]), (Mode::GoBackN, &[1, 2, 3, 4])] {
        let network = five(&nak(mode), &[FINE, Fault::Lose]);
        assert_eq!(data_numbers(&network)[5..], *numbers);
        assert_eq!(
            network.sent(0, Flags::DATA)[6].0,
            Time::from_millis(40),
            "a round trip after the frame that showed it"
        );
        let counters = network.ends[0].counters();
        assert_eq!((counters.timeouts, counters.fast_retransmits), (0, 1), "{mode:?}");
    }
    // A range of missing frames is reported in one frame.
    let network = five(&nak(Mode::SelectiveRepeat), &[FINE, Fault::Lose, Fault::Lose]);
    let naks = network.sent(1, Flags::NAK);
    assert_eq!(naks.iter().map(|nak| (nak.2.nak, nak.2.nak_count)).collect::<Vec<_>>(), [(1, 2)]);
    // Damage after an intact header is detected at once, even in the last frame.
    let network = five(&nak(Mode::StopAndWait), &[Fault::Flip(vec![3])]);
    assert_eq!(network.ends[0].counters().timeouts, 0);
    assert_eq!(network.sent(0, Flags::DATA)[1].0, Time::from_millis(40));
}

/// Epple, section 3.2: "a retransmission timer at the receiver has to be implemented for retransmitting the NAKs".
#[test]
fn with_the_timer_at_the_receiver_the_negative_acknowledgement_is_repeated() {
    let at_receiver = ArqConfig { nak: true, timer: TimerSide::Receiver, ..config(Mode::SelectiveRepeat) };
    // Frame 1 is lost, and then the receiver's negative acknowledgement.
    let mut faults = vec![FINE; 9];
    faults[1] = Fault::Lose;
    faults[7] = Fault::Lose;
    let network = five(&at_receiver, &faults);
    let naks: Vec<Time> = network.sent(1, Flags::NAK).iter().map(|nak| nak.0).collect();
    assert_eq!(naks, [ONE_WAY, ONE_WAY + Time::from_millis(100)]);
    assert_eq!(data_numbers(&network), [0, 1, 2, 3, 4, 1], "nothing is repeated unasked");
    // If everything is lost there is no gap to detect, so the sender asks.
    let network = five(&at_receiver, &vec![Fault::Lose; 6]);
    assert_eq!(network.sent(0, Flags::ENQUIRY).len(), 1);
    assert_eq!(data_numbers(&network), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
}

/// Epple, section 4.1.2: a frame that cannot be reported is rejected until a block is free again.
#[test]
fn the_receiver_drops_frames_that_it_cannot_report() {
    let lost_even = [Fault::Lose, FINE, Fault::Lose, FINE, Fault::Lose];
    let with = |sack_blocks| ArqConfig { sack_blocks, ..config(Mode::SelectiveRepeat) };
    let all = five(&with(None), &lost_even);
    assert_eq!(data_numbers(&all), [0, 1, 2, 3, 4, 0, 2, 4]);
    let most = |network: &Network<Vec<u8>>| network.log.iter().map(|sent| sent.2.blocks.len()).max();
    assert_eq!(most(&all), Some(3), "frames 1, 3, and the end");
    let one = five(&with(Some(whole(1))), &lost_even);
    assert_eq!(most(&one), Some(1));
    assert_eq!(data_numbers(&one), [0, 1, 2, 3, 4, 0, 2, 3, 4], "frame 3 had no block");
    let none = five(&with(Some(whole(0))), &lost_even);
    assert_eq!(data_numbers(&none), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
}

/// A sender without a timer retransmits only requested frames. A frame rejected for lack of a block would be requested
/// and rejected again until the frame before it has arrived.
#[test]
fn the_receiver_keeps_frames_if_the_sender_has_no_timer() {
    let lost_even = [Fault::Lose, FINE, Fault::Lose, FINE, Fault::Lose];
    for sack_blocks in [0, 1, 2] {
        let config = ArqConfig {
            nak: true,
            timer: TimerSide::Receiver,
            sack_blocks: Some(whole(sack_blocks)),
            ..config(Mode::SelectiveRepeat)
        };
        let network = five(&config, &lost_even);
        let most = network.log.iter().map(|sent| sent.2.blocks.len()).max();
        assert_eq!(most, Some(sack_blocks as usize), "no more blocks than allowed");
        assert_eq!(data_numbers(&network), [0, 1, 2, 3, 4, 0, 2, 4], "{sack_blocks} blocks");
        assert_eq!(network.ends[1].counters().peak_reorder_bytes, 20);
    }
}

#[test]
fn options_add_their_length() {
    let config = ArqConfig { timestamps: true, ack_bytes: Some(count(14)), ..config(Mode::SelectiveRepeat) };
    let network = five(&config, &[FINE, Fault::Lose]);
    assert!(network.sent(0, Flags::DATA).iter().all(|sent| sent.2.header_bytes == 30));
    for ack in network.sent(1, Flags::ACK) {
        let blocks = if ack.2.blocks.is_empty() { 0 } else { 2 + 8 * ack.2.blocks.len() };
        assert_eq!(usize::from(ack.2.header_bytes), 24 + blocks, "{ack:?}");
    }
    assert_eq!(network.log.iter().map(|sent| sent.2.blocks.len()).max(), Some(1));
}

/// Epple, section 3.3.2: "the time stamp of the oldest packet in the acknowledgement list should be used".
#[test]
fn timestamps_echo_the_oldest_frame_and_time_repetitions() {
    let stamped = ArqConfig { timestamps: true, ..config(Mode::SelectiveRepeat) };
    // The acknowledgement waits for data to carry it, while a frame arrives every 10 ms.
    let riding = ArqConfig {
        piggyback_timeout_s: Some(Seconds::new(0.05).unwrap()),
        rate_bps: Some(BitRate::new(40.0 * 8.0 * 100.0).unwrap()), // a frame in 10 ms
        ..stamped
    };
    let network = five(&riding, &[]);
    let first_ack = network.sent(1, Flags::ECHO)[0];
    assert_eq!(first_ack.2.echo, network.sent(0, Flags::DATA)[0].2.timestamp);
    assert!(first_ack.2.ack > 3, "it acknowledges several");
    // Karn's rule excludes retransmitted frames; with an echo no rule is needed.
    let once = |timestamps| {
        let mut network = stations::<Virtual>(&ArqConfig { timestamps, ..config(Mode::StopAndWait) }, &[Fault::Lose]);
        network.ends[0].write(Time::ZERO, &mut Virtual(5));
        network.run_until(Time::from_secs(1));
        network.ends[0].probe().rtt.map(|rtt| (rtt.as_ps() as f64 / 1e9).round())
    };
    assert_eq!(once(false), None);
    assert_eq!(once(true), Some(40.0));
}

fn riding(wait: Option<f64>) -> ArqConfig {
    ArqConfig { piggyback_timeout_s: wait.map(|wait| Seconds::new(wait).unwrap()), ..config(Mode::SelectiveRepeat) }
}

#[test]
fn acknowledgements_ride_on_data_of_the_other_direction() {
    let bare = |wait: Option<f64>| {
        let network = transfer::<Vec<u8>>(&riding(wait), &[], [400, 400], 400);
        assert_done(&network, [400, 400]);
        network.log.iter().filter(|sent| !sent.2.flags.has(Flags::DATA)).count()
    };
    let (never, waiting) = (bare(None), bare(Some(0.05)));
    assert!(never >= 80 && waiting <= 10, "{never}, {waiting}");

    // A data frame sent at that instant carries the acknowledgement, if allowed.
    for (wait, expected) in [(None, [Flags::ACK, Flags::DATA]), (Some(0.0), [Flags::DATA.with(Flags::ACK); 2])] {
        let mut network = stations::<Virtual>(&riding(wait), &[]);
        network.ends[0].write(Time::ZERO, &mut Virtual(10));
        let frame = network.ends[0].poll_transmit(Time::ZERO).unwrap().packet;
        network.ends[1].handle_packet(ONE_WAY, &frame, Rx::default());
        network.ends[1].write(ONE_WAY, &mut Virtual(20));
        let sent = [0, 1].map(|_| network.ends[1].poll_transmit(ONE_WAY).unwrap().packet.flags);
        assert_eq!(sent, expected);
    }
}

#[test]
fn an_acknowledgement_is_delayed_no_longer_than_allowed() {
    let network = five(&riding(Some(0.03)), &[]);
    assert_eq!(network.sent(1, Flags::ACK)[0].0, ONE_WAY + Time::from_millis(30));
}

#[test]
fn frames_lost_too_often_are_given_up_and_reported_in_their_place() {
    for mode in [Mode::StopAndWait, Mode::GoBackN, Mode::SelectiveRepeat] {
        let config = ArqConfig { max_transmissions: Some(count(1)), ..config(mode) };
        let mut network = stations::<Vec<u8>>(&config, &[Fault::Lose]);
        network.write_all(0, 50, 50);
        network.write_all(1, 0, 1);
        network.run_until(LONG);
        assert_done(&network, [50, 0]);
        assert_eq!((network.skipped[1], network.ends[0].given_up_bytes()), (10, 10), "{mode:?}");
        let skip = network.events[1].iter().position(|&event| event == Event::Skipped(10));
        let finished = network.events[1].iter().position(|&event| event == Event::Finished);
        assert!(skip.is_some() && skip < finished);
    }
}

#[test]
fn a_gap_is_reported_before_the_data_after_it() {
    let config = ArqConfig { max_transmissions: Some(count(1)), ..config(Mode::SelectiveRepeat) };
    let mut network = stations::<Vec<u8>>(&config, &[FINE, Fault::Lose]);
    network.is_reader_asleep[1] = true;
    network.write_all(0, 50, 50);
    network.run_until(Time::from_secs(1));
    let receiver = &mut network.ends[1];
    let mut read = Vec::new();
    while let Some(data) = receiver.read() {
        read.extend(data);
    }
    assert_eq!(read.len(), 10);
    assert_eq!(network.events[1], [Event::Connected], "before the data is read");
    let events: Vec<Event> = std::iter::from_fn(|| receiver.poll_event()).collect();
    assert_eq!(events, [Event::Skipped(10)]);
    while let Some(data) = receiver.read() {
        read.extend(data);
    }
    assert_eq!((read.len(), receiver.poll_event()), (40, Some(Event::Finished)));
}

#[test]
fn parity_is_sent_instead_of_data_until_it_is_enough() {
    let incremental = Incremental { first_parity_bytes: whole(0), parity_bytes: count(4), increments: count(2) };
    let config = ArqConfig { nak: true, incremental: Some(incremental), ..config(Mode::SelectiveRepeat) };
    // Symbols 0, 1 and 3 of five: three wrong symbols need six of parity, and there are only two increments of two;
    // then the data is sent again.
    let mut network = stations::<Vec<u8>>(&config, &[Fault::Flip(vec![0, 17, 50])]);
    network.write_all(0, 10, 10);
    network.write_all(1, 0, 1);
    network.run_until(LONG);
    assert_done(&network, [10, 0]);
    let sent: Vec<(u8, u32)> = network
        .sent(0, Flags::INCREMENTAL)
        .iter()
        .map(|sent| (sent.2.increment, sent.2.payload_bytes() + u32::from(sent.2.parity_bytes)))
        .collect();
    assert_eq!(sent, [(0, 10), (1, 4), (2, 4), (0, 10)]);
    assert_eq!(network.ends[0].counters().timeouts, 0);

    // One wrong symbol needs two of parity.
    let mut network = stations::<Vec<u8>>(&config, &[Fault::Flip(vec![5])]);
    network.write_all(0, 10, 10);
    network.run_until(LONG);
    let sent: Vec<u8> = network.sent(0, Flags::INCREMENTAL).iter().map(|sent| sent.2.increment).collect();
    assert_eq!((sent, network.received[1]), (vec![0, 1], 10));

    // With weak parity from the start, no further parity is needed.
    let weak = Incremental { first_parity_bytes: whole(4), ..incremental };
    let mut network =
        stations::<Vec<u8>>(&ArqConfig { incremental: Some(weak), ..config }, &[Fault::Flip(vec![5, 12])]);
    network.write_all(0, 10, 10);
    network.run_until(LONG);
    assert_eq!((network.sent(0, Flags::INCREMENTAL).len(), network.received[1]), (1, 10));
}

#[test]
fn a_connection_without_answers_is_given_up_on_both_sides() {
    let config = ArqConfig { give_up_after_timeouts: Some(count(3)), ..config(Mode::GoBackN) };
    let mut network = stations::<Virtual>(&config, &[]);
    network.is_cut[1] = true;
    network.write_all(0, 100, 100);
    network.run_until(LONG);
    assert_eq!(network.events[0].last(), Some(&Event::Aborted(Abort::TooManyRetries)));
    assert_eq!(network.events[1].last(), Some(&Event::Aborted(Abort::Reset)), "the other side is informed");
    assert_eq!(network.now, Time::from_millis(320), "after three timeouts, and one way");
    assert_eq!([network.ends[0].poll_timeout(), network.ends[1].poll_timeout()], [None, None]);
}

#[test]
fn a_rate_spreads_the_window() {
    let config = ArqConfig { rate_bps: Some(BitRate::new(30.0 * 8.0 * 1000.0).unwrap()), ..config(Mode::GoBackN) };
    let network = five(&config, &[]);
    let times: Vec<u64> = network.sent(0, Flags::DATA).iter().map(|sent| sent.0.as_ps() / 1_000_000_000).collect();
    assert_eq!(times, [0, 1, 2, 3, 4, 5], "30 bytes in a millisecond");
}

/// Five frames and the end are lost together, twice: the timer doubles once for all of them, not once for each.
#[test]
fn frames_lost_together_double_the_timer_once() {
    let mut config = config(Mode::SelectiveRepeat);
    config.rto.backoff_limit = Some(count(64));
    let network = five(&config, &[const { Fault::Lose }; 12]);
    let times: Vec<Time> =
        network.sent(0, Flags::DATA).iter().filter(|sent| sent.2.number == 0).map(|sent| sent.0).collect();
    assert_eq!(times, [0, 100, 300].map(Time::from_millis));
}

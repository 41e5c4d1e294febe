use super::*;
use crate::units::PositiveSeconds;

const ROUND_TRIP: Time = Time::from_millis(200);

/// A sender at the learnt rate over a FIFO link of `link` bytes per second; each packet has an answer of its own.
struct Path {
    learnt: Learnt,
    now: Time,
    link: f64,
    /// When the link is idle again.
    free: Time,
    /// Packets that wait at least this long are marked.
    mark_from: Time,
    marked: u16,
    /// Longest queue, beyond which packets are dropped, and of how many packets the channel loses one.
    queue: Time,
    lost_of: u64,
    sent: u64,
    dropped: u64,
    /// Answers, and whether the packet arrived.
    answers: std::collections::VecDeque<(Time, Answer, bool)>,
    longest_queue: Time,
}

impl Path {
    fn new(link: f64, control: RateControl) -> Self {
        Self::shared(link, control, control == RateControl::Learnt)
    }

    fn shared(link: f64, control: RateControl, is_alone: bool) -> Self {
        let config = AerotpConfig {
            rate_control: Some(control),
            alone: Some(is_alone),
            initial_rto_s: PositiveSeconds::new(1.0).unwrap(),
            ..AerotpConfig::default()
        };
        Path {
            learnt: Learnt::new(&config),
            now: Time::ZERO,
            link,
            free: Time::ZERO,
            mark_from: Time::NEVER,
            marked: 0,
            queue: Time::NEVER,
            lost_of: u64::MAX,
            sent: 0,
            dropped: 0,
            answers: std::collections::VecDeque::new(),
            longest_queue: Time::ZERO,
        }
    }

    fn run(&mut self, seconds: u64) {
        let end = self.now + Time::from_secs(seconds);
        (self.longest_queue, self.sent, self.dropped) = (Time::ZERO, 0, 0);
        while self.now < end {
            self.step();
        }
    }

    /// Sends a packet, after the answers that have arrived by then were handled.
    fn step(&mut self) {
        while let Some(&(at, answer, has_arrived)) = self.answers.front()
            && at <= self.now
        {
            self.answers.pop_front();
            self.learnt.on_outcome(at, answer.echo, f64::from(u8::from(has_arrived)));
            if has_arrived {
                self.learnt.on_answer(at, &answer);
            }
        }
        self.learnt.on_sent(self.now, 1500, true);
        self.sent += 1;
        let queue = self.free.since(self.now);
        self.longest_queue = self.longest_queue.max(queue);
        self.marked = self.marked.wrapping_add(u16::from(queue >= self.mark_from));
        let is_dropped = queue > self.queue;
        self.dropped += u64::from(is_dropped);
        // At random, as losses at equal distances and phases of equal length would show a pattern.
        let drawn = self.sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let is_lost = is_dropped || drawn.is_multiple_of(self.lost_of);
        if !is_dropped {
            self.free = self.free.max(self.now) + Time::from_secs_f64(1500.0 / self.link);
        }
        let arrival = self.free + ROUND_TRIP;
        let round_trip = arrival.since(self.now);
        let answer = Answer {
            echo: ticks(self.now),
            round_trip,
            waited: Time::ZERO,
            held: Time::ZERO,
            marked: self.marked,
            arrived_bytes: 0,
            has_gaps: false,
        };
        self.answers.push_back((arrival, answer, !is_lost));
        self.now += Time::from_secs_f64(1500.0 / self.learnt.bytes_per_s());
    }
}

#[test]
fn finds_the_bottleneck_and_leaves_its_queue_short() {
    for link in [2e4, 1e6, 1e8] {
        let mut path = Path::new(link, RateControl::Learnt);
        path.run(20);
        path.run(60);
        let share = path.learnt.base / link;
        assert!((0.8..1.2).contains(&share), "{share} of {link}");
        // Six packets, where a packet takes long.
        let most = Time::from_millis(300).max(Time::from_secs_f64(6.0 * 1500.0 / link));
        assert!(path.longest_queue < most, "{} at {link}", path.longest_queue.as_secs_f64());
    }
}

#[test]
fn follows_a_link_that_changes() {
    let mut path = Path::new(1e6, RateControl::Learnt);
    path.run(30);
    path.link = 3e5;
    path.run(30);
    assert!((0.8..1.2).contains(&(path.learnt.base / 3e5)), "{}", path.learnt.bytes_per_s());
    path.link = 1e6;
    path.run(60);
    assert!((0.8..1.2).contains(&(path.learnt.base / 1e6)), "{}", path.learnt.bytes_per_s());
}

#[test]
fn congestion_marks_lower_the_rate_and_bit_errors_do_not() {
    let mut path = Path::new(1e6, RateControl::Learnt);
    path.mark_from = Time::from_millis(2);
    path.run(60);
    assert!(path.learnt.bytes_per_s() < 1.06e6 && path.learnt.bytes_per_s() > 5e5, "{}", path.learnt.bytes_per_s());
}

/// `[P14]`
#[test]
fn a_short_queue_limits_the_rate_and_the_losses_of_the_channel_do_not() {
    for (queue_ms, lost_of) in [(4, u64::MAX), (4, 50), (4, 5), (300, 5)] {
        let mut path = Path::new(1e6, RateControl::Learnt);
        (path.queue, path.lost_of) = (Time::from_millis(queue_ms), lost_of);
        path.run(40);
        path.run(60);
        let share = path.sent as f64 * 1500.0 / 60.0 / path.link;
        let dropped = path.dropped as f64 / path.sent as f64;
        assert!(
            (0.9..1.08).contains(&share) && dropped < 0.05,
            "{share}, {dropped} with {queue_ms} ms, 1 of {lost_of}"
        );
    }
}

/// `[P16]`
#[test]
fn among_others_losses_without_a_lossy_channel_are_congestion() {
    let sent = |control, lost_of| {
        let mut path = Path::shared(1e6, control, false);
        (path.queue, path.lost_of) = (Time::from_millis(20), lost_of);
        path.run(60);
        path.run(100);
        path.sent as f64 * 1500.0 / 100.0 / path.link
    };
    for control in [RateControl::Friendly, RateControl::Learnt] {
        assert!((0.7..1.0).contains(&sent(control, u64::MAX)), "losses of the queue alone");
        // One packet of 1000 may be a neighbour's doing, one of 20 is not.
        assert!(sent(control, 1000) < 0.6, "{}", sent(control, 1000));
        assert!(sent(control, 20) > 0.85, "{}", sent(control, 20));
    }
}

#[test]
fn takes_the_rate_from_hints() {
    let mut learnt = Path::new(1e6, RateControl::Learnt).learnt;
    learnt.on_hint(BitRate::new(8e3).unwrap());
    assert_eq!(learnt.bytes_per_s(), 1e3, "no faster than this side's link");
    learnt.is_starting = false;
    learnt.on_hint(BitRate::new(8e6).unwrap());
    assert!(learnt.is_starting, "the bottleneck may have become faster as well");
}

/// `[P15]`
#[test]
fn marks_lower_a_shared_rate_as_they_lower_that_of_cubic() {
    let run = |control| {
        let mut path = Path::shared(1e6, control, false);
        path.mark_from = Time::from_millis(1);
        path.run(100);
        path.run(100);
        path.sent as f64 * 1500.0 / 100.0 / path.link
    };
    assert!((0.6..0.99).contains(&run(RateControl::Friendly)), "{}", run(RateControl::Friendly));
    assert!(run(RateControl::Learnt) > run(RateControl::Friendly));
}

/// Sixteen packets a microsecond apart, and the answers requested for them, behind a link of `link` bytes per second.
fn after_the_first_burst(control: RateControl, link: f64, marked: u16) -> Path {
    let mut path = Path::new(link, control);
    for n in 0..16_u64 {
        path.learnt.burst.on_sent(Time::from_ps(n * 1_000_000), 1500);
    }
    for n in [1, 8, 16_u64] {
        let echo = n - 1;
        let now = ROUND_TRIP + Time::from_secs_f64(n as f64 * 1500.0 / link);
        let (round_trip, arrived_bytes) = (now.since(Time::from_ps(echo * 1_000_000)), n * 1452);
        let answer =
            Answer { echo, round_trip, waited: Time::ZERO, held: Time::ZERO, marked, arrived_bytes, has_gaps: false };
        path.learnt.on_answer(now, &answer);
        path.now = now;
    }
    path
}

/// `[P12]`
#[test]
fn the_rate_starts_from_the_estimate_of_the_first_burst() {
    let rate = |path: &Path| path.learnt.base.round();
    let mut path = after_the_first_burst(RateControl::Learnt, 1e6, 0);
    assert_eq!(rate(&path), 250e3, "a quarter at once");
    for (now, then) in [(250e3, 500e3), (600e3, 950e3), (950e3, 1.1875e6)] {
        path.learnt.rate = now;
        assert_eq!(path.learnt.grown().round(), then, "no doubling beyond the measured rate");
    }
    let marked = after_the_first_burst(RateControl::Learnt, 1e6, 1);
    assert_eq!(rate(&marked), 24e3 * MARKED, "not where packets are marked");
    let friendly = after_the_first_burst(RateControl::Friendly, 1e6, 0);
    let round_trip_s = ROUND_TRIP.as_secs_f64() + 0.024 - 15e-6; // of the last packet of the burst
    assert_eq!(rate(&friendly), (16.0 * 1500.0 / round_trip_s).round(), "a window of so many packets, as TCP's first");
    let slow = after_the_first_burst(RateControl::Friendly, 2e5, 0);
    assert_eq!(rate(&slow), 50e3, "a quarter, if that is less");
    let slower = after_the_first_burst(RateControl::Friendly, 1e4, 0);
    assert_eq!(rate(&slower), 9500.0, "16 packets in a second are more than the path carries");
    // A rate too fast for the clocks is taken as the fastest that they can measure.
    let mut fast = after_the_first_burst(RateControl::Learnt, 1e9, 0);
    assert_eq!(rate(&fast), (0.25 * 22_500.0_f64 / 0.005).round());
    fast.learnt.rate = 1e7;
    assert_eq!(fast.learnt.grown(), 2e7);
}

/// `[P13]`
#[test]
fn a_rate_that_is_too_high_is_reduced_within_one_and_a_half_round_trips() {
    let mut path = Path::new(1e6, RateControl::Learnt);
    path.run(1);
    path.learnt.rate = 2e6;
    path.learnt.is_starting = true;
    path.learnt.begin_period(path.now, ROUND_TRIP.times(3));
    let began = path.now;
    while path.learnt.is_starting {
        path.step();
    }
    let took = path.now.since(began);
    assert!(took < Time::from_millis(310), "{} s", took.as_secs_f64());
    assert!(path.learnt.bytes_per_s() < 1e6, "{}", path.learnt.bytes_per_s());
}

/// `[P19]`
#[test]
fn a_rate_of_which_nearly_nothing_arrives_is_halved() {
    let share_left = |is_alone: bool| {
        let mut path = Path::shared(1e6, RateControl::Friendly, is_alone);
        path.run(20);
        let before = path.learnt.base.max(path.learnt.floor_rate());
        let (timeout, until) = (Time::from_millis(300), path.now + Time::from_secs(1));
        while path.now < until {
            let sent = ticks(path.now - Time::from_millis(100));
            (0..10).for_each(|n| path.learnt.on_outcome(path.now, sent, if n == 0 { 1.0 } else { 0.0 }));
            path.learnt.on_report(path.now, timeout, Time::ZERO);
            path.now += Time::from_millis(10);
        }
        path.learnt.base.max(path.learnt.floor_rate()) / before
    };
    assert!(share_left(false) < 0.51, "{}", share_left(false));
    assert_eq!(share_left(true), 1.0, "a path of one's own");
}

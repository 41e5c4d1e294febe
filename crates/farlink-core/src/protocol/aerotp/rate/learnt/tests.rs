use super::*;
use crate::units::PositiveSeconds;

const ROUND_TRIP: Time = Time::from_millis(200);

/// A sender at the learnt rate over a FIFO link of so many bytes per second, each packet answered by itself.
struct Path {
    learnt: Learnt,
    now: Time,
    link: f64,
    /// When the link is free.
    free: Time,
    /// Marks every packet that waits so long.
    mark_from: Time,
    marked: u16,
    answers: std::collections::VecDeque<(Time, Answer)>,
    longest_queue: Time,
}

impl Path {
    fn new(link: f64, control: RateControl) -> Self {
        let config = AerotpConfig {
            rate_control: Some(control),
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
            answers: std::collections::VecDeque::new(),
            longest_queue: Time::ZERO,
        }
    }

    fn run(&mut self, seconds: u64) {
        let end = self.now + Time::from_secs(seconds);
        self.longest_queue = Time::ZERO;
        while self.now < end {
            while let Some(&(at, answer)) = self.answers.front()
                && at <= self.now
            {
                self.answers.pop_front();
                self.learnt.on_answer(at, &answer);
            }
            self.learnt.on_sent(self.now, 1500);
            let queue = self.free.since(self.now);
            self.longest_queue = self.longest_queue.max(queue);
            self.marked = self.marked.wrapping_add(u16::from(queue >= self.mark_from));
            self.free = self.free.max(self.now) + Time::from_secs_f64(1500.0 / self.link);
            let arrival = self.free + ROUND_TRIP;
            let round_trip = arrival.since(self.now);
            let answer = Answer { echo: ticks(self.now), round_trip, held: Time::ZERO, marked: self.marked };
            self.answers.push_back((arrival, answer));
            self.now += Time::from_secs_f64(1500.0 / self.learnt.bytes_per_s());
        }
    }
}

#[test]
fn finds_the_bottleneck_and_leaves_its_queue_short() {
    for link in [2e4, 1e6, 1e8] {
        let mut path = Path::new(link, RateControl::Learnt);
        path.run(20);
        path.run(60);
        let share = path.learnt.bytes_per_s() / link;
        assert!((0.8..1.2).contains(&share), "{share} of {link}");
        assert!(path.longest_queue < Time::from_millis(300), "{} at {link}", path.longest_queue.as_secs_f64());
    }
}

#[test]
fn follows_a_link_that_changes() {
    let mut path = Path::new(1e6, RateControl::Learnt);
    path.run(30);
    path.link = 3e5;
    path.run(30);
    assert!((0.8..1.2).contains(&(path.learnt.bytes_per_s() / 3e5)), "{}", path.learnt.bytes_per_s());
    path.link = 1e6;
    path.run(60);
    assert!((0.8..1.2).contains(&(path.learnt.bytes_per_s() / 1e6)), "{}", path.learnt.bytes_per_s());
}

#[test]
fn marks_make_it_slower_and_wrong_bits_do_not() {
    let mut path = Path::new(1e6, RateControl::Learnt);
    path.mark_from = Time::from_millis(2);
    path.run(60);
    assert!(path.learnt.bytes_per_s() < 1.06e6 && path.learnt.bytes_per_s() > 5e5, "{}", path.learnt.bytes_per_s());
    // Nothing in its input tells of losses: only what arrives is echoed. Every second packet gets lost:
    let mut path = Path::new(1e6, RateControl::Learnt);
    for _ in 0..600 {
        path.run(0);
        path.now += Time::from_millis(1);
        path.run(1);
        let mut n = 0;
        path.answers.retain(|_| {
            n += 1;
            n % 2 == 0
        });
        if path.now > Time::from_secs(60) {
            break;
        }
    }
    assert!(path.learnt.bytes_per_s() > 8e5, "{}", path.learnt.bytes_per_s());
}

#[test]
fn is_told_the_rate() {
    let mut learnt = Path::new(1e6, RateControl::Learnt).learnt;
    learnt.on_hint(BitRate::new(8e3).unwrap());
    assert_eq!(learnt.bytes_per_s(), 1e3, "no faster than the own link");
    learnt.is_starting = false;
    learnt.on_hint(BitRate::new(8e6).unwrap());
    assert!(learnt.is_starting, "the bottleneck may have become faster as well");
}

#[test]
fn a_friendly_one_takes_no_more_than_tcp_where_there_is_congestion() {
    let run = |control| {
        let mut path = Path::new(1e7, control);
        path.mark_from = Time::from_millis(1);
        path.run(200);
        path.learnt.bytes_per_s()
    };
    assert!(run(RateControl::Friendly) < 0.7 * run(RateControl::Learnt));
}

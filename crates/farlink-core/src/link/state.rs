//! The state of a link at one time: the source of hints and of adaptive coding.

use crate::channel::{ChannelState, SettingId};
use crate::time::Time;
use crate::units::BitRate;

use super::Link;

/// The properties of a link, constant until the next change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkState {
    /// Whether frames can cross the link: not during an outage of the channel, nor while the rate is zero.
    pub up: bool,
    /// Transmission rate; while it is zero, the previous rate. A link with delivery opportunities has its mean rate.
    pub rate: BitRate,
    /// One-way delay of a frame that leaves now.
    pub delay: Time,
    /// Carrier-to-noise-density ratio; `None` if the channel does not know it (a NaN would differ from itself).
    pub cn0_dbhz: Option<f32>,
    /// Share of wrong bits among those that arrive; `None` if the channel does not know it.
    pub ber: Option<f64>,
    /// Modulation and coding in use.
    pub setting: SettingId,
}

impl Link {
    /// The state of the link at `now`. Frames that wait in its queue are affected by later states.
    ///
    /// This and [`next_change`](Link::next_change) are called in the order of time. They do not affect packets.
    pub fn state(&mut self, now: Time) -> LinkState {
        let ChannelState { up, cn0_dbhz, ber } = self.channel.state(now);
        let (has_rate, rate) = self.transmitter.rate_at(now);
        LinkState {
            up: up && has_rate,
            rate,
            delay: self.delay.looked_up(now),
            cn0_dbhz,
            ber,
            setting: SettingId::default(),
        }
    }

    /// A time later than `now` before which the state stays the same. [`Time::NEVER`] if it never changes.
    ///
    /// A step of a series or the end of an outage lies there. The state may still be the same: another outage may follow at once.
    pub fn next_change(&mut self, now: Time) -> Time {
        self.channel.next_change(now).min(self.transmitter.next_change(now)).min(self.delay.next_change(now))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::channel::{ChannelKind, Site};
    use crate::link::setting::{DelaySetting, RateSetting};
    use crate::link::{QueueLimit, Verdict};
    use crate::rng::Rng;
    use crate::trace::{MemoryTraces, Trace};

    fn traces() -> MemoryTraces {
        let rate_bps = vec![8e3, 8e3, 0.0, 0.0, 16e3];
        let delay = |delay_s: &[f64]| Trace::Delay { time_s: vec![0.0, 1.0], delay_s: delay_s.into(), duration_s: 4.0 };
        MemoryTraces::default()
            .with("rate", Trace::Rate { time_s: vec![0.0, 0.5, 1.0, 1.5, 2.0], rate_bps, duration_s: 4.0 })
            .with("steady", Trace::Rate { time_s: vec![0.0, 1.0], rate_bps: vec![5e3, 5e3], duration_s: 2.0 })
            .with(
                "delivery",
                Trace::Delivery { opportunity_s: vec![0.0, 0.5], bytes_per_opportunity: 1500, duration_s: 1.0 },
            )
            .with("delay", delay(&[0.1, 0.2]))
            .with("even", delay(&[0.1, 0.1]))
    }

    fn link(rate: &str, delay: &str, channel: &str, seed: u64) -> Link {
        let rate: RateSetting = serde_json::from_str(rate).unwrap();
        let delay: DelaySetting = serde_json::from_str(delay).unwrap();
        let channel: ChannelKind = serde_json::from_str(channel).unwrap();
        let traces = traces();
        let (rate, delay) = (rate.prepare(&traces).unwrap(), delay.prepare(&traces).unwrap());
        let channel = channel.prepare(&Site::anywhere(&traces)).unwrap();
        Link::new(
            &rate,
            &delay,
            QueueLimit::Packets(20),
            &*channel,
            Rng::for_component(seed, 0, "link"),
            &Rng::for_component(seed, 0, "hop"),
        )
    }

    const CLEAR: &str = r#"{"kind": "none"}"#;

    fn rate_trace(file: &str, offset_s: f64) -> String {
        format!(r#"{{"kind": "rate-trace", "file": "{file}", "offset_s": {offset_s}}}"#)
    }

    /// The first changes and the resulting states: seconds, up, bit/s, delay in seconds.
    fn history(link: &mut Link, changes: usize) -> Vec<(f64, bool, f64, f64)> {
        let mut now = Time::ZERO;
        let mut all = Vec::new();
        for _ in 0..=changes {
            let LinkState { up, rate, delay, .. } = link.state(now);
            all.push((now.as_secs_f64(), up, rate.get(), delay.as_secs_f64()));
            now = link.next_change(now);
            if now == Time::NEVER {
                break;
            }
        }
        all
    }

    #[test]
    fn a_constant_link_never_changes() {
        let mut link = link("155e6", "0.25", r#"{"kind": "ber", "ber": 1e-6}"#, 1);
        assert_eq!(history(&mut link, 9), [(0.0, true, 155e6, 0.25)]);
        assert_eq!(link.state(Time::ZERO).cn0_dbhz, None);
    }

    #[test]
    fn a_rate_trace_repeats_and_is_down_where_it_is_zero() {
        let mut link = link(&rate_trace("rate", 0.0), "0", CLEAR, 1);
        let expected = [
            (0.0, true, 8e3, 0.0),
            (1.0, false, 8e3, 0.0), // the previous rate
            (2.0, true, 16e3, 0.0),
            (4.0, true, 8e3, 0.0),
            (5.0, false, 8e3, 0.0),
        ];
        assert_eq!(history(&mut link, 4), expected);
        let far = Time::from_secs(4_000_001);
        assert_eq!((link.state(far).up, link.next_change(far)), (false, Time::from_secs(4_000_002)));
    }

    #[test]
    fn an_offset_moves_the_series() {
        let mut started_late = link(&rate_trace("rate", 1.75), "0", CLEAR, 1);
        let expected = [(0.0, false, 8e3, 0.0), (0.25, true, 16e3, 0.0), (2.25, true, 8e3, 0.0)];
        assert_eq!(history(&mut started_late, 2), expected);
        // Before the first step of a repetition comes the last step of the previous one.
        let mut delayed = link("1e6", r#"{"kind": "delay-trace", "file": "delay", "offset_s": 3.5}"#, CLEAR, 1);
        assert_eq!(history(&mut delayed, 2), [(0.0, true, 1e6, 0.2), (0.5, true, 1e6, 0.1), (1.5, true, 1e6, 0.2)]);
    }

    #[test]
    fn equal_steps_are_no_change() {
        let even = r#"{"kind": "delay-trace", "file": "even"}"#;
        assert_eq!(history(&mut link(&rate_trace("steady", 0.3), even, CLEAR, 1), 9), [(0.0, true, 5e3, 0.1)]);
    }

    #[test]
    fn delivery_opportunities_have_their_mean_rate() {
        assert_eq!(history(&mut link(&rate_trace("delivery", 0.0), "0", CLEAR, 1), 9), [(0.0, true, 24e3, 0.0)]);
    }

    #[test]
    fn channel_rate_and_delay_change_in_the_order_of_time() {
        let outage = r#"{"kind": "outage", "schedule": [[0.5, 1.5], [2.5, 2.75]]}"#;
        let delay = r#"{"kind": "delay-trace", "file": "delay"}"#;
        let expected = [
            (0.0, true, 8e3, 0.1),
            (0.5, false, 8e3, 0.1),
            (1.0, false, 8e3, 0.2),
            (1.5, false, 8e3, 0.2), // the outage is over, the rate is zero
            (2.0, true, 16e3, 0.2),
            (2.5, false, 16e3, 0.2),
            (2.75, true, 16e3, 0.2),
        ];
        assert_eq!(history(&mut link(&rate_trace("rate", 0.0), delay, outage, 1), 6), expected);
    }

    fn links() -> impl Strategy<Value = (String, String, String)> {
        let file = |name, offset_s: f64| rate_trace(name, offset_s);
        let rate = prop_oneof![
            Just("2e4".to_owned()),
            (0.0..9.0f64).prop_map(move |offset_s| file("rate", offset_s)),
            (0.0..9.0f64).prop_map(move |offset_s| file("delivery", offset_s)),
        ];
        let delay = prop_oneof![Just("0.3".to_owned()), Just(r#"{"kind": "delay-trace", "file": "delay"}"#.to_owned())];
        let simple = prop_oneof![
            Just(CLEAR.to_owned()),
            Just(r#"{"kind": "ber", "ber": 1e-4}"#.to_owned()),
            Just(r#"{"kind": "loss", "loss": 0.2}"#.to_owned()),
            Just(r#"{"kind": "outage", "schedule": [[0, 0.5], [1, 2], [2, 2.25], [9, 30]]}"#.to_owned()),
            (1.0..4.0f64, 0.01..0.9f64)
                .prop_map(|(period, down)| format!(r#"{{"kind": "outage", "period_s": {period}, "down_s": {down}}}"#)),
            (0.1..3.0f64, 0.01..0.9f64)
                .prop_map(|(rate, down)| format!(r#"{{"kind": "outage", "rate_per_s": {rate}, "down_s": {down}}}"#)),
        ];
        let channel = proptest::collection::vec(simple, 1..4)
            .prop_map(|stages| format!(r#"{{"kind": "chain", "stages": [{}]}}"#, stages.join(",")));
        (rate, delay, channel)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_changes_before_the_next_change(
            (rate, delay, channel) in links(),
            seed: u64,
            steps in proptest::collection::vec((0..3_000u64, 0.0..1.0f64), 1..60),
        ) {
            let mut link = link(&rate, &delay, &channel, seed);
            let mut now = Time::ZERO;
            for (gap, part) in steps {
                let (state, next) = (link.state(now), link.next_change(now));
                prop_assert!(next > now);
                if next == Time::NEVER {
                    break;
                }
                let span = next.since(now);
                for at in [now + Time::from_secs_f64(span.as_secs_f64() * part).min(span - Time::from_ps(1)), next - Time::from_ps(1)] {
                    prop_assert_eq!(link.state(at), state);
                    prop_assert_eq!(link.next_change(at), next);
                }
                now = if gap < 1500 { next } else { now.max(next - Time::from_ps(1)) + Time::from_millis(gap) };
            }
        }

        #[test]
        fn queries_of_the_state_do_not_affect_packets(
            (rate, delay, channel) in links(),
            seed: u64,
            packets in proptest::collection::vec((0..1_000u64, 1..2_000u32, 0..40_000u64), 1..200),
        ) {
            let (mut asked, mut left) = (link(&rate, &delay, &channel, seed), link(&rate, &delay, &channel, seed));
            let (mut now, mut latest) = (Time::ZERO, Time::ZERO);
            for (gap, bytes, ahead) in packets {
                now += Time::from_millis(gap);
                if ahead < 30_000 {
                    // After the frames, which wait, or before them.
                    latest = latest.max(now + Time::from_millis(ahead / 10));
                    asked.state(latest);
                    asked.next_change(latest);
                }
                let verdict = asked.send(now, bytes);
                prop_assert_eq!(verdict, left.send(now, bytes));
                if matches!(verdict, Verdict::Damaged(_)) {
                    prop_assert_eq!(asked.wrong_bits(), left.wrong_bits());
                }
            }
        }
    }
}

//! Losses of a channel, and the spans in which neither losses nor rate change.

use farlink_core::ConfigError;
use farlink_core::channel::ChannelKind;
use farlink_core::trace::{Trace, TraceSource};

use super::super::point::Span;
use super::Path;

/// How packets are lost.
pub(super) enum Losses {
    /// With this probability.
    Constant(f64),
    /// Spans in seconds with their probabilities, which follow each other and repeat; 1 where no frame is detected.
    Series(Vec<(f64, f64)>),
}

/// The losses of packets of a given length, in bits, on a channel.
pub(super) fn losses(
    channel: &ChannelKind,
    table: &str,
    packet_bits: f64,
    traces: &dyn TraceSource,
) -> Result<Losses, ConfigError> {
    let of_bits = |ber: f64| -libm::expm1(packet_bits * libm::log1p(-ber));
    let loss = match channel {
        ChannelKind::None(_) => 0.0,
        ChannelKind::Loss(config) => config.loss.get(),
        ChannelKind::Ber(config) => of_bits(config.ber.get()),
        ChannelKind::BerTrace(config) => {
            let here = format!("{table}.channel.file");
            let trace = traces.load(&config.file).map_err(|error| error.at(&here))?;
            let Trace::BitErrorRate { ber, duration_s } = &*trace else {
                let what = format!("{:?} is a trace of kind {:?}", config.file, trace.kind());
                return Err(ConfigError::new(here, what, "give one of kind \"ber\""));
            };
            let sample_s = duration_s / ber.len() as f64;
            let lost_above = config.lost_above_ber.get();
            let loss = |&ber: &f64| (sample_s, if ber > lost_above { 1.0 } else { of_bits(ber) });
            return Ok(Losses::Series(ber.iter().map(loss).collect()));
        }
        other => {
            let what =
                format!("the engine \"fluid\" knows losses that are independent, and {:?} has others", other.kind());
            let remedy = "give \"none\", \"loss\", \"ber\" or \"ber-trace\", or take the engine \"packet\"";
            return Err(ConfigError::new(format!("{table}.channel.kind"), what, remedy));
        }
    };
    if loss < 1.0 {
        return Ok(Losses::Constant(loss));
    }
    let what = "every segment would be lost";
    Err(ConfigError::new(format!("{table}.channel"), what, "give a smaller loss or ber"))
}

/// A link with more losses counts as down.
const MOST_LOSS: f64 = 0.999;

/// Spans in which neither rate nor losses change.
pub(super) fn together(
    path: &Path,
    series: &[(f64, f64)],
    table: &str,
    packet_bits: f64,
) -> Result<Vec<Span>, ConfigError> {
    let length_s: f64 = series.iter().map(|(seconds, _)| seconds).sum();
    let whole = [Span { seconds: length_s, rate: path.rate_bps / packet_bits, loss: 0.0 }];
    let rates = if path.spans.is_empty() { &whole[..] } else { &path.spans[..] };
    let rates_s: f64 = rates.iter().map(|span| span.seconds).sum();
    if (rates_s / length_s - 1.0).abs() > 1e-9 {
        let what = format!("the rate repeats after {rates_s} s and the error rate after {length_s} s");
        let remedy = "give traces of one length, or take the engine \"packet\"";
        return Err(ConfigError::new(format!("{table}.channel.file"), what, remedy));
    }
    let mut spans: Vec<Span> = Vec::new();
    let (mut rates, mut losses) = (rates.iter().copied().peekable(), series.iter().copied().peekable());
    while let (Some(of_rate), Some(of_loss)) = (rates.peek_mut(), losses.peek_mut()) {
        let seconds = of_rate.seconds.min(of_loss.0);
        let loss = 1.0 - (1.0 - of_loss.1) * (1.0 - path.loss);
        let (rate, loss) = if loss > MOST_LOSS { (0.0, 0.0) } else { (of_rate.rate, loss) };
        match spans.last_mut() {
            Some(last) if (last.rate, last.loss) == (rate, loss) => last.seconds += seconds,
            _ => spans.push(Span { seconds, rate, loss }),
        }
        of_rate.seconds -= seconds;
        of_loss.0 -= seconds;
        // Drop spans that are only rounding errors.
        rates.next_if(|span| span.seconds <= 1e-9 * length_s);
        losses.next_if(|(left_s, _)| *left_s <= 1e-9 * length_s);
    }
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(rates: &[(f64, f64)], loss: f64) -> Path {
        let spans = rates.iter().map(|&(seconds, rate)| Span { seconds, rate, loss: 0.0 }).collect();
        Path { rate_bps: 8e3, spans, buffer: 10.0, loss, round_trip_s: 0.5 }
    }

    /// The rate changes at 4 s and the losses at 3 and 6 s. While no frame is detected, the link is down.
    #[test]
    fn spans_end_where_anything_changes() {
        let series = [(3.0, 0.0), (3.0, 0.25), (3.0, 1.0)];
        let found = together(&path(&[(4.0, 10.0), (5.0, 20.0)], 0.0), &series, "link", 8e3).unwrap();
        let expected = [(3.0, 10.0, 0.0), (1.0, 10.0, 0.25), (2.0, 20.0, 0.25), (3.0, 0.0, 0.0)];
        assert_eq!(found, expected.map(|(seconds, rate, loss)| Span { seconds, rate, loss }));
    }

    /// With a constant rate there is one span for each distinct loss rate, and another hop's losses are added.
    #[test]
    fn losses_of_other_hops_are_added() {
        let series = [(1.0, 0.5), (1.0, 0.5), (2.0, 0.0)];
        let found = together(&path(&[], 0.2), &series, "link", 8e3).unwrap();
        assert_eq!(found.iter().map(|span| (span.seconds, span.rate)).collect::<Vec<_>>(), [(2.0, 1.0), (2.0, 1.0)]);
        assert!((found[0].loss - 0.6).abs() < 1e-12 && (found[1].loss - 0.2).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn traces_of_two_lengths_are_refused() {
        let error = together(&path(&[(4.0, 10.0)], 0.0), &[(5.0, 0.1)], "link", 8e3).unwrap_err();
        assert!(error.to_string().contains("repeats after 4 s") && error.to_string().contains("5 s"), "{error}");
    }
}

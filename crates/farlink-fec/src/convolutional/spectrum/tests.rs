use proptest::prelude::*;

use super::*;
use crate::convolutional::KNOWN;
use crate::convolutional::test_codes::any_code;

fn counts(generators: &str, puncturing: &str, terms: usize) -> (usize, Vec<u64>, Vec<u64>) {
    let code = Code::from_octal(generators).unwrap();
    let spectrum = Spectrum::new(&code, &puncturing.parse().unwrap(), terms).unwrap();
    let terms = spectrum.terms();
    (
        spectrum.free_distance(),
        terms.iter().map(|term| term.events).collect(),
        terms.iter().map(|term| term.data_bits).collect(),
    )
}

/// a_d and c_d of 171, 133 with its usual patterns from the free distance on: Haccoun and Bégin 1989 for M = 6; further terms in
/// P. Frenger, P. Orten, T. Ottosson, A. Svensson, "Multi-rate convolutional codes", Chalmers, 1998.
const PUBLISHED: [(&str, usize, &[u64], &[u64]); 5] = [
    (
        "1/2",
        10,
        &[11, 0, 38, 0, 193, 0, 1331, 0, 7275, 0, 40406, 0, 234969, 0, 1337714, 0, 7594819, 0, 43375588, 0],
        &[36, 0, 211, 0, 1404, 0, 11633, 0, 77433, 0, 502690, 0, 3322763, 0, 21292910, 0, 134365911, 0, 843425871, 0],
    ),
    ("2/3", 6, &[1, 16, 48, 158, 642, 2435, 9174, 34705], &[3, 70, 285, 1276, 6160, 27128, 117019, 498860]),
    ("3/4", 5, &[8, 31, 160, 892, 4512, 23307, 121077], &[42, 201, 1492, 10469, 62935, 379644, 2253373]),
    ("5/6", 4, &[14, 69, 654, 4996, 39699], &[92, 528, 8694, 79453, 792114]),
    ("7/8", 3, &[2, 46, 499, 5291, 56179], &[9, 500, 7437, 105707, 1402743]),
];

#[test]
fn the_spectra_of_the_usual_codes_are_the_published_ones() {
    for (rate, free_distance, events, data_bits) in PUBLISHED {
        let puncturing = Puncturing::usual(rate).unwrap();
        let (distance, own_events, own_data_bits) = counts("171,133", &puncturing.to_string(), events.len());
        assert_eq!(distance, free_distance, "rate {rate}");
        // Up to twice the free distance both definitions of an event agree; see `Spectrum` for larger distances.
        let alike = events.len().min(if rate == "1/2" { usize::MAX } else { free_distance });
        assert_eq!(
            (&own_events[..alike], &own_data_bits[..alike]),
            (&events[..alike], &data_bits[..alike]),
            "rate {rate}"
        );
    }
}

/// In the published counts an event ends only where a period does: they include pairs and longer chains of events, each of which
/// begins in the period in which the one before ended. With these added, our counts are equal.
#[test]
fn with_events_that_share_a_period_as_one_the_spectra_are_the_published_ones() {
    for (rate, free_distance, published_events, published_data_bits) in &PUBLISHED[1..] {
        let puncturing = Puncturing::usual(rate).unwrap();
        let (period, terms) = (puncturing.period(), published_events.len());
        let heaviest = free_distance + terms - 1;
        let events = events_up_to(&Code::from_octal("171,133").unwrap(), &puncturing, heaviest).unwrap();
        // By weight, first and last phase: events, and wrong data bits of all.
        let mut single = vec![vec![vec![(0u64, 0u64); period]; period]; heaviest + 1];
        for event in events {
            let ends = (event.phase + event.steps) % period;
            let (count, data_bits) = &mut single[event.weight()][event.phase][ends];
            (*count, *data_bits) = (*count + 1, *data_bits + event.data_bits.len() as u64);
        }
        // By weight and last phase: chains.
        let mut chains = vec![vec![(0u64, 0u64); period]; heaviest + 1];
        for weight in 0..=heaviest {
            for ends in 0..period {
                let (mut count, mut data_bits) = (0, 0);
                for begins in 0..period {
                    count += single[weight][begins][ends].0;
                    data_bits += single[weight][begins][ends].1;
                    for first in *free_distance..weight {
                        let last = single[weight - first][begins][ends];
                        for before in &chains[first][1..=begins] {
                            count += before.0 * last.0;
                            data_bits += before.1 * last.0 + before.0 * last.1;
                        }
                    }
                }
                chains[weight][ends] = (count, data_bits);
            }
        }
        let total = |weight: usize| chains[weight].iter().fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        for (at, weight) in (*free_distance..=heaviest).enumerate() {
            assert_eq!(
                total(weight),
                (published_events[at], published_data_bits[at]),
                "rate {rate}, distance {weight}"
            );
        }
    }
}

/// Viterbi 1971: T(D, N) = D^5 N / (1 - 2 D N), so that a_d = 2^(d-5) and c_d = (d - 4) 2^(d-5).
#[test]
fn the_code_of_four_states_has_viterbis_transfer_function() {
    let expected: Vec<u64> = (0..50).map(|more| 1 << more).collect();
    let data_bits = (0..50u64).map(|more| (more + 1) << more).collect();
    assert_eq!(counts("7,5", "1/1", 50), (5, expected, data_bits));
}

#[test]
fn the_known_codes_have_the_free_distances_of_the_literature() {
    for known in KNOWN {
        let code = Code::from_octal(known.octal).unwrap();
        let spectrum = Spectrum::new(&code, &Puncturing::none(code.outputs()), 1).unwrap();
        assert_eq!(spectrum.free_distance(), known.free_distance as usize, "{}", known.octal);
    }
}

#[test]
fn counts_beyond_64_bits_are_left_out() {
    let (_, events, _) = counts("7,5", "1/1", 100);
    assert!((55..=64).contains(&events.len()), "{}", events.len());
}

#[test]
fn the_lightest_event_of_the_code_of_four_states_is_one_wrong_bit() {
    let events = events_up_to(&Code::from_octal("7,5").unwrap(), &Puncturing::none(2), 6).unwrap();
    assert_eq!(events[0], ErrorEvent { phase: 0, steps: 3, data_bits: vec![0], coded_bits: vec![0, 1, 2, 4, 5] });
    let lengths: Vec<_> = events.iter().map(|event| (event.weight(), event.steps)).collect();
    assert_eq!(lengths, [(5, 3), (6, 5), (6, 4)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Two methods for the same counts: the transfer function, and listing the events.
    #[test]
    fn the_events_are_as_many_as_the_spectrum_says(
        code in any_code(),
        pattern in prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.7), 4), 5),
        period in 1usize..=4,
    ) {
        let rows: Vec<Vec<bool>> =
            pattern[..code.outputs()].iter().map(|row| row[..period].to_vec()).collect();
        let Ok(puncturing) = Puncturing::new(&rows) else { return Ok(()) };
        let Ok(spectrum) = Spectrum::new(&code, &puncturing, 4) else { return Ok(()) };
        let last = spectrum.terms().last().unwrap().distance;
        let events = events_up_to(&code, &puncturing, last).unwrap();
        for term in spectrum.terms() {
            let of_weight = events.iter().filter(|event| event.weight() == term.distance);
            prop_assert_eq!(of_weight.clone().count() as u64, term.events);
            prop_assert_eq!(of_weight.map(|event| event.data_bits.len() as u64).sum::<u64>(), term.data_bits);
        }
    }
}

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::convolutional::test_codes::{any_code_of, random_bits, symbols};
use crate::convolutional::{Code, Decoded, Encoder, Ending, Spectrum, Viterbi};

fn parse(pattern: &str) -> Result<Puncturing, PuncturingError> {
    pattern.parse()
}

#[test]
fn patterns_are_read_and_written() {
    let puncturing = parse("[1 0 1; 1 1 0]").unwrap();
    assert_eq!(puncturing, Puncturing::usual("3/4").unwrap());
    assert_eq!(puncturing.to_string(), "101/110");
    assert_eq!((puncturing.sent_at(0), puncturing.sent_at(1), puncturing.sent_at(5)), (0b11, 0b10, 0b01));
    assert_eq!((puncturing.rate(), puncturing.sent_bits(7)), (0.75, 4 + 4 + 2));
    assert_eq!(puncturing.places(4).collect::<Vec<_>>(), [0, 1, 3, 4, 6, 7]);
    for (rate, data_bits, sent) in [("1/2", 1, 2), ("2/3", 2, 3), ("3/4", 3, 4), ("5/6", 5, 6), ("7/8", 7, 8)] {
        let usual = Puncturing::usual(rate).unwrap();
        assert_eq!((usual.period(), usual.sent_per_period()), (data_bits, sent));
    }
}

#[test]
fn patterns_that_are_none_are_refused() {
    assert_eq!(parse("").unwrap_err(), PuncturingError::RowCount(0));
    assert_eq!(parse("1/1/1/1/1/1/1/1/1").unwrap_err(), PuncturingError::RowCount(9));
    assert_eq!(parse("12/11").unwrap_err(), PuncturingError::NotBinary('2'));
    assert_eq!(parse("110/11").unwrap_err(), PuncturingError::RowLength { row: 2, length: 2, period: 3 });
    assert_eq!(parse("/").unwrap_err(), PuncturingError::TooFew { sent: 0, period: 0 });
    assert_eq!(parse("10/01").unwrap_err(), PuncturingError::TooFew { sent: 2, period: 2 });
    assert_eq!(parse(&format!("{}/{}", "1".repeat(65), "1".repeat(65))).unwrap_err(), PuncturingError::Period(65));
    assert_eq!(Puncturing::usual("4/5").unwrap_err(), PuncturingError::UnknownRate("4/5".to_owned()));
    let code = Code::from_octal("171,133,145").unwrap();
    assert_eq!(parse("10/11").unwrap().check(&code), Err(PuncturingError::Rows { rows: 2, outputs: 3 }));
    let refused = parse("101/110").unwrap().depuncture(&[1; 9], 7);
    assert_eq!(refused, Err(PuncturingError::Symbols { symbols: 9, steps: 7, expected: 10 }));
}

#[test]
fn patterns_that_make_a_good_code_catastrophic_are_refused() {
    let check = |generators: &str, pattern: &str| parse(pattern).unwrap().check(&Code::from_octal(generators).unwrap());
    assert_eq!(check("7,5", "11/01"), Ok(()));
    // Of the outputs 7, 5, 5 only the two equal ones are sent: 1 + D^2 divides both.
    assert!(matches!(check("7,5,5", "0/1/1"), Err(PuncturingError::Catastrophic { .. })));
    // For a single 1 at the last step of a period, neither the output that uses it then nor the other one two steps later is
    // sent.
    assert!(matches!(check("1,4", "0011/1110"), Err(PuncturingError::Catastrophic { .. })));
    // Only every second step is sent, where 7 and 5 are both 0 for the endless data 1 0 1 0 1.
    assert!(matches!(check("7,5,7,5", "10/10/10/00"), Err(PuncturingError::Catastrophic { .. })));
    for rate in ["1/2", "2/3", "3/4", "5/6", "7/8"] {
        assert_eq!(check("171,133", &Puncturing::usual(rate).unwrap().to_string()), Ok(()));
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(rows in prop::collection::vec(prop::collection::vec(any::<bool>(), 5), 1..9)) {
        if let Ok(puncturing) = Puncturing::new(&rows) {
            prop_assert_eq!(parse(&puncturing.to_string()), Ok(puncturing));
        }
    }

    #[test]
    fn bits_and_symbols_lie_where_the_places_say(
        rows in prop::collection::vec(prop::collection::vec(any::<bool>(), 1..65), 2..9),
        steps in 0usize..300,
        coded in prop::collection::vec(any::<u8>(), 300),
    ) {
        let period = rows[0].len();
        let rows: Vec<Vec<bool>> = rows.iter().map(|row| row.iter().copied().cycle().take(period).collect()).collect();
        if let Ok(puncturing) = Puncturing::new(&rows) {
            let places: Vec<usize> = puncturing.places(steps).collect();
            let kept = puncturing.puncture(&coded, steps);
            prop_assert_eq!(kept.len(), bits::bytes_for(places.len()));
            let expected = places.iter().map(|&place| bits::get(&coded, place)).chain(std::iter::repeat(false));
            for (at, bit) in expected.take(8 * kept.len()).enumerate() {
                prop_assert_eq!(bits::get(&kept, at), bit, "{}", at);
            }
            let symbols: Vec<Soft> = (0..places.len()).map(|at| (at % 127) as Soft + 1).collect();
            let mut all = vec![0; steps * puncturing.outputs()];
            places.iter().zip(&symbols).for_each(|(&place, &symbol)| all[place] = symbol);
            prop_assert_eq!(puncturing.depuncture(&symbols, steps), Ok(all));
        }
    }

    #[test]
    fn words_are_compressed_alike_with_all_instructions(word: u64, mask: u64) {
        prop_assert_eq!(compress(word, mask), compress_portable(word, mask));
    }

    #[test]
    fn any_text_is_answered(text in "[01/;, x\\[]{0,20}") {
        let _ = parse(&text);
        let _ = Puncturing::usual(&text);
    }

    /// A frame with as many wrong bits as the free distance allows, at any positions, is decoded correctly.
    #[test]
    fn errors_up_to_half_the_free_distance_are_mended(
        code in any_code_of(3..=7),
        pattern in prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.8), 6), 5),
        period in 1usize..=6,
        data_bits in 1usize..200,
        terminated: bool,
        seed: u64,
    ) {
        let rows: Vec<Vec<bool>> = pattern[..code.outputs()].iter().map(|row| row[..period].to_vec()).collect();
        let Ok(puncturing) = Puncturing::new(&rows) else { return Ok(()) };
        let Ok(spectrum) = Spectrum::new(&code, &puncturing, 1) else { return Ok(()) };
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let data = random_bits(&mut rng, data_bits);
        let ending = if terminated { Ending::Terminated } else { Ending::Truncated };
        // A truncated frame has less protection at its end: more data follows, which is not compared.
        let sent_bits = if terminated { data_bits } else { data_bits + 200 };
        let sent = random_bits(&mut rng, sent_bits);
        let mut frame = data.clone();
        frame.resize(bits::bytes_for(sent_bits), 0);
        (data_bits..sent_bits).for_each(|at| bits::set(&mut frame, at, bits::get(&sent, at)));

        let steps = ending.steps(sent_bits, code.constraint_length());
        let coded = Encoder::new(&code).encode(&frame, sent_bits, ending);
        let kept = puncturing.puncture(&coded, steps);
        let mut received = symbols(&kept, puncturing.sent_bits(steps), 1);
        let near = puncturing.sent_bits(ending.steps(data_bits, code.constraint_length()));
        // At positions drawn without replacement, by the beginning of a shuffle.
        let mut places: Vec<usize> = (0..near).collect();
        for drawn in 0..spectrum.errors_mended().min(near) {
            places.swap(drawn, rng.random_range(drawn..near));
            received[places[drawn]] *= -1;
        }
        let received = puncturing.depuncture(&received, steps).unwrap();
        let mut decoded = vec![0; frame.len()];
        let outcome = Viterbi::new(&code, steps).decode(&received, ending, &mut decoded).unwrap();
        prop_assert_eq!(outcome, Decoded { data_bits: sent_bits, is_closed: true });
        prop_assert_eq!(bits::differences(&decoded, &frame, data_bits).next(), None);
    }
}

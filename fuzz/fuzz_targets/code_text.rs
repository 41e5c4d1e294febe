//! Text that names a code or a puncturing pattern: one that is understood, or an error; what is written can be read again.
#![no_main]

use farlink_fec::convolutional::{Code, Puncturing, Rcpc, Spectrum};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(code) = Code::from_octal(text) {
        assert_eq!(Code::from_octal(&code.to_string()).as_ref(), Ok(&code));
        let again = Code::from_octal_of_length(code.constraint_length(), &code.to_string());
        assert_eq!(again.as_ref(), Ok(&code));
        if code.constraint_length() <= 7 {
            let spectrum = Spectrum::new(&code, &Puncturing::none(code.outputs()), 1).expect("an unpunctured code");
            assert!(spectrum.free_distance() > 0);
        }
    }
    for constraint_length in [0, 3, 7, 15, u32::MAX] {
        if let Ok(code) = Code::from_octal_of_length(constraint_length, text) {
            assert_eq!(code.constraint_length(), constraint_length);
        }
    }
    if let Ok(pattern) = text.parse::<Puncturing>() {
        assert_eq!(pattern.to_string().parse().as_ref(), Ok(&pattern));
        let steps = 3 * pattern.period() + 1;
        let symbols = vec![1; pattern.sent_bits(steps)];
        let all = pattern.depuncture(&symbols, steps).expect("as many as are sent");
        assert_eq!(all.iter().filter(|&&symbol| symbol != 0).count(), symbols.len());
        for code in ["7,5", "171,133", "133,171,145", "117,127,155,171"] {
            let _ = pattern.check(&code.parse().expect("a code of the literature"));
        }
    }
    let _ = Puncturing::usual(text);
    let _ = Rcpc::third().puncturing(text);
    let _ = Rcpc::quarter().puncturing(text);
});

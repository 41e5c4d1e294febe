//! Text that claims to be a scenario: a refusal with words, or points.
#![no_main]

use farlink_core::scenario::{expand, from_json};

libfuzzer_sys::fuzz_target!(|text: &str| {
    match from_json(text).and_then(|scenario| expand(&scenario)) {
        Ok(expanded) => assert!(!expanded.points.is_empty()),
        Err(error) => assert!(!error.remedy.is_empty()),
    }
});

//! Random numbers of the operating system, for unpredictable tags and first sequence numbers.

use std::fs::File;
use std::io::Read;

use farlink_core::rng::RandomSource;

use crate::command_line::Failure;

pub(crate) struct SystemRandom(File);

impl SystemRandom {
    pub(crate) fn open() -> Result<Self, Failure> {
        let opened = File::open("/dev/urandom");
        opened
            .map(SystemRandom)
            .map_err(|error| Failure::new(format!("cannot read /dev/urandom: {error}"), "run it on Linux or macOS"))
    }
}

impl RandomSource for SystemRandom {
    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes).expect("it never ends");
        u64::from_ne_bytes(bytes)
    }
}
